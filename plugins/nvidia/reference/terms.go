package reference

import (
	"context"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// column is a term, with the function that reads its value from a breakdown.
type column struct {
	arch.Term
	value func(*breakdown) float64
}

// commonNames maps columns to the names that all models share.
var commonNames = map[string]string{
	"grid_m":           arch.CommonTilesM,
	"grid_n":           arch.CommonTilesN,
	"active_sms":       arch.CommonActiveUnits,
	"l2_hit":           arch.CommonL2Hit,
	"per_sm_load":      arch.CommonLoadPerUnit,
	"total_load":       arch.CommonL2Traffic,
	"load_dram":        arch.CommonDRAMTraffic,
	"dram_bw_fraction": arch.CommonDRAMFraction,
	"penalty":          arch.CommonPenalty,
	"l_compute":        arch.CommonComputeStep,
	"l_l2":             arch.CommonL2Step,
	"l_dram":           arch.CommonDRAMStep,
	"l_mem":            arch.CommonMemoryStep,
	"l_steady":         arch.CommonKStep,
	"l_tile":           arch.CommonWave,
	"l_total":          arch.CommonTotal,
}

// terms is the schema without the functions.
var terms = func() []arch.Term {
	out := make([]arch.Term, len(columns))
	for i, c := range columns {
		out[i] = c.Term
		out[i].Common = commonNames[c.Name]
	}
	return out
}()

// breakdown has one field per intermediate value.
type breakdown struct {
	gridM, gridN, tiles, active, waves int
	mma                                int
	mmaCycles, compute                 float64
	groupM                             int
	mem                                memory
	uncachedA, uncachedB, loadA, loadB int
	utilization, penalty               float64
	output, iterations                 int
	prologue, epilogue, steady         float64
	padding, tile, total               float64
}

func (r *Model) breakdown(p gemm.Problem, c gemm.Config) breakdown {
	var b breakdown
	b.gridM, b.gridN = cdiv(p.M, c.BlockM), cdiv(p.N, c.BlockN)
	b.tiles = b.gridM * b.gridN * p.Batch
	b.active = min(b.tiles, r.numSMs)
	b.waves = cdiv(b.tiles, r.numSMs)

	b.mma = cdiv(c.BlockM, gpu.MMAM) * cdiv(c.BlockN, gpu.MMAN) * cdiv(c.BlockK, gpu.MMAK)
	b.mmaCycles = r.mmaCycles
	b.compute = r.mmaCycles * float64(b.mma)

	b.groupM = r.groupM
	b.mem = r.memory(p, c, b.active)
	b.uncachedA = b.mem.tileM * c.BlockM * c.BlockK * kernel.ElementBytes
	b.uncachedB = b.mem.tileN * c.BlockK * c.BlockN * kernel.ElementBytes
	b.loadA, b.loadB = operandLoads(&c)

	steps := cdiv(p.K, c.BlockK)
	b.utilization = float64(p.M*p.N*p.K) / float64(b.gridM*c.BlockM*b.gridN*c.BlockN*steps*c.BlockK)
	b.penalty = 1 / b.utilization

	b.prologue = float64(float64(prologueFactor*b.mem.latency) * b.penalty * occupancyDiscount)
	b.output = b.active * c.BlockM * c.BlockN * kernel.ElementBytes
	b.epilogue = float64((float64(b.output)/b.mem.dramBandwidth + float64(b.compute*b.penalty)) * occupancyDiscount)
	b.iterations = max(steps-1, 1)
	if rest := p.K % c.BlockK; rest != 0 {
		b.padding = float64(float64(rest) / float64(p.K) * kPaddingPenalty)
	}
	b.steady = max(b.compute, b.mem.latency) * b.penalty
	b.tile = float64(b.steady*float64(b.iterations)) + b.prologue + float64(b.epilogue*epilogueCount) + setupCycles +
		float64(loopOverhead*float64(b.iterations)) + b.padding
	b.total = b.tile * float64(b.waves)
	return b
}

// Terms implements arch.Architecture.
func (r *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := fits(len(dst), len(cfgs)*len(columns)); err != nil {
		return err
	}
	for i := range cfgs {
		if _, err := r.family(&cfgs[i]); err != nil {
			return err
		}
		if err := r.supports(&p, cfgs[i].Kernel); err != nil {
			return err
		}
		b := r.breakdown(p, cfgs[i])
		for j := range columns {
			dst[i*len(columns)+j] = columns[j].value(&b)
		}
	}
	return nil
}
