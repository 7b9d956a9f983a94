package measurecmd

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// contents are the files of a report: bench.md with the table and the plots, bench.csv and bench.json with the numbers.
func (w *writer) contents() report.Contents {
	c := report.Contents{Name: "bench", Subject: w.arch.DeviceName, Numbers: w.again}
	if len(w.rows) > 0 { // otherwise what went wrong has been said
		c.Page = w.page
	}
	return c
}

func (w *writer) page(r *report.Report) {
	title := fmt.Sprintf("%s, %s model, kernel family %s", w.arch.ID(), w.arch.Model, w.data.Kernel)
	s := score.SummariseComparisons(w.scores)
	r.Heading(1, title)
	r.List(w.above())
	r.Table(show.Texts(w.rows, w.columns(&s)...))
	r.List(w.below(&s))
	r.Figure("three-ways", "speed of the pick and of the libraries, relative to the fastest candidate",
		threeWays(title, w.data.Libraries(), w.scores))
	var points []score.Point
	for i := range w.rows {
		points = append(points, w.scores[i].Points...)
	}
	r.Agreement(title, points)
	if excluded := w.excluded(); len(excluded) > 0 {
		r.Heading(2, "Left out")
		r.List(excluded)
	}
}

// threeWays shows the speed of the pick and of the vendor's libraries per problem, relative to the fastest candidate,
// which is 100 %: a few percent would not be seen on an axis of rates. Problems without a measured candidate are empty.
func threeWays(title string, libraries []string, rows []score.Comparison) *figure.Figure {
	f := &figure.Figure{Title: title, Series: append([]string{"pick"}, libraries...),
		X: figure.Axis{Label: "speed, fastest candidate = 100 %", Unit: "%", Reference: 1}}
	dots, joints := make([]figure.Mark, len(f.Series)), []figure.Mark(nil)
	for i := range rows {
		r := &rows[i]
		name := fmt.Sprintf("%d. %dx%dx%d", i+1, r.Problem.M, r.Problem.N, r.Problem.K)
		f.Y.Names = append(f.Y.Names, name)
		joint := figure.Mark{Kind: figure.Line, Series: figure.Neutral, Rows: []figure.Row{{X: 1.0, Y: name}}}
		for k, t := range append([]unit.Seconds{r.Pick.Time}, r.Libraries...) {
			if dots[k].Kind, dots[k].Series = figure.Dots, k; t > 0 && r.Best.Time > 0 {
				row := figure.Row{X: float64(r.Best.Time / t), Y: name}
				joint.Rows = append(joint.Rows, row)
				row.Tip = figure.Tip("%s\n%s: %s, the fastest candidate %s", r.Problem, f.Series[k], t, r.Best.Time)
				dots[k].Rows = append(dots[k].Rows, row)
			}
		}
		joints = append(joints, joint)
	}
	slices.Reverse(dots) // the pick is on top
	f.Marks = append(joints, dots...)
	return f
}

// excluded lists the measurements that have no valid time.
func (w *writer) excluded() (lines []string) {
	for i := range w.rows {
		for _, e := range w.scores[i].Excluded {
			lines = append(lines, fmt.Sprintf("%s, %s: %s: %s", w.scores[i].Problem, e.Label(),
				datastore.Words(e.Status), e.Detail))
		}
	}
	return lines
}
