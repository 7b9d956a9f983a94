package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/exec"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Of several faults in a message, the same one is said every time.
func TestFaultThatIsSaid(t *testing.T) {
	for range 20 {
		var c check
		c.attributes(map[string]float64{"d": math.NaN(), "c": math.NaN(), "b": math.NaN(), "a": math.NaN()})
		if c.err == nil || !strings.Contains(c.err.Error(), "a ") {
			t.Fatal(c.err)
		}
		_, err := fromNumerics(&pb.Numerics{Checked: -1, Wrong: -2, OutOfBounds: -3})
		if err == nil || err.Error() != "numerics checked is -1" {
			t.Fatal(err)
		}
	}
}

// unclosable is a kernel that cannot be closed.
type unclosable struct {
	exec.Kernel
	why string
}

func (k unclosable) Close() error { return errors.New(k.why) }

// What goes wrong when kernels are closed is said in the order in which they were compiled.
func TestOrderOfClosing(t *testing.T) {
	for range 20 {
		s := &executorServer{kernels: map[uint64]*held{}}
		for i, why := range []string{"one", "two", "three", "four"} {
			s.kernels[uint64(i)] = &held{kernel: unclosable{why: why}}
		}
		if err := s.close(); err == nil || err.Error() != "one\ntwo\nthree\nfour" {
			t.Fatal(err)
		}
	}
}
