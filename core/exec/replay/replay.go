// Package replay is the Executor that answers from recorded measurements: what a real device would say, on a machine
// without one. It measures nothing and checks nothing anew; a kernel's numerics were checked when it was recorded.
package replay

import (
	"context"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
)

// Executor replays a dataset. It has one device, the one that was measured.
type Executor struct{ data *record.Dataset }

var _ exec.Executor = (*Executor)(nil)

// New returns an executor over a dataset.
func New(d *record.Dataset) *Executor { return &Executor{d} }

// Devices implements exec.Executor.
func (x *Executor) Devices(context.Context) ([]exec.Device, error) {
	d := exec.Device{Name: x.data.Device, Arch: x.data.Arch, Kernels: []string{x.data.Kernel}}
	if x.data.Library != "" {
		d.Libraries = []string{x.data.Library}
	}
	return []exec.Device{d}, nil
}

// Environment implements exec.Executor.
func (x *Executor) Environment(context.Context, int) (exec.Environment, error) {
	return exec.Environment{Runtime: x.data.Software}, nil
}

// Close implements exec.Executor.
func (x *Executor) Close() error { return nil }

// Compile implements exec.Executor: it finds the record. One that does not exist is an error of kind diag.Input.
func (x *Executor) Compile(_ context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if device != 0 {
		return nil, diag.Inputf("there is no device %d in the records", device).At("%s", x.data.Name).Do("use device 0")
	}
	r, ok := x.data.Find(p, c)
	if !ok {
		what := c.String()
		if c.BlockM == 0 {
			what = c.Kernel
		}
		return nil, diag.Inputf("%s of %s is not recorded", what, p).At("%s", x.data.Name).Do("measure it on the device")
	}
	return kernel{x.data, r}, nil
}

type kernel struct {
	data   *record.Dataset
	record record.Record
}

func (k kernel) Resources() exec.Resources {
	if k.record.Config.BlockM == 0 {
		return exec.Resources{} // a library's own kernel: nothing is known of it
	}
	r, _ := k.data.Resources(k.record.Problem, k.record.Config)
	return r
}

func (k kernel) Check(context.Context) (exec.Numerics, error) {
	return exec.Numerics{Reference: "checked when it was recorded"}, nil
}

// Measure implements exec.Kernel. The dataset keeps medians: there is one sample.
func (k kernel) Measure(_ context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if o.WarmL2 != k.data.WarmL2 {
		return diag.Inputf("the records were taken with the L2 %s", map[bool]string{true: "warm", false: "cold"}[k.data.WarmL2]).At("%s", k.data.Name).
			Do("ask for that")
	}
	sample(exec.Sample{Time: k.record.Time})
	return nil
}

func (k kernel) Close() error { return nil }
