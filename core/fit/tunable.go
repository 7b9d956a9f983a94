package fit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

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
