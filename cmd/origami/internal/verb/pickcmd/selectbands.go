package pickcmd

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// runBands answers for a range of M.
func (o *SelectOptions) runBands(ctx context.Context, low int) error {
	for _, other := range []struct {
		flag  string
		given bool
	}{
		{"--top", o.Top > 1}, {"--regret", o.Regret}, {"--measure", o.Measure != "" || o.Executor != ""},
		{"--logic", o.Logic != ""}, {"--contract", o.Query.Contract.Text != ""}, {"--problems", o.Query.Problems != ""},
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
	p, side, err := o.Factory.Asked(ctx, &o.Query)
	if err != nil {
		return err
	}
	bands, err := side.Bands(ctx, p, low)
	if err != nil {
		return err
	}
	return o.writeBands(&side, p, bands)
}

// writeBands writes the answer for a range of M.
func (o *SelectOptions) writeBands(side *ask.Contender, p gemm.Problem, b *ask.Bands) error {
	s, d := o.Factory.Streams, side.Describe()
	seconds := func(v float64) string { return unit.Seconds(v).String() }
	columns := table.Columns[ask.Band]{
		table.Col("-|m_low|-", func(b *ask.Band) int { return b.MLow }),
		table.Col("-|m_high|-", func(b *ask.Band) int { return b.MHigh }),
		table.Text("M", func(b *ask.Band) string { return fmt.Sprintf("%d to %d", b.MLow, b.MHigh) }),
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
			return fmt.Sprintf("%s to %s", seconds(b.SecondsLow), seconds(b.SecondsHigh))
		}),
		table.Col("mean_regret|mean_regret|regret", func(b *ask.Band) float64 { return b.MeanRegret }, percent),
		table.Col("worst_regret|worst_regret|worst", func(b *ask.Band) float64 { return b.WorstRegret }, percent),
		table.Col("worst_m|worst_m|at M", func(b *ask.Band) int { return b.WorstM }),
	}
	switch format := o.Factory.Format(); format {
	case table.JSON:
		return table.JSONLine(s, b)
	case table.Table:
		table.Lines(s, table.DeviceLines(d)...)
		table.Lines(s, table.ModelLine(d, b.Kernel))
		table.Line(s, "problem", "%s, M from %d", p, b.Bands[0].MLow)
		table.Line(s, "kernels", "%d, in %s", b.Kernels, digits.Plural(len(b.Bands), "band", "bands"))
		table.Line(s, "regret", "%s of the time of the pick for each M, at worst %s at M = %d; %d sizes compared",
			percent(b.MeanRegret), percent(b.WorstRegret), b.WorstM, b.Asked)
		return columns.Write(s, format, b.Bands)
	default:
		return columns.Write(s, format, b.Bands)
	}
}

// text is a configuration in a cell, empty for the library.
func text(c *gemm.Config) string {
	if c == nil {
		return ""
	}
	return c.String()
}
