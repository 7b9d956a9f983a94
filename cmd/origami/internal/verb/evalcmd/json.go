package evalcmd

import (
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// object is what `eval --json` writes; docs/json.md describes it.
type object struct {
	Arch       string          `json:"arch"`
	Device     string          `json:"device"`
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	Rung       arch.Rung       `json:"rung"`
	Ranks      bool            `json:"ranks_only,omitempty"`
	Records    string          `json:"records"`
	GroupM     int             `json:"group_m"`
	SplitK     int             `json:"split_k"`
	Fitted     []string        `json:"fitted"`
	InSample   int             `json:"in_sample"`
	Problems   []problem       `json:"problems"`
	Partial    []gemm.Record   `json:"partial,omitempty"`
	Summary    ask.Fields      `json:"summary"`
	Classes    ask.Fields      `json:"classes"`
	Group      *ask.Fields     `json:"group,omitempty"`
	Split      *ask.Fields     `json:"split,omitempty"`
}

// problem is one problem in JSON.
type problem struct {
	gemm.Record
	Labels ask.Fields `json:"labels,omitempty"`
	Class  string     `json:"class"`

	Pick        gemm.Config `json:"pick"`
	PickMS      ask.Number  `json:"pick_ms"`
	PredictedMS float64     `json:"predicted_ms"`
	IntervalMS  *[2]float64 `json:"interval_ms"`
	Best        gemm.Config `json:"best"`
	BestMS      float64     `json:"best_ms"`
	Eff         float64     `json:"efficiency"`
	Top4        float64     `json:"efficiency_top4"`
	Top8        float64     `json:"efficiency_top8"`
	Top16       float64     `json:"efficiency_top16"`
	Tau         ask.Number  `json:"tau"`
	PickRank    *int        `json:"pick_rank_measured"`
	BestRank    *int        `json:"best_rank_predicted"`
	Error       ask.Number  `json:"error_median"`
	Held        *bool       `json:"interval_held"`
	Coverage    ask.Number  `json:"interval_coverage"`
	Recorded    int         `json:"recorded"`
	Refused     int         `json:"refused"`
	InSample    bool        `json:"in_sample"`
	Outside     []string    `json:"outside"`
}

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

func (o *outcome) object() object {
	out := object{
		Arch: o.arch.Arch, Device: o.arch.Device, Model: o.arch.Model, ModelClass: o.arch.ModelClass,
		Kernel: o.data.Kernel, Rung: o.arch.Rung,
		Ranks: o.arch.RanksOnly, Records: o.data.Name,
		GroupM: o.data.Group, SplitK: o.data.Split, Fitted: dataSets(o.fitted()), InSample: o.inSample(),
		Problems: []problem{},
		Summary:  summary(score.SummariseEvaluations(o.rows, o.scope)), Classes: ask.Fields{},
		Group: choice(o.group), Split: choice(o.split),
	}
	for i := range o.rows {
		r := &o.rows[i]
		scored := problem{
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
