package residual

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Measured is what a configuration took.
type Measured struct {
	Problem gemm.Problem
	Config  gemm.Config
	Time    unit.Seconds
}

// Term is the name of the share that times near the problem add to a model's own total.
const Term = "records"

// Beside returns an architecture whose times are corrected by times of the user's GPU near the problem, of one kernel
// family and in the timing of the architecture. They say nothing of one configuration beside another, so that the order
// stays.
func Beside(ctx context.Context, a arch.Architecture, all []Measured) (arch.Architecture, error) {
	described := *a.Describe()
	c := &beside{Architecture: a, description: &described}
	c.total = slices.IndexFunc(described.Terms, func(t arch.Term) bool {
		return t.Kind == arch.KindTotal && t.Unit == "cycles"
	})
	rows := map[string][]Row{}
	for i := range all {
		t := &all[i]
		c.kernel = t.Config.Kernel
		var e [1]arch.Estimate
		if err := a.Estimate(ctx, e[:], t.Problem, []gemm.Config{t.Config}); err != nil {
			return nil, err
		}
		if e[0].Reject == "" && single(&t.Problem) {
			p, predicted := &t.Problem, e[0].Cycles.At(described.Clock)
			rows[layoutOf(p)] = append(rows[layoutOf(p)], Row{p.M, p.N, p.K, alike(math.Log(float64(t.Time / predicted)))})
		}
	}
	for layout, list := range rows {
		s := &Series{Layout: layout}
		s.Add(list)
		c.series = append(c.series, s)
	}
	slices.SortFunc(c.series, func(a, b *Series) int { return strings.Compare(a.Layout, b.Layout) })
	described.Monotone = []arch.Dim{arch.DimNone} // measured times are not
	if c.total >= 0 {
		described.Terms = slices.Clone(described.Terms)
		total := &described.Terms[c.total]
		total.Formula = "(" + total.Formula + ") + " + Term
		described.Terms = append(described.Terms, arch.Term{Name: Term, Unit: total.Unit, Kind: arch.KindShare,
			Formula: "rule: the total × (exp(residual) - 1)", Doc: "what times of this GPU near the problem add",
			Source: fmt.Sprintf("%d times of this GPU", len(all))})
	}
	if r, ok := a.(selector.Ranker); ok {
		return &ranker{c, r}, nil
	}
	return c, nil
}

func single(p *gemm.Problem) bool {
	return p.Batch == 1 && p.Groups == (gemm.Groups{}) && !p.BeyondProduct()
}

func layoutOf(p *gemm.Problem) string { return fmt.Sprint(p.Types().Text(), p.TransA(), p.TransB()) }

type beside struct {
	arch.Architecture
	description *arch.Description
	total       int // the position of the total among the model's terms, negative if none is in cycles
	kernel      string
	series      []*Series
}

// Describe implements arch.Architecture.
func (c *beside) Describe() *arch.Description { return c.description }

// at returns by what times are multiplied, and the spread that is left.
func (c *beside) at(p *gemm.Problem) (factor float64, spread float32) {
	if !single(p) {
		return 1, 0
	}
	found := At(c.series, &Problem{M: p.M, N: p.N, K: p.K, Layout: layoutOf(p)})
	return 1 + Share(found.Residual), float32(found.Spread)
}

func (c *beside) correct(estimates []arch.Estimate, p *gemm.Problem, cfgs []gemm.Config, err error) error {
	if err != nil {
		return err
	}
	factor, spread := c.at(p)
	for i := range estimates {
		c.times(&estimates[i], &cfgs[i], factor, spread)
	}
	return nil
}

func (c *beside) times(e *arch.Estimate, of *gemm.Config, factor float64, spread float32) {
	if e.Reject == "" && arch.IsTotal(e.Cycles) && of.Kernel == c.kernel {
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
	factor, _ := c.at(&p)
	for i := range cfgs {
		row := dst[i*n : (i+1)*n]
		copy(row, own[i*(n-1):(i+1)*(n-1)])
		row[n-1] = 0
		if total := row[c.total]; total > 0 && total < arch.RejectedTotal && cfgs[i].Kernel == c.kernel {
			row[c.total] = float64(unit.Cycles(total) * unit.Cycles(factor))
			row[n-1] = row[c.total] - total
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
		factor, spread := r.at(&q.Problems[i])
		for j := range results[i].Entries {
			e := &results[i].Entries[j]
			r.times(&e.Estimate, &e.Config, factor, spread)
		}
	}
	return results, err
}
