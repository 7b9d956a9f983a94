package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/sdk/wire"
)

// checkAnswers checks the results of answered. The client itself refuses totals that are not finite and positive, a
// rejected configuration without a reason or with a total, and positions that do not ascend.
func checkAnswers(r *run) {
	cases, err := r.answered()
	if len(r.problems) == 0 && r.stop(err) {
		return
	}
	answers := map[*target]bool{}
	for _, c := range cases {
		checkList(r, c)
		answers[c.target] = answers[c.target] || len(c.feasible(1)) > 0
	}
	silent := func(t *target, why string, args ...any) {
		r.when(!answers[t], "%s: %s", t, fmt.Sprintf(why, args...))
		answers[t] = true // report it once
	}
	for _, c := range cases {
		silent(c.target, "no candidate is feasible for any problem")
	}
	for _, u := range r.problems {
		// A model may decline a problem with a reason.
		if !r.when(diag.KindOf(u.err) != diag.Input, "%s: %s", u, u.err) {
			silent(u.target, "every problem is declined, the first with: %s", oneLine(u.err))
		}
	}
}

// checkList checks the candidates of a case.
func checkList(r *run, c *testcase) {
	seen := map[gemm.Config]bool{}
	for _, config := range c.candidates.Configs {
		err := c.Describe().CheckConfig(&config)
		if wrong := config.Kernel != c.kernel; wrong || err != nil || seen[config] {
			r.when(err != nil, "%s: candidate %v", c, err)
			r.when(wrong, "%s: candidate %s is of kernel family %q", c, config, config.Kernel)
			r.when(seen[config], "%s: candidate %s comes twice", c, config)
		}
		seen[config] = true
	}
	for _, rejected := range c.candidates.Rejected {
		r.when(seen[rejected.Config], "%s: %s is a candidate and rejected (%s)", c, rejected.Config, rejected.Reason)
	}
}

// checkRejected estimates the configurations that Candidates has rejected. Some reasons appear only then.
func checkRejected(r *run, cases []*testcase) {
	some := false
	for _, c := range cases {
		var configs []gemm.Config
		for _, rejected := range spread(c.candidates.Rejected, 64) {
			configs = append(configs, rejected.Config)
			r.when(rejected.Detail == "", "%s: %s is rejected (%s) without numbers", c, rejected.Config, rejected.Reason)
		}
		some = some || len(configs) > 0
		est := make([]arch.Estimate, len(configs))
		if len(configs) == 0 ||
			r.fails(c.Estimate(r, est, c.problem, configs), "%s: estimating rejected configurations", c) {
			continue
		}
		for i := range est {
			r.when(est[i].Reject == "", "%s: Candidates rejects %s and Estimate gives it %v cycles", c, configs[i],
				float64(est[i].Cycles))
		}
	}
	r.skip(!some, "nothing is rejected")
}

func checkDeterminism(r *run, c *testcase) {
	ask := func(how string) {
		if c.compareLists(r, &r.findings, c.Architecture, how, func(a, b arch.Rejection) bool { return a == b }) {
			c.compare(r, &r.findings, c.Architecture, how, c.all())
		}
	}
	ask("asked again")
	r.fails(c.Close(r), "%s", c)
	ask("asked after it was closed")
}

func checkOrder(r *run, cases []*testcase) {
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed random order
	for _, c := range cases {
		order := rng.Perm(len(c.candidates.Configs))
		orders := []named[[]int]{{"in another order", order}, {"in part of the list", order[:len(order)/2]},
			{"listed twice", []int{order[0], order[0]}}}
		for _, i := range order[:min(4, len(order))] {
			orders = append(orders, named[[]int]{"alone", []int{i}})
		}
		for _, some := range orders {
			c.compare(r, &r.findings, c.Architecture, some.what, some.value)
		}
	}
}

// checkMonotone checks that the predicted time of a configuration does not fall when a dimension grows by whole blocks,
// for each dimension that the models declare monotone, and rows become no better aligned. Whole K steps of all splits
// have no padding: all models are monotone in them, except those that declare otherwise.
func checkMonotone(dims ...arch.Dim) func(*run, []*testcase) {
	return func(r *run, cases []*testcase) {
		some := false
		for _, c := range cases {
			for _, dim := range dims {
				declared := c.Describe().Monotone
				if dim == arch.DimK && slices.Contains(declared, arch.DimNone) ||
					dim != arch.DimK && !slices.Contains(declared, dim) {
					continue
				}
				some = true
				for _, config := range c.configs(c.feasible(6)) {
					checkGrowth(r, c, dim, config)
				}
			}
		}
		r.skip(!some, "the models do not declare it (arch.Description.Monotone)")
	}
}

// checkGrowth lets a dimension grow by whole blocks.
func checkGrowth(r *run, c *testcase, dim arch.Dim, config gemm.Config) {
	p := c.problem
	size := map[arch.Dim]*int{arch.DimM: &p.M, arch.DimN: &p.N, arch.DimK: &p.K}[dim]
	block := map[arch.Dim]int{arch.DimM: config.BlockM, arch.DimN: config.BlockN,
		arch.DimK: config.BlockK * max(config.SplitK, 1)}[dim]
	// Some are close together and some far apart.
	blocks := []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 127, 129, 250, 500, 1000}
	if r.Short {
		blocks = []int{1, 2, 3, 5, 8, 17, 64, 127, 500}
	}
	var before []grown
	est := make([]arch.Estimate, 1)
	for _, n := range blocks {
		*size = n * block
		if p.Validate() != nil || r.fails(c.Estimate(r, est, p, []gemm.Config{config}), "%s, %s, %s = %d", c, config, dim,
			*size) {
			return
		}
		if est[0].Reject != "" {
			continue // a size may rule a configuration out
		}
		now := grown{*size, min(*size&-*size, 128), float64(est[0].Cycles)}
		for _, b := range before {
			least := b.cycles
			if now.aligned != b.aligned {
				least *= 0.95
			}
			if r.when(b.aligned >= now.aligned && now.cycles < least, "%s, %s: %v cycles with %s = %d, and %v with %d", c,
				config, now.cycles, dim, now.size, b.cycles, b.size) {
				return
			}
		}
		before = append(before, now)
	}
}

// grown is the time of a size that grew. Rows of a size that a higher power of two divides, up to 128 elements, are
// better aligned, and may be read faster than shorter ones. A model may know times of kernels for aligned rows only: by
// up to 5 %, it may say less of longer rows that are worse aligned.
type grown struct {
	size, aligned int
	cycles        float64
}

// The tolerances of formulas and shares, because the formulas are evaluated in another order than the model. A small
// term may be the difference of large ones and inherit their rounding errors, so its tolerance is relative to the
// total.
const (
	formulaTolerance = 1e-9
	sharesTolerance  = 1e-9
)

func checkTerms(r *run, c *testcase) {
	picked, n := c.feasible(3), len(c.Describe().Terms)
	if len(picked) == 0 || n == 0 {
		return
	}
	rows := make([]float64, len(picked)*n)
	if r.fails(c.Terms(r, rows, c.problem, c.configs(picked)), "%s", c) {
		return
	}
	for i, j := range picked {
		checkRow(r, c, j, rows[i*n:(i+1)*n])
	}
}

// checkRow checks the terms of the candidate at a position.
func checkRow(r *run, c *testcase, position int, row []float64) {
	config, parameters := c.candidates.Configs[position], *c.Describe()
	what := fmt.Sprintf("%s, %s", c, config)
	total, shares, shared := 0.0, 0.0, false
	for j, term := range parameters.Terms {
		r.when(math.IsNaN(row[j]) || math.IsInf(row[j], 0), "%s: %s is %v", what, term.Name, row[j])
		switch term.Kind {
		case arch.KindTotal:
			total = row[j]
		case arch.KindShare:
			shares, shared = shares+row[j], true
		default:
		}
	}
	cycles := float64(c.estimates[position].Cycles)
	r.when(math.Float64bits(cycles) != math.Float64bits(total),
		"%s: Estimate gives %v cycles, the total of Terms is %v", what, cycles, total)
	r.when(shared && math.Abs(shares-total) > sharesTolerance*math.Abs(total),
		"%s: the shares of the total add up to %v, the total is %v", what, shares, total)
	parameters.Terms = nil
	values := formula.Values(&parameters, c.problem, config, nil)
	for j, term := range c.Describe().Terms {
		if !formula.IsRule(term.Formula) {
			scale := math.Abs(row[j])
			if term.Unit == "cycles" {
				scale = max(scale, 1e-3*math.Abs(total))
			}
			got, err := formula.Eval(term.Formula, values)
			_ = r.fails(err, "%s: %s", what, term.Name) ||
				r.when(!(math.Abs(got-row[j]) <= formulaTolerance*scale), "%s: %s = %s is %v, and the plugin answers %v",
					what, term.Name, term.Formula, got, row[j])
		}
		values[term.Name] = row[j] // a formula may use the terms before it
	}
}

// checkMapping checks launch orders. The client itself refuses negative numbers.
func checkMapping(r *run, c *testcase) {
	for _, config := range c.configs(c.feasible(3)) {
		m, err := c.Mapping(r, c.problem, config)
		if r.fails(err, "%s, %s", c, config) {
			continue
		}
		least, dies := 1, c.Describe().Partitions
		if c.Describe().Opaque(config.Kernel) {
			least = 0
		}
		r.when(m.GroupM < least || m.GroupM > gemm.MaxConfigNumber || m.XCDs > dies,
			"%s, %s: a launch order of %+v; GroupM is %d to %d, XCDs 0 to the %d partitions", c, config, m, least,
			gemm.MaxConfigNumber, dies)
		again(&r.findings, fmt.Sprintf("%s, %s: asked twice the launch order is", c, config), m,
			func() (arch.Mapping, error) { return c.Mapping(r, c.problem, config) })
	}
}

// here hides the Ranker of an architecture, so that the selector of this process ranks.
type here struct{ arch.Architecture }

// checkRank compares Rank with the selector of this process over Candidates, Estimate and Mapping.
func checkRank(r *run, group []*testcase) {
	t := group[0].target
	q := selector.Request{Space: t.space()}
	for _, c := range group {
		q.Problems = append(q.Problems, c.problem)
	}
	for _, depth := range []struct{ top, mapped int }{{1, 0}, {10, 3}, {0, 1}} {
		q.Top, q.Map = depth.top, depth.mapped
		want, err := selector.Rank(r, here{t.Architecture}, q)
		if r.stop(err) {
			return
		}
		got, err := t.Rank(r, q)
		if r.skip(t.RanksHere(), "Rank is not served") {
			return
		}
		if r.fails(err, "%s: Rank", t) {
			continue
		}
		for i := range want {
			what := differ(&got[i], &want[i])
			r.when(what != "", "%s, %s, the best %d: %s", t, q.Problems[i], q.Top, what)
		}
	}
}

// differ describes the first difference from the expected ranking.
func differ(got, want *selector.Result) string {
	switch {
	case (got.Err == nil) != (want.Err == nil) || diag.KindOf(got.Err) != diag.KindOf(want.Err):
		return fmt.Sprintf("Rank gives the error %v, and its parts %v", got.Err, want.Err)
	case len(got.Entries) != len(want.Entries) || got.Feasible != want.Feasible:
		return fmt.Sprintf("Rank lists %d of %d feasible candidates, and its parts %d of %d",
			len(got.Entries), got.Feasible, len(want.Entries), want.Feasible)
	case len(got.Rejected)+len(want.Rejected) > 0 && !reflect.DeepEqual(got.Rejected, want.Rejected):
		return fmt.Sprintf("Rank counts the rejected as %v, and its parts as %v", got.Rejected, want.Rejected)
	}
	for i, w := range want.Entries {
		g := got.Entries[i]
		if g.Index != w.Index || g.Config != w.Config || g.Mapping != w.Mapping || !sameBits(g.Estimate, w.Estimate) {
			return fmt.Sprintf("place %d of Rank is %s (%s), and of its parts %s (%s)", i+1, g.Config, text(g.Estimate),
				w.Config, text(w.Estimate))
		}
	}
	return ""
}

// checkUnused overrides the parameters that a description calls unused, and compares the predictions.
func checkUnused(r *run, group []*testcase) {
	t := group[0].target
	unused := t.Describe().Unused
	if len(unused) == 0 {
		return
	}
	for _, factor := range []float64{2, 0.5} {
		// All at once, which is enough where nothing changes.
		if a := t.override(r, factor, unused...); a != nil && changed(r, group, a) == "" {
			continue
		}
		for _, name := range unused {
			if a := t.override(r, factor, name); a != nil {
				what := changed(r, group, a)
				r.when(what != "", "%s: %s is said to be unused, but %g times its value changes %s", t, name, factor, what)
			}
		}
	}
}

// override opens the target with parameters multiplied by a factor. It returns nil if that is refused, for example
// because a value is out of bounds.
func (t *target) override(r *run, factor float64, names ...string) *wire.Architecture {
	q := t.request
	q.Overrides = map[string]hw.OverrideValue{}
	for _, p := range t.Describe().Params {
		if slices.Contains(names, p.Name) {
			v := p.Value * factor
			if p.Value == math.Trunc(p.Value) {
				v = math.Ceil(v)
			}
			q.Overrides[p.Name] = hw.OverrideValue{Value: v, Unit: p.Unit}
		}
	}
	a, err := r.client.Open(r, q)
	if err != nil {
		return nil
	}
	return a
}

// changed returns what an architecture answers differently to some of the cases, or an empty text.
func changed(r *run, cases []*testcase, a *wire.Architecture) string {
	if a.Describe().Clock != cases[0].Describe().Clock {
		return "the clock"
	}
	for _, c := range spread(cases, 3) {
		var f findings
		const how = "with it"
		sameReason := func(x, y arch.Rejection) bool { return x.Config == y.Config && x.Reason == y.Reason }
		if c.compareLists(r, &f, a, how, sameReason) {
			c.compare(r, &f, a, how, c.all())
		}
		for _, config := range c.configs(c.feasible(1)) {
			was, err1 := c.Mapping(r, c.problem, config)
			is, err2 := a.Mapping(r, c.problem, config)
			f.when(was != is || (err1 == nil) != (err2 == nil), "%s, %s: the launch order is %+v (%v) and was %+v (%v)", c,
				config, is, err2, was, err1)
		}
		if len(f.list) > 0 {
			return "an answer: " + f.list[0]
		}
	}
	return ""
}

// goldenLine is a line of a golden file: the best configurations for a problem, and their totals.
type goldenLine struct {
	Arch   string `json:"arch"`
	Device string `json:"device"`
	Model  string `json:"model"`
	Kernel string `json:"kernel"`
	gemm.Record
	Best []goldenEntry `json:"best"`
}

// goldenEntry is a configuration in the form that gemm.ParseConfig reads, with its total as the shortest decimal that
// gives the same bits.
type goldenEntry struct {
	Config string  `json:"config"`
	Cycles float64 `json:"cycles"`
}

// goldenBest is the number of configurations written per problem.
const goldenBest = 5

// checkGolden ranks the problems of the file and compares the rankings.
func checkGolden(r *run) {
	if r.skip(r.Golden == "", "there is no golden file") {
		return
	}
	if r.UpdateGolden {
		r.stop(r.writeGolden())
		return
	}
	content, err := os.ReadFile(r.Golden)
	if err != nil {
		r.stop(fmt.Errorf("the golden file cannot be read: %w; update it first", err))
		return
	}
	r.when(len(bytes.TrimSpace(content)) == 0, "%s is empty", r.Golden)
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if len(bytes.TrimSpace(line)) > 0 && r.err == nil {
			r.checkGoldenLine(fmt.Sprintf("%s:%d", r.Golden, number), line)
		}
	}
}

// checkGoldenLine ranks the problem of a line.
func (r *run) checkGoldenLine(where string, text []byte) {
	var want goldenLine
	var p gemm.Problem
	err := strictjson.Unmarshal(text, &want)
	if err == nil {
		p, err = want.Problem()
	}
	if err != nil {
		r.stop(fmt.Errorf("%s: %w", where, err))
		return
	}
	a, err := r.client.Open(r, arch.OpenRequest{Arch: want.Arch, Device: want.Device, Model: want.Model,
		Kernel: want.Kernel})
	if r.fails(err, "%s", where) {
		return
	}
	got, err := r.golden(&target{Architecture: a, kernel: want.Kernel}, p, len(want.Best))
	if r.fails(err, "%s: %s", where, p) {
		return
	}
	where = fmt.Sprintf("%s: %s@%s %s, %s", where, want.Arch, want.Device, want.Model, p)
	for i, w := range want.Best {
		if r.when(i >= len(got.Best), "%s: only %d configurations are feasible", where, len(got.Best)) {
			return
		}
		g := got.Best[i]
		if r.when(g.Config != w.Config || math.Float64bits(g.Cycles) != math.Float64bits(w.Cycles),
			"%s: place %d is %s with %v cycles, and was %s with %v", where, i+1, g.Config, g.Cycles, w.Config, w.Cycles) {
			return
		}
	}
}

// golden ranks a problem.
func (r *run) golden(t *target, p gemm.Problem, best int) (goldenLine, error) {
	results, err := selector.Rank(r, here{t.Architecture}, selector.Request{Problems: []gemm.Problem{p},
		Space: t.space(), Top: best})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return goldenLine{}, err
	}
	d := t.Describe()
	line := goldenLine{Arch: d.Arch, Device: d.Device, Model: d.Model, Kernel: t.kernel, Record: p.Record()}
	for _, e := range results[0].Entries {
		line.Best = append(line.Best, goldenEntry{e.Config.String(), float64(e.Estimate.Cycles)})
	}
	return line, nil
}

// writeGolden writes the current rankings.
func (r *run) writeGolden() error {
	cases, err := r.answered()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	lines := 0
	for _, c := range cases {
		if len(c.feasible(1)) == 0 {
			continue
		}
		line, err := r.golden(c.target, c.problem, goldenBest)
		if err != nil {
			return err
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
		lines++
	}
	r.when(true, "%s is rewritten with %d lines: look at the difference, and check again without updating", r.Golden,
		lines)
	return os.WriteFile(r.Golden, text.Bytes(), 0o644)
}
