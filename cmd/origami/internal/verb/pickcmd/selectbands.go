package pickcmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// runBands answers for a range or a list of M.
func (o *SelectOptions) runBands(ctx context.Context, r ask.Range) error {
	if f := o.Factory.Format(); f.Pasted() {
		return diag.Inputf("a range of M has a kernel for each band").At("--format %s", f).
			Do("give one M, or use json, csv or table")
	}
	p, err := o.Query.Problem(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	side, err := o.Factory.Side(ctx, &o.Query.Search, o.Query.Invariant)
	if err != nil {
		return err
	}
	bands, err := o.Bands(ctx, &side, p, r)
	if err != nil {
		return err
	}
	return o.writeBands(&side, p, bands)
}

// writeBands writes the answer for a range or a list of M.
func (o *SelectOptions) writeBands(side *ask.Contender, p gemm.Problem, b *ask.Bands) error {
	s, d := o.Factory.Streams, side.Describe()
	if o.Factory.Format() == show.JSON {
		return show.JSONLine(s, b)
	}
	if o.Factory.Format() == show.Table {
		show.Lines(s, show.DeviceLines(d)...)
		show.Lines(s, show.ModelLine(d, b.Kernel))
		p.M = b.Bands[len(b.Bands)-1].MHigh
		show.Line(s, "problem", "%s, M from %d", p, b.Bands[0].MLow)
		o.writeSame(b.Same)
		show.Line(s, "kernels", "%d, in %s", b.Kernels, digits.Plural(len(b.Bands), "band", "bands"))
		show.Line(s, "regret", "%s of the time of the pick for each M, at worst %s at M = %d; %d sizes compared",
			percent(b.MeanRegret), percent(b.WorstRegret), b.WorstM, b.Asked)
	}
	ends := func(low, high fmt.Stringer, one bool) string {
		if one {
			return low.String()
		}
		return low.String() + " to " + high.String()
	}
	return show.Write(s, o.Factory.Format(), b.Bands,
		show.Text("M", func(b *ask.Band) string { return ends(size(b.MLow), size(b.MHigh), b.MLow == b.MHigh) }),
		show.Text("kernel", func(b *ask.Band) string {
			if b.Config == nil {
				return b.Kernel
			}
			return b.Config.String()
		}),
		show.Text("time", func(b *ask.Band) string {
			return ends(unit.Seconds(b.SecondsLow), unit.Seconds(b.SecondsHigh), b.MLow == b.MHigh)
		}),
		show.Key[ask.Band]("mean_regret", "regret"), show.Key[ask.Band]("worst_regret", "worst"),
		show.Key[ask.Band]("worst_m", "at M"),
		show.Key[ask.Band]("price.same", "price").If(b.Same != nil),
		show.Key[ask.Band]("price.one", "of one").If(b.Same != nil && b.Same.One != nil))
}

// size is a number of rows.
type size int

func (n size) String() string { return strconv.Itoa(int(n)) }

// mostChoices is how many other choices of values a terminal shows.
const mostChoices = 3

// writeSame writes what the kernels for all M have in common, and what that costs.
func (o *SelectOptions) writeSame(same *ask.Same) {
	if same == nil {
		return
	}
	s := o.Factory.Streams
	paid := func(mean, worst float64, m int) string {
		return fmt.Sprintf("%s of the time of the pick for each M, at worst %s at M = %d", percent(mean), percent(worst), m)
	}
	show.Line(s, "same", "%s for all M costs %s", s.Bold(same.Text()), paid(same.MeanPrice, same.WorstPrice, same.WorstM))
	var others []string
	for _, c := range same.Choices[1:min(len(same.Choices), 1+mostChoices)] {
		others = append(others, fmt.Sprintf("%s %s", same.TextOf(c.Values), percent(c.MeanPrice)))
	}
	if len(others) > 0 {
		show.Line(s, "otherwise", "%s", strings.Join(others, "; "))
	}
	if one := same.One; one != nil {
		show.Line(s, "one kernel", "%s for all M costs %s", one.Config, paid(one.MeanPrice, one.WorstPrice, one.WorstM))
	}
}
