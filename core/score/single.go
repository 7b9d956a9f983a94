package score

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Single is a measured configuration of a problem with its predicted time.
type Single struct {
	Problem gemm.Problem
	Point
	// SpillBytes is what the compiler reports of the kernel, per thread.
	SpillBytes unit.Bytes
	// Reject says why the model has no time for it.
	Reject arch.Reason
}

// Ratio is the predicted ÷ the measured time.
func (s *Single) Ratio() float64 { return float64(s.Predicted / s.Measured) }

// OnePerProblem reports whether every problem has exactly one measured configuration. A model then has no choice.
func (s *Subset) OnePerProblem() bool {
	for _, measured := range s.measurements {
		if len(measured) > 1 {
			return false
		}
	}
	return len(s.measurements) > 0
}

// Singles holds a model's times against all measurements of some problems, in their order.
func Singles(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) ([]Single, error) {
	clock := a.Describe().Clock
	var out []Single
	for _, p := range problems {
		measured := s.measurements[p]
		configs := make([]gemm.Config, len(measured))
		for i := range measured {
			configs[i] = measured[i].Config
		}
		estimates := make([]arch.Estimate, len(configs))
		if err := a.Estimate(ctx, estimates, p, configs); err != nil {
			return nil, err
		}
		for i := range measured {
			out = append(out, single(p, &measured[i], &estimates[i], clock))
		}
	}
	return out, nil
}

func single(p gemm.Problem, m *dataset.Measurement, e *arch.Estimate, clock unit.Hertz) Single {
	return Single{
		Problem:    p,
		Point:      Point{Config: m.Config, Bound: e.Bound, Predicted: e.Cycles.At(clock), Measured: m.Median},
		SpillBytes: m.Resources.SpillBytes, Reject: e.Reject,
	}
}

// Ratios sums up predicted ÷ measured time.
type Ratios struct {
	Count  int     `json:"count"`               // how many kernels
	Median float64 `json:"median" unit:"ratio"` // their ratios
	Least  float64 `json:"lowest" unit:"ratio"`
	Large  float64 `json:"highest" unit:"ratio"`
}

// SummariseSingles sums up the ratios of those that count. Rejected configurations have none.
func SummariseSingles(singles []Single, counts func(*Single) bool) Ratios {
	var ratios []float64
	for i := range singles {
		if s := &singles[i]; s.Reject == "" && counts(s) {
			ratios = append(ratios, s.Ratio())
		}
	}
	if len(ratios) == 0 {
		return Ratios{}
	}
	return Ratios{len(ratios), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios)}
}

// EachAlone returns the scores of problems with one measured time each. Rejected configurations have none.
func EachAlone(singles []Single) []Evaluation {
	var each []Evaluation
	for i := range singles {
		if s := &singles[i]; s.Reject == "" {
			each = append(each, Evaluation{Outcome: Outcome{Problem: s.Problem, Points: []Point{s.Point}},
				Class: ClassOf(s.Problem)})
		}
	}
	return each
}

// CalibrateSingles returns the uncertainty of a model's times for a kernel family from problems with one measured time
// each, with the ranges found on them. The caller sets Source.
func CalibrateSingles(kernel, dataSet string, singles []Single, ranges []arch.ErrorRange) arch.Uncertainty {
	each := EachAlone(singles)
	errors := make([]float64, len(singles))
	for i := range singles {
		errors[i] = math.Abs(singles[i].Ratio() - 1)
	}
	u := arch.Uncertainty{Kernel: kernel, Level: Level, Ranges: ranges, Checked: CheckedOn(dataSet, each),
		MedianError: stats.Median(errors)}
	if ranges != nil {
		u.Widening = Widening(each)
	}
	u.Checked.Times, u.Checked.Sizes = len(singles), sizes(singles)
	return u
}

// sizes counts M, N, K and batch once, in whichever types and under whichever conditions they were timed.
func sizes(singles []Single) int {
	seen := map[[4]int]bool{}
	for i := range singles {
		p := &singles[i].Problem
		seen[[...]int{p.M, p.N, p.K, p.Batch}] = true
	}
	return len(seen)
}
