package ask

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/forward"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Step is what a language model takes per token on a device, when each of Batch sequences reads a prompt of Context
// tokens and then gets New tokens, and another takes its place.
type Step struct {
	// as in `select`
	Arch   string `json:"arch"`
	Device string `json:"device"`
	// how many GPUs share the model
	GPUs int `json:"gpus"`
	// the time per token of a sequence: a step of all sequences, and their share of the prompts that are read meanwhile:
	// decode + prefill · batch ÷ new
	Seconds Number `json:"seconds" unit:"s"`
	// the ends of its interval, and the probability that the measured time lies between them
	Interval      [2]Number `json:"interval_seconds" unit:"s"`
	IntervalLevel float64   `json:"interval_level"`
	// a step that reads no prompt, and the pass that reads one prompt
	Decode  Number `json:"decode_seconds" unit:"s"`
	Prefill Number `json:"prefill_seconds" unit:"s"`
	// tokens of all sequences per second
	Rate Number `json:"tokens_per_second"`
	// the parts of the time per token; they add up to it
	Parts []StepPart `json:"parts"`
	// the memory of one GPU
	Memory StepMemory `json:"memory"`
	// with `--price`: dollars per million tokens
	Dollars *Number `json:"dollars_per_million_tokens,omitempty"`
	// joules per million tokens, if all GPUs draw their limit; `null` without a limit
	Joules *Number `json:"joules_per_million_tokens"`
	// with `--advice`: what would give at least 1.05 times as many tokens per second and GPU, or take at most 1 ÷ 1.05
	// of the time
	Advice []StepAdvice `json:"advice,omitempty"`
	// with `--curve`: the same for 1, 2, 4 … 1024 sequences
	Curve []StepPoint `json:"curve,omitempty"`
	// what of the answer was not checked against anything measured
	Unchecked []string `json:"unchecked"`
}

// StepPart is a part of the time per token.
type StepPart struct {
	// `products`, `attention`, `experts`, `links`, `between`: norms, rotations and
	// conversions, `host`, or `prompts`
	Name string `json:"name"`
	// its time, and its part of the whole
	Seconds Number `json:"seconds" unit:"s"`
	Share   Number `json:"share" unit:"fraction"`
}

// StepMemory is what a model takes of the memory of one GPU.
type StepMemory struct {
	// of the weights
	Weights Number `json:"weights_bytes" unit:"B"`
	// of all sequences at their longest
	Cache Number `json:"cache_bytes" unit:"B"`
	// what a server can use; `null` if the memory of the device is unknown
	Capacity *Number `json:"capacity_bytes" unit:"B"`
	// how many sequences fit at their longest; `null` if the memory is unknown
	Sequences *int `json:"sequences_that_fit"`
}

// Fits reports whether so many sequences fit, and true where the memory is unknown.
func (m *StepMemory) Fits(batch int) bool { return m.Sequences == nil || batch <= *m.Sequences }

// StepAdvice is a change that gives more tokens per second and GPU, or less time per token.
type StepAdvice struct {
	// the flag that makes it
	Change string `json:"change"`
	// the time per token with it
	Seconds Number `json:"seconds" unit:"s"`
	// tokens per second and GPU ÷ without it
	Rate Number `json:"rate_ratio"`
}

// StepPoint is the time per token with so many sequences, and the ends of its interval.
type StepPoint struct {
	// sequences at once
	Batch int `json:"batch"`
	// the time per token, and the ends of its interval
	Seconds  Number    `json:"seconds" unit:"s"`
	Interval [2]Number `json:"interval_seconds" unit:"s"`
	// whether they fit into memory
	Fits bool `json:"fits"`
}

// StepQuestion asks for a Step.
type StepQuestion struct {
	Plan                forward.Plan
	Batch, Context, New int
}

// level is the probability of intervals, and within the quantile of the normal distribution for it.
const level, within = 0.9, 1.6449

// worthwhile is the least gain of an advice.
const worthwhile = 1.05

// Steps answers questions about one device. It asks the model once for each product.
type Steps struct {
	side  *Contender
	known map[gemm.Problem]productTime
}

// StepsOn returns what answers for a device.
func StepsOn(side *Contender) *Steps { return &Steps{side, map[gemm.Problem]productTime{}} }

// Curve adds the times of other batches to an answer.
func (a *Steps) Curve(ctx context.Context, out *Step, q StepQuestion) error {
	for q.Batch = 1; q.Batch <= 1024; q.Batch *= 2 {
		one, err := a.Of(ctx, q)
		if err != nil {
			return err
		}
		out.Curve = append(out.Curve, StepPoint{q.Batch, one.Seconds, one.Interval, one.Memory.Fits(q.Batch)})
	}
	return nil
}

// Advised answers with advice.
func (a *Steps) Advised(ctx context.Context, q StepQuestion) (*Step, error) {
	out, err := a.Of(ctx, q)
	if err != nil {
		return nil, err
	}
	others := q.Plan.Others(a.side.Describe())
	for _, change := range slices.Sorted(maps.Keys(others)) {
		if err := out.advise(ctx, a, change, StepQuestion{others[change], q.Batch, q.Context, q.New}); err != nil {
			return nil, err
		}
	}
	more := q
	more.Batch *= 2
	return out, out.advise(ctx, a, fmt.Sprintf("--batch %d", more.Batch), more)
}

// productTime is the time of a product, with the standard deviation of its log.
type productTime struct{ seconds, sigma float64 }

// assumedSigma is the standard deviation of the log of a product's time where the model states no interval.
const assumedSigma = 0.3

// ask predicts the products that are not known yet.
func (a *Steps) ask(ctx context.Context, list ...forward.Product) error {
	var problems []gemm.Problem
	for _, one := range list {
		if _, is := a.known[one.Problem]; !is {
			a.known[one.Problem] = productTime{}
			problems = append(problems, one.Problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	answers, err := a.side.Rankings(ctx, Question{Problems: problems, Kernel: a.side.Kernel, Top: 1})
	if err != nil {
		return err
	}
	for i := range answers {
		one := &answers[i]
		switch {
		case one.Err != nil:
			return one.Err
		case len(one.Entries) == 0 || one.Entries[0].Estimate.Reject != "":
			return errors.New("no kernel of the family takes " + one.Problem.String())
		}
		t := productTime{float64(one.Seconds(&one.Entries[0])), assumedSigma}
		if low, high, ok := one.Interval(&one.Entries[0]); ok && low > 0 {
			t.sigma = math.Log(float64(high/low)) / (2 * within)
		}
		a.known[one.Problem] = t
	}
	return nil
}

// pass returns the parts of a pass.
func (a *Steps) pass(ctx context.Context, plan forward.Plan, p forward.Pass) ([]forward.Part, error) {
	d := a.side.Describe()
	products := plan.Products(d, p)
	if err := a.ask(ctx, products...); err != nil {
		return nil, err
	}
	all := forward.Part{Name: forward.Products}
	for _, one := range products {
		t := a.known[one.Problem]
		all.Seconds += unit.Seconds(t.seconds * float64(one.Count))
		all.Sigma += t.sigma * t.seconds * float64(one.Count)
	}
	all.Sigma /= max(float64(all.Seconds), math.SmallestNonzeroFloat64)
	parts, err := plan.Parts(d, p)
	return append([]forward.Part{all}, parts...), err
}

// Pass is the time of one pass, and the ends of its interval.
func (a *Steps) Pass(ctx context.Context, plan forward.Plan, p forward.Pass) (Number, [2]Number, error) {
	parts, err := a.pass(ctx, plan, p)
	seconds, sigma := sum(parts)
	return seconds, interval(plan, seconds, sigma), err
}

// sum returns the time of parts, and the sum of their standard deviations: they err together, as their device does.
func sum(parts []forward.Part) (seconds, sigma Number) {
	for _, p := range parts {
		seconds += Number(p.Seconds)
		sigma += Number(p.Sigma) * Number(p.Seconds)
	}
	return seconds, sigma
}

// interval returns the ends of the interval of a time. Errors of the server are independent of errors of the parts.
func interval(plan forward.Plan, seconds, sigma Number) [2]Number {
	factor := Number(math.Exp(within * math.Hypot(plan.Spread(), float64(sigma/seconds))))
	return [2]Number{seconds / factor, seconds * factor}
}

// Of answers without advice.
func (a *Steps) Of(ctx context.Context, q StepQuestion) (*Step, error) {
	for _, n := range []int{q.Batch, q.Context, q.New} {
		if n < 1 || n > 1<<20 {
			return nil, diag.Inputf("%d is no number of sequences or tokens", n).At("--batch, --context, --new").
				Do("give whole numbers from 1 to %d", 1<<20)
		}
	}
	d := a.side.Describe()
	decode, err := a.pass(ctx, q.Plan, forward.Pass{Sequences: q.Batch, Context: q.Context + q.New/2})
	if err != nil {
		return nil, err
	}
	prefill, err := a.pass(ctx, q.Plan, forward.Pass{Prompt: q.Context})
	if err != nil {
		return nil, err
	}
	out := &Step{Arch: d.Arch, Device: d.Device, GPUs: q.Plan.GPUs(), IntervalLevel: level,
		Unchecked: append([]string{}, q.Plan.Unchecked(d)...)}
	for _, p := range decode {
		out.Parts = append(out.Parts, StepPart{Name: p.Name, Seconds: Number(p.Seconds)})
	}
	reads := Number(q.Batch) / Number(q.New) / Number(q.Plan.Groups())
	var sigma, ofPrompt Number
	out.Decode, sigma = sum(decode)
	out.Prefill, ofPrompt = sum(prefill)
	out.Parts = append(out.Parts, StepPart{Name: "prompts", Seconds: out.Prefill * reads})
	out.Seconds = out.Decode + out.Prefill*reads
	for i := range out.Parts {
		out.Parts[i].Share = out.Parts[i].Seconds / out.Seconds
	}
	out.Interval = interval(q.Plan, out.Seconds, sigma+ofPrompt*reads)
	out.Rate = Number(q.Batch) / out.Seconds
	out.cost(a.side, q)
	return out, nil
}

// cost fills in memory, price and energy.
func (s *Step) cost(side *Contender, q StepQuestion) {
	m := q.Plan.Memory(side.Describe())
	one := m.Cache(q.Context + q.New)
	groups := q.Plan.Groups()
	s.Memory = StepMemory{Weights: Number(m.Weights), Cache: Number(one) * Number((q.Batch+groups-1)/groups)}
	if m.Capacity > 0 {
		capacity, fit := Number(m.Capacity), int(max(0, (m.Capacity-m.Weights)/one))*groups
		s.Memory.Capacity, s.Memory.Sequences = &capacity, &fit
	}
	million := Number(s.GPUs) * 1e6 / s.Rate
	if side.Dollars > 0 {
		v := million * Number(side.Dollars)
		s.Dollars = &v
	}
	if side.Watts > 0 {
		v := million * Number(side.Watts)
		s.Joules = &v
	}
}

// advise adds a change if it is worth it and fits.
func (s *Step) advise(ctx context.Context, a *Steps, change string, q StepQuestion) error {
	other, err := a.Of(ctx, q)
	if err != nil || !other.Memory.Fits(q.Batch) {
		return err
	}
	rate := other.Rate / Number(other.GPUs) / (s.Rate / Number(s.GPUs))
	if rate >= worthwhile || other.Seconds*worthwhile <= s.Seconds {
		s.Advice = append(s.Advice, StepAdvice{change, other.Seconds, rate})
	}
	return nil
}
