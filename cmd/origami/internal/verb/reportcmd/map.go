package reportcmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// mapSizes are the sizes of a map, in both directions.
var mapSizes = []int{1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

// mapSteps is how much of the work a map is.
const mapSteps = 8

// maps adds a map of each model's rates over M and N, at the K, the type and the layout of a problem.
func (b *builder) maps(ctx context.Context, like gemm.Problem) error {
	// What a map is drawn from.
	like = gemm.Problem{K: like.K, Batch: 1, DType: like.DType, Out: like.Out, AMajor: like.AMajor, BMajor: like.BMajor}
	var s *report.Section
	for i := range b.subjects {
		of := &b.subjects[i]
		f, err := b.Memory.drawn(of, like, func() (*figure.Figure, error) { return b.mapOf(ctx, of, like) })
		if err != nil {
			return err
		}
		if f != nil {
			if s == nil {
				s = b.page.Section("Map of rates")
			}
			s.Figure(f)
		}
		b.done += mapSteps
		b.progress(b.done, b.all)
	}
	return nil
}

// percent writes a share into a cell: with two digits, and whole from 10 % on.
func percent(share float64) string {
	if share >= 0.0995 {
		return strconv.FormatFloat(share*100, 'f', 0, 64)
	}
	return strconv.FormatFloat(share*100, 'g', 2, 64)
}

// mapOf asks a model about a grid of sizes. It is nil for a model that does not predict times.
func (b *builder) mapOf(ctx context.Context, s *subject, like gemm.Problem) (*figure.Figure, error) {
	if s.Describe().RanksOnly || s.Describe().PeakFor(like.DType) <= 0 {
		return nil, nil
	}
	names := make([]string, len(mapSizes))
	for i, v := range mapSizes {
		names[i] = strconv.Itoa(v)
	}
	f := &figure.Figure{Title: fmt.Sprintf("%s: share of the roof over M and N, at K = %d, %s", s.Called(), like.K,
		like.DType),
		Caption: "The shortest time that the data sheet's dense peak and bandwidth of DRAM allow ÷ the predicted " +
			"time of the pick, in percent. A size that is crossed out has no answer.",
		X: figure.Axis{Label: "N", Names: names}, Y: figure.Axis{Label: "M", Names: names},
		Scale: &figure.Scale{Label: "share of the roof", Unit: "%", High: 1}, Header: append([]string{"M \\ N"}, names...)}
	var shapes []gemm.Problem
	for _, m := range mapSizes {
		for _, n := range mapSizes {
			p := like
			p.M, p.N = m, n
			shapes = append(shapes, p.Canonical())
		}
	}
	answers, err := ask.Rankings(ctx, s.Model, ask.Question{Problems: shapes, Kernel: s.Kernel, Top: 1})
	if err != nil {
		return nil, err
	}
	cells := figure.Mark{Kind: figure.Cells}
	for i := range answers {
		m, n := names[i/len(names)], names[i%len(names)]
		if i%len(names) == 0 {
			f.Rows = append(f.Rows, []string{m})
		}
		row := &f.Rows[len(f.Rows)-1]
		a := &answers[i]
		if a.Err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			*row = append(*row, "–")
			continue
		}
		e := &a.Entries[0]
		share := a.Roofline(e).RoofShare
		*row = append(*row, digits.Percent(share))
		cells.Rows = append(cells.Rows, figure.Row{X: n, Y: m, Value: share, Text: percent(share),
			Tip: figure.Tip("%s\n%s, %s of the roof\n%s, %s-bound", a.Problem, table.RateCell(a, e), digits.Percent(share),
				e.Config, e.Estimate.Bound)})
	}
	if len(cells.Rows) == 0 {
		return nil, nil
	}
	f.Marks = append(f.Marks, cells)
	return f, nil
}
