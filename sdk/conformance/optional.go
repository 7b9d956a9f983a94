package conformance

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
)

// checkConstants predicts with other values of the constants that can be fitted.
func checkConstants(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	groups, err := s.byTarget(ctx)
	if err != nil {
		return err
	}
	some := false
	for _, group := range groups {
		t := group[0].target
		var fits []arch.Constant
		for _, c := range t.Describe().Constants {
			if c.Fits() {
				fits = append(fits, c)
			}
		}
		if len(fits) == 0 {
			continue
		}
		some = true
		i := slices.IndexFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == t.request.Arch })
		if model := t.Describe().Model; !slices.Contains(m.Archs[i].Fitted, model) {
			found.add("%s has constants with bounds, and the manifest does not say that %s is fitted", t, model)
		}
		checkFit(ctx, found, group, spread(fits, 8))
	}
	if !some {
		return skipped("no model has constants with bounds")
	}
	return nil
}

// checkFit compares the times of a target under other values with each other, and those under the values in use with
// its estimates.
func checkFit(ctx context.Context, found *findings, group []*testcase, fits []arch.Constant) {
	var sample []fit.Kernels
	var want []unit.Seconds
	t := group[0].target
	for _, c := range spread(group, 3) {
		k := fit.Kernels{Problem: c.problem}
		for _, i := range c.feasible(8) {
			k.Configs = append(k.Configs, c.candidates.Configs[i])
			want = append(want, c.estimates[i].Cycles.At(t.Describe().Clock))
		}
		sample = append(sample, k)
	}
	values := []map[string]float64{nil, {fits[0].Name: fits[0].Value}}
	for _, c := range fits {
		values = append(values, map[string]float64{c.Name: min(max(c.Value*1.1, c.Low), c.High)})
	}
	rows, err := t.EstimateWith(ctx, values, sample)
	if err != nil {
		found.add("%s: %s", t, err)
		return
	}
	for i := range 2 {
		if !slices.Equal(rows[i], want) {
			found.add("%s: with the constants in use, EstimateWith gives other times than Estimate", t)
			return
		}
	}
	last := len(values) - 1
	if alone, err := t.EstimateWith(ctx, values[last:], sample); err != nil || !slices.Equal(alone[0], rows[last]) {
		found.add("%s: a set of values gives other times alone than among others (%v)", t, err)
	}
}

// checkCalibration asks for the microbenchmarks of every device. Its attributes are its parameters.
func checkCalibration(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	if !m.Calibrates {
		return skipped("the manifest has no calibration")
	}
	targets, err := s.open(ctx)
	if err != nil {
		return err
	}
	answered := false
	_, err = s.client.Calibration(ctx, exec.Device{Name: "unknown", Arch: "no-such-architecture"})
	expectInput(found, "the calibration of an unknown architecture", err)
	for i, t := range targets {
		id := t.Describe().ID()
		if slices.ContainsFunc(targets[:i], func(other *target) bool { return other.Describe().ID() == id }) {
			continue // another model of the device
		}
		d := exec.Device{Name: t.Describe().DeviceName, Arch: t.request.Arch,
			Attributes: map[string]float64{"memory_bytes": 16 << 30}} // which drivers know, and models do not need
		for _, p := range t.Describe().Params {
			d.Attributes[p.Name] = p.Value
		}
		plan, err := s.client.Calibration(ctx, d)
		if err != nil && diag.KindOf(err) == diag.Input {
			continue
		}
		if err != nil {
			return err
		}
		answered = true
		if again, err := s.client.Calibration(ctx, d); err != nil || !reflect.DeepEqual(again.Probes, plan.Probes) {
			found.add("%s: asked twice, the microbenchmarks differ (%v)", id, err)
		}
		checkNumbers(ctx, found, id, plan)
	}
	if !answered && len(found.list) == 0 {
		return skipped("no device has microbenchmarks by its parameters alone")
	}
	return nil
}

// checkNumbers makes numbers of made-up values, and of none.
func checkNumbers(ctx context.Context, found *findings, what string, plan *calibrate.Plan) {
	if numbers, _, err := plan.Numbers(ctx, plan.Values(nil)); err != nil || len(numbers) > 0 {
		found.add("%s: %d numbers of no measurement (%v)", what, len(numbers), err)
	}
	values := calibrate.Values{}
	for i := range plan.Probes {
		values[plan.Probes[i].Name] = calibrate.Value{Value: float64(2 + i), Unit: plan.Probes[i].Unit, Clock: 1e9,
			Rounds: calibrate.MinRounds}
	}
	numbers, atoms, err := plan.Numbers(ctx, values)
	if err != nil {
		found.add("%s: the numbers: %s", what, err)
		return
	}
	names := map[string]bool{}
	for _, n := range numbers {
		if names[n.Name] || n.Unit == "" || n.Source == "" || len(n.Probes) == 0 {
			found.add("%s: the number %s comes twice, or lacks a unit, a source or probes", what, n.Name)
		}
		names[n.Name] = true
		for _, p := range n.Probes {
			if _, ok := values[p]; !ok {
				found.add("%s: the number %s is of %s, which is no microbenchmark", what, n.Name, p)
			}
		}
	}
	if again, same, err := plan.Numbers(ctx, values); err != nil || !reflect.DeepEqual(again, numbers) ||
		!reflect.DeepEqual(same, atoms) {
		found.add("%s: asked twice, the numbers differ (%v)", what, err)
	}
}

// checkLadder checks that everything a ladder names exists.
func checkLadder(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	if !m.Ladder {
		return skipped("the manifest has no ladder")
	}
	l, err := s.client.Ladder(ctx)
	if err != nil {
		return err
	}
	if again, err := s.client.Ladder(ctx); err != nil || !reflect.DeepEqual(again, l) {
		found.add("asked twice it differs (%v)", err)
	}
	match, err := arch.Find([]arch.Manifest{m}, l.Device)
	if err != nil {
		return fmt.Errorf("its device: %w", err)
	}
	r := match.Request()
	r.Kernel = l.Family
	a, err := s.client.Open(ctx, r)
	if err != nil {
		return fmt.Errorf("the model of %s: %w", l.Family, err)
	}
	rungs, costs := []string{ladder.Library}, []string{""}
	p := gemm.New(4096, 4096, 4096)
	p.DType, p.Out = l.Types.In, l.Types.Out
	for _, rung := range slices.Concat(l.Rungs, l.Others) {
		if slices.Contains(rungs, rung.Name) {
			found.add("the rung %s comes twice", rung.Name)
		}
		rungs = append(rungs, rung.Name)
		if err := a.Estimate(ctx, make([]arch.Estimate, 1), rung.Problem(p), []gemm.Config{rung.Config}); err != nil {
			found.add("the rung %s: %s", rung.Name, err)
		}
	}
	for _, rung := range l.Rungs {
		if rung.Instead != "" && !slices.Contains(rungs, rung.Instead) {
			found.add("the rung %s: %s, which is to compute what it cannot, is no rung", rung.Name, rung.Instead)
		}
	}
	for _, c := range l.Costs {
		costs = append(costs, c.Name)
		if !slices.ContainsFunc(a.Describe().Terms, func(t arch.Term) bool { return t.Name == c.Term }) {
			found.add("the cost %s is of the term %s, which the model does not have", c.Name, c.Term)
		}
	}
	for _, c := range l.Claims {
		if !slices.Contains(rungs, c.Rung) || c.Over != "" && !slices.Contains(rungs, c.Over) ||
			!slices.Contains(costs, c.Cost) || math.IsNaN(c.Least) {
			found.add("%s %s: it names a rung or a cost that the ladder does not have", c.Rung, c.Text)
		}
	}
	return nil
}
