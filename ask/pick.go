package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/contract"
)

// Pick returns the part of an answer that the C library has: the configuration, and what is predicted for it.
func (a *Ranking) Pick(e *Entry) Answer {
	o := Answer{Config: e.Config}
	if a.Regret != nil {
		o.ExpectedRegret, o.WorthMeasuring = &a.Regret.Expected, a.Regret.WorthMeasuring
	}
	if e.Estimate.Reject == "" {
		o.Predicted = a.predicted(e)
	}
	if m := e.Mapping; m.XCDs > 0 {
		o.Mapping = &Mapping{m.GroupM, m.XCDs, m.Chunk}
	}
	return o
}

// Answer returns an entry as a plain value.
func (a *Ranking) Answer(e *Entry) Answer {
	pick := a.Pick(e)
	answer := Answer{
		Arch: a.Arch.Arch, Device: a.Arch.Device, Model: a.Arch.Model, ModelClass: a.Arch.ModelClass,
		Kernel: a.Kernel, Rung: a.Arch.Rung,
		RungReason: a.Arch.RungReason, Timing: a.Arch.Timing, RanksOnly: a.Arch.RanksOnly,
		Validated: a.Scope(e).Checked(), Evidence: a.Scope(e).Evidence, Outside: append([]string{}, a.Outside(e)...),
		Live: LiveOf(a.Arch), Problem: a.Problem.Record(), Labels: a.Labels, Config: pick.Config,
		Predicted: pick.Predicted, Mapping: pick.Mapping,
		Candidates: a.Feasible, Rejected: a.RejectedTotal(),
		Contraction: a.Contraction.contraction(), Logic: a.Logic,
		ExpectedRegret: pick.ExpectedRegret, WorthMeasuring: pick.WorthMeasuring,
		Advice: a.Advice, InvariantPrice: a.Price,
	}
	for _, other := range a.Ways {
		answer.Ways = append(answer.Ways, other.way())
	}
	return answer
}

func (a *Ranking) predicted(e *Entry) *Predicted {
	p := &Predicted{
		Cycles: float64(e.Estimate.Cycles), Seconds: float64(a.Seconds(e)), TFLOPS: float64(a.Rate(e)) / 1e12,
		Bound: e.Estimate.Bound.String(), ClockHz: float64(a.Arch.Clock), ClockRung: a.Arch.ClockRung,
	}
	if e.Terms != nil {
		p.Why = a.Why(e)
	}
	scope := a.Scope(e) // once: it is most of what a known answer costs in the C library
	if low, high, ok := scope.Interval(e.Estimate, a.Seconds(e)); ok {
		p.Interval, p.IntervalLevel = &[2]float64{float64(low), float64(high)}, scope.Uncertainty.Level
		p.IntervalWidened, _ = a.widened(e, &scope)
	}
	return p
}

// LiveOf returns where the numbers of a GPU of this machine come from, and nil for a device with a file.
func LiveOf(d *arch.Description) *Live {
	live := &Live{Name: d.DeviceName, Driver: []string{}, Scaled: []string{}}
	for i := range d.Params {
		p := &d.Params[i]
		if p.Live() {
			live.Driver = append(live.Driver, p.Name)
		} else if from := p.ScaledFrom(); from != "" {
			live.Scaled, live.ScaledFrom = append(live.Scaled, p.Name), from
		}
	}
	if len(live.Driver)+len(live.Scaled) == 0 {
		return nil
	}
	return live
}

func (c *Contracted) contraction() *Contraction {
	if c == nil {
		return nil
	}
	of := func(class contract.Class) string { return contract.Slowest(c.Of(class)) }
	out := &Contraction{Einsum: c.String(), FreeA: of(contract.FreeA), FreeB: of(contract.FreeB),
		Batch: of(contract.Batch), Sum: of(contract.Sum), ContractionPlan: *c.plan()}
	for _, other := range c.Instead {
		out.Instead = append(out.Instead, other.plan())
	}
	return out
}

func (c *Contracted) plan() *ContractionPlan {
	p := c.Plan
	out := &ContractionPlan{Direct: p.Direct(), Nest: p.Problem.Nest.String(), Kernel: c.Kernel,
		M: contract.Slowest(p.M), N: contract.Slowest(p.N), K: contract.Slowest(p.K),
		GEMMs: contract.Slowest(p.Batch), Swapped: p.Swapped, Loop: contract.Slowest(p.Loop), Calls: p.Calls,
		Adding: p.Nested, Copied: []string{}, Moved: p.Moved, Seconds: float64(c.Seconds)}
	for _, o := range p.Copied {
		out.Copied = append(out.Copied, o.String())
	}
	return out
}
