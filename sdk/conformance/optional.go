package conformance

import (
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
func checkConstants(r *run, m arch.Manifest) {
	groups, err := r.byTarget()
	if r.stop(err) {
		return
	}
	some := false
	for _, group := range groups {
		t := group[0].target
		fits := slices.DeleteFunc(slices.Clone(t.Describe().Constants), func(c arch.Constant) bool { return !c.Fits() })
		if len(fits) == 0 {
			continue
		}
		some = true
		i := slices.IndexFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == t.request.Arch })
		model := t.Describe().Model
		r.when(!slices.Contains(m.Archs[i].Fitted, model),
			"%s has constants with bounds, and the manifest does not say that %s is fitted", t, model)
		checkFit(r, group, spread(fits, 8))
	}
	r.skip(!some, "no model has constants with bounds")
}

// checkFit compares the times of a target under other values with each other, and those under the values in use with
// its estimates.
func checkFit(r *run, group []*testcase, fits []arch.Constant) {
	var sample []fit.Kernels
	var want []unit.Seconds
	t := group[0].target
	for _, c := range spread(group, 3) {
		some := c.feasible(8)
		sample = append(sample, fit.Kernels{Problem: c.problem, Configs: c.configs(some)})
		for _, i := range some {
			want = append(want, c.estimates[i].Cycles.At(t.Describe().Clock))
		}
	}
	values := []map[string]float64{nil, {fits[0].Name: fits[0].Value}}
	for _, c := range fits {
		values = append(values, map[string]float64{c.Name: min(max(c.Value*1.1, c.Low), c.High)})
	}
	rows, err := t.EstimateWith(r, values, sample)
	if r.fails(err, "%s", t) || r.when(!slices.Equal(rows[0], want) || !slices.Equal(rows[1], want),
		"%s: with the constants in use, EstimateWith gives other times than Estimate", t) {
		return
	}
	last := len(values) - 1
	alone, err := t.EstimateWith(r, values[last:], sample)
	r.when(err != nil || !slices.Equal(alone[0], rows[last]),
		"%s: a set of values gives other times alone than among others (%v)", t, err)
}

// checkCalibration asks for the microbenchmarks of every device. Its attributes are its parameters.
func checkCalibration(r *run, m arch.Manifest) {
	if r.skip(!m.Calibrates, "the manifest has no calibration") {
		return
	}
	targets, err := r.open()
	if r.stop(err) {
		return
	}
	_, err = r.client.Calibration(r, exec.Device{Name: "unknown", Arch: "no-such-architecture"})
	r.refuses(err, "the calibration of an unknown architecture")
	answered := false
	sameDevice := func(a, b *target) bool { return a.Describe().ID() == b.Describe().ID() }
	for _, t := range slices.CompactFunc(targets, sameDevice) {
		id := t.Describe().ID()
		d := exec.Device{Name: t.Describe().DeviceName, Arch: t.request.Arch,
			Attributes: map[string]float64{"memory_bytes": 16 << 30}} // which drivers know, and models do not need
		for _, p := range t.Describe().Params {
			d.Attributes[p.Name] = p.Value
		}
		plan, err := r.client.Calibration(r, d)
		if err != nil && diag.KindOf(err) == diag.Input {
			continue
		}
		if r.stop(err) {
			return
		}
		answered = true
		second, err := r.client.Calibration(r, d)
		r.when(err != nil || !reflect.DeepEqual(second.Probes, plan.Probes),
			"%s: asked twice, the microbenchmarks differ (%v)", id, err)
		checkNumbers(r, id, plan)
	}
	r.skip(!answered && len(r.list) == 0, "no device has microbenchmarks by its parameters alone")
}

// checkNumbers makes numbers of made-up values, and of none.
func checkNumbers(r *run, what string, plan *calibrate.Plan) {
	numbers, _, err := plan.Numbers(r, plan.Values(nil))
	r.when(err != nil || len(numbers) > 0, "%s: %d numbers of no measurement (%v)", what, len(numbers), err)
	values := calibrate.Values{}
	for i := range plan.Probes {
		values[plan.Probes[i].Name] = calibrate.Value{Value: float64(2 + i), Unit: plan.Probes[i].Unit, Clock: 1e9,
			Rounds: calibrate.MinRounds}
	}
	numbers, atoms, err := plan.Numbers(r, values)
	if r.fails(err, "%s: the numbers", what) {
		return
	}
	names := map[string]bool{}
	for _, n := range numbers {
		r.when(names[n.Name] || n.Unit == "" || n.Source == "" || len(n.Probes) == 0,
			"%s: the number %s comes twice, or lacks a unit, a source or probes", what, n.Name)
		names[n.Name] = true
		for _, p := range n.Probes {
			_, ok := values[p]
			r.when(!ok, "%s: the number %s is of %s, which is no microbenchmark", what, n.Name, p)
		}
	}
	second, same, err := plan.Numbers(r, values)
	r.when(err != nil || !reflect.DeepEqual(second, numbers) || !reflect.DeepEqual(same, atoms),
		"%s: asked twice, the numbers differ (%v)", what, err)
}

// checkLadder checks that everything a ladder names exists.
func checkLadder(r *run, m arch.Manifest) {
	if r.skip(!m.Ladder, "the manifest has no ladder") {
		return
	}
	ask := func() (*ladder.Ladder, error) { return r.client.Ladder(r) }
	l, err := ask()
	if r.stop(err) {
		return
	}
	again(&r.findings, "asked twice it is", l, ask)
	match, err := arch.Find([]arch.Manifest{m}, l.Device)
	if r.fails(err, "its device") {
		return
	}
	q := match.Request()
	q.Kernel = l.Family
	a, err := r.client.Open(r, q)
	if r.fails(err, "the model of %s", l.Family) {
		return
	}
	rungs, costs, terms := map[string]bool{ladder.Library: true}, map[string]bool{"": true}, map[string]bool{}
	p := gemm.New(4096, 4096, 4096)
	p.DType, p.Out = l.Types.In, l.Types.Out
	for _, rung := range slices.Concat(l.Rungs, l.Others) {
		r.when(rungs[rung.Name], "the rung %s comes twice", rung.Name)
		rungs[rung.Name] = true
		err := a.Estimate(r, make([]arch.Estimate, 1), rung.Problem(p), []gemm.Config{rung.Config})
		r.fails(err, "the rung %s", rung.Name)
	}
	for _, rung := range l.Rungs {
		r.when(rung.Instead != "" && !rungs[rung.Instead], "the rung %s: %s, which is to compute what it cannot, is no rung",
			rung.Name, rung.Instead)
	}
	for _, t := range a.Describe().Terms {
		terms[t.Name] = true
	}
	for _, c := range l.Costs {
		costs[c.Name] = true
		r.when(!terms[c.Term], "the cost %s is of the term %s, which the model does not have", c.Name, c.Term)
	}
	for _, c := range l.Claims {
		r.when(!rungs[c.Rung] || c.Over != "" && !rungs[c.Over] || !costs[c.Cost] || math.IsNaN(c.Least),
			"%s %s: it names a rung or a cost that the ladder does not have", c.Rung, c.Text)
	}
}
