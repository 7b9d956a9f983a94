package fit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// What a sample needs at least: problems, and times.
const (
	LeastProblems = 10
	LeastTimes    = 100
)

const (
	// adoptFolds is into how many parts the problems are divided. Each is left out of one fit.
	adoptFolds = 5
	// prior is how far a quantity is expected to be from its value in use: a factor of two, as a logarithm. Moving it
	// that far costs as much as one problem does on average, so that what the times do not determine stays where it is.
	prior = math.Ln2
	// known is the standard error of a logarithm below which the times determine a quantity.
	known = prior / 2
	// disagreement is the factor between the values of two folds from which on they disagree.
	disagreement = 2
	// leastGain is the share of the loss on problems left out that new values have to take away.
	leastGain = 0.01
)

// Adopted is a quantity after Adopt.
type Adopted struct {
	arch.Constant
	// New is the value to use: Value if Kept says why it is kept.
	New  float64
	Kept string
	// FoldLow and FoldHigh are the range over the folds, 0 if the quantity was fitted in none.
	FoldLow, FoldHigh float64
	// Error is the standard error of the logarithm, with a problem as one observation. It is infinite if no time depends
	// on the quantity.
	Error float64
}

// Outcome says how well a model predicts problems that its quantities were not fitted to.
type Outcome struct {
	Loss float64 `json:"loss"` // the loss of the fit
	// the median over problems of the median |predicted ÷ measured − 1|
	Error float64 `json:"median_error"`
	// the geometric mean and the least of best time ÷ time of the predicted fastest, of the kernels measured
	Efficiency float64 `json:"efficiency"`
	Worst      float64 `json:"worst_efficiency"`
}

// Adoption is what Adopt decides.
type Adoption struct {
	Quantities []Adopted
	// Problems and Times count the sample.
	Problems, Times int
	// Before is the model as it is, After with quantities that were fitted without the problem that is scored.
	Before, After Outcome
	// Refused says why no quantity is adopted, empty if some are.
	Refused string
}

// Stage is how far Adopt is.
type Stage struct {
	Name        string
	Done, Total int
}

// Adopt fits the quantities of a model to a sample and adopts those that the problems left out speak for:
//
//   - a quantity that no time depends on, or whose standard error is above a factor of √2, is kept;
//   - one that the folds move in different directions from its value in use, to values that differ by more than a
//     factor of two, or to the end of its bounds, is kept;
//   - with the others fitted anew on four fifths of the problems, the loss on the fifth that is left out has to fall by
//     1 %, by more than its standard error over the problems, and the picks must not become slower. Otherwise all are
//     kept.
//
// current scores as the model that the caller would use without the fit. It is the tunable itself or one that knows
// more.
func Adopt(
	ctx context.Context, s *Sample, m Tunable, current arch.Architecture, progress func(Stage),
) (*Adoption, error) {
	a := &adopter{ctx: ctx, sample: s, model: m, progress: progress}
	times := 0
	for i := range s.problems {
		times += len(s.problems[i].configs)
	}
	if len(s.problems) < LeastProblems || times < LeastTimes {
		return nil, diag.Inputf("the records have %d usable times, of %d different problems, and a fit takes %d times of %d "+
			"problems", times, len(s.problems), LeastTimes, LeastProblems).Do("measure more sizes")
	}
	problems := make([]gemm.Problem, len(s.problems))
	for i := range s.problems {
		problems[i] = s.problems[i].problem
	}
	a.folds = score.Folds(problems, adoptFolds)
	out := &Adoption{Problems: len(problems), Times: times}
	if err := a.choose(out); err != nil {
		return nil, err
	}
	if err := a.judge(out, current); err != nil {
		return nil, err
	}
	return out, nil
}

// adopter is the state of Adopt.
type adopter struct {
	ctx      context.Context
	sample   *Sample
	model    Tunable
	folds    []int
	progress func(Stage)

	mu          sync.Mutex
	done, total int
	// scale is the loss of a problem on average, which the prior is measured by.
	scale float64
	// fitted are the values of each fold.
	fitted [adoptFolds]map[string]float64
}

func (a *adopter) step(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done++; a.progress != nil {
		a.progress(Stage{name, a.done, a.total})
	}
}

// residuals are the weighted errors of log time under sets of values.
func (a *adopter) residuals(
	ctx context.Context, values []map[string]float64, use func(int) bool,
) ([][]float64, error) {
	times, err := a.model.EstimateWith(ctx, values, a.sample.kernels(use))
	if err != nil {
		return nil, err
	}
	return a.sample.residuals(times, use)
}

// loss is the soft L1 loss of one set of values on all problems.
func (a *adopter) loss(values map[string]float64) (float64, error) {
	rows, err := a.residuals(a.ctx, []map[string]float64{values}, nil)
	if err != nil {
		return 0, err
	}
	return soften(rows[0]), nil
}

// minimise fits some of the constants to the problems that count.
func (a *adopter) minimise(free []arch.Constant, use func(int) bool) (map[string]float64, error) {
	residuals := func(ctx context.Context, values []map[string]float64) ([][]float64, error) {
		rows, err := a.residuals(ctx, values, use)
		for i := range rows {
			for _, q := range free {
				rows[i] = append(rows[i], math.Sqrt(a.scale)*math.Log(values[i][q.Name]/q.Value)/prior)
			}
		}
		return rows, err
	}
	start := map[string]float64{}
	for _, q := range free {
		start[q.Name] = q.Value
	}
	found, err := minimise(a.ctx, residuals, free, Options{Start: start})
	return found.Values, err
}

// choose decides which constants are fitted, and fits them without each fold.
func (a *adopter) choose(out *Adoption) error {
	loss, err := a.loss(nil)
	if err != nil {
		return err
	}
	problems := float64(len(a.sample.problems))
	a.scale, a.total = loss/problems, 2*adoptFolds+2
	free, err := a.sensitive(out)
	if err != nil {
		return err
	}
	all, err := a.minimise(free, nil)
	if err != nil {
		return err
	}
	a.step("all problems")
	if loss, err = a.loss(all); err != nil {
		return err
	}
	a.scale = min(a.scale, loss/problems)
	if free, err = a.determined(out, free, all); err != nil {
		return err
	}
	if err := a.cross(free); err != nil {
		return err
	}
	agreed := a.agreed(out, free)
	if len(agreed) == len(free) {
		a.total -= adoptFolds
		return nil
	}
	return a.cross(agreed)
}

// sensitive returns the constants that a time depends on, and enters all that can be fitted into out.
func (a *adopter) sensitive(out *Adoption) (free []arch.Constant, err error) {
	values := make([]map[string]float64, 1)
	for _, c := range a.model.Describe().Constants {
		if c.Fits() {
			out.Quantities = append(out.Quantities, Adopted{Constant: c, New: c.Value, Error: math.Inf(1)})
			values = append(values, map[string]float64{c.Name: c.Value * math.Exp(difference)})
		}
	}
	rows, err := a.residuals(a.ctx, values, nil)
	if err != nil {
		return nil, err
	}
	for i := range out.Quantities {
		if q := &out.Quantities[i]; slices.Equal(rows[0], rows[1+i]) {
			q.Kept = "no time depends on it"
		} else {
			free = append(free, q.Constant)
		}
	}
	return free, nil
}

// determined returns the constants whose standard error is small enough, at the values that fit all problems.
func (a *adopter) determined(
	out *Adoption, free []arch.Constant, values map[string]float64,
) (kept []arch.Constant, err error) {
	if len(free) == 0 {
		return nil, nil
	}
	f, err := newFitter(func(ctx context.Context, v []map[string]float64) ([][]float64, error) {
		return a.residuals(ctx, v, nil)
	}, free, Options{Start: values})
	if err != nil {
		return nil, err
	}
	if f.r, err = f.at(a.ctx, values); err != nil {
		return nil, err
	}
	soften(f.r)
	jacobian, err := f.jacobian(a.ctx)
	if err != nil {
		return nil, err
	}
	normal, _ := normalEquations(jacobian, f.r)
	for i := range normal {
		for j := range normal[i] {
			normal[i][j] /= a.scale
		}
		normal[i][i] += 1 / (prior * prior)
	}
	for i, q := range free {
		unit := make([]float64, len(free))
		unit[i] = 1
		deviation := math.Sqrt(solve(normal, unit, 0)[i])
		one := out.find(q.Name)
		if one.Error = deviation; deviation > known {
			one.Kept = "the times do not determine it"
		} else {
			kept = append(kept, q)
		}
	}
	return kept, nil
}

func (a *Adoption) find(name string) *Adopted {
	i := slices.IndexFunc(a.Quantities, func(q Adopted) bool { return q.Name == name })
	return &a.Quantities[i]
}

// cross fits quantities without each fold, all folds at a time.
func (a *adopter) cross(free []arch.Constant) error {
	var wg sync.WaitGroup
	var errs [adoptFolds]error
	for fold := range adoptFolds {
		wg.Go(func() {
			if len(free) == 0 {
				a.fitted[fold] = nil
				return
			}
			a.fitted[fold], errs[fold] = a.minimise(free, func(i int) bool { return a.folds[i] != fold })
			a.step(fmt.Sprintf("without fold %d", fold+1))
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// agreed returns the quantities that all folds move in one direction, to about the same value.
func (a *adopter) agreed(out *Adoption, free []arch.Constant) (kept []arch.Constant) {
	for _, q := range free {
		one := out.find(q.Name)
		one.FoldLow, one.FoldHigh = a.span(q.Name)
		switch {
		case one.FoldLow <= q.Value && one.FoldHigh >= q.Value:
			one.Kept = "the folds do not move it in one direction"
		case one.FoldLow <= q.Low || one.FoldHigh >= q.High:
			one.Kept = "a fold moves it to the end of its bounds"
		case one.FoldHigh > disagreement*one.FoldLow:
			one.Kept = "the folds disagree by more than a factor of two"
		default:
			kept = append(kept, q)
		}
	}
	return kept
}

// span is the range of a quantity over the folds.
func (a *adopter) span(name string) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, values := range a.fitted {
		low, high = min(low, values[name]), max(high, values[name])
	}
	return low, high
}

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
