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

// Family implements kernel.Family. It has the name, the axes and the space of the generator's.
type Family struct{ generator.Family }

// Types implements kernel.Family.
func (Family) Types() []gemm.Types { return generator.Types() }

// Traits implements kernel.Family.
func (Family) Traits() *kernel.Traits { return &kernel.Traits{} }

// Spec returns the specification that the generator has for a configuration.
func Spec(o kernel.Operands, c gemm.Config) generator.Spec {
	o = o.Widest()
	return generator.Spec{
		DType: o.DType, AMajor: o.AMajor, BMajor: o.BMajor,
		AlignA: o.WidthA, AlignB: o.WidthB, AlignC: o.WidthC, Config: c,
	}
}

// Check implements kernel.Family.
func (Family) Check(d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources) (arch.Reason, string) {
	s := Spec(o, c)
	if _, reason, detail := s.Check(kernel.Limits(d)); reason != "" {
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
