package pipelined

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// A device whose power limit is unknown has none, and explain can still put a value in for tdp.
func TestUnknownPowerLimit(t *testing.T) {
	p := gemm.New(16384, 16384, 16384)
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, SplitK: 1, Kernel: "triton"}
	power := slices.IndexFunc(terms.Terms, func(t model.Term) bool { return t.Name == "power" })
	for _, known := range []bool{true, false} {
		g := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
		if !known {
			g.Params = slices.DeleteFunc(slices.Clone(g.Params), func(p hw.Param) bool { return p.Name == "tdp" })
		}
		m := newModel(g, []*family{{Family: triton.Family{}}}, nil, nil)
		row := make([]float64, len(terms.Terms))
		must.Do(t, m.Terms(t.Context(), row, p, []gemm.Config{c}))
		shown := slices.ContainsFunc(m.Describe().Constants, func(c arch.Constant) bool { return c.Name == "tdp" })
		if (row[power] > 0) != known || !(row[len(row)-1] > 0) || shown == known {
			t.Errorf("tdp known %v: power %v, total %v, a constant %v", known, row[power], row[len(row)-1], shown)
		}
	}
}
