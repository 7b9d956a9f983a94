package evalcmd

import (
	"fmt"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
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
	Uncertainty arch.UncertaintyRecord `json:"uncertainty"` // what a model can ship, with the keys above
	// `interval_coverage`, `interval_coverage_picks`, `interval_coverage_worst` (of the worst size),
	// `high_over_low_median`, `expected_regret_mean`, `recorded_regret_mean`, `auto_regret_mean` (after measuring the
	// candidates that are worth it), `auto_measured_mean`; the old names `expected_loss_mean`, `recorded_loss_mean`
	// and `auto_loss_mean` repeat the regrets until the next major version
	LeaveOneOut ask.Fields     `json:"leave_one_out"`
	coverage    score.Coverage // behind LeaveOneOut
	desc        *arch.Description
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
	out := &intervals{
		Arch: o.Arch.Arch, Device: o.Arch.Device, Model: o.Arch.Model, Rung: o.Arch.Rung, coverage: c, desc: o.Arch,
		Uncertainty: u.Record(),
		LeaveOneOut: ask.Fields{
			{Name: "interval_coverage", Value: c.Points}, {Name: "interval_coverage_picks", Value: c.Picks},
			{Name: "interval_coverage_worst", Value: c.Worst},
			{Name: "high_over_low_median", Value: c.Width}, {Name: "expected_regret_mean", Value: c.ExpectedRegret},
			{Name: "recorded_regret_mean", Value: c.Regret}, {Name: "auto_regret_mean", Value: c.RegretLeft},
			{Name: "expected_loss_mean", Value: c.ExpectedRegret}, {Name: "recorded_loss_mean", Value: c.Regret},
			{Name: "auto_loss_mean", Value: c.RegretLeft}, {Name: "auto_measured_mean", Value: c.CandidatesMeasured},
		},
	}
	return out, nil
}

var rangeColumns = table.Columns[arch.ErrorRangeRecord]{
	table.Col("bound", func(r *arch.ErrorRangeRecord) string {
		if r.Bound == nil {
			return "any"
		}
		return *r.Bound
	}),
	table.Col("below_seconds||predicted below", func(r *arch.ErrorRangeRecord) *float64 { return r.Below }),
	table.Col("low", func(r *arch.ErrorRangeRecord) float64 { return r.Low }, thousandths),
	table.Col("high", func(r *arch.ErrorRangeRecord) float64 { return r.High }, thousandths),
}

func thousandths(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func (v *intervals) write(s *iostreams.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, v)
	case table.Table:
		table.Lines(s, append(table.DeviceLines(v.desc), table.ModelLine(v.desc, v.Uncertainty.Kernel))...)
		table.Line(s, "intervals", "%s, of measured ÷ predicted time\n", digits.Level(v.Uncertainty.Level))
	case table.CSV, table.TSV:
	}
	if err := rangeColumns.Write(s, f, v.Uncertainty.Ranges); err != nil || f != table.Table {
		return err
	}
	c := v.coverage
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
		digits.Percent(c.ExpectedRegret), digits.Percent(c.Regret), c.CandidatesMeasured, digits.Percent(c.RegretLeft))
	if w := v.Uncertainty.Widening; w != nil {
		line("widening", "%.3f, for sizes outside of those measured: the widest range times it holds %s of the times of "+
			"every class of shape left out in turn", *w, digits.Level(v.Uncertainty.Level))
	}
	line("source", "%s", v.Uncertainty.Source)
	return nil
}
