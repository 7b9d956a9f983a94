package wire

import (
	"errors"
	"testing"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Of several faults in a message, the same one is said every time.
func TestFaultThatIsSaid(t *testing.T) {
	for range 20 {
		bad := calibrate.Value{Value: -1}
		m := measured{Values: calibrate.Values{"d": bad, "c": bad, "b": bad, "a": bad}}
		err := m.check()
		must.Need(t, err != nil && err.Error() == "a: it is -1", "%v", err)
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
		err := s.close()
		must.Need(t, err != nil && err.Error() == "one\ntwo\nthree\nfour", "%v", err)
	}
}
