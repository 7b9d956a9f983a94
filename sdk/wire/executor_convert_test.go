package wire

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestExecutorAnswersSurvive(t *testing.T) {
	x := must.Get(fake.ExecutorProvider{}.Open(t.Context()))(t)
	d, _ := x.Devices(t.Context())
	survives(t, d, nil)
	e, _ := x.Environment(t.Context(), 1)
	survives(t, e, nil)
	survives(t, exec.Environment{}, nil)
	survives(t, compileQuestion{1, problem, config}, nil)
	survives(t, measureQuestion{7, exec.MeasureOptions{WarmL2: true, Input: "normal", Warmup: 2}, maxRuns}, nil)
	for _, most := range []float64{0, 1e-9, math.Inf(1)} {
		survives(t, exec.Numerics{MaxError: most, Tolerance: 0.01, Checked: 5, Wrong: 5, OutOfBounds: 1 << 60}, nil)
	}
}
