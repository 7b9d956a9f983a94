package wire

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// mostSpread is a standard deviation by a factor of 22,000.
const mostSpread = 10

// mostWidening is the factor that is left of an interval that says nothing.
const mostWidening = 1e6

func toUncertainty(u *arch.Uncertainty) *pb.Uncertainty {
	q := &pb.Uncertainty{Kernel: u.Kernel, Level: u.Level, Spread: u.Sigma, PlanSpread: u.PlanSigma, Source: u.Source,
		Checked: toChecked(&u.Checked), Widening: u.Widening, MedianError: u.MedianError}
	for _, r := range u.Ranges {
		q.Ranges = append(q.Ranges, &pb.ErrorRange{Bound: pb.Bound(r.Bound), BelowSeconds: float64(r.Below), Low: r.Low,
			High: r.High})
	}
	return q
}

func (c *check) uncertainty(u *pb.Uncertainty) arch.Uncertainty {
	out := arch.Uncertainty{
		Kernel: c.named("uncertainty", u.GetKernel()), Level: c.positive("level of uncertainty", u.GetLevel()),
		Sigma:     c.atMost("spread", u.GetSpread(), mostSpread),
		PlanSigma: c.atMost("spread", u.GetPlanSpread(), mostSpread), Source: u.GetSource(),
		Checked: c.checked(u.GetChecked()), Widening: c.atMost("widening", u.GetWidening(), mostWidening),
		MedianError: c.atMost("median error", u.GetMedianError(), mostSpread),
	}
	if out.Widening > 0 && out.Widening < 1 {
		c.fail("a widening of %v, below 1", out.Widening)
	}
	c.atMost("level of uncertainty", u.GetLevel(), 1)
	for _, r := range u.GetRanges() {
		if r.GetBound() < 0 || r.GetBound() > pb.Bound_BOUND_LATENCY {
			c.fail("an error range has the unknown bound %d", r.GetBound())
		}
		if r.GetLow() > r.GetHigh() {
			c.fail("an error range from %v to %v", r.GetLow(), r.GetHigh())
		}
		out.Ranges = append(out.Ranges, arch.ErrorRange{
			Bound: arch.Bound(r.GetBound()), Below: unit.Seconds(c.amount("time of an error range", r.GetBelowSeconds())),
			Low: c.positive("error range", r.GetLow()), High: c.positive("error range", r.GetHigh()),
		})
	}
	return out
}

// toChecked returns nil for what contains nothing.
func toChecked(c *arch.Checked) *pb.Checked {
	if len(c.Layouts) == 0 {
		return nil
	}
	q := &pb.Checked{
		DataSet: c.DataSet, Sizes: int64(c.Sizes), Times: int64(c.Times),
		Divisor: toRange(c.Divisor), SplitK: toRange(c.Split),
		M: toRange(c.M), N: toRange(c.N), K: toRange(c.K), Batch: toRange(c.Batch), Flops: toRange(c.Flops),
	}
	for _, l := range c.Layouts {
		q.Layouts = append(q.Layouts, &pb.Layout{
			Types:  &pb.Types{Operands: pb.ElementType(l.Types.In), Results: pb.ElementType(l.Types.Out)},
			AMajor: toMajor(l.AMajor), BMajor: toMajor(l.BMajor),
		})
	}
	return q
}

func (c *check) checked(q *pb.Checked) arch.Checked {
	if q == nil {
		return arch.Checked{}
	}
	out := arch.Checked{
		DataSet: q.DataSet, Sizes: c.count("number of sizes", q.Sizes), Times: c.count("number of times", q.Times),
		Divisor: c.rangeOf("divisor", q.Divisor), Split: c.rangeOf("split_k", q.SplitK),
		M: c.rangeOf("m", q.M), N: c.rangeOf("n", q.N), K: c.rangeOf("k", q.K),
		Batch: c.rangeOf("batch", q.Batch), Flops: c.rangeOf("flops", q.Flops),
	}
	for _, l := range q.Layouts {
		out.Layouts = append(out.Layouts, arch.Layout{
			Types: gemm.Types{
				In:  c.elementType(l.GetTypes().GetOperands()),
				Out: c.elementType(l.GetTypes().GetResults()),
			},
			AMajor: c.major(l.GetAMajor()), BMajor: c.major(l.GetBMajor()),
		})
	}
	return out
}

func (c *check) major(m pb.Major) gemm.Major {
	major, err := fromMajor(m)
	if err != nil {
		c.fail("%v", err)
	}
	return major
}

func toRange(r arch.Range) *pb.Range { return &pb.Range{Low: r.Low, High: r.High} }

func (c *check) rangeOf(name string, r *pb.Range) arch.Range {
	out := arch.Range{Low: c.amount(name, r.GetLow()), High: c.amount(name, r.GetHigh())}
	if out.Low > out.High {
		c.fail("a range of %s from %v to %v", name, out.Low, out.High)
	}
	return out
}

func (c *check) fitted(f *pb.Fitted) arch.Fitted {
	out := arch.Fitted{DataSet: c.named("fitted data set", f.GetDataSet())}
	if f.GetKernel() != "" {
		out.Kernel = c.named("kernel family of a fit", f.GetKernel())
	}
	for _, q := range f.GetProblems() {
		p, err := fromProblem(q)
		if err != nil {
			c.fail("a problem of %s: %v", out.DataSet, err)
		}
		out.Problems = append(out.Problems, p.Canonical())
	}
	return out
}
