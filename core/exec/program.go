package exec

import (
	"context"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Runner is an Executor that also runs programs of its caller's, for microbenchmarks.
type Runner interface {
	// Run loads a program, fills its buffers, runs it Program.Warmup times and then so many times that are timed. The
	// errors are as for an Executor: a program that the device refuses is an error of kind Input.
	Run(ctx context.Context, device int, p Program, runs int) ([]Reading, error)
}

// Program is a kernel in the assembly language of a device, and how it is launched. Programs with equal text share a
// loaded module.
type Program struct {
	// Text is the module (PTX on NVIDIA GPUs), Entry the kernel in it.
	Text, Entry string
	// Grid is the number of CTAs, Threads the threads of a CTA. SharedMemory is the dynamic shared memory of a CTA.
	Grid, Threads int
	SharedMemory  unit.Bytes
	// Launches is how many launches, one behind the other on one stream, make a run.
	Launches int
	// Warmup is the number of runs before the first timed run.
	Warmup int
	// Arguments are the kernel's parameters in order, each aligned to its size.
	Arguments []Argument
	// Counters is the number of 64-bit counters behind the argument of kind CountersArgument. They are zero before each
	// run.
	Counters int
}

// Limits of a program.
const (
	MaxLaunches  = 1 << 16
	MaxArguments = 64
	MaxCounters  = 1 << 12
	MaxThreads   = 1 << 10
	MaxRuns      = 1 << 16
)

// ArgumentKind is what is passed to a kernel.
type ArgumentKind uint8

// The kinds of arguments.
const (
	Word32           ArgumentKind = iota // the low 32 bits of Value
	Word64                               // Value
	BufferArgument                       // the address of a buffer
	CountersArgument                     // the address of the counters
)

// Argument is one parameter of a kernel.
type Argument struct {
	Kind  ArgumentKind
	Value uint64
	// Bytes is the size of a buffer. Before the first run it holds standard normal numbers of a type, or zeros without
	// one.
	Bytes unit.Bytes
	DType gemm.DType
}

// Reading is one timed run of a program.
type Reading struct {
	Sample
	// Counters are the program's counters after the run.
	Counters []uint64 `json:"counters,omitempty"`
}

// Validate reports what no executor could run. The error is of kind Input.
func (p *Program) Validate() error {
	counters := 0
	for i, a := range p.Arguments {
		switch {
		case a.Kind > CountersArgument:
			return diag.Inputf("argument %d has no known kind", i).At("program %s", p.Entry)
		case a.Kind == BufferArgument && !(a.Bytes > 0 && a.Bytes < 1<<50):
			return diag.Inputf("argument %d is a buffer of %v bytes", i, a.Bytes).At("program %s", p.Entry)
		case a.Kind == CountersArgument:
			counters++
		}
	}
	for _, limit := range []struct {
		name              string
		value, low, upper int
	}{
		{"CTAs", p.Grid, 1, 1<<31 - 1}, {"threads", p.Threads, 1, MaxThreads}, {"launches", p.Launches, 1, MaxLaunches},
		{"warm-up runs", p.Warmup, 0, MaxRuns}, {"arguments", len(p.Arguments), 0, MaxArguments},
		{"counters", p.Counters, 0, MaxCounters}, {"arguments for the counters", counters, 0, 1},
	} {
		if limit.value < limit.low || limit.value > limit.upper {
			return diag.Inputf("%d %s, not %d to %d", limit.value, limit.name, limit.low, limit.upper).
				At("program %s", p.Entry)
		}
	}
	switch {
	case p.Text == "" || p.Entry == "":
		return diag.Inputf("the program has no text or no entry")
	case !(p.SharedMemory >= 0 && p.SharedMemory < 1<<24):
		return diag.Inputf("%v bytes of shared memory", p.SharedMemory).At("program %s", p.Entry)
	case counters == 1 && p.Counters == 0:
		return diag.Inputf("it passes counters and has none").At("program %s", p.Entry)
	}
	return nil
}
