package score

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
)

// Subset is the part of a data set that models are evaluated on: the sweep's measurements at one launch-order group and
// one split-K.
type Subset struct {
	*dataset.Dataset
	// Group and Split are the launch-order group and the split-K that the sweep holds constant, 0 if it varies them.
	Group, Split int
	// Problems are the problems to evaluate. Partial are the others: they have fewer than half as many measurements
	// as the problem that has most, so that their best configuration may not have been measured.
	Problems, Partial []gemm.Problem

	measurements map[gemm.Problem][]dataset.Measurement
}

// SubsetOf finds what a data set holds constant and which of its problems were swept completely enough.
func SubsetOf(data *dataset.Dataset) *Subset {
	s := &Subset{Dataset: data, Group: data.GroupM, measurements: map[gemm.Problem][]dataset.Measurement{}}
	s.Split = constantSplit(data, true, data.Problems()...)
	most := 0
	for _, p := range data.Problems() {
		for _, m := range data.Sweep(p) {
			c := &m.Config
			if m.Status == dataset.OK && (s.Group == 0 || c.GroupM == s.Group) && (s.Split == 0 || c.SplitK == s.Split) {
				s.measurements[p] = append(s.measurements[p], m)
			}
		}
		most = max(most, len(s.measurements[p]))
	}
	for _, p := range data.Problems() {
		if n := len(s.measurements[p]); n > 0 && 2*n >= most {
			s.Problems = append(s.Problems, p)
		} else {
			s.Partial = append(s.Partial, p)
		}
	}
	return s
}

// constantSplit returns the split-K that a sweep of problems holds constant, 0 if it varies it. Such a sweep was not
// made to tell splits apart, and a model chooses among the kernels with this one.
func constantSplit(data *dataset.Dataset, timed bool, problems ...gemm.Problem) int {
	constant := 0
	for _, p := range problems {
		for _, m := range data.Sweep(p) {
			switch {
			case timed && m.Status != dataset.OK:
			case constant == 0:
				constant = m.Config.SplitK
			case constant != m.Config.SplitK:
				return 0
			}
		}
	}
	return constant
}

// spaceOf returns the space that a model may choose from: all its candidates at a constant split-K.
func spaceOf(kernel string, split int) arch.Space {
	space := arch.Space{Kernel: kernel}
	if split > 0 {
		space.SplitK = []int{split}
	}
	return space
}

// OnePerProblem reports whether every problem has exactly one measured configuration. A model then has no choice.
func (s *Subset) OnePerProblem() bool {
	for _, measured := range s.measurements {
		if len(measured) > 1 {
			return false
		}
	}
	return len(s.measurements) > 0
}

// Rows holds a model's times against all measurements of some problems, in their order.
func (s *Subset) Rows(ctx context.Context, a arch.Architecture, problems ...gemm.Problem) (rows []Row, err error) {
	for _, p := range problems {
		of, err := Predict(ctx, a, p, s.measurements[p])
		if err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// ofSweep is an architecture whose candidates all have the launch-order group of a sweep, without those that the sweep
// did not try.
type ofSweep struct {
	arch.Architecture
	sweep *Subset
}

// Candidates implements arch.Architecture.
func (o ofSweep) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	list, err := o.Architecture.Candidates(ctx, p, s)
	if err != nil {
		return nil, err
	}
	tried := &arch.Candidates{Rejected: list.Rejected, Configs: make([]gemm.Config, 0, len(list.Configs))}
	seen := make(map[gemm.Config]bool, len(list.Configs))
	for _, c := range o.sweep.Untried {
		seen[c] = true
	}
	for _, c := range list.Configs {
		if c.GroupM = o.sweep.Group; !seen[c] {
			seen[c] = true
			tried.Configs = append(tried.Configs, c)
		}
	}
	return tried, nil
}

// Mapping implements arch.Architecture.
func (o ofSweep) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: o.sweep.Group}, nil
}

// AxisChoice scores a model's choice on one axis that the sweep holds constant. It looks at the configurations that
// were measured at several values of the axis.
type AxisChoice struct {
	// Chosen is the best measured time over the axis ÷ the time at the model's value. Constant is the same at the value
	// that the sweep holds constant.
	Chosen, Constant stats.Quantiles
}

// GroupChoice scores the launch-order group that phase two of the selection chooses. Of the measured groups the one
// with the smallest ratio to it counts as chosen.
func GroupChoice(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (AxisChoice, error) {
	group := func(c *gemm.Config) *int { return &c.GroupM }
	return s.axisChoice(problems, group, s.Group, func(p gemm.Problem, variants []gemm.Config) (int, error) {
		c := variants[0]
		c.GroupM = 0
		m, err := a.Mapping(ctx, p, c)
		if err != nil {
			return 0, err
		}
		return least(len(variants), func(i int) float64 {
			return math.Abs(math.Log(float64(variants[i].GroupM) / float64(max(m.GroupM, 1))))
		}), nil
	})
}

// SplitChoice scores the split-K that the model predicts to be the fastest of the measured ones.
func SplitChoice(ctx context.Context, a arch.Architecture, s *Subset, problems []gemm.Problem) (AxisChoice, error) {
	split := func(c *gemm.Config) *int { return &c.SplitK }
	return s.axisChoice(problems, split, s.Split, func(p gemm.Problem, variants []gemm.Config) (int, error) {
		estimates := make([]arch.Estimate, len(variants))
		if err := a.Estimate(ctx, estimates, p, variants); err != nil {
			return 0, err
		}
		return least(len(variants), func(i int) float64 {
			if estimates[i].Reject != "" {
				return math.Inf(1)
			}
			return float64(estimates[i].Cycles)
		}), nil
	})
}

// least returns the first index of the least value.
func least(n int, value func(int) float64) int {
	at := 0
	for i := range n {
		if value(i) < value(at) {
			at = i
		}
	}
	return at
}

// axisChoice scores the choice on an axis of a configuration. choose returns which of the measured variants of a
// configuration the model would take.
func (s *Subset) axisChoice(problems []gemm.Problem, axis func(*gemm.Config) *int, constant int,
	choose func(gemm.Problem, []gemm.Config) (int, error),
) (AxisChoice, error) {
	var chosen, fixed []float64
	for _, p := range problems {
		timed := slices.DeleteFunc(s.Sweep(p), func(m dataset.Measurement) bool { return m.Status != dataset.OK })
		for _, variants := range GroupBy(timed, func(m *dataset.Measurement) gemm.Config {
			rest := m.Config
			*axis(&rest) = 0
			return rest
		}) {
			if len(variants) < 2 {
				continue
			}
			configs, best := make([]gemm.Config, len(variants)), variants[0].Median
			for i := range variants {
				configs[i], best = variants[i].Config, min(best, variants[i].Median)
			}
			i, err := choose(p, configs)
			if err != nil && diag.KindOf(err) == diag.Input {
				continue // the problem's evaluation has the error
			}
			if err != nil {
				return AxisChoice{}, err
			}
			chosen = append(chosen, ratio(best, variants[i].Median))
			for j := range variants {
				if *axis(&configs[j]) == constant {
					fixed = append(fixed, ratio(best, variants[j].Median))
				}
			}
		}
	}
	return AxisChoice{Chosen: stats.QuantilesOf(chosen), Constant: stats.QuantilesOf(fixed)}, nil
}
