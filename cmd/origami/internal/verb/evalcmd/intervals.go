package evalcmd

import (
	"fmt"
	"strconv"

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
	Uncertainty arch.UncertaintyRecord `json:"uncertainty"`   // what a model can ship, with the keys above
	LeaveOneOut leaveOneOut            `json:"leave_one_out"` // how intervals hold for a size that they were not found on

	desc *arch.Description
}

// leaveOneOut is what became of each size, with intervals from the others.
type leaveOneOut struct {
	Points float64 `json:"interval_coverage"`       // of the times
	Picks  float64 `json:"interval_coverage_picks"` // of the picks' times
	Worst  float64 `json:"interval_coverage_worst"` // of the times of the worst size
	Width  float64 `json:"high_over_low_median"`
	// the mean regrets: expected, as recorded, and after measuring the candidates that are worth it
	Expected float64 `json:"expected_regret_mean"`
	Regret   float64 `json:"recorded_regret_mean"`
	Left     float64 `json:"auto_regret_mean"`
	Measured float64 `json:"auto_measured_mean"` // how many these are
}

// intervals computes them from the rows. done is told of each.
func (o *outcome) intervals(done func(int)) (*intervals, error) {
	u, ok := score.Calibrate(o.Data.Kernel, o.Rows)
	if !ok || len(o.Rows) <= score.MinSizes { // one is left out in turn
		return nil, diag.Inputf("intervals cannot be found on %s", digits.Plural(len(o.Rows), "size", "sizes")).
			At("--intervals").Do("give records of at least %d sizes", score.MinSizes+1)
	}
	c := score.LeaveOneOut(o.Rows, done)
	u.Checked, u.Widening = score.CheckedOn(o.Data.Name, o.Rows), score.Widening(o.Rows)
	u.Source = fmt.Sprintf("origami eval --intervals over %d sizes of %s; of a size left out they hold %s", len(o.Rows),
		o.Data.Name, digits.Percent(c.Points))
	return &intervals{
		Arch: o.Arch.Arch, Device: o.Arch.Device, Model: o.Arch.Model, Rung: o.Arch.Rung, desc: o.Arch,
		Uncertainty: u.Record(),
		LeaveOneOut: leaveOneOut{c.Points, c.Picks, c.Worst, c.Width, c.ExpectedRegret, c.Regret, c.RegretLeft,
			c.CandidatesMeasured},
	}, nil
}

func (v *intervals) write(s *iostreams.Streams, f table.Format) error {
	type ranges = arch.ErrorRangeRecord
	thousandths := func(header string, value func(*ranges) float64) show.Column[ranges] {
		return show.Text(header, func(r *ranges) string { return strconv.FormatFloat(value(r), 'f', 3, 64) })
	}
	err := show.Answer(s, f, v, func() {
		table.Lines(s, append(table.DeviceLines(v.desc), table.ModelLine(v.desc, v.Uncertainty.Kernel))...)
		table.Line(s, "intervals", "%s, of measured ÷ predicted time\n", digits.Level(v.Uncertainty.Level))
	}, v.Uncertainty.Ranges, show.Key[ranges]("bound").Or("any"), show.Key[ranges]("below_seconds", "predicted below"),
		thousandths("low", func(r *ranges) float64 { return r.Low }),
		thousandths("high", func(r *ranges) float64 { return r.High }))
	if err != nil || f != table.Table {
		return err
	}
	c := v.LeaveOneOut
	s.Printf("\n")
	line := func(label, format string, args ...any) { table.Line(s, label, format, args...) }
	line("sigma", "%.4f, the standard deviation of log(measured ÷ predicted) among the candidates of a problem; %.4f "+
		"to plan measurements with",
		v.Uncertainty.Spread, v.Uncertainty.Plan)
	line("coverage", "of sizes left out in turn: %s of the times (worst size %s), %s of the picks' times; median high "+
		"÷ low %.2f",
		digits.Percent(c.Points), digits.Percent(c.Worst), digits.Percent(c.Picks), c.Width)
	line("regret", "without measuring: mean expected %s, mean %s; after measuring as many as are worth it, %.1f on "+
		"average: mean %s",
		digits.Percent(c.Expected), digits.Percent(c.Regret), c.Measured, digits.Percent(c.Left))
	if w := v.Uncertainty.Widening; w != nil {
		line("widening", "%.3f, for sizes outside of those measured: the widest range times it holds %s of the times of "+
			"every class of shape left out in turn", *w, digits.Level(v.Uncertainty.Level))
	}
	line("source", "%s", v.Uncertainty.Source)
	return nil
}
