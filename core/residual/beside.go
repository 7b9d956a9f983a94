package residual

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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
	// Without says which times do not count.
	Without Problem
}

// Beside returns an architecture whose times are corrected by measured times near the problem, of one kernel family
// each. They say nothing of one configuration beside another, so that the order of a family stays.
func Beside(a arch.Architecture, t *Times) arch.Architecture {
	described := *a.Describe()
	c := &beside{Architecture: a, description: &described, without: t.Without, series: map[string]func() []*Series{}}
	c.total = slices.IndexFunc(described.Terms, func(t arch.Term) bool {
		return t.Kind == arch.KindTotal && t.Unit == "cycles"
	})
	for _, kernel := range slices.Sorted(maps.Keys(t.Rows)) {
		rows := t.Rows[kernel]
		predicted := sync.OnceValue(func() []score.Row { return t.predict(context.Background(), rows()) })
		c.series[kernel] = sync.OnceValue(func() []*Series { return seriesOf(predicted()) })
		if t.Intervals {
			own := c.intervals(kernel, t.Of, predicted())
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

// predict sets times beside the predictions of the model, in its timing.
func (t *Times) predict(ctx context.Context, all []Measured) (rows []score.Row) {
	d := t.Like.Describe()
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
			if of.Meaning() != "" { // else the model does not say what its times are of
				m.Time = stopwatch.Convert(m.Time, &m.Problem, m.Timing, of)
			}
			rows = append(rows, score.Row{Problem: m.Problem, Config: m.Config, Bound: e[0].Bound,
				Predicted: e[0].Cycles.At(d.Clock), Measured: m.Time, Added: stopwatch.Added(&m.Problem, of)})
		}
	}
	return rows
}

func seriesOf(rows []score.Row) (all []*Series) {
	layouts := map[string][]Row{}
	for i := range rows {
		p := &rows[i].Problem
		layouts[layoutOf(p)] = append(layouts[layoutOf(p)],
			Row{p.M, p.N, p.K, alike(math.Log(float64(rows[i].Measured / rows[i].Predicted)))})
	}
	for layout, list := range layouts {
		s := &Series{Layout: layout}
		s.Add(list)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Series) int { return strings.Compare(a.Layout, b.Layout) })
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
			factor, spread := c.at(&rows[i].Problem, kernel)
			rows[i].Predicted *= unit.Seconds(factor)
			rows[i].Spread = spread
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

func layoutOf(p *gemm.Problem) string { return fmt.Sprint(p.Types().Text(), p.TransA(), p.TransB()) }

type beside struct {
	arch.Architecture
	description *arch.Description
	total       int // the position of the total among the model's own terms, negative if none is in cycles
	series      map[string]func() []*Series
	without     Problem
}

// Describe implements arch.Architecture.
func (c *beside) Describe() *arch.Description { return c.description }

// at returns by what times of a kernel family are multiplied, and the spread that is left.
func (c *beside) at(p *gemm.Problem, kernel string) (factor float64, spread float32) {
	series, ok := c.series[kernel]
	if !ok || !single(p) {
		return 1, 0
	}
	q := c.without
	q.M, q.N, q.K, q.Layout = p.M, p.N, p.K, layoutOf(p)
	found := At(series(), &q)
	return 1 + Share(found.Residual), float32(found.Spread)
}

func (c *beside) correct(estimates []arch.Estimate, p *gemm.Problem, cfgs []gemm.Config, err error) error {
	if err != nil {
		return err
	}
	kernel, factor, spread := "", 1.0, float32(0)
	for i := range estimates {
		if k := cfgs[i].Kernel; k != kernel {
			factor, spread = c.at(p, k)
			kernel = k
		}
		times(&estimates[i], factor, spread)
	}
	return nil
}

func times(e *arch.Estimate, factor float64, spread float32) {
	if e.Reject == "" && arch.IsTotal(e.Cycles) {
		if e.Cycles *= unit.Cycles(factor); spread > 0 {
			e.Spread = spread
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
			factor, _ := c.at(&p, cfgs[i].Kernel)
			row[c.total+1] = float64(unit.Cycles(total) * unit.Cycles(factor))
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
			factor, spread := r.at(&q.Problems[i], e.Config.Kernel)
			times(&e.Estimate, factor, spread)
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
				factor, _ := t.at(&sample[j].Problem, c.Kernel)
				row[i] *= unit.Seconds(factor)
				i++
			}
		}
	}
	return rows, err
}
