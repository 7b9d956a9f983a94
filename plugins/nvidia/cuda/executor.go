//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Provider makes the executor.
type Provider struct{}

var _ exec.Provider = Provider{}

// Manifest implements exec.Provider.
func (Provider) Manifest() exec.Manifest { return exec.Manifest{Name: "cuda", Version: Version} }

// Open implements exec.Provider. No driver or no GPU is an error of kind diag.Device.
func (Provider) Open(context.Context) (exec.Executor, error) {
	if err := driver(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fault(err, "counting the GPUs")
	}
	return &executor{devices: make([]*device, n)}, nil
}

// executor runs kernels on the GPUs of this machine.
type executor struct {
	mu      sync.Mutex
	devices []*device // each is opened when it is first needed
}

// Devices implements exec.Executor.
func (x *executor) Devices(context.Context) ([]exec.Device, error) {
	out := make([]exec.Device, len(x.devices))
	for i := range out {
		d, err := x.device(i)
		if err != nil {
			return nil, err
		}
		out[i] = d.describe()
	}
	return out, nil
}

// Compile implements exec.Executor.
func (x *executor) Compile(_ context.Context, index int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if err := takes(p); err != nil {
		return nil, err
	}
	d, err := x.device(index)
	if err != nil {
		return nil, err
	}
	program, err := d.program(p, c)
	if err != nil {
		return nil, fault(err, fmt.Sprintf("compiling %s", c))
	}
	return &runnable{device: d, problem: p, name: c.String(), program: program}, nil
}

// Library implements exec.Executor.
func (x *executor) Library(_ context.Context, index int, p gemm.Problem, library string) (exec.Kernel, error) {
	if err := takes(p); err != nil {
		return nil, err
	}
	if p.Groups != (gemm.Groups{}) {
		return nil, diag.Inputf("cuBLAS is not measured on groups, as %s has", p).At("CUDA").Do("use the executor triton")
	}
	if onHost(p) {
		return nil, diag.Inputf("cuBLAS is measured on A·B of matrices alone, and the problem is %s", p).At("CUDA").
			Do("leave alpha, beta, the epilogue and nested indices out")
	}
	d, err := x.device(index)
	if err != nil {
		return nil, err
	}
	if libraries := []string{libraryDefault, libraryBest}; !slices.Contains(libraries, library) {
		return nil, diag.Inputf("there is no library %q", library).At("CUDA").Do("use %s",
			strings.Join(libraries, " or "))
	}
	program, err := d.library(p, library)
	if err != nil {
		return nil, fault(err, fmt.Sprintf("preparing %s", library))
	}
	return &runnable{device: d, problem: p, name: library, program: program}, nil
}

// takes reports an error for a problem that is invalid, or of types that need scales or that no result is checked for.
func takes(p gemm.Problem) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if t := p.Types(); t.Scaled() {
		return diag.Inputf("matrices of %s need scales, which the executor does not have", t.Text()).At("CUDA").
			Do("use other types")
	}
	if !slices.Contains(gemmgen.Checked(), p.DType) {
		return diag.Inputf("the executor has no operands of %s", p.DType).At("CUDA").
			Do("use one of %s", gemm.TypeNames(gemmgen.Checked()))
	}
	if e := p.Epilogue; e.Residual || e.Activation.Gated() || e.Scales || e.BiasType != 0 {
		return diag.Inputf("the executor has no right values for %s", e).At("CUDA").
			Do("measure the product without it, or the operators of PyTorch")
	}
	return nil
}

// program returns what runs for a configuration of a problem.
func (d *device) program(p gemm.Problem, c gemm.Config) (program, error) {
	var names []string
	for _, f := range d.families() {
		if f.Name() == c.Kernel {
			return d.generated(f, p, c)
		}
		names = append(names, f.Name())
	}
	return nil, diag.Inputf("there is no kernel family %q for %s", c.Kernel, d.name).At("CUDA").
		Do("use one of %s", strings.Join(names, ", "))
}

// Environment implements exec.Executor.
func (x *executor) Environment(_ context.Context, index int) (exec.Environment, error) {
	d, err := x.device(index)
	if err != nil {
		return exec.Environment{}, err
	}
	e := d.state.environment()
	e.Runtime = d.runtime()
	return e, nil
}

// Close implements exec.Executor.
func (x *executor) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var failed []error
	for i, d := range x.devices {
		if d != nil {
			failed = append(failed, d.close())
			x.devices[i] = nil
		}
	}
	return errors.Join(failed...)
}

// device returns a device and opens it if necessary.
func (x *executor) device(i int) (*device, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i < 0 || i >= len(x.devices) {
		return nil, diag.Inputf("there is no device %d", i).At("CUDA").Do("the devices: 0 to %d", len(x.devices)-1)
	}
	if x.devices[i] == nil {
		d, err := open(cu.Device(i))
		if err != nil {
			return nil, fault(err, fmt.Sprintf("opening GPU %d", i))
		}
		x.devices[i] = d
	}
	return x.devices[i], nil
}

var _ exec.Runner = (*executor)(nil)

// Run implements exec.Runner.
func (x *executor) Run(ctx context.Context, index int, p exec.Program, runs int) (readings []exec.Reading, err error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if runs < 1 || runs > exec.MaxRuns {
		return nil, diag.Inputf("%d runs, not 1 to %d", runs, exec.MaxRuns).At("program %s", p.Entry)
	}
	d, err := x.device(index)
	if err != nil {
		return nil, err
	}
	d.running.Lock()
	defer d.running.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = d.do(func() error {
		readings, err = d.run(ctx, &p, runs)
		return err
	})
	if cause := ctx.Err(); cause != nil {
		return nil, cause
	}
	return readings, fault(err, "running the program "+p.Entry)
}
