// Package sgemm is the family of kernels of the SGEMM ladders that gemmgen generates: FMA instructions in fp32.
package sgemm

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Family implements kernel.Family.
type Family struct{}

// Name implements kernel.Family.
func (Family) Name() string { return generator.Name }

// Axes implements kernel.Family.
func (Family) Axes() []gemm.Axis { return generator.Family{}.Axes() }

// Types implements kernel.Family.
func (Family) Types() []gemm.Types { return generator.Types() }

// Groups implements kernel.Family.
func (Family) Groups() bool { return false }

// Space implements kernel.Family.
func (Family) Space() arch.Space { return generator.Family{}.Space() }

// Spec returns the specification that the generator has for a configuration.
func Spec(o kernel.Operands, c gemm.Config) generator.Spec {
	width := func(w int) int {
		if w == 0 {
			return gemm.MaxVector
		}
		return w
	}
	return generator.Spec{
		DType: o.DType, AMajor: o.AMajor, BMajor: o.BMajor,
		AlignA: width(o.WidthA), AlignB: width(o.WidthB), AlignC: width(o.WidthC), Config: c,
	}
}

// Check implements kernel.Family.
func (Family) Check(d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources) (arch.Reason, string) {
	s := Spec(o, c)
	if _, reason, detail := s.Check(gemmgen.Limits{
		Target:             d.SM.Target,
		RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, RegisterGranule: d.SM.RegisterGranule,
		SharedMemory: d.SharedMemory,
	}); reason != "" {
		return reason, detail
	}
	return kernel.CheckShared(d, need.SharedMemory)
}

// Resources implements kernel.Family. It has no spill term: gemmgen does not build kernels that could spill.
func (Family) Resources(d *gpu.Device, o kernel.Operands, c gemm.Config, _ bool) kernel.Resources {
	s := Spec(o, c)
	r, reason, _ := s.Resources()
	if reason != "" {
		return kernel.Resources{} // not a kernel of the family
	}
	return kernel.Resources{Registers: min(r.Registers, d.RegisterLimit(r.Threads)), SharedMemory: r.SharedMemory}
}

// Width implements kernel.Family.
func (Family) Width(p gemm.Problem, o gemm.Operand) int {
	s := generator.SpecFor(gemmgen.NewCall(p), gemm.Config{})
	return [...]int{gemm.A: s.AlignA, gemm.B: s.AlignB, gemm.C: s.AlignC}[o]
}

// Copies implements kernel.Family. It is zero if there is no such kernel.
func (Family) Copies(_ *gpu.Device, o kernel.Operands, c gemm.Config) (k kernel.Copies) {
	s := Spec(o, c)
	t, _, _ := s.Turn()
	for i := range t.Accesses {
		a := &t.Accesses[i]
		if a.Instruction != generator.LoadGlobal && a.Instruction != generator.CopyAsync {
			continue
		}
		async := a.Instruction == generator.CopyAsync
		if a.Operand == gemm.A {
			k.CountA, k.BytesA, k.AsyncA = a.Count, a.Bytes, async
		} else {
			k.CountB, k.BytesB, k.AsyncB = a.Count, a.Bytes, async
		}
	}
	return k
}

// Reduction implements kernel.Family: the family does not split K.
func (Family) Reduction(gemm.Problem, gemm.Config) kernel.Reduction { return kernel.Reduction{} }

// Loop implements kernel.Family.
func (Family) Loop(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	s := Spec(o, c)
	r, _, _ := s.Resources()
	loop := kernel.Loop{
		Multiplies: d.SM.Multiplies(gemm.FP32), WarpsM: 1, WarpsN: 1, WarpsK: 1, RepeatM: true, RepeatN: true,
	}
	if r.WarpM > 0 {
		loop.WarpsM, loop.WarpsN = max(1, c.BlockM/r.WarpM), max(1, c.BlockN/r.WarpN)
	}
	return loop
}

// Overhead implements kernel.Family. The values are those of the family mma, whose loop is built alike.
func (Family) Overhead() kernel.Overhead {
	const assumed = "assumed: the value of the family mma; no times of this family are recorded yet"
	return kernel.Overhead{
		Slots: kernel.Quantity{
			Name: "sgemm_loop_slots", Value: 55.22, Unit: "1", Low: 10, High: 300,
			Doc: "loop_slots of the family sgemm", Source: assumed,
		},
		Latency: kernel.Quantity{
			Name: "sgemm_step_latency", Value: 131.9, Unit: "cycles", Low: 20, High: 600,
			Doc: "step_latency of the family sgemm", Source: assumed,
		},
	}
}
