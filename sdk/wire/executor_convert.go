package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// What a host asks an executor, and what the types of package exec do not say of its answers.
type (
	environmentQuestion struct{ Device int }
	compileQuestion     struct {
		Device  int
		Problem gemm.Problem
		Config  gemm.Config // a library has nothing but a kernel
	}
	compiled struct {
		Kernel uint64 // in this process, and nothing in any other. Never 0
		exec.Resources
	}
	kernelQuestion  struct{ Kernel uint64 } // of Check and Release
	measureQuestion struct {
		Kernel uint64
		exec.MeasureOptions
		Runs int
	}
	runQuestion struct {
		Device  int
		Program exec.Program
		Runs    int
	}
	// numerics have no largest error if a result is not a number.
	numerics struct {
		MaxError                    *float64
		Tolerance                   float64
		Checked, Wrong, OutOfBounds int64
		Reference                   string
	}
)

// maxRuns bounds the runs of one call.
const maxRuns = 1 << 16

func toNumerics(n exec.Numerics) numerics {
	x := numerics{nil, n.Tolerance, n.Checked, n.Wrong, n.OutOfBounds, n.Reference}
	if n.MaxError <= math.MaxFloat64 {
		x.MaxError = &n.MaxError
	}
	return x
}

func fromNumerics(x *numerics) (exec.Numerics, error) {
	n := exec.Numerics{MaxError: math.Inf(1), Tolerance: x.Tolerance, Checked: x.Checked, Wrong: x.Wrong,
		OutOfBounds: x.OutOfBounds, Reference: x.Reference}
	switch {
	case *x == (numerics{}):
		return n, errors.New("no numerics")
	case x.Wrong > x.Checked:
		return n, fmt.Errorf("%d of %d elements are wrong", x.Wrong, x.Checked)
	case x.MaxError != nil && *x.MaxError < 0:
		return n, fmt.Errorf("the largest error is %v", *x.MaxError)
	case x.MaxError != nil:
		n.MaxError = *x.MaxError
	}
	return n, nil
}

func (q *compiled) check() error {
	if q.Kernel == 0 {
		return errors.New("no kernel")
	}
	return nil
}

// several checks how many there are of what was run.
func several[T any](runs int) func(*[]T) error {
	return func(list *[]T) error {
		if len(*list) != runs {
			return fmt.Errorf("%d answers for %d runs", len(*list), runs)
		}
		return nil
	}
}

// CompileMessage asks for a kernel. The three messages are for a caller that speaks the protocol itself.
func CompileMessage(device int, p gemm.Problem, c gemm.Config) *pb.Json {
	return toJSON(&compileQuestion{device, p, c})
}

// KernelMessage names a kernel, to check or to release it.
func KernelMessage(kernel uint64) *pb.Json { return toJSON(&kernelQuestion{kernel}) }

// MeasureMessage asks for runs of a kernel.
func MeasureMessage(kernel uint64, o exec.MeasureOptions, runs int) *pb.Json {
	return toJSON(&measureQuestion{kernel, o, runs})
}

// KernelOf reads the answer to a CompileMessage.
func KernelOf(q *pb.Json) (uint64, error) {
	got, err := fromJSON((*compiled).check)(q)
	return got.Kernel, err
}

// Samples reads the answer to a MeasureMessage.
func Samples(q *pb.Json, runs int) ([]exec.Sample, error) {
	return fromJSON(several[exec.Sample](runs))(q)
}
