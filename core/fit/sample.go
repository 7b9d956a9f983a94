package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Sample is measured times of kernels on problems.
type Sample struct{ problems []measured }

type measured struct {
	problem gemm.Problem
	configs []gemm.Config
	seconds []float64
	logs    []float64 // of the times
	weights []float64
}

// worst is the time ÷ the best time of the problem above which a kernel weighs no less.
const worst = 20

// Add adds the times of kernels on a problem, in seconds. A kernel weighs (time ÷ best time)^-½: the farther it is
// from the best, the less it matters. Times of a problem that the sample has already are added to that: it stays one
// observation, and a fold leaves it out as a whole.
func (s *Sample) Add(p gemm.Problem, configs []gemm.Config, seconds []float64) error {
	if len(configs) != len(seconds) || len(configs) == 0 {
		return fmt.Errorf("fit: %d kernels with %d times for %s", len(configs), len(seconds), p)
	}
	for i, v := range seconds {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("fit: the time of %s for %s is %v", configs[i], p, v)
		}
	}
	at := slices.IndexFunc(s.problems, func(m measured) bool { return m.problem == p })
	if at < 0 {
		at = len(s.problems)
		s.problems = append(s.problems, measured{problem: p})
	}
	s.problems[at].add(configs, seconds)
	return nil
}

func (m *measured) add(configs []gemm.Config, seconds []float64) {
	m.configs, m.seconds = append(m.configs, configs...), append(m.seconds, seconds...)
	best := slices.Min(m.seconds)
	m.logs, m.weights = m.logs[:0], m.weights[:0]
	for _, v := range m.seconds {
		m.logs = append(m.logs, math.Log(v))
		m.weights = append(m.weights, math.Sqrt(1/min(v/best, worst)))
	}
}

// Loss is the soft L1 loss of a model on the problems that count; nil is all of them.
func (s *Sample) Loss(ctx context.Context, m arch.Architecture, use func(problem int) bool) (float64, error) {
	times, err := estimate(ctx, m, s.kernels(use))
	if err != nil {
		return 0, err
	}
	rows, err := s.residuals(times, use)
	if err != nil {
		return 0, err
	}
	return soften(rows[0]), nil
}

// kernels returns the kernels of the problems that count.
func (s *Sample) kernels(use func(problem int) bool) (list []Kernels) {
	for i := range s.problems {
		if use == nil || use(i) {
			list = append(list, Kernels{s.problems[i].problem, s.problems[i].configs})
		}
	}
	return list
}

// residuals returns the weighted errors of log time of each row of times, which were predicted for kernels(use).
func (s *Sample) residuals(times [][]unit.Seconds, use func(problem int) bool) ([][]float64, error) {
	rows := make([][]float64, len(times))
	for row, predicted := range times {
		rows[row] = make([]float64, 0, len(predicted))
		for i := range s.problems {
			if use != nil && !use(i) {
				continue
			}
			p := &s.problems[i]
			for j, t := range predicted[:len(p.configs)] {
				if !(t > 0) {
					return nil, fmt.Errorf("fit: no time for %s on %s", p.configs[j], p.problem)
				}
				rows[row] = append(rows[row], (math.Log(float64(t))-p.logs[j])*p.weights[j])
			}
			predicted = predicted[len(p.configs):]
		}
	}
	return rows, nil
}

// softScale is where residuals cease to count by their square.
const softScale = 0.15

// soften replaces residuals by those whose squares add up to the soft L1 loss 2·s²·(√(1 + (r/s)²) − 1), and returns
// that.
func soften(r []float64) (loss float64) {
	for i, v := range r {
		x := v / softScale
		r[i] = math.Copysign(softScale*math.Sqrt(2*(math.Sqrt(1+float64(x*x))-1)), v)
		loss += float64(r[i] * r[i])
	}
	return loss
}
