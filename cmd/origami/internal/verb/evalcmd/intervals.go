package evalcmd

import (
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
)

// intervals is what `eval --intervals` writes: an arch.Uncertainty that a model can ship, and its coverage.
type intervals struct {
	Arch        string                 `json:"arch"` // as in `select`
	Device      string                 `json:"device"`
	Model       string                 `json:"model"`
	Rung        arch.Rung              `json:"rung"`
	Uncertainty arch.UncertaintyRecord `json:"uncertainty"`   // what a model can ship
	LeaveOneOut score.Coverage         `json:"leave_one_out"` // how intervals hold for a size that they were not found on
}

// intervalsOf computes them from the scores of a model on measurements. done is told of each.
func intervalsOf(d *arch.Description, data *score.Subset, rows []score.Evaluation, done func(int)) (*answer, error) {
	u, ok := score.Calibrate(data.Kernel, data.Name, rows)
	if !ok || len(rows) <= score.MinSizes { // one is left out in turn
		return nil, diag.Inputf("intervals cannot be found on %s", digits.Plural(len(rows), "size", "sizes")).
			At("--intervals").Do("give records of at least %d sizes", score.MinSizes+1)
	}
	c := score.LeaveOneOut(rows, done)
	u.Source = fmt.Sprintf("origami eval --intervals over %d sizes of %s; of a size left out they hold %s", len(rows),
		data.Name, digits.Percent(c.Points))
	v := &intervals{Arch: d.Arch, Device: d.Device, Model: d.Model, Rung: d.Rung, Uncertainty: u.Record(), LeaveOneOut: c}
	return &answer{
		value: func() any { return v },
		rows: func(s *iostreams.Streams, f table.Format) error {
			return show.Write(s, f, v.Uncertainty.Ranges)
		},
		page: func(s *iostreams.Streams) {
			table.Lines(s, append(table.DeviceLines(d), table.ModelLine(d, u.Kernel))...)
			table.Line(s, "intervals", "%s, of measured ÷ predicted time", digits.Level(u.Level))
			grid(s, v.Uncertainty.Ranges, show.Ranges()...)
			s.Printf("\n")
			table.Lines(s, show.UncertaintyLines(&v.Uncertainty)...)
			table.Line(s, "coverage", "of sizes left out in turn: %s of the times (worst size %s), %s of the picks' times; "+
				"median high ÷ low %.2f", digits.Percent(c.Points), digits.Percent(c.Worst), digits.Percent(c.Picks), c.Width)
			if u.Sigma > 0 {
				table.Line(s, "regret", "without measuring: mean expected %s, mean %s; after measuring as many as are worth it, "+
					"%.1f on average: mean %s", digits.Percent(c.ExpectedRegret), digits.Percent(c.Regret), c.CandidatesMeasured,
					digits.Percent(c.RegretLeft))
			}
		},
	}, nil
}
