package evalcmd

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/core/score"
)

// contents are the files of a report: eval.md with the tables and the plots, eval.csv and eval.json with the numbers.
func (o *outcome) contents() report.Contents {
	c := report.Contents{Name: "eval", Subject: o.Arch.DeviceName, Numbers: o.write}
	if len(o.Rows) > 0 { // otherwise what went wrong has been said
		c.Page = o.page
	}
	return c
}

func (o *outcome) page(to *report.Report) {
	title := fmt.Sprintf("%s, %s model on rung %s, kernel family %s", o.Arch.ID(), o.Arch.Model, o.Arch.Rung,
		o.Data.Kernel)
	var points []score.Point
	efficiency := make([]figure.Curve, 1+len(score.TopCounts))
	efficiency[0].Name = "pick"
	for i, n := range score.TopCounts {
		efficiency[1+i].Name = fmt.Sprintf("best of the first %d", n)
	}
	for i := range o.Rows {
		r := &o.Rows[i]
		points = append(points, r.Points...)
		for c, v := range append([]float64{r.Efficiency()}, r.Top[:]...) {
			if !math.IsNaN(v) {
				efficiency[c].Values = append(efficiency[c].Values, v)
			}
		}
	}
	t := o.text()
	t.page(to, title)
	to.Figure("efficiency", "efficiency over the problems, worst first",
		figure.Sorted(title, "share of the problems", "best time ÷ time", efficiency))
	to.Agreement(title, points)
}
