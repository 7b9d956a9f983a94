package fake

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
)

var (
	_ calibrate.Planner = Provider{}
	_ ladder.Provider   = Provider{}
	_ fit.Tunable       = (*model)(nil)
)

// EstimateWith implements fit.Tunable: every time depends on the constant e.
func (m *model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	return fit.EstimateEach(ctx, func(v map[string]float64) (arch.Architecture, error) {
		moved := *m
		if e, ok := v["e"]; ok && e != math.E {
			moved.seed = mix(m.seed, math.Float64bits(e))
		}
		return &moved, nil
	}, values, sample)
}

// Calibration implements calibrate.Planner. The number is the attribute "units" times the value of its probe.
func (p Provider) Calibration(_ context.Context, d exec.Device) (*calibrate.Plan, error) {
	if d.Attributes["units"] == 0 {
		return nil, diag.Inputf("%s has no units", d.Name).Do("name another GPU")
	}
	plan := &calibrate.Plan{}
	for _, name := range []string{"one", "two"} {
		plan.Probes = append(plan.Probes, calibrate.Probe{
			Name: name, Unit: "B/s", Runs: 3, Work: 1.0 / 3, Value: "work/seconds", Clock: "counter_0/seconds", Limit: 1e12,
			Program: exec.Program{
				Text: "text of " + name, Entry: name, Grid: 1, Threads: 32, SharedMemory: 64, Launches: 1, Warmup: 2, Counters: 1,
				Arguments: []exec.Argument{{Kind: exec.CountersArgument}, {Kind: exec.Word32, Value: 7},
					{Kind: exec.BufferArgument, Bytes: 64, DType: gemm.FP16}},
			},
		})
	}
	plan.Numbers = func(_ context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
		n, ok := v.NewNumber("bandwidth", d.Attributes["units"]*v["one"].Value, "B/s", "as measured", "one")
		if n.Parameter = true; !ok {
			return nil, nil, nil
		}
		return []calibrate.Number{n}, []hw.Atom{{Type: "fp16", M: 16, N: 8, K: 4, Cycles: v["one"].Value,
			Source: n.Source, Method: n.Method, Date: n.Date}}, nil
	}
	return plan, nil
}

// Ladder implements ladder.Provider.
func (p Provider) Ladder(context.Context) (*ladder.Ladder, error) {
	config := gemm.Config{BlockM: 16, BlockN: 16, BlockK: 16, NumWarps: 1, NumStages: 1, SplitK: 1, Kernel: "one"}
	return &ladder.Ladder{
		Family: "one", Types: gemm.Types{In: gemm.FP16, Out: gemm.FP16}, Device: p.name() + "@small",
		Rungs: []ladder.Rung{{Name: "naive", Doc: "the first", Config: config, Label: "end to end",
			Operands: gemm.FP16, Instead: "naive"}},
		Claims: []ladder.Claim{{Rung: "naive", Text: "is fast", Over: "library", Least: 1.1,
			LostIf: "over_term_1 < term_1", Lost: "the library waits less"},
			{Rung: "naive", Text: "waits for DRAM", Cost: "DRAM"},
			{Rung: "naive", Text: "does 1 FLOP per byte", Value: "term_1 / 2", Is: 1, Unit: "FLOP/B"}},
		Others: []ladder.Rung{{Name: "small", Doc: "smaller tiles", Config: config}},
		Costs:  []ladder.Cost{{Name: "DRAM", Term: "term_1", Whole: true}},
		Published: []ladder.Time{
			{Device: p.name() + "@small", Size: 64, Rung: "naive", Stage: "1", Config: config, Rate: 1e9, Source: "nowhere"},
			{Device: p.name() + "@small", Size: 64, Rung: ladder.Library, Rate: 2e9, Source: "nowhere"},
		},
	}, nil
}
