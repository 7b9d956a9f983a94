package fit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
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

// Tunable is a model whose constants can have other values. Constants of its description that have bounds can be fitted
// (arch.Constant.Fits).
type Tunable interface {
	arch.Architecture
	// EstimateWith predicts the times of kernels under each of several sets of values of constants, by name. A constant
	// that is not in a set has its value in use. A fit also tries values just outside of the bounds. There is a row per
	// set, with the kernels of all problems in order; the time of a kernel that the model rejects is 0. It may be called
	// from several goroutines.
	EstimateWith(ctx context.Context, values []map[string]float64, sample []Kernels) ([][]unit.Seconds, error)
}

// Kernels are kernels of one problem.
type Kernels struct {
	Problem gemm.Problem
	Configs []gemm.Config
}

// EstimateEach is EstimateWith for a model that can be made with other values.
func EstimateEach(
	ctx context.Context, model Model, values []map[string]float64, sample []Kernels,
) ([][]unit.Seconds, error) {
	rows := make([][]unit.Seconds, len(values))
	kernels := 0
	for _, k := range sample {
		kernels += len(k.Configs)
	}
	var estimates []arch.Estimate
	for i, v := range values {
		rows[i] = make([]unit.Seconds, 0, kernels)
		m, err := model(v)
		if err != nil {
			return nil, err
		}
		clock := m.Describe().Clock
		for _, k := range sample {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			estimates = append(estimates[:0], make([]arch.Estimate, len(k.Configs))...)
			if err := m.Estimate(ctx, estimates, k.Problem, k.Configs); err != nil {
				return nil, err
			}
			for _, e := range estimates {
				rows[i] = append(rows[i], e.Cycles.At(clock)) // 0 of a rejected one
			}
		}
	}
	return rows, nil
}

// estimate is EstimateWith for a model as it is.
func estimate(ctx context.Context, m arch.Architecture, sample []Kernels) ([][]unit.Seconds, error) {
	as := func(map[string]float64) (arch.Architecture, error) { return m, nil }
	return EstimateEach(ctx, as, make([]map[string]float64, 1), sample)
}

// Use gives constants the values that a device file has for a model. The file may have none, or values for another
// model. A value that the model cannot have is an error of kind diag.Input.
func Use(constants []arch.Constant, sheet *hw.Sheet, model string) error {
	if sheet == nil || sheet.Fitted == nil || sheet.Fitted.Model != model {
		return nil
	}
	f := sheet.Fitted
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		v := f.Values[name]
		i := slices.IndexFunc(constants, func(c arch.Constant) bool { return c.Name == name && c.Fits() })
		if i < 0 {
			return diag.Inputf("fitted: the %s model of %s has no quantity %q", model, sheet.Arch, name).
				At("%s", sheet.File).Do("fit the model again")
		}
		c := &constants[i]
		if v.Unit != c.Unit || v.Value < c.Low || v.Value > c.High {
			return diag.Inputf("fitted: %s is %v %s, and the model takes %v to %v %s", name, v.Value, v.Unit, c.Low, c.High,
				c.Unit).At("%s", sheet.File).Do("fit the model again")
		}
		c.Value, c.Source = v.Value, fmt.Sprintf("%s; over folds %.4g–%.4g", f.Source, v.Low, v.High)
	}
	return nil
}
