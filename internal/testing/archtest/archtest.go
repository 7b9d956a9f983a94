// Package archtest asks opened models for tests.
package archtest

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Estimates are what a model predicts for kernels.
func Estimates(t testing.TB, a arch.Architecture, p gemm.Problem, configs ...gemm.Config) []arch.Estimate {
	t.Helper()
	estimates := make([]arch.Estimate, len(configs))
	must.Do(t, a.Estimate(t.Context(), estimates, p, configs))
	return estimates
}

// Seconds are the predicted times of kernels in s. A rejected one takes forever.
func Seconds(t testing.TB, a arch.Architecture, p gemm.Problem, configs ...gemm.Config) []float64 {
	t.Helper()
	times := make([]float64, len(configs))
	for i, e := range Estimates(t, a, p, configs...) {
		if times[i] = float64(e.Cycles.At(a.Describe().Clock)); e.Reject != "" {
			times[i] = math.Inf(1)
		}
	}
	return times
}

// Fastest is the shortest predicted time over the candidates of a space in s.
func Fastest(t testing.TB, a arch.Architecture, p gemm.Problem, space arch.Space) float64 {
	t.Helper()
	least := math.Inf(1)
	for _, time := range Seconds(t, a, p, must.Get(a.Candidates(t.Context(), p, space))(t).Configs...) {
		least = min(least, time)
	}
	return least
}

// Terms are the terms of a kernel.
func Terms(t testing.TB, a arch.Architecture, p gemm.Problem, c gemm.Config) []float64 {
	t.Helper()
	row := make([]float64, len(a.Describe().Terms))
	must.Do(t, a.Terms(t.Context(), row, p, []gemm.Config{c}))
	return row
}

// Open opens a model of a provider with overrides of parameters.
func Open(t testing.TB, p arch.Provider, r arch.OpenRequest, overrides map[string]float64) arch.Architecture {
	t.Helper()
	r.Overrides = map[string]hw.OverrideValue{}
	for name, v := range overrides {
		r.Overrides[name] = hw.OverrideValue{Value: v}
	}
	return must.Get(p.Open(t.Context(), r))(t)
}

// Formulas checks that every formula of a kernel's terms computes the value beside it, but for a relative error, from
// names that a reader has already seen. Of a kernel that is not rejected, the shares add up to the total, which is the
// estimate.
func Formulas(t testing.TB, a arch.Architecture, p gemm.Problem, c gemm.Config, within float64) {
	t.Helper()
	d, row, estimate := a.Describe(), Terms(t, a, p, c), Estimates(t, a, p, c)[0]
	bare := *d
	bare.Terms = nil
	values := formula.Values(&bare, p, c, nil)
	shares := 0.0
	for i, term := range d.Terms {
		total := term.Kind == arch.KindTotal
		if term.Kind == arch.KindShare {
			shares += row[i]
		}
		if total && estimate.Reject == "" && (float64(estimate.Cycles) != row[i] || math.Abs(shares/row[i]-1) > 1e-9) {
			t.Errorf("%s %s %s: total %v, shares %v, estimate %v", d.ID(), p, c, row[i], shares, estimate.Cycles)
		}
		if !formula.IsRule(term.Formula) && !(total && row[i] == arch.RejectedTotal) {
			got, err := formula.Eval(term.Formula, values)
			same := math.Float64bits(got) == math.Float64bits(row[i]) || math.Abs(got-row[i]) <= within*math.Abs(row[i])
			if err != nil || !same {
				t.Errorf("%s %s %s: %s is %v, its formula gives %v (%v)", d.ID(), p, c, term.Name, row[i], got, err)
			}
		}
		values[term.Name] = row[i]
	}
}
