package reference

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// The public sources that the schema names.
const (
	portReport = "tritonBLAS NVIDIA port report (2026-02-12)"
	ptxISA     = "PTX ISA, mma.sync.aligned.m16n8k16"

	algorithm3 = portReport + " §3.1, Algorithm 3"
	algorithm4 = portReport + " §3.2, Algorithm 4"
	algorithm5 = portReport + " §3.3, Algorithm 5"
	algorithm7 = portReport + " §3.4, Algorithm 7"
	algorithm8 = portReport + " §3.6, Algorithm 8"
	totals     = portReport + " §3.6-3.7"

	// The empirical constants.
	constantsOf = portReport + " §3.6, C.4; AMD Origami"
	fitted      = constantsOf + ", fitted on MI300X"
)

// constants are the model's empirical numbers, as explain shows them and formulas use them.
var constants = []arch.Constant{
	{Name: "mma_m", Value: gpu.MMAM, Unit: "1", Doc: "rows of the matrix instruction", Source: ptxISA},
	{Name: "mma_n", Value: gpu.MMAN, Unit: "1", Doc: "columns of the matrix instruction", Source: ptxISA},
	{Name: "mma_k", Value: gpu.MMAK, Unit: "1", Doc: "depth of the matrix instruction", Source: ptxISA},
	{
		Name: "line_bytes", Value: lineBytes, Unit: "B",
		Doc: "loads are rounded to cache lines; one line is the least", Source: portReport + " §3.4, C.4; AMD Origami",
	},
	{
		Name: "l2_hit_cap", Value: l2HitCap, Unit: "1",
		Doc: "hit rate when one K step of the grid exceeds the L2", Source: portReport + " §3.3, C.4",
	},
	{
		Name: "occupancy", Value: 1, Unit: "1",
		Doc: "CTAs per SM that the discount assumes", Source: portReport + " Appendix A",
	},
	{
		Name: "occupancy_discount", Value: occupancyDiscount, Unit: "1",
		Doc: "on prologue and epilogue, to the power of the occupancy", Source: fitted,
	},
	{
		Name: "prologue_factor", Value: prologueFactor, Unit: "1",
		Doc: "memory latencies that a pipeline fill takes", Source: fitted,
	},
	{Name: "epilogue_count", Value: epilogueCount, Unit: "1", Doc: "times the epilogue counts", Source: fitted},
	{Name: "loop_overhead_cycles", Value: loopOverhead, Unit: "cycles", Doc: "per K iteration", Source: fitted},
	{
		Name: "k_padding_cycles", Value: kPaddingPenalty, Unit: "cycles",
		Doc: "times the share of K in a partial step", Source: fitted,
	},
	{Name: "setup_cycles", Value: setupCycles, Unit: "cycles", Doc: "launch of a CTA", Source: constantsOf},
}

// commonNames gives the columns that other models have under other names.
var commonNames = map[string]string{
	"grid_m":           arch.CommonTilesM,
	"grid_n":           arch.CommonTilesN,
	"active_sms":       arch.CommonActiveUnits,
	"num_waves":        arch.CommonWaves,
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

// terms is the public part of columns.
var terms = func() []arch.Term {
	out := make([]arch.Term, len(columns))
	for i, c := range columns {
		out[i] = c.Term
		out[i].Common = commonNames[c.Name]
	}
	return out
}()
