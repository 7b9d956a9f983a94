// Package wgmma is the family of kernels that gemmgen generates for Hopper: wgmma fed by copies of tensor tiles (TMA),
// with CTAs that stay resident.
package wgmma

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Family implements kernel.Family. It has the name and the axes of the generator's.
type Family struct{ generator.Family }

// Whether there is a split of K decides how C is stored.
var traits = kernel.Traits{Resident: true, OneFrom: 2, SpaceOf: spaceOf}

// Traits implements kernel.Family.
func (Family) Traits() *kernel.Traits { return &traits }

// Types implements kernel.Family.
func (Family) Types() []gemm.Types { return gemm.Plain(gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2) }

// splits are the values of split_k in the candidate list, splitsTurned the values for tiles whose rows 64 does not
// divide.
var splits, splitsTurned = []int{1, 2, 3, 4, 6, 8, 12, 16}, []int{1, 2, 4, 8}

// Space implements kernel.Family: every kernel that gemmgen can generate, but for tiles that CTAs share along K and
// for clusters of other shapes. They are considered where a list or --space names them: on the 112 sizes of
// h200-wgmma/clusters-h100, picks among more shapes were not faster.
func (f Family) Space() arch.Space {
	s := f.Family.Space()
	s.SplitK = splits
	s.Axes = []arch.AxisValues{{Name: generator.AxisCluster, Values: []string{"1", "2", "2x2"}}}
	return s
}

// spaceOf is the space of a block_m: where it is no multiple of 64, block_n has to be, and K has fewer splits. Other
// tiles have the numbers of warps among which their rows can be divided.
func spaceOf(blockM int) arch.Space {
	s := Family{}.Space()
	if generator.Turned(gemm.Config{BlockM: blockM}) {
		s.BlockN = slices.DeleteFunc(slices.Clone(s.BlockN), func(n int) bool { return n%64 != 0 })
		s.SplitK = splitsTurned
		return s
	}
	s.NumWarps = slices.DeleteFunc(slices.Clone(s.NumWarps), func(w int) bool {
		return blockM%(64*generator.Consumers(w)) != 0
	})
	return s
}

// spec is the specification for the generator. The widths are those of Width: a matrix that no tensor map describes has
// none.
func spec(o kernel.Operands, c gemm.Config) generator.Spec {
	o = o.Widest()
	e := o.Epilogue()
	return generator.Spec{
		DType: o.DType, Out: o.Out, AMajor: o.AMajor, BMajor: o.BMajor,
		Addressable: min(o.WidthA, o.WidthB) >= gemm.MaxVector,
		TilesC:      generator.Tiles(o.WidthC, o.Out, e, c),
		PairsC:      generator.Pairs(o.WidthC, o.Out, c),
		Epilogue:    e,
		Config:      c,
	}
}

// Check implements kernel.Family.
func (Family) Check(d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources) (arch.Reason, string) {
	s, limits := spec(o, c), kernel.Limits(d)
	limits.Target.Suffix = target.ArchFeatures // kernels run on the architecture that they were assembled for alone
	if reason, detail := s.Check(limits); reason != "" {
		return reason, detail
	}
	return kernel.CheckShared(d, need.SharedMemory)
}

// Resources implements kernel.Family. It has no spill term: gemmgen does not build kernels that could spill.
func (Family) Resources(d *gpu.Device, o kernel.Operands, c gemm.Config, _ bool) kernel.Resources {
	s := spec(o, c)
	r, reason, _ := s.Resources()
	if reason != "" {
		return kernel.Resources{} // not a kernel of the family
	}
	return kernel.Resources{
		Registers: min(r.Registers, d.RegisterLimit(r.Threads)), SharedMemory: r.SharedMemory,
	}
}

// Width implements kernel.Family. That of C is the widest if the copy engine can store it. Those of A and B are half
// the widest if no tensor map describes one of them.
func (Family) Width(p gemm.Problem, o gemm.Operand) int {
	call := gemmgen.NewCall(p)
	a, b, c := call.Vectors(p.Output())
	if _, _, rows := call.Alignment(p.Output()); rows < gemm.MaxVector {
		c = min(c, gemm.MaxVector/2)
	}
	if min(a, b) < gemm.MaxVector {
		a, b = gemm.MaxVector/2, gemm.MaxVector/2
	}
	return [...]int{gemm.A: a, gemm.B: b, gemm.C: c}[o]
}

// Copies implements kernel.Family: the copy engine does them.
func (Family) Copies(_ *gpu.Device, _ kernel.Operands, _ gemm.Config) kernel.Copies {
	return kernel.Copies{CountA: 1, CountB: 1, BytesA: gemm.MaxVector, BytesB: gemm.MaxVector, AsyncA: true, AsyncB: true}
}

// Reduction implements kernel.Family. The warps write their sums, and the last to arrive adds them up.
func (Family) Reduction(p gemm.Problem, c gemm.Config) kernel.Reduction {
	partials, _ := gemmgen.Workspace(p, c)
	return kernel.Reduction{Workspace: partials}
}

// Sums implements kernel.Family.
func (f Family) Sums(*gpu.SM) arch.SumOrder { return f.Family.Sums() }

// Loop implements kernel.Family. While a warpgroup adds the products of its last tile of a block to its sums, an
// addition in each thread for each two columns, the tensor cores are taken to wait. Other warpgroups may have them.
// Where the tensor cores are the limit, kernels that add so are as far from their predictions as those that do not;
// where reading is, they take 1.05 times as long and the model has no difference (experiments/fp8-on-h100).
func (Family) Loop(_ *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	store := o.Out.Bytes()
	switch s := spec(o, c); {
	case s.TilesC:
		store = gemm.MaxVector
	case s.PairsC:
		store *= 2
	}
	alongM, alongN := generator.Cluster(c)
	wait := 0.
	if generator.Promotes(c) {
		wait = float64(generator.Columns(c)) / 2
	}
	return kernel.Loop{
		Latency:    wait,
		StoreBytes: store,
		WGMMA:      true, Columns: generator.Columns(c), Multiplies: o.DType, WarpsM: 1, WarpsN: 1, WarpsK: 1,
		Sharers: alongM, SharersA: alongN, Streams: generator.Streams(c), Apart: spec(o, c).Apart(),
	}
}

// Overhead implements kernel.Family.
func (Family) Overhead() kernel.Overhead {
	const dataSet = "h200-wgmma"
	const fit = "fitted for picks on the sets wgmma-fit of h200-wgmma, of which one is an H100's, with the other " +
		"quantities as they are, 2026-11-28"
	return kernel.Overhead{
		Slots: model.Bounded("wgmma_loop_slots", "1", 5.904886, 1, 20, "loop_slots of the family wgmma").
			Over(2.496, 15.56).From(dataSet, fit),
		Latency: model.Bounded("wgmma_step_latency", "cycles", 136.3996, 10, 300, "step_latency of the family wgmma").
			Over(111.8, 141.4).From(dataSet, fit),
	}
}
