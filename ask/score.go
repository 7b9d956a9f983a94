package ask

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Scored is a model held against measurements.
type Scored struct {
	Arch         *arch.Description
	Data         *score.Subset
	Rows         []score.Evaluation
	Group, Split score.AxisChoice
	// Labels are the names of the problems' labels, Labelled the labels of each row.
	Labels   []string
	Labelled [][]string
}

// Score scores a model at each problem. done is told how many are, failed which of them cannot be.
func Score(ctx context.Context, a arch.Architecture, data *score.Subset, list []problems.Problem, done func(int),
	failed func(where string, err error),
) (*Scored, error) {
	const atOnce = 8 // enough for the cores, few enough for a bar that moves
	out := &Scored{Arch: a.Describe(), Data: data}
	for part := range slices.Chunk(list, atOnce) {
		rows, errs, err := score.Evaluate(ctx, a, data, problems.Shapes(part))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if errs[i] != nil {
				failed(part[i].Where, errs[i])
				continue
			}
			out.Rows, out.Labelled = append(out.Rows, rows[i]), append(out.Labelled, part[i].Labels)
		}
		done(len(part))
	}
	return out, nil
}

// Choose scores the model's choices along the axes that the measurements vary.
func (o *Scored) Choose(ctx context.Context, a arch.Architecture, list []problems.Problem) (err error) {
	shapes := problems.Shapes(list)
	if o.Group, err = score.GroupChoice(ctx, a, o.Data, shapes); err == nil {
		o.Split, err = score.SplitChoice(ctx, a, o.Data, shapes)
	}
	return err
}

// Scope says which of the model's intervals hold for the kernels of a problem.
func (o *Scored) Scope(p *gemm.Problem, split int) arch.Scope {
	if s := o.Arch.Scope(o.Data.Kernel, p, split); s.Checked() {
		return s
	}
	return arch.Scope{} // a score is of what was checked
}

// Count counts the problems for which a condition holds.
func (o *Scored) Count(holds func(*score.Evaluation) bool) int {
	n := 0
	for i := range o.Rows {
		if holds(&o.Rows[i]) {
			n++
		}
	}
	return n
}

// InSample counts the problems that numbers of the model were fitted to.
func (o *Scored) InSample() int {
	return o.Count(func(r *score.Evaluation) bool { return o.Arch.InSample(r.Problem, o.Data.Kernel) })
}

// Fitted lists the data sets that numbers were fitted to which enter predictions of the measured kernels.
func (o *Scored) Fitted() []arch.Fitted {
	return slices.DeleteFunc(slices.Clone(o.Arch.Fitted), func(f arch.Fitted) bool { return !f.Concerns(o.Data.Kernel) })
}

// DataSets lists the names of data sets.
func DataSets(fitted []arch.Fitted) []string {
	names := []string{}
	for _, f := range fitted {
		names = append(names, f.DataSet)
	}
	return names
}

// place is a rank, null where there is none.
func place(rank int) *int {
	if rank == 0 {
		return nil
	}
	return &rank
}

// Milliseconds is a time, NaN for none.
func Milliseconds(t unit.Seconds) float64 {
	if t <= 0 {
		return math.NaN()
	}
	return float64(t) * 1e3
}

// Evaluation is the score as a plain value.
func (o *Scored) Evaluation() Evaluation {
	out := Evaluation{
		Arch: o.Arch.Arch, Device: o.Arch.Device, Model: o.Arch.Model, ModelClass: o.Arch.ModelClass,
		Kernel: o.Data.Kernel, Rung: o.Arch.Rung,
		Timing: o.Arch.Timing, Ranks: o.Arch.RanksOnly, Records: o.Data.Name,
		GroupM: o.Data.Group, SplitK: o.Data.Split, Fitted: DataSets(o.Fitted()), InSample: o.InSample(),
		Problems: []Evaluated{},
		Summary:  summary(score.SummariseEvaluations(o.Rows, o.Scope)), Classes: Fields{},
		Group: choice(o.Group), Split: choice(o.Split),
	}
	for i := range o.Rows {
		r := &o.Rows[i]
		held, of := score.Held(r.Rows, o.Scope)
		scored := Evaluated{
			Record: r.Problem.Record(), Labels: Labels(o.Labels, o.Labelled[i]), Class: r.Class.String(),
			Pick: r.Pick.Config, PickMS: Number(Milliseconds(r.Pick.Measured)),
			PredictedMS: Milliseconds(r.Pick.Predicted),
			Best:        r.Best.Config, BestMS: Milliseconds(r.Best.Measured), Eff: Number(r.Efficiency()),
			Top4: Number(r.Top[0]), Top8: Number(r.Top[1]), Top16: Number(r.Top[2]),
			Tau: Number(r.Tau), PickRank: place(r.PickRank), BestRank: place(r.BestRank),
			Error:    Number(r.Error),
			Coverage: Number(float64(held) / float64(of)), Recorded: r.Measured, Refused: r.Rejected,
			InSample: o.Arch.InSample(r.Problem, o.Data.Kernel),
			Outside:  append([]string{}, o.Arch.Outside(o.Data.Kernel, &r.Problem, r.Pick.Config.SplitK)...),
		}
		if low, high, ok := r.Pick.Interval(o.Scope); ok {
			scored.IntervalMS = &[2]float64{float64(low) * 1e3, float64(high) * 1e3}
		}
		if held, ok := r.Pick.Held(o.Scope); ok {
			scored.Held = &held
		}
		out.Problems = append(out.Problems, scored)
	}
	for _, p := range o.Data.Partial {
		out.Partial = append(out.Partial, p.Record())
	}
	for _, c := range score.SummariseByClass(o.Rows, o.Scope) {
		out.Classes = append(out.Classes, Field{Name: c.Class, Value: summary(c.EvaluationSummary)})
	}
	return out
}

func summary(s score.EvaluationSummary) Fields {
	f := Fields{{Name: "problems", Value: s.Problems}, {Name: "unrecorded_picks", Value: s.Unmeasured},
		{Name: "failed_picks", Value: s.Failed}}
	spread := func(prefix string, v stats.Quantiles) {
		for _, n := range []struct {
			name  string
			value float64
		}{{"geomean", v.Geomean}, {"median", v.Median}, {"p10", v.P10}, {"worst", v.Worst}} {
			f = append(f, Field{Name: prefix + "_" + n.name, Value: Number(n.value)})
		}
	}
	spread("efficiency", s.Efficiency)
	for i, n := range score.TopCounts {
		spread("top"+strconv.Itoa(n), s.Top[i])
	}
	f = append(f, Field{Name: "tau_mean", Value: Number(s.TauMean)},
		Field{Name: "tau_worst", Value: Number(s.TauWorst)},
		Field{Name: "error_median", Value: Number(s.Error)},
		Field{Name: "interval_coverage", Value: Number(s.Coverage)},
		Field{Name: "interval_coverage_picks", Value: Number(s.PickCoverage)})
	if s.AutoEfficiency.Count > 0 {
		spread("auto", s.AutoEfficiency)
		f = append(f, Field{Name: "auto_measured_mean", Value: s.CandidatesMeasured},
			Field{Name: "expected_regret_mean", Value: s.ExpectedRegret},
			Field{Name: "recorded_regret_mean", Value: s.Regret})
	}
	return f
}

// choice is the efficiency of the model's choice along one axis, nil if the data set does not vary the axis.
func choice(c score.AxisChoice) *Fields {
	if c.Chosen.Count == 0 {
		return nil
	}
	return &Fields{
		{Name: "configurations", Value: c.Chosen.Count}, {Name: "efficiency_geomean", Value: c.Chosen.Geomean},
		{Name: "efficiency_p10", Value: c.Chosen.P10},
		{Name: "efficiency_worst", Value: c.Chosen.Worst}, {Name: "constant_geomean", Value: c.Constant.Geomean},
		{Name: "constant_worst", Value: c.Constant.Worst},
	}
}
