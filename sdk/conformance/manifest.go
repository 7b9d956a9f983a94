package conformance

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

func checkInfo(r *run, info wire.Info) {
	r.when(info.Failing != "", "it says that it cannot work: %s", info.Failing)
	r.when(info.Version == "", "it has no version")
	again(&r.findings, "asked twice it is", info, r.info)
}

// sameNames adds a finding if a manifest has not the name and the version of Info.
func (r *run) sameNames(name, version string) {
	info, err := r.info()
	r.when(err == nil && (info.Name != name || info.Version != version), "it is of %s %s, and Info is of %s %s",
		name, version, info.Name, info.Version)
}

func checkManifest(r *run, m arch.Manifest) {
	again(&r.findings, "asked twice it is", m, r.manifest)
	r.sameNames(m.Name, m.Version)
	r.when(len(m.Archs) == 0, "it lists no architecture")
	var ids, keys []string
	for _, a := range m.Archs {
		ids = append(ids, a.ID)
		r.unique(a.ID+": model", a.Models)
		r.unique(a.ID+": kernel family", a.Kernels)
		var devices []string
		for _, d := range a.Devices {
			devices = append(append(devices, d.ID), d.Aliases...)
			r.when(d.Name == "", "%s: the device %s has no product name", a.ID, d.ID)
		}
		r.unique(a.ID+": device", devices)
	}
	r.unique("architecture", ids)
	for _, o := range m.Options {
		keys = append(keys, o.Key)
		r.when(o.Doc == "", "the option %s has no explanation", o.Key)
	}
	r.unique("option", keys)
}

// checkOpen opens everything that the manifest lists, by full name and by default. The client itself refuses an
// architecture, device or model that was not asked for.
func checkOpen(r *run, m arch.Manifest) {
	for _, q := range r.requests(m) {
		what := asked(q)
		a, err := r.client.Open(r, q)
		if r.fails(err, "%s does not open", what) {
			continue
		}
		d := a.Describe()
		r.when(q.Model != "" && d.Model != q.Model, "asked for %s, it opens the model %s", what, d.Model)
		r.when(q.Kernel != "" && !slices.Contains(d.Kernels, q.Kernel), "asked for %s, it opens a model of %s", what,
			strings.Join(d.Kernels, ", "))
		entry := m.Archs[slices.IndexFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == q.Arch })]
		for _, kernel := range d.Kernels {
			r.when(!slices.Contains(entry.Kernels, kernel), "%s: the manifest does not list the kernel family %q", what, kernel)
		}
		r.when(!slices.Equal(d.Models, entry.Models), "%s: its models are %v, by the manifest %v", what, d.Models,
			entry.Models)
	}
	for _, a := range m.Archs {
		opened, err := r.client.Open(r, arch.OpenRequest{Arch: a.ID})
		if r.fails(err, "%s does not open by default", a.ID) {
			continue
		}
		d, device, model := opened.Describe(), a.Devices[0].ID, a.Models[0]
		r.when(d.Device != device || d.Model != model, "%s opens %s under %s, and the first of the manifest are %s and %s",
			a.ID, d.Device, d.Model, device, model)
	}
}

// asked is the device, and the model or the kernel family, that a request asks for.
func asked(r arch.OpenRequest) string {
	return r.Arch + "@" + r.Device + " " + strings.TrimSpace(r.Model+" "+r.Kernel)
}

// checkReopen compares the answers to Open: a host refuses a plugin whose description changes after a restart.
func checkReopen(r *run, m arch.Manifest) {
	client := pb.NewArchServiceClient(r.conn)
	for _, q := range r.requests(m) {
		first, err := client.Open(r, wire.OpenMessage(q))
		if err != nil {
			continue // checkOpen reports it
		}
		_, err = client.Close(r, &pb.CloseRequest{Handle: first.GetHandle()})
		r.fails(err, "%s cannot be closed", asked(q))
		second, err := client.Open(r, wire.OpenMessage(q))
		if r.fails(err, "%s does not open again", asked(q)) {
			continue
		}
		r.when(!slices.Equal(first.GetHandle(), second.GetHandle()), "%s: opened again it has another handle", asked(q))
		r.when(!slices.Equal(first.GetJson(), second.GetJson()),
			"%s: opened again it describes itself differently", asked(q))
	}
}

// unknownName names no architecture, device, model or option.
const unknownName = "no-such-name"

// named is a value with a description.
type named[T any] struct {
	what  string
	value T
}

func checkBadOpen(r *run, m arch.Manifest) {
	bad := []named[arch.OpenRequest]{{"an unknown architecture", arch.OpenRequest{Arch: unknownName}}}
	for _, a := range m.Archs {
		option := func(key, value string) arch.OpenRequest {
			return arch.OpenRequest{Arch: a.ID, Options: map[string]string{key: value}}
		}
		override := func(name string, value float64, unit string) arch.OpenRequest {
			values := map[string]hw.OverrideValue{name: {Value: value, Unit: unit}}
			return arch.OpenRequest{Arch: a.ID, Overrides: values}
		}
		bad = append(bad, []named[arch.OpenRequest]{
			{a.ID + ": an unknown device", arch.OpenRequest{Arch: a.ID, Device: unknownName}},
			{a.ID + ": an unknown model", arch.OpenRequest{Arch: a.ID, Model: unknownName}},
			{a.ID + ": an unknown option", option(unknownName, "1")},
			{a.ID + ": an override of an unknown parameter", override(unknownName, 1, "")},
		}...)
		opened, err := r.client.Open(r, arch.OpenRequest{Arch: a.ID})
		if err != nil {
			continue // checkOpen reports it
		}
		for _, p := range spread(opened.Describe().Params, 1) {
			what := a.ID + ": an override of " + p.Name
			bad = append(bad, named[arch.OpenRequest]{what + " that is negative", override(p.Name, -1, p.Unit)},
				named[arch.OpenRequest]{what + " in an unknown unit", override(p.Name, 1, "furlong")})
		}
		for _, o := range m.Options {
			if len(o.Values) > 0 {
				bad = append(bad, named[arch.OpenRequest]{a.ID + ": the option " + o.Key +
					" with a value that it does not list", option(o.Key, unknownName)})
			}
		}
	}
	for _, q := range bad {
		_, err := r.client.Open(r, q.value)
		r.refuses(err, "%s", q.what)
	}
	_, err := r.manifest()
	r.fails(err, "afterwards")
}

// checkUnits checks that the numbers of a description are plausible. A wrong unit makes them implausible. The client
// itself refuses negative counts, and a description without memory levels.
func checkUnits(r *run, t *target) {
	d := t.Describe()
	name := fmt.Sprintf("%s %s", d.ID(), d.Model)
	r.plausibleClock(name, float64(d.Clock))
	r.when(d.Units < 1 || d.Partitions < 1, "%s: %d units in %d partitions", name, d.Units, d.Partitions)
	for _, p := range d.Params {
		_, err := unit.Convert(p.Value, p.Unit, p.Unit)
		r.fails(err, "%s: %s", name, p.Name)
		r.when(p.Source == "" || p.Method == "", "%s: %s has no source", name, p.Name)
		hertz, err := unit.Convert(p.Value, p.Unit, "Hz")
		r.when(p.Name == "clock" && (err != nil || math.Abs(hertz-float64(d.Clock)) > 1e-12*hertz),
			"%s: the parameter clock is %v %s, and the clock of the description %v Hz", name, p.Value, p.Unit, float64(d.Clock))
	}
	for _, a := range d.Atoms {
		if r.when(a.M < 1 || a.N < 1 || a.K < 1 || !(a.Latency > 0) || a.PerUnit < 1,
			"%s: the matrix instruction of %s is %dx%dx%d in %v cycles, %d at once", name, a.DType, a.M, a.N, a.K,
			float64(a.Latency), a.PerUnit) {
			continue
		}
		// This finds a unit with a wrong prefix. The exact distance from the data sheet is not checked.
		rate := 2 * float64(a.M*a.N*a.K) / float64(a.Latency) * float64(a.PerUnit*d.Units) * float64(d.Clock)
		peak := float64(d.PeakFor(a.DType))
		r.when(peak != 0 && (rate > 100*peak || rate < peak/100),
			"%s: the matrix instruction of %s makes %.3g FLOP/s, the peak is %.3g", name, a.DType, rate, peak)
	}
	for _, p := range d.Peak {
		r.when(!(p.Rate > 0), "%s: a peak of %v FLOP/s for %s", name, float64(p.Rate), p.DType)
	}
	checkLevels(r, name, t)
}

func checkLevels(r *run, name string, t *target) {
	levels, units := t.Levels(), t.Describe().Units
	for i, l := range levels {
		r.when(!(l.Rate() > 0) || l.Bandwidth.Units < 1 || l.Latency < 0 || l.Partitions < 1,
			"%s: %s has %v B/cycle for %d units, a latency of %v cycles and %d partitions", name, l.Name,
			float64(l.Bandwidth.Peak), l.Bandwidth.Units, float64(l.Latency), l.Partitions)
		// A hierarchy may contain a level with capacity 0 if the device lacks it.
		outermost := i == len(levels)-1
		r.when(l.Capacity < 0 || outermost && l.Capacity != 0, "%s: %s has a capacity of %v B; the last level "+
			"holds everything and must have 0, no other a negative one", name, l.Name, float64(l.Capacity))
		for _, active := range []int{1, (units + 1) / 2, units} {
			f := l.Bandwidth.Fraction(active)
			r.when(!(f > 0 && f <= 1), "%s: %d units reach %v of the bandwidth of %s", name, active, f, l.Name)
		}
	}
}

// checkSchema checks what `origami explain` shows of the terms and constants.
func checkSchema(r *run, t *target) {
	d := t.Describe()
	name := fmt.Sprintf("%s %s", d.ID(), d.Model)
	var names []string
	totals := 0
	for _, term := range d.Terms {
		names = append(names, term.Name)
		if term.Kind == arch.KindTotal {
			totals++
		}
		r.when(term.Formula == "" || term.Doc == "" || term.Unit == "",
			"%s: the term %s lacks its formula, explanation or unit", name, term.Name)
	}
	for _, p := range d.Params {
		names = append(names, p.Name)
	}
	for _, c := range d.Constants {
		names = append(names, c.Name)
		r.when(c.Unit == "" || c.Doc == "" || c.Source == "",
			"%s: the constant %s lacks its unit, explanation or source", name, c.Name)
	}
	r.unique(name+": term, parameter or constant", names)
	r.when(totals != 1, "%s: %d terms are the total, not one", name, totals)
}

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
	if r.fails(err, "%s", t) || r.when(!slices.EqualFunc(rows[0], want, alike) || !slices.EqualFunc(rows[1], want, alike),
		"%s: with the constants in use, EstimateWith gives other times than Estimate", t) {
		return
	}
	last := len(values) - 1
	alone, err := t.EstimateWith(r, values[last:], sample)
	r.when(err != nil || !slices.Equal(alone[0], rows[last]),
		"%s: a set of values gives other times alone than among others (%v)", t, err)
}

// alike reports whether times are equal but for rounding.
func alike(a, b unit.Seconds) bool { return math.Abs(float64(a-b)) <= 1e-12*float64(b) }

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
		r.when(!rungs[c.Rung] || c.Over != "" && !rungs[c.Over] || !costs[c.Cost],
			"%s %s: it names a rung or a cost that the ladder does not have", c.Rung, c.Text)
	}
}
