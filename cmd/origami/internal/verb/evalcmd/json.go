package evalcmd

import (
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// place is a rank, null where there is none.
func place(rank int) *int {
	if rank == 0 {
		return nil
	}
	return &rank
}

// milliseconds is a time, NaN for none.
func milliseconds(t unit.Seconds) float64 {
	if t <= 0 {
		return math.NaN()
	}
	return float64(t) * 1e3
}

func (o *outcome) object() ask.Evaluation {
	out := ask.Evaluation{
		Arch: o.arch.Arch, Device: o.arch.Device, Model: o.arch.Model, ModelClass: o.arch.ModelClass,
		Kernel: o.data.Kernel, Rung: o.arch.Rung,
		Ranks: o.arch.RanksOnly, Records: o.data.Name,
		GroupM: o.data.Group, SplitK: o.data.Split, Fitted: dataSets(o.fitted()), InSample: o.inSample(),
		Problems: []ask.Evaluated{},
		Summary:  summary(score.SummariseEvaluations(o.rows, o.scope)), Classes: ask.Fields{},
		Group: choice(o.group), Split: choice(o.split),
	}
	for i := range o.rows {
		r := &o.rows[i]
		scored := ask.Evaluated{
			Record: r.Problem.Record(), Labels: ask.Labels(o.labels, o.labelled[i]), Class: r.Class.String(),
			Pick: r.Pick.Config, PickMS: ask.Number(milliseconds(r.Pick.Time)),
			PredictedMS: milliseconds(r.Predicted),
			Best:        r.Best.Config, BestMS: milliseconds(r.Best.Time), Eff: r.Efficiency(), Top4: r.Top[0],
			Top8: r.Top[1], Top16: r.Top[2],
			Tau: ask.Number(r.Tau), PickRank: place(r.PickRank), BestRank: place(r.BestRank),
			Error:    ask.Number(r.Error),
			Coverage: ask.Number(coverage(r, o.scope)), Recorded: r.Measured, Refused: r.Rejected,
			InSample: o.arch.InSample(r.Problem, o.data.Kernel),
			Outside:  append([]string{}, o.arch.Outside(o.data.Kernel, &r.Problem, r.Pick.Config.SplitK)...),
		}
		if low, high, ok := r.PickInterval(o.scope); ok {
			scored.IntervalMS = &[2]float64{float64(low) * 1e3, float64(high) * 1e3}
		}
		if held, ok := r.PickCovered(o.scope); ok {
			scored.Held = &held
		}
		out.Problems = append(out.Problems, scored)
	}
	for _, p := range o.data.Partial {
		out.Partial = append(out.Partial, p.Record())
	}
	classes, summaries := score.SummariseByClass(o.rows, o.scope)
	for i, c := range classes {
		out.Classes = append(out.Classes, ask.Field{Name: c.String(), Value: summary(summaries[i])})
	}
	return out
}

// coverage is the share of the measured times inside their intervals, NaN without intervals.
func coverage(r *score.Evaluation, scope score.ScopeOf) float64 {
	held, of := r.PointsCovered(scope)
	return float64(held) / float64(of)
}

func summary(s score.EvaluationSummary) ask.Fields {
	f := ask.Fields{{Name: "problems", Value: s.Problems}, {Name: "unrecorded_picks", Value: s.Unmeasured}}
	spread := func(prefix string, v stats.Quantiles) {
		for _, n := range []struct {
			name  string
			value float64
		}{{"geomean", v.Geomean}, {"median", v.Median}, {"p10", v.P10}, {"worst", v.Worst}} {
			f = append(f, ask.Field{Name: prefix + "_" + n.name, Value: n.value})
		}
	}
	spread("efficiency", s.Efficiency)
	for i, n := range score.TopCounts {
		spread("top"+strconv.Itoa(n), s.Top[i])
	}
	f = append(f, ask.Field{Name: "tau_mean", Value: ask.Number(s.TauMean)},
		ask.Field{Name: "tau_worst", Value: ask.Number(s.TauWorst)},
		ask.Field{Name: "error_median", Value: ask.Number(s.Error)},
		ask.Field{Name: "interval_coverage", Value: ask.Number(s.Coverage)},
		ask.Field{Name: "interval_coverage_picks", Value: ask.Number(s.PickCoverage)})
	if s.AutoEfficiency.Count > 0 {
		spread("auto", s.AutoEfficiency)
		f = append(f, ask.Field{Name: "auto_measured_mean", Value: s.CandidatesMeasured},
			ask.Field{Name: "expected_regret_mean", Value: s.ExpectedRegret},
			ask.Field{Name: "recorded_regret_mean", Value: s.Regret},
			ask.Field{Name: "expected_loss_mean", Value: s.ExpectedRegret},
			ask.Field{Name: "recorded_loss_mean", Value: s.Regret})
	}
	return f
}

// choice is the efficiency of the model's choice along one axis, nil if the data set does not vary the axis.
func choice(c score.AxisChoice) *ask.Fields {
	if c.Chosen.Count == 0 {
		return nil
	}
	return &ask.Fields{
		{Name: "configurations", Value: c.Chosen.Count}, {Name: "efficiency_geomean", Value: c.Chosen.Geomean},
		{Name: "efficiency_p10", Value: c.Chosen.P10},
		{Name: "efficiency_worst", Value: c.Chosen.Worst}, {Name: "constant_geomean", Value: c.Constant.Geomean},
		{Name: "constant_worst", Value: c.Constant.Worst},
	}
}
