package evalcmd

import (
	"fmt"

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
	efficiency := make([]report.Series, 1+len(score.TopCounts))
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
	place := report.PlaceOf(folder, o.arch.DeviceName, args)
	scatter, err := report.Scatter(place, "predicted-measured", title, points)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	curves, err := report.Sorted(place, "efficiency", title, "share of the problems", "best time ÷ time", efficiency)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	if err := to.Numbers("eval", o.write); err != nil {
		return err
	}
	t := o.text()
	p := t.page(title)
	p.Image("efficiency over the problems, worst first", curves.SVG)
	p.Image("predicted against measured times", scatter.SVG)
	return to.Page("eval.md", p)
}
