package calibratecmd

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// comparison is the measured numbers beside those in use.
type comparison struct {
	// inUse describes the GPU with the numbers in use, rung how much both sides of the picks know.
	inUse *arch.Description
	rung  arch.Rung
	picks []pick
}

// pick is what a problem gets under either numbers.
type pick struct {
	problem       gemm.Problem
	before, after gemm.Config
	// predictedBefore and predictedAfter are the times of both under the measured numbers.
	predictedBefore, predictedAfter unit.Seconds
}

// compare opens the GPU with the numbers in use and with the measured ones, and asks both for the built-in sizes.
func (o *CalibrateOptions) compare(ctx context.Context, r *outcome) (*comparison, error) {
	device := r.records.Device
	inUse, err := o.Factory.OpenGPU(ctx, device, nil)
	if err != nil {
		return nil, err
	}
	c := &comparison{inUse: inUse.Describe()}
	overrides := map[string]hw.OverrideValue{}
	for name, v := range r.overrides(c.inUse) {
		overrides[name] = hw.OverrideValue{Value: v.Value, Unit: v.Unit}
	}
	measured, err := o.Factory.OpenGPU(ctx, device, func(q *arch.OpenRequest) { q.Overrides = overrides })
	if err != nil {
		return nil, err
	}
	c.rung = measured.Describe().Rung
	// A timing pass that counts for the numbers in use alone would be compared, not the numbers.
	if rungs := arch.Rungs(); slices.Index(rungs, c.inUse.Rung) > slices.Index(rungs, c.rung) {
		if inUse, err = o.Factory.OpenGPU(ctx, device, func(q *arch.OpenRequest) { q.Rung = c.rung }); err != nil {
			return nil, err
		}
	}
	return c, c.ask(ctx, inUse, measured)
}

// ask picks for the built-in sizes.
func (c *comparison) ask(ctx context.Context, inUse, measured arch.Architecture) error {
	problems := measure.TritonBLASProblems()
	request := selector.Request{Problems: problems, Top: 1, Map: 1}
	before, err := selector.Rank(ctx, inUse, request)
	if err != nil {
		return err
	}
	after, err := selector.Rank(ctx, measured, request)
	if err != nil {
		return err
	}
	clock := measured.Describe().Clock
	for i, p := range problems {
		if len(before[i].Entries) == 0 || len(after[i].Entries) == 0 {
			continue
		}
		estimates := make([]arch.Estimate, 1)
		was, is := before[i].Entries[0], after[i].Entries[0]
		if err := measured.Estimate(ctx, estimates, p, []gemm.Config{was.Config}); err != nil {
			return err
		}
		c.picks = append(c.picks, pick{problem: p, before: was.Config, after: is.Config,
			predictedBefore: estimates[0].Cycles.At(clock), predictedAfter: is.Estimate.Cycles.At(clock)})
	}
	return nil
}

// changed lists the picks that differ.
func (c *comparison) changed() []pick {
	return slices.DeleteFunc(slices.Clone(c.picks), func(p pick) bool { return p.before == p.after })
}

// used returns the number in use in the place of a measured one.
func (c *comparison) used(n *calibrate.Number) (hw.Param, bool) {
	if !n.Parameter {
		return hw.Param{}, false
	}
	return hw.Set(c.inUse.Params).Lookup(n.Name)
}

// clockTolerance is how much the measured clock may differ from the one in use and count as the same. The driver gives
// whole MHz, and an override of the clock describes another chip.
const clockTolerance = 0.005

// overrides are the measured parameters that a file for --hw-params has: those that the models have a value of without.
func (r *outcome) overrides(inUse *arch.Description) map[string]hw.Number {
	out := map[string]hw.Number{}
	for _, n := range r.numbers {
		known, ok := hw.Set(inUse.Params).Lookup(n.Name)
		if !n.Parameter || !ok || n.Name == "clock" && near(n.Value, known.Value, clockTolerance) {
			continue
		}
		out[n.Name] = n.Number
	}
	return out
}

func near(a, b, tolerance float64) bool { return max(a, b) <= (1+tolerance)*min(a, b) }

// sheet returns the device file: the measured numbers, and below them those of the GPU without measurements.
func (r *outcome) sheet(inUse *arch.Description) *hw.Sheet {
	device := r.records.Device
	day := ""
	for _, n := range r.numbers {
		day = max(day, n.Date)
	}
	s := hw.SheetOf(hw.Header{Arch: device.Arch, Device: slug(device.Name), Name: device.Name, Vendor: inUse.Vendor},
		inUse.Params, day, "driver, when the GPU was calibrated")
	for _, n := range r.numbers {
		if n.Parameter {
			s.Calibrated[n.Name] = n.Number
		}
	}
	s.Atoms = r.atoms
	return s
}
