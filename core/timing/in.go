package timing

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Option is the option of a model that predicts several timings by itself. The others are converted.
const Option = "timing"

// Term is the name of the term that leads from a model's own total to the total in another timing.
const Term = "timing"

// In returns an architecture that answers in a timing. It is a itself if the model predicts that timing already, if it
// only ranks, or if it does not say what its times are of. The total gets a further share, Term. The order of
// configurations stays, because Convert rises with the time.
func In(a arch.Architecture, to Timing) arch.Architecture {
	d := a.Describe()
	from := Timing(d.Timing)
	if from == to || from.Meaning() == "" || d.RanksOnly {
		return a
	}
	c := &converted{Architecture: a, total: slices.IndexFunc(d.Terms, func(t arch.Term) bool {
		return t.Kind == arch.KindTotal && t.Unit == "cycles"
	})}
	described := *d
	device := New(a)
	c.stating = func(p *gemm.Problem) func(unit.Seconds) unit.Seconds { return device.Converter(p, from, to) }
	described.Timing, described.Conversion = string(to), &arch.Conversion{
		Own:   func(t unit.Seconds, p gemm.Problem) unit.Seconds { return device.Convert(t, &p, to, from) },
		Added: func(p gemm.Problem) unit.Seconds { return device.Added(&p, to) },
	}
	if c.total >= 0 {
		terms := slices.Clone(d.Terms)
		total := &terms[c.total]
		total.Formula = "(" + total.Formula + ") + " + Term
		described.Terms = append(terms, arch.Term{Name: Term, Unit: total.Unit, Kind: arch.KindShare,
			Formula: "rule: the total in timing " + string(to) + " less the total in timing " + string(from),
			Doc:     "what the timing leaves out or adds", Source: "docs/timings.md"})
	}
	c.description = &described
	if r, ok := a.(selector.Ranker); ok {
		return &ranker{c, r}
	}
	return c
}

// converted is an architecture whose times are converted.
type converted struct {
	arch.Architecture
	description *arch.Description
	total       int // the position of the total among the model's terms, negative if none is in cycles
	// stating returns what converts the model's own times of kernels for a problem.
	stating func(*gemm.Problem) func(unit.Seconds) unit.Seconds
}

// Describe implements arch.Architecture.
func (c *converted) Describe() *arch.Description { return c.description }

// Estimate implements arch.Architecture.
func (c *converted) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	return c.state(dst, &p, c.Architecture.Estimate(ctx, dst, p, cfgs))
}

// EstimateFastest implements arch.FastestEstimator.
func (c *converted) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	if top > mostFastest {
		return c.Estimate(ctx, dst, p, cfgs)
	}
	var err error
	if fast, ok := c.Architecture.(arch.FastestEstimator); ok {
		err = fast.EstimateFastest(ctx, dst, p, cfgs, top)
	} else {
		err = c.Architecture.Estimate(ctx, dst, p, cfgs)
	}
	if err != nil {
		return err
	}
	// The others stay behind the fastest, wherever they are. Times this near to each other may be converted to one.
	const near = 1e-9
	limit, stated := slowest(dst, top)*(1+near), c.stated(&p)
	behind := stated(limit) * 2
	for i := range dst {
		if e := &dst[i]; e.Cycles > limit && arch.IsTotal(e.Cycles) {
			e.Cycles = behind
		} else if e.Reject == "" {
			e.Cycles = stated(e.Cycles)
		}
	}
	return nil
}

// mostFastest is up to how many of the fastest estimates are converted alone.
const mostFastest = 16

// slowest returns the longest time of the top fastest estimates.
func slowest(estimates []arch.Estimate, top int) unit.Cycles {
	var room [mostFastest]unit.Cycles
	fastest := room[:0]
	for i := range estimates {
		e := &estimates[i]
		full := len(fastest) == top
		if e.Reject != "" || full && e.Cycles >= fastest[top-1] {
			continue
		}
		if full {
			fastest = fastest[:top-1]
		}
		at, _ := slices.BinarySearch(fastest, e.Cycles)
		fastest = slices.Insert(fastest, at, e.Cycles)
	}
	if len(fastest) == 0 {
		return 0
	}
	return fastest[len(fastest)-1]
}

func (c *converted) state(estimates []arch.Estimate, p *gemm.Problem, err error) error {
	if err == nil {
		stated := c.stated(p)
		for i := range estimates {
			if e := &estimates[i]; e.Reject == "" {
				e.Cycles = stated(e.Cycles)
			}
		}
	}
	return err
}

// stated returns what converts cycles of kernels for a problem.
func (c *converted) stated(p *gemm.Problem) func(unit.Cycles) unit.Cycles {
	clock, convert := c.description.Clock, c.stating(p)
	return func(cycles unit.Cycles) unit.Cycles {
		return unit.Cycles(float64(convert(cycles.At(clock))) * float64(clock))
	}
}

// Terms implements arch.Architecture.
func (c *converted) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if c.total < 0 {
		return c.Architecture.Terms(ctx, dst, p, cfgs)
	}
	n := len(c.description.Terms)
	own := make([]float64, len(cfgs)*(n-1))
	if err := c.Architecture.Terms(ctx, own, p, cfgs); err != nil {
		return err
	}
	stated := c.stated(&p)
	for i := range cfgs {
		row := dst[i*n : (i+1)*n]
		copy(row, own[i*(n-1):(i+1)*(n-1)])
		if total := row[c.total]; total > 0 && total < arch.RejectedTotal {
			row[c.total] = float64(stated(unit.Cycles(total)))
			row[n-1] = row[c.total] - total
		} else {
			row[n-1] = 0
		}
	}
	return nil
}

// ranker is converted for a model that ranks at once.
type ranker struct {
	*converted
	selector.Ranker
}

// Rank implements selector.Ranker.
func (r *ranker) Rank(ctx context.Context, q selector.Request) ([]selector.Result, error) {
	results, err := r.Ranker.Rank(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := range results {
		stated := r.stated(&q.Problems[i])
		for j := range results[i].Entries {
			if e := &results[i].Entries[j].Estimate; e.Reject == "" {
				e.Cycles = stated(e.Cycles)
			}
		}
	}
	return results, nil
}
