//go:build cuda

package cuda

import (
	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// program is what runs for a configuration of a problem.
type program interface {
	resources() exec.Resources
	// bind prepares launches on operands. Each call of the function that it returns enqueues one run.
	bind(o *operands) (func() error, error)
	close()
}

// generated is a kernel of a generated family.
type generated struct {
	*module
	device  *device
	program gemmgen.Program
	config  gemm.Config
}

// generated returns the program of a configuration. It compiles the kernel unless the device has it.
func (d *device) generated(f gemmgen.Family, p gemm.Problem, c gemm.Config) (program, error) {
	if err := c.Validate(f.Axes()...); err != nil {
		return nil, err
	}
	spec, reason, detail := f.Program(gemmgen.NewCall(p), p.Output(), c, d.limits())
	if reason != "" {
		return nil, diag.Inputf("%s cannot be built: %s: %s", c, reason, detail)
	}
	m, err := d.modules.get(spec)
	if err != nil {
		return nil, err
	}
	return &generated{m, d, spec, c}, nil
}

func (g *generated) resources() exec.Resources { return g.uses }

func (g *generated) bind(o *operands) (func() error, error) {
	call := o.call()
	partials, counters := gemmgen.WorkspaceOf(g.program, o.problem, g.config)
	if counters > 0 {
		if err := o.reserve(counters + partials); err != nil {
			return nil, err
		}
		// Counters first: a region starts aligned, and partial sums need 16 bytes.
		call.Counters, call.Partials = o.workspace.address(0), o.workspace.address(roundUp(counters))
		if err := cu.MemsetD8Async(o.workspace.at, 0, int64(counters), g.device.stream); err != nil {
			return nil, err
		}
	}
	if s, ok := g.program.(gemmgen.Scratcher); ok {
		if bytes := s.Scratch(o.problem); bytes > 0 {
			if err := o.reserve(bytes); err != nil {
				return nil, err
			}
			call.Scratch = o.workspace.address(0) // a program has no workspace beside it
		}
	}
	at, err := g.program.Launch(g.kernel, call)
	if err != nil {
		return nil, err
	}
	if err := encodeMaps(&at); err != nil {
		return nil, err
	}
	if at.Before == nil {
		return func() error { return start(g.device.stream, g.function, at) }, nil
	}
	return func() error {
		if err := start(g.device.stream, g.before.function, *at.Before); err != nil {
			return err
		}
		return start(g.device.stream, g.function, at)
	}, nil
}

func (g *generated) close() { g.device.modules.release(g.module) }
