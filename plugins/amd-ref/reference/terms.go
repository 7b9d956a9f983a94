package reference

import "github.com/origami-gemm/origami/core/arch"

// Sources of the equations and of their constants.
const (
	fromGEMM     = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), gemm.cpp"
	fromStreamK  = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), streamk.cpp"
	fromHardware = "AMD Origami (ROCm rocm-libraries, shared/origami, January 2026), hardware.hpp"
	fromProblem  = "the problem"
	fromOption   = "the option of that name"
)

// term is a column of the schema, with the function that reads its value from an evaluation.
type term struct {
	arch.Term
	value func(e *evaluation) float64
}

func column(name, unit, source, formula, doc string, value func(*evaluation) float64) term {
	return term{arch.Term{Name: name, Unit: unit, Formula: formula, Doc: doc, Source: source}, value}
}

// step is a term that K steps wait for.
func step(name, formula, doc string, value func(*evaluation) float64) term {
	t := column(name, "cycles", fromGEMM, formula, doc, value)
	t.Kind = arch.KindStep
	return t
}

// share turns a part of one tile's latency into a part of the total.
func share(name, formula, doc string, value func(*evaluation) float64) term {
	t := column(name, "cycles", fromGEMM,
		"("+formula+")*timesteps*heuristic_factor",
		doc+", over all timesteps",
		func(e *evaluation) float64 { return value(e) * f(e.timesteps) * e.factor })
	t.Kind = arch.KindShare
	return t
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// commonNames maps terms to the names that all models share.
var commonNames = map[string]string{
	"active_cus":          arch.CommonActiveUnits,
	"h_mem1":              arch.CommonL2Hit,
	"mall_hit":            arch.CommonMALLHit,
	"load_bytes_per_cu":   arch.CommonLoadPerUnit,
	"hbm_traffic":         arch.CommonDRAMTraffic,
	"bw_limited":          arch.CommonDRAMFraction,
	"utilization_penalty": arch.CommonPenalty,
	"l_compute":           arch.CommonComputeStep,
	"l_mem1":              arch.CommonL2Step,
	"l_mem2":              arch.CommonMALLStep,
	"l_mem3":              arch.CommonDRAMStep,
	"l_mem":               arch.CommonMemoryStep,
	"l_tile_single":       arch.CommonKStep,
	"tile_latency":        arch.CommonWave,
	"total_latency":       arch.CommonTotal,
}
