// Package mma is the family of kernels that gemmgen generates: mma.sync fed by a pipeline of asynchronous copies.
package mma

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Family implements kernel.Family. It has the name and the axes of the generator's.
type Family struct{ generator.Family }

var traits = kernel.Traits{Nests: true, OneFrom: 1}

// Traits implements kernel.Family.
func (Family) Traits() *kernel.Traits { return &traits }

// Types implements kernel.Family.
func (Family) Types() []gemm.Types { return gemm.Plain(generator.DTypes()...) }

// splits are the values of split_k in the candidate list.
var splits = []int{1, 2, 4, 8, 16, 32}

// Sums implements kernel.Family.
func (f Family) Sums(*gpu.SM) arch.SumOrder { return f.Family.Sums() }

// Space implements kernel.Family: every kernel that gemmgen can generate.
func (f Family) Space() arch.Space {
	s := f.Family.Space()
	s.SplitK = splits
	return s
}

// spec is the specification for the generator.
func spec(o kernel.Operands, c gemm.Config) generator.Spec {
	o = o.Widest()
	return generator.Spec{
		DType: o.DType, Out: o.Out, AMajor: o.AMajor, BMajor: o.BMajor,
		AlignA: o.WidthA, AlignB: o.WidthB, AlignC: 16, Epilogue: o.Epilogue(), Config: c,
	}
}

// check asks the generator whether it can build the kernel and whether it fits the device.
func check(d *gpu.Device, o kernel.Operands, c gemm.Config) (generator.Resources, arch.Reason, string) {
	s := spec(o, c)
	return s.Check(kernel.Limits(d))
}

// Check implements kernel.Family.
func (Family) Check(d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources) (arch.Reason, string) {
	if _, reason, detail := check(d, o, c); reason != "" {
		return reason, detail
	}
	return kernel.CheckShared(d, need.SharedMemory)
}

// registersPerFragment is above one because of addresses in shared memory.
const registersPerFragment = 1.1

// Resources implements kernel.Family. It has no spill term: gemmgen does not build kernels that could spill.
func (Family) Resources(d *gpu.Device, o kernel.Operands, c gemm.Config, _ bool) kernel.Resources {
	k, _, _ := check(d, o, c)
	r := kernel.Resources{SharedMemory: k.SharedMemory}
	if k.Threads == 0 {
		return r // not a kernel of the family
	}
	need := kernel.RegistersFixed + float64(k.Accumulators) + float64(registersPerFragment*float64(k.Fragments)) +
		float64(kernel.RegistersPerCopy*float64(k.TurnA+k.TurnB))
	r.Registers = min(int(math.Round(need)), d.RegisterLimit(k.Threads))
	return r
}

// Width implements kernel.Family: the width of copies and stores in the kernel that is generated for the problem.
func (Family) Width(p gemm.Problem, o gemm.Operand) int {
	s := generator.SpecFor(gemmgen.NewCall(p), p.Output(), gemm.Config{})
	return [...]int{gemm.A: s.AlignA, gemm.B: s.AlignB, gemm.C: s.AlignC}[o]
}

// Copies implements kernel.Family. It is zero if there is no such kernel.
func (Family) Copies(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Copies {
	s := spec(o, c)
	k, reason, _ := s.Resources()
	if reason != "" {
		return kernel.Copies{}
	}
	return kernel.Copies{
		CountA: k.CopiesA, CountB: k.CopiesB, BytesA: s.AlignA, BytesB: s.AlignB,
		AsyncA: s.AlignA >= d.SM.CopyMin, AsyncB: s.AlignB >= d.SM.CopyMin,
	}
}

// Reduction implements kernel.Family. The CTAs write whole tiles, and the last to arrive adds them up.
func (Family) Reduction(p gemm.Problem, c gemm.Config) kernel.Reduction {
	partials, _ := gemmgen.Workspace(p, c)
	return kernel.Reduction{Workspace: partials}
}

// Loop implements kernel.Family. A row of A, or a column of B, outside the matrix repeats the last one, or the last
// copy of a line if the operand is not contiguous along K.
func (Family) Loop(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	k, _, _ := check(d, o, c)
	s := spec(o, c)
	loop := kernel.Loop{
		Multiplies: d.SM.Multiplies(o.DType), Conversions: s.Conversions(d.SM.Target),
		WarpsM: max(k.WarpsM, 1), WarpsN: max(k.WarpsN, 1), WarpsK: max(k.WarpsK, 1),
		RepeatM: true, RepeatN: true,
	}
	if s.AlignA < d.SM.CopyMin {
		loop.LoadWaits += k.CopiesA / max(k.TurnA, 1)
	}
	if s.AlignB < d.SM.CopyMin {
		loop.LoadWaits += k.CopiesB / max(k.TurnB, 1)
	}
	return loop
}

// Overhead implements kernel.Family.
func (Family) Overhead() kernel.Overhead {
	const dataSets = "h200-mma, sweeps"
	const fit = "fitted on h200-mma and the sets mma-fit of sweeps (23,979 times on 158 problems) with the other " +
		"quantities as they are, 2026-11-28"
	return kernel.Overhead{
		Slots: model.Bounded("mma_loop_slots", "1", 40.19, 10, 300, "loop_slots of the family mma").
			Over(39.2, 42.3).From(dataSets, fit),
		Latency: model.Bounded("mma_step_latency", "cycles", 142.8, 20, 600, "step_latency of the family mma").
			Over(118, 153).From(dataSets, fit),
	}
}
