// Package replay is the Executor that answers from recorded measurements: what a real device would say, on a machine
// without one. It measures nothing and checks nothing anew; what was recorded as not built, failed or wrong is so again.
package replay

import (
	"context"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/core/unit"
)

// Executor replays a dataset. It has one device, the one that was measured.
type Executor struct{ data *record.Dataset }

var _ exec.Executor = (*Executor)(nil)

// New returns an executor over a dataset.
func New(d *record.Dataset) *Executor { return &Executor{d} }

// Devices implements exec.Executor.
func (x *Executor) Devices(context.Context) ([]exec.Device, error) {
	name := x.data.DriverName
	if name == "" {
		name = x.data.Device
	}
	return []exec.Device{{Name: name, Arch: x.data.Arch, Kernels: []string{x.data.Kernel}, Libraries: x.data.Libraries()}}, nil
}

// Environment implements exec.Executor.
func (x *Executor) Environment(context.Context, int) (exec.Environment, error) {
	return exec.Environment{Runtime: x.data.Software}, nil
}

// Close implements exec.Executor.
func (x *Executor) Close() error { return nil }

// Compile implements exec.Executor: it finds the record. One that does not exist, or says that there was no kernel or no
// time, is an error of kind diag.Input.
func (x *Executor) Compile(_ context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if device != 0 {
		return nil, diag.Inputf("there is no device %d in the records", device).At("%s", x.data.Name).Do("use device 0")
	}
	m, ok := x.data.Find(p, c)
	if !ok {
		return nil, diag.Inputf("%s of %s is not recorded", record.Label(c), p).At("%s", x.data.Name).Do("measure it on the device")
	}
	switch m.Status {
	case record.OK, record.Wrong:
		return kernel{x.data, m}, nil
	default:
		return nil, diag.Inputf("%s of %s is recorded as %s: %s", record.Label(c), p, m.Status, m.Detail).At("%s", x.data.Name)
	}
}

type kernel struct {
	data *record.Dataset
	m    record.Measurement
}

func (k kernel) Resources() exec.Resources { return k.m.Resources }

// Check implements exec.Kernel with the outcome of the check when it was recorded.
func (k kernel) Check(context.Context) (exec.Numerics, error) {
	if k.m.Numerics != nil {
		return *k.m.Numerics, nil
	}
	return exec.Numerics{Reference: "checked when it was recorded"}, nil
}

// Measure implements exec.Kernel: the recorded samples, or the median where only that was kept, over and over.
func (k kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if o.WarmL2 != k.data.WarmL2 {
		return diag.Inputf("the records were taken with the L2 %s", map[bool]string{true: "warm", false: "cold"}[k.data.WarmL2]).At("%s", k.data.Name).
			Do("ask for that")
	}
	samples := k.m.Samples
	if len(samples) == 0 {
		samples = []unit.Seconds{k.m.Median}
	}
	for i := 0; ctx.Err() == nil && sample(exec.Sample{Time: samples[i%len(samples)]}); i++ {
	}
	return ctx.Err()
}

func (k kernel) Close() error { return nil }
