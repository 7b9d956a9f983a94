// Package score holds models against recorded times. docs/evaluating.md defines every number.
//
// A Row is a recorded time beside the time that a model predicts for it, whether the time comes from a sweep, a
// published table or tuning. Accuracy, coverage, calibration and what is left out in turn are of rows. There are two
// questions about a choice. Compare asks what a model's pick is worth among the candidates of the model, beside a
// vendor library: that is how well the model ranks. Evaluate asks what the pick is worth among everything that was
// measured, whether or not the model would consider it: that is how good the model's choice is.
package score

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Row is a recorded time of a problem, and what a model predicts for the same kernel.
type Row struct {
	Problem gemm.Problem
	Config  gemm.Config
	// Bound is what the model says limits the kernel, and Spread what times near the problem leave of its error.
	Bound  arch.Bound
	Spread float32
	// Predicted is 0 if the model rejects the configuration, Measured if it has no recorded time.
	Predicted, Measured unit.Seconds
	// Added is what the stopwatch counts besides the kernel, in both times. Intervals are of the times without it.
	Added unit.Seconds
	// Resources are what the compiler reports of the kernel.
	Resources exec.Resources
	// Reject says why the model has no time.
	Reject arch.Reason
}

// predict enters what a model says of the row.
func (r *Row) predict(e *arch.Estimate, clock unit.Hertz) {
	if r.Reject = e.Reject; e.Reject == "" {
		r.Bound, r.Spread, r.Predicted = e.Bound, e.Spread, e.Cycles.At(clock)
	}
}

// Estimate is what the ends of an interval depend on besides the predicted time.
func (r *Row) Estimate() arch.Estimate { return arch.Estimate{Bound: r.Bound, Spread: r.Spread} }

// measure enters what a data set has of the row.
func (r *Row) measure(m *dataset.Measurement) {
	r.Config, r.Measured, r.Resources = m.Config, m.Median, m.Resources
}

// Ratio is the predicted ÷ the measured time.
func (r *Row) Ratio() float64 { return float64(r.Predicted / r.Measured) }

// ratiosOf lists the ratios of rows.
func ratiosOf(rows []Row) []float64 {
	ratios := make([]float64, len(rows))
	for i := range rows {
		ratios[i] = rows[i].Ratio()
	}
	return ratios
}

// medianError is the median of |ratio − 1|, NaN of none.
func medianError(ratios []float64) float64 {
	errors := make([]float64, len(ratios))
	for i, r := range ratios {
		errors[i] = math.Abs(r - 1)
	}
	return stats.Median(errors)
}

// ScopeOf says which intervals hold for the kernels of a problem with a split of K. The nil ScopeOf has none.
type ScopeOf func(p *gemm.Problem, split int) arch.Scope

// Everywhere applies an uncertainty to every problem.
func Everywhere(u *arch.Uncertainty) ScopeOf {
	return func(*gemm.Problem, int) arch.Scope { return arch.Scope{Uncertainty: u} }
}

func (s ScopeOf) of(r *Row) arch.Scope {
	if s == nil {
		return arch.Scope{}
	}
	return s(&r.Problem, r.Config.SplitK)
}

// Interval returns the interval of the predicted time, and false if there is none.
func (r *Row) Interval(scope ScopeOf) (low, high unit.Seconds, ok bool) {
	low, high, ok = scope.of(r).Interval(r.Estimate(), r.Predicted-r.Added)
	return low + r.Added, high + r.Added, ok
}

// Held reports whether the interval of the predicted time contains the measured time. ok is false if there is no
// interval or no measured time.
func (r *Row) Held(scope ScopeOf) (held, ok bool) {
	low, high, ok := r.Interval(scope)
	return low <= r.Measured && r.Measured <= high, ok && r.Measured > 0
}

// Held counts the rows whose interval contains the measured time, and the rows that have an interval.
func Held(rows []Row, scope ScopeOf) (held, of int) {
	for i := range rows {
		h, ok := rows[i].Held(scope)
		if ok {
			of++
		}
		if ok && h {
			held++
		}
	}
	return held, of
}

// outside returns the factor by which the measured time lies outside of an interval, below 1 for one inside.
func (r *Row) outside(low, high unit.Seconds) float64 {
	measured := max(r.Measured-r.Added, shortest)
	return max(float64(low/measured), float64(measured/high))
}

// residual is the size of the error of a time.
func (r *Row) residual() stats.Residual {
	predicted, measured := r.Predicted-r.Added, max(r.Measured-r.Added, shortest)
	return stats.Residual{Value: math.Abs(math.Log(float64(measured / predicted))), Kind: kindOf(r.Bound, predicted)}
}

// shortest stands for a kernel whose time is below what the stopwatch is said to add.
const shortest unit.Seconds = 1e-8

// Predict holds a model against recorded kernels of a problem. The rows are in their order; Reject says which have no
// prediction.
func Predict(ctx context.Context, a arch.Architecture, p gemm.Problem, recorded []dataset.Measurement) ([]Row, error) {
	configs, estimates := make([]gemm.Config, len(recorded)), make([]arch.Estimate, len(recorded))
	for i := range recorded {
		configs[i] = recorded[i].Config
	}
	if err := a.Estimate(ctx, estimates, p, configs); err != nil {
		return nil, err
	}
	clock, rows := a.Describe().Clock, make([]Row, len(recorded))
	for i := range rows {
		rows[i].Problem = p
		rows[i].measure(&recorded[i])
		rows[i].predict(&estimates[i], clock)
	}
	return rows, nil
}

// predictedAtOnce bounds the problems of a round trip to a plugin.
const predictedAtOnce = 1024

// Fastest predicts the time of the fastest configuration of a kernel family for each problem. An error in bad says why
// the model has no time for the problem. The last error is about all of them.
func Fastest(ctx context.Context, a arch.Architecture, kernel string, problems []gemm.Problem) (
	rows []Row, bad []error, err error,
) {
	rows, bad = make([]Row, len(problems)), make([]error, len(problems))
	clock := a.Describe().Clock
	for from := 0; from < len(problems); from += predictedAtOnce {
		part := problems[from:min(from+predictedAtOnce, len(problems))]
		results, err := selector.Rank(ctx, a, selector.Request{Problems: part, Space: arch.Space{Kernel: kernel}, Top: 1})
		if err != nil {
			return nil, nil, err
		}
		for i := range results {
			r, row := &results[i], &rows[from+i]
			row.Problem = part[i]
			switch bad[from+i] = r.Err; {
			case r.Err == nil:
				row.Config = r.Entries[0].Config
				row.predict(&r.Entries[0].Estimate, clock)
			case diag.KindOf(r.Err) != diag.Input:
				return nil, nil, r.Err
			}
		}
	}
	return rows, bad, nil
}

// GroupBy sorts a list into groups with one key, in the order of their first elements.
func GroupBy[T any, K comparable](list []T, key func(*T) K) [][]T {
	at, groups := map[K]int{}, [][]T{}
	for i := range list {
		k := key(&list[i])
		g, there := at[k]
		if !there {
			g = len(groups)
			at[k], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], list[i])
	}
	return groups
}
