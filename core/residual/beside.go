package residual

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// Measured is what a configuration took. One that has no numbers is the fastest of its family, as of a library.
type Measured struct {
	Problem gemm.Problem
	Config  gemm.Config
	Time    unit.Seconds
	Timing  timing.Timing // what the time is of
}

// written is Measured in JSON.
type written struct {
	Kernel string `json:"kernel"`
	gemm.Record
	Config  *gemm.Config  `json:"config,omitempty"`
	Seconds unit.Seconds  `json:"seconds"`
	Timing  timing.Timing `json:"timing"`
}

// MarshalJSON implements json.Marshaler.
func (m Measured) MarshalJSON() ([]byte, error) {
	w := written{Kernel: m.Config.Kernel, Record: m.Problem.Record(), Seconds: m.Time, Timing: m.Timing}
	if !m.fastest() {
		w.Config = &m.Config
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Measured) UnmarshalJSON(text []byte) (err error) {
	w := written{Config: &gemm.Config{}}
	if err = strictjson.Unmarshal(text, &w); err != nil {
		return err
	}
	if !(w.Seconds > 0 && w.Seconds < 1e6) {
		return fmt.Errorf("a time is %v s", float64(w.Seconds))
	}
	m.Config, m.Time, m.Timing = *w.Config, w.Seconds, w.Timing
	m.Config.Kernel = w.Kernel
	m.Problem, err = w.Problem()
	return err
}

func (m *Measured) fastest() bool { return m.Config == gemm.Config{Kernel: m.Config.Kernel} }

// Picks lists, of each problem of a data set, the time of the kernel that a model predicts to be the fastest of those
// measured. It is what a user gets; the fastest measured are those that the model is the most wrong about.
func Picks(ctx context.Context, a arch.Architecture, data *dataset.Dataset) (all []Measured) {
	for _, p := range data.Problems() {
		list, times := data.Times(p)
		estimates, best := make([]arch.Estimate, len(list)), -1
		if a.Estimate(ctx, estimates, p, list) != nil {
			continue // the model has no such problem
		}
		for i := range estimates {
			if e := &estimates[i]; e.Reject == "" && (best < 0 || e.Cycles < estimates[best].Cycles) {
				best = i
			}
		}
		if best >= 0 {
			all = append(all, Measured{Problem: p, Config: list[best], Time: unit.Seconds(times[list[best]]),
				Timing: data.Timing()})
		}
	}
	return all
}

// ByKernel are times by kernel family, for Times.
func ByKernel(all []Measured) map[string]func() []Measured {
	out := map[string]func() []Measured{}
	for _, rows := range score.GroupBy(all, func(m *Measured) string { return m.Config.Kernel }) {
		out[rows[0].Config.Kernel] = func() []Measured { return rows }
	}
	return out
}

// Times are measured times that correct a model near their problems.
type Times struct {
	// Of says whose they are, and Term names the share that they add to the model's own total.
	Of, Term string
	// Like is the model whose predictions they are compared with: of the hardware that was measured.
	Like arch.Architecture
	// Rows has the times of a kernel family, which are asked for once.
	Rows map[string]func() []Measured
	// Intervals says that they are of this very GPU: where no intervals of its kind hold, theirs count.
	Intervals bool
	// Asked is the timing that is asked for. Times in a running model and times of one launch are two harnesses then, and
	// storage orders have kernels of their own. Without it all count alike.
	Asked timing.Timing
	// Without says which times do not count.
	Without Problem
}

// The sources of times, if it counts which timing they are of: kernels back to back, and one launch.
const running, launch = "running", "launch"

func (t *Times) source(of timing.Timing) string {
	switch {
	case t.Asked == "":
		return ""
	case of == timing.Events, of == timing.Host:
		return launch
	default:
		return running
	}
}

// Beside returns an architecture whose times are corrected by measured times near the problem, of one kernel family
// each. They say nothing of one configuration beside another, so that the order of a family stays.
func Beside(a arch.Architecture, t *Times) arch.Architecture {
	described := *a.Describe()
	c := &beside{Architecture: a, description: &described, without: t.Without, series: map[string]func() []*Series{},
		asked: t.source(t.Asked), stopwatch: timing.New(a)}
	c.total = slices.IndexFunc(described.Terms, func(t arch.Term) bool {
		return t.Kind == arch.KindTotal && t.Unit == "cycles"
	})
	for _, kernel := range slices.Sorted(maps.Keys(t.Rows)) {
		rows := t.Rows[kernel]
		predicted := sync.OnceValue(func() map[string][]score.Row { return t.predict(context.Background(), rows()) })
		c.series[kernel] = sync.OnceValue(func() []*Series { return seriesOf(predicted()) })
		if t.Intervals {
			own := c.intervals(kernel, t.Of, predicted()[c.asked])
			described.Uncertainty = slices.Concat(own, described.Uncertainty)
		}
	}
	described.Monotone = []arch.Dim{arch.DimNone} // measured times are not
	if c.total >= 0 {
		total := described.Terms[c.total]
		total.Formula = "(" + total.Formula + ") + " + t.Term
		described.Terms = slices.Concat(described.Terms[:c.total], []arch.Term{{Name: t.Term, Unit: total.Unit,
			Kind: arch.KindShare, Formula: "rule: the total × (exp(residual) - 1)",
			Doc: "what " + t.Of + " near the problem add", Source: "docs/trust.md"}, total}, described.Terms[c.total+1:])
	}
	if r, ok := a.(selector.Ranker); ok {
		return &ranker{c, r}
	}
	if t, ok := a.(fit.Tunable); ok {
		return &tunable{c, t}
	}
	return c
}

// predict sets times beside the predictions of the model, in its timing, by source.
func (t *Times) predict(ctx context.Context, all []Measured) map[string][]score.Row {
	d, rows := t.Like.Describe(), map[string][]score.Row{}
	stopwatch, of := timing.New(t.Like), timing.Timing(d.Timing)
	for _, m := range all {
		var e [1]arch.Estimate
		var err error
		if m.fastest() {
			var best []selector.Entry
			best, err = selector.RankOne(ctx, t.Like, m.Problem, selector.Request{
				Space: arch.Space{Kernel: m.Config.Kernel}, Top: 1})
			if err == nil {
				e[0], m.Config = best[0].Estimate, best[0].Config
			}
		} else {
			err = t.Like.Estimate(ctx, e[:], m.Problem, []gemm.Config{m.Config})
		}
		if err == nil && e[0].Reject == "" && single(&m.Problem) {
			source := t.source(m.Timing)
			if of.Meaning() != "" { // else the model does not say what its times are of
				m.Time = stopwatch.Convert(m.Time, &m.Problem, m.Timing, of)
			}
			rows[source] = append(rows[source], score.Row{Problem: m.Problem, Config: m.Config, Bound: e[0].Bound,
				Predicted: e[0].Cycles.At(d.Clock), Measured: m.Time, Added: stopwatch.Added(&m.Problem, of)})
		}
	}
	return rows
}

func seriesOf(bySource map[string][]score.Row) (all []*Series) {
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		of := func(r *score.Row) [2]string { return layoutOf(&r.Problem, source) }
		for _, same := range score.GroupBy(bySource[source], of) {
			layout := of(&same[0])
			s, list := &Series{Source: source, Layout: layout[0], Storage: layout[1]}, make([]Row, len(same))
			for i, r := range same {
				p := &r.Problem
				list[i] = Row{p.M, p.N, p.K, alike(math.Log(float64(r.Measured / r.Predicted)))}
			}
			s.Add(list)
			all = append(all, s)
		}
	}
	return all
}

// leastHeld is the share of times in intervals of 90 % below which these do not hold here: of 20 times, fewer are in
// them by chance in 4 of 100 cases (binomial distribution).
const leastHeld = 0.8

// intervals are found on the times, each corrected by the others, for each size of type. There are none where intervals
// of the device are known and hold the times.
func (c *beside) intervals(kernel, of string, all []score.Row) (found []arch.Uncertainty) {
	without := c.without
	defer func() { c.without = without }()
	c.without.WithoutSame = true
	for _, rows := range score.GroupBy(all, func(r *score.Row) int { return r.Problem.DType.Bits() }) {
		if len(rows) <= score.MinSizes {
			continue
		}
		known, before := true, arch.Uncertainty{}
		for i := range rows {
			near := c.at(&rows[i].Problem, kernel)
			rows[i].Predicted *= unit.Seconds(near.factor)
			rows[i].Spread = near.spread
			s := c.description.Scope(kernel, &rows[i].Problem, rows[i].Config.SplitK)
			if known = known && s.Evidence == arch.EvidenceChecked; s.Uncertainty != nil {
				before = *s.Uncertainty
			}
		}
		held, n := score.Held(rows, func(p *gemm.Problem, split int) arch.Scope {
			return c.description.Scope(kernel, p, split)
		})
		if known && float64(held) >= leastHeld*float64(n) {
			continue
		}
		u := score.CalibrateRows(kernel, of, rows, score.ErrorRanges(score.EachAlone(rows)))
		u.Sigma, u.PlanSigma, u.MedianError, u.Checked.Times = before.Sigma, before.PlanSigma, 0, 0
		u.Source = fmt.Sprintf("%d sizes, each corrected by the other %s", len(rows), of)
		found = append(found, u)
	}
	return found
}

func single(p *gemm.Problem) bool {
	return p.Batch == 1 && p.Groups == (gemm.Groups{}) && !p.BeyondProduct()
}

// layoutOf returns the layout and, for a source that has one, the storage order.
func layoutOf(p *gemm.Problem, source string) [2]string {
	types, order := p.Types().Text(), fmt.Sprint(p.TransA(), p.TransB())
	if source == "" {
		return [2]string{types + order, ""}
	}
	return [2]string{types, order}
}

type beside struct {
	arch.Architecture
	description *arch.Description
	total       int // the position of the total among the model's own terms, negative if none is in cycles
	series      map[string]func() []*Series
	without     Problem
	asked       string // source
	stopwatch   *timing.Device
}

// Describe implements arch.Architecture.
func (c *beside) Describe() *arch.Description { return c.description }

// correction is what times near a problem say of the times of a kernel family: by what they are multiplied, and the
// spread that is left.
type correction struct {
	factor float64
	spread float32

	// The factor of the other source, and what converts its times to the bound of these: nil if the bound is theirs.
	other       float64
	least, most func(unit.Seconds) unit.Seconds
}

func (x *correction) of(t unit.Cycles, clock unit.Hertz) unit.Cycles {
	out := t * unit.Cycles(x.factor)
	bound := func(convert func(unit.Seconds) unit.Seconds) unit.Cycles {
		return unit.Cycles(float64(convert((t * unit.Cycles(x.other)).At(clock))) * float64(clock))
	}
	switch {
	case x.least != nil:
		return max(out, bound(x.least))
	case x.most != nil:
		return min(out, bound(x.most))
	default:
		return out
	}
}

func (c *beside) at(p *gemm.Problem, kernel string) *correction {
	rows, ok := c.series[kernel]
	if !ok || !single(p) {
		return &correction{factor: 1}
	}
	series, q := rows(), c.without
	layout := layoutOf(p, c.asked)
	q.M, q.N, q.K, q.Layout, q.Storage = p.M, p.N, p.K, layout[0], layout[1]
	near := func(source string) Found {
		q.Source = source
		if source == running && !slices.ContainsFunc(series, func(s *Series) bool { return s.Source == running }) {
			q.Source = "" // those of launches are all that is known
		}
		return At(series, &q)
	}
	found := near(c.asked)
	x := &correction{factor: 1 + Share(found.Residual), spread: float32(found.Spread)}
	// A launch takes no less than the kernel in a running model with no operand in a cache. Where times say otherwise,
	// those that say more of the problem stay.
	own := timing.Timing(c.description.Timing)
	switch c.asked {
	case launch:
		in := near(running)
		if x.other = 1 + Share(in.Residual); x.other > x.factor && in.Told > found.Told {
			x.least = c.stopwatch.Converter(p, own, timing.Cold)
		}
	case running:
		of := near(launch)
		if x.other = 1 + Share(of.Residual); x.other < x.factor && of.Told >= found.Told {
			x.most = c.stopwatch.Converter(p, timing.Cold, own)
		}
	}
	return x
}

func (c *beside) correct(estimates []arch.Estimate, p *gemm.Problem, cfgs []gemm.Config, err error) error {
	if err != nil {
		return err
	}
	var near *correction
	for i := range estimates {
		if k := cfgs[i].Kernel; i == 0 || k != cfgs[i-1].Kernel {
			near = c.at(p, k)
		}
		c.apply(&estimates[i], near)
	}
	return nil
}

func (c *beside) apply(e *arch.Estimate, near *correction) {
	if e.Reject == "" && arch.IsTotal(e.Cycles) {
		if e.Cycles = near.of(e.Cycles, c.description.Clock); near.spread > 0 {
			e.Spread = near.spread
		}
	}
}

// Estimate implements arch.Architecture.
func (c *beside) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	return c.correct(dst, &p, cfgs, c.Architecture.Estimate(ctx, dst, p, cfgs))
}

// EstimateFastest implements arch.FastestEstimator.
func (c *beside) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	if fast, ok := c.Architecture.(arch.FastestEstimator); ok {
		return c.correct(dst, &p, cfgs, fast.EstimateFastest(ctx, dst, p, cfgs, top))
	}
	return c.Estimate(ctx, dst, p, cfgs)
}

// Terms implements arch.Architecture.
func (c *beside) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if c.total < 0 {
		return c.Architecture.Terms(ctx, dst, p, cfgs)
	}
	n := len(c.description.Terms)
	own := make([]float64, len(cfgs)*(n-1))
	if err := c.Architecture.Terms(ctx, own, p, cfgs); err != nil {
		return err
	}
	for i := range cfgs {
		row, without := dst[i*n:(i+1)*n], own[i*(n-1):(i+1)*(n-1)]
		copy(row, without[:c.total])
		copy(row[c.total+1:], without[c.total:])
		row[c.total] = 0
		if total := without[c.total]; total > 0 && total < arch.RejectedTotal {
			row[c.total+1] = float64(c.at(&p, cfgs[i].Kernel).of(unit.Cycles(total), c.description.Clock))
			row[c.total] = row[c.total+1] - total
		}
	}
	return nil
}

// ranker is beside for a model that ranks at once.
type ranker struct {
	*beside
	selector.Ranker
}

// Rank implements selector.Ranker.
func (r *ranker) Rank(ctx context.Context, q selector.Request) ([]selector.Result, error) {
	results, err := r.Ranker.Rank(ctx, q)
	for i := range results {
		for j := range results[i].Entries {
			e := &results[i].Entries[j]
			r.apply(&e.Estimate, r.at(&q.Problems[i], e.Config.Kernel))
		}
	}
	return results, err
}

// tunable is beside for a model whose constants can have other values.
type tunable struct {
	*beside
	model fit.Tunable
}

// EstimateWith implements fit.Tunable. The measured times correct every set of values as they do those in use.
func (t *tunable) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	rows, err := t.model.EstimateWith(ctx, values, sample)
	for _, row := range rows {
		i := 0
		for j := range sample {
			for _, c := range sample[j].Configs {
				row[i] = t.at(&sample[j].Problem, c.Kernel).of(unit.Cycles(row[i]), 1).At(1)
				i++
			}
		}
	}
	return rows, err
}
