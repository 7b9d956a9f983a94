package evalcmd

import (
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/core/score"
)

// report writes the outcome into a folder: eval.md with the tables and the plots, eval.csv and eval.json with the
// numbers.
func (o *outcome) report(folder string, args []string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	if len(o.rows) == 0 {
		return nil // what went wrong has been said
	}
	title := fmt.Sprintf("%s, %s model on rung %s, kernel family %s", o.arch.ID(), o.arch.Model, o.arch.Rung,
		o.data.Kernel)
	var points []score.Point
	efficiency := make([]figure.Curve, 1+len(score.TopCounts))
	efficiency[0].Name = "pick"
	for i, n := range score.TopCounts {
		efficiency[1+i].Name = fmt.Sprintf("best of the first %d", n)
	}
	for i := range o.rows {
		r := &o.rows[i]
		points = append(points, r.Points...)
		efficiency[0].Values = append(efficiency[0].Values, r.Efficiency())
		for t := range score.TopCounts {
			efficiency[1+t].Values = append(efficiency[1+t].Values, r.Top[t])
		}
	}
	source := report.Source(o.arch.DeviceName, args)
	curves, err := to.Figure("efficiency",
		figure.Sorted(title, "share of the problems", "best time ÷ time", efficiency), source)
	if err != nil {
		return err
	}
	if err := to.Numbers("eval", o.write); err != nil {
		return err
	}
	t := o.text()
	p := t.page(title)
	p.Image("efficiency over the problems, worst first", curves)
	if err := to.Agreement(p, title, points, source); err != nil {
		return err
	}
	return to.Page("eval.md", p)
}
