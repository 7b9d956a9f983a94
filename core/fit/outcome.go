package fit

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// judge compares the model on problems left out with what it is now, and fits the quantities to all problems if that is
// better.
func (a *adopter) judge(out *Adoption, current arch.Architecture) error {
	times, err := estimate(a.ctx, current, a.sample.kernels(nil))
	if err != nil {
		return err
	}
	before, err := a.sample.outcomes(times, nil)
	if err != nil {
		return err
	}
	out.Before = summarise(before)
	out.After = out.Before
	var free []arch.Constant
	for _, q := range out.Quantities {
		if q.Kept == "" {
			free = append(free, q.Constant)
		}
	}
	if len(free) == 0 {
		out.Refused = "the times move no quantity"
		return nil
	}
	after := make([]problemOutcome, len(before))
	for fold := range adoptFolds {
		out := func(i int) bool { return a.folds[i] == fold }
		times, err := a.model.EstimateWith(a.ctx, []map[string]float64{a.fitted[fold]}, a.sample.kernels(out))
		if err != nil {
			return err
		}
		held, err := a.sample.outcomes(times, out)
		if err != nil {
			return err
		}
		for i := range held {
			if a.folds[i] == fold {
				after[i] = held[i]
			}
		}
	}
	out.After = summarise(after)
	if out.Refused = refusal(before, after, &out.Before, &out.After); out.Refused != "" {
		for i := range out.Quantities {
			if q := &out.Quantities[i]; q.Kept == "" {
				q.Kept = "the model does not become better on problems left out"
				q.FoldLow, q.FoldHigh = a.span(q.Name)
			}
		}
		return nil
	}
	values, err := a.minimise(free, nil)
	if err != nil {
		return err
	}
	a.step("all problems, again")
	for _, q := range free {
		one := out.find(q.Name)
		one.New = values[q.Name]
		one.FoldLow, one.FoldHigh = a.span(q.Name)
	}
	return nil
}

// refusal says why new values are not adopted, empty if they are.
func refusal(before, after []problemOutcome, b, f *Outcome) string {
	changes := make([]float64, len(before))
	mean, squares := 0.0, 0.0
	for i := range before {
		changes[i] = after[i].loss - before[i].loss
		mean += changes[i] / float64(len(before))
	}
	for _, c := range changes {
		squares += (c - mean) * (c - mean)
	}
	deviation := math.Sqrt(squares/float64(len(changes)-1)) / math.Sqrt(float64(len(changes)))
	switch {
	case !(f.Loss < b.Loss*(1-leastGain)):
		return "on problems left out, the fitted values predict times no better"
	case !(mean+deviation < 0):
		return "on problems left out, the fitted values predict times better by less than their scatter"
	case f.Efficiency < b.Efficiency:
		return "on problems left out, the picks of the fitted values are slower"
	}
	return ""
}

// problemOutcome is how a model predicts one problem.
type problemOutcome struct{ loss, efficiency, err float64 }

// outcomes scores the predicted times of kernels(use), which are one row. The problems that do not count are zero.
func (s *Sample) outcomes(times [][]unit.Seconds, use func(int) bool) ([]problemOutcome, error) {
	rows, err := s.residuals(times, use)
	if err != nil {
		return nil, err
	}
	all, out := rows[0], make([]problemOutcome, len(s.problems))
	for i := range s.problems {
		if use != nil && !use(i) {
			continue
		}
		p := &s.problems[i]
		r := all[:len(p.configs)]
		all = all[len(r):]
		pick, best := 0, slices.Min(p.logs)
		relative, predicted := make([]float64, len(r)), make([]float64, len(r))
		for j := range r {
			off := r[j] / p.weights[j]
			relative[j], predicted[j] = math.Abs(math.Expm1(off)), p.logs[j]+off
			if predicted[j] < predicted[pick] {
				pick = j
			}
		}
		out[i] = problemOutcome{efficiency: math.Exp(best - p.logs[pick]), err: stats.Median(relative), loss: soften(r)}
	}
	return out, nil
}

func summarise(all []problemOutcome) (o Outcome) {
	o.Worst = 1
	var errs []float64
	logs := 0.0
	for _, p := range all {
		o.Loss += p.loss
		o.Worst = min(o.Worst, p.efficiency)
		logs += math.Log(p.efficiency)
		errs = append(errs, p.err)
	}
	o.Efficiency, o.Error = math.Exp(logs/float64(len(all))), stats.Median(errs)
	return o
}
