package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/wire"
)

// checkUnused overrides the parameters that a description calls unused, and compares the predictions.
func checkUnused(ctx context.Context, s *subject, found *findings, group []*testcase) {
	unused := group[0].Describe().Unused
	if len(unused) == 0 {
		return
	}
	for _, factor := range []float64{2, 0.5} {
		// All at once, which is enough where nothing changes.
		if a := group[0].override(ctx, s, factor, unused...); a != nil && sameAnswers(ctx, group, a) == "" {
			continue
		}
		for _, name := range unused {
			a := group[0].override(ctx, s, factor, name)
			if a == nil {
				continue // the value is out of bounds
			}
			if what := sameAnswers(ctx, group, a); what != "" {
				found.add("%s: %s is said to be unused, but %g times its value changes %s", group[0].target,
					name, factor, what)
			}
		}
	}
}

// override opens the target with parameters multiplied by a factor. It returns nil if that is refused.
func (t *target) override(ctx context.Context, s *subject, factor float64, names ...string) *wire.Architecture {
	r := t.request
	r.Overrides = map[string]hw.OverrideValue{}
	for _, p := range t.Describe().Params {
		if slices.Contains(names, p.Name) {
			v := p.Value * factor
			if p.Value == math.Trunc(p.Value) {
				v = math.Ceil(v)
			}
			r.Overrides[p.Name] = hw.OverrideValue{Value: v, Unit: p.Unit}
		}
	}
	a, err := s.client.Open(ctx, r)
	if err != nil {
		return nil
	}
	return a
}

// sameAnswers compares what an architecture answers to some of the cases. It returns what differs, or an empty text.
func sameAnswers(ctx context.Context, cases []*testcase, a *wire.Architecture) string {
	if a.Describe().Clock != cases[0].Describe().Clock {
		return "the clock"
	}
	for _, c := range spread(cases, 3) {
		list, err := a.Candidates(ctx, c.problem, c.space())
		if err != nil {
			return fmt.Sprintf("the candidates for %s: %s", c.problem, oneLine(err))
		}
		reason := func(x, y arch.Rejection) bool { return x.Config == y.Config && x.Reason == y.Reason }
		if !slices.Equal(list.Configs, c.candidates.Configs) ||
			!slices.EqualFunc(list.Rejected, c.candidates.Rejected, reason) {
			return fmt.Sprintf("the candidates for %s", c.problem)
		}
		estimates := make([]arch.Estimate, len(list.Configs))
		if err := a.Estimate(ctx, estimates, c.problem, list.Configs); err != nil {
			return fmt.Sprintf("the estimates of %s: %s", c.problem, oneLine(err))
		}
		for i, e := range estimates {
			if !sameBits(e, c.estimates[i]) {
				return fmt.Sprintf("%s of %s from %s to %s", list.Configs[i], c.problem, text(c.estimates[i]), text(e))
			}
		}
		if what := sameMapping(ctx, c, a); what != "" {
			return what
		}
	}
	return ""
}

// sameMapping compares the launch order of the pick.
func sameMapping(ctx context.Context, c *testcase, a *wire.Architecture) string {
	pick := c.feasible(1)
	if len(pick) == 0 {
		return ""
	}
	config := c.candidates.Configs[pick[0]]
	ask := func(a *wire.Architecture) string {
		m, err := a.Mapping(ctx, c.problem, config)
		if err != nil {
			return oneLine(err)
		}
		return fmt.Sprintf("%+v", m)
	}
	if was, is := ask(c.Architecture), ask(a); was != is {
		return fmt.Sprintf("the launch order of %s of %s from %s to %s", config, c.problem, was, is)
	}
	return ""
}
