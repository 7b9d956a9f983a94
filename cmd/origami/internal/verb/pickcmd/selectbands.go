package pickcmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// runBands answers for a range or a list of M.
func (o *SelectOptions) runBands(ctx context.Context, r ask.Range) error {
	for _, other := range []struct {
		flag  string
		given bool
	}{
		{"--top", o.Top > 1}, {"--regret", o.Regret}, {"--advice", o.Advice},
		{"--measure", o.Measure != "" || o.Executor != ""}, {"--logic", o.Logic != ""},
		{"--contract", o.Query.Contract != ""}, {"--problems", o.Query.Problems != ""},
	} {
		if other.given {
			return diag.Inputf("-m %s and %s contradict each other", o.Query.M.String(), other.flag).
				Do("give one M, or leave %s out", other.flag)
		}
	}
	if f := o.Factory.Format(); f.Pasted() {
		return diag.Inputf("a range of M has a kernel for each band").At("--format %s", f).
			Do("give one M, or use json, csv, tsv or table")
	}
	p, err := o.Query.Problem(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	side, err := o.Factory.Side(ctx, &o.Query.Search, o.Query.Invariant)
	if err != nil {
		return err
	}
	bands, err := side.Bands(ctx, p, r)
	if err != nil {
		return err
	}
	return o.writeBands(&side, p, bands)
}

// writeBands writes the answer for a range or a list of M.
func (o *SelectOptions) writeBands(side *ask.Contender, p gemm.Problem, b *ask.Bands) error {
	s, d := o.Factory.Streams, side.Describe()
	seconds := func(v float64) string { return unit.Seconds(v).String() }
	columns := table.Columns[ask.Band]{
		table.Col("-|m_low|-", func(b *ask.Band) int { return b.MLow }),
		table.Col("-|m_high|-", func(b *ask.Band) int { return b.MHigh }),
		table.Text("M", func(b *ask.Band) string {
			if b.MLow == b.MHigh {
				return strconv.Itoa(b.MLow)
			}
			return fmt.Sprintf("%d to %d", b.MLow, b.MHigh)
		}),
		table.Col("-|kernel|-", func(b *ask.Band) string { return b.Kernel }),
		table.Col("-|config|-", func(b *ask.Band) string { return text(b.Config) }),
		table.Text("kernel", func(b *ask.Band) string {
			if b.Config == nil {
				return b.Kernel
			}
			return text(b.Config)
		}),
		table.Col("-|seconds_low|-", func(b *ask.Band) float64 { return b.SecondsLow }),
		table.Col("-|seconds_high|-", func(b *ask.Band) float64 { return b.SecondsHigh }),
		table.Text("time", func(b *ask.Band) string {
			if b.MLow == b.MHigh {
				return seconds(b.SecondsLow)
			}
			return fmt.Sprintf("%s to %s", seconds(b.SecondsLow), seconds(b.SecondsHigh))
		}),
		table.Col("mean_regret|mean_regret|regret", func(b *ask.Band) float64 { return b.MeanRegret }, percent),
		table.Col("worst_regret|worst_regret|worst", func(b *ask.Band) float64 { return b.WorstRegret }, percent),
		table.Col("worst_m|worst_m|at M", func(b *ask.Band) int { return b.WorstM }),
	}
	if b.Same != nil {
		columns = append(columns, table.Col("same_price|same_price|price", func(b *ask.Band) float64 { return b.Price.Same },
			percent))
		if b.Same.One != nil {
			columns = append(columns, table.Col("one_price|one_price|of one", func(b *ask.Band) float64 { return *b.Price.One },
				percent))
		}
	}
	switch format := o.Factory.Format(); format {
	case table.JSON:
		return table.JSONLine(s, b)
	case table.Table:
		table.Lines(s, table.DeviceLines(d)...)
		table.Lines(s, table.ModelLine(d, b.Kernel))
		p.M = b.Bands[len(b.Bands)-1].MHigh
		table.Line(s, "problem", "%s, M from %d", p, b.Bands[0].MLow)
		o.writeSame(b.Same)
		table.Line(s, "kernels", "%d, in %s", b.Kernels, digits.Plural(len(b.Bands), "band", "bands"))
		table.Line(s, "regret", "%s of the time of the pick for each M, at worst %s at M = %d; %d sizes compared",
			percent(b.MeanRegret), percent(b.WorstRegret), b.WorstM, b.Asked)
		return columns.Write(s, format, b.Bands)
	default:
		return columns.Write(s, format, b.Bands)
	}
}

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
	table.Line(s, "same", "%s for all M costs %s", s.Bold(same.Text()), paid(same.MeanPrice, same.WorstPrice, same.WorstM))
	var others []string
	for _, c := range same.Choices[1:min(len(same.Choices), 1+mostChoices)] {
		others = append(others, fmt.Sprintf("%s %s", same.TextOf(c.Values), percent(c.MeanPrice)))
	}
	if len(others) > 0 {
		table.Line(s, "otherwise", "%s", strings.Join(others, "; "))
	}
	if one := same.One; one != nil {
		table.Line(s, "one kernel", "%s for all M costs %s", one.Config, paid(one.MeanPrice, one.WorstPrice, one.WorstM))
	}
}

// text is a configuration in a cell, empty for the library.
func text(c *gemm.Config) string {
	if c == nil {
		return ""
	}
	return c.String()
}
