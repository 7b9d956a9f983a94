package amdref

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
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

// termSchema returns the schema for a grid mode.
func termSchema(mode gridMode) []arch.Term {
	schema := make([]arch.Term, len(terms))
	for i := range terms {
		schema[i] = terms[i].Term
		schema[i].Common = commonNames[schema[i].Name]
		if schema[i].Formula == gridFormula && mode != dataParallel {
			schema[i].Formula = "rule: grid=" + gridModes[mode] + ", see docs/model-amd-reference.md;" +
				" with split_k above 1 " + gridFormula
		}
	}
	return schema
}

// Terms implements arch.Architecture.
func (a *architecture) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	q, err := a.problem(p)
	if err != nil {
		return err
	}
	if len(dst) != len(cfgs)*len(terms) {
		return fmt.Errorf("amd-ref: Terms of %d configurations into %d values", len(cfgs), len(dst))
	}
	e := evaluation{problem: q}
	for i := range cfgs {
		if err := check(&cfgs[i]); err != nil {
			return err
		}
		e.placeConfig(&cfgs[i])
		e.score(uint64(cfgs[i].SplitK))
		row := dst[i*len(terms) : (i+1)*len(terms)]
		for j := range terms {
			row[j] = terms[j].value(&e)
		}
	}
	return nil
}
