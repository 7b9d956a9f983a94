// Package triton has the kernel families of the GEMM in Triton's tutorial "Matrix Multiplication": a CTA computes a
// block_m × block_n tile of the output, loads run num_stages − 1 blocks ahead, and group_m orders the launch. With
// split_k, that many CTAs share a tile of Family: they take turns along K, and a second kernel adds up their sums. A
// CTA of Persistent computes one tile after another.
package triton

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Family implements kernel.Family.
type Family struct{ tiles }

// tiles is what the families have in common: how a tile is computed.
type tiles struct{}

// Name implements kernel.Family.
func (Family) Name() string { return "triton" }

// The tiles of the candidate list are tritonBLAS's 5 × 5 × 6.
var (
	blocksMN = []int{16, 32, 64, 128, 256}
	blocksK  = []int{16, 32, 64, 128, 256, 512}
)

// Axes implements kernel.Family.
func (tiles) Axes() []gemm.Axis { return nil }

// Types implements kernel.Family: what tl.dot multiplies.
func (tiles) Types() []gemm.Types {
	return gemm.Plain(gemm.FP16, gemm.BF16, gemm.FP32, gemm.TF32, gemm.FP8, gemm.FP8E5M2, gemm.INT8)
}

var traits = kernel.Traits{Pastes: []string{"triton", "inductor"}, Groups: true, OneFrom: 1}

// Traits implements kernel.Family.
func (Family) Traits() *kernel.Traits { return &traits }

// splits are the values of split_k in the candidate list.
var splits = []int{1, 2, 4, 8, 16, 32}

// Space implements kernel.Family. It is the space of the sweep of the data set h200-triton.
func (f Family) Space() arch.Space {
	return arch.Space{
		Kernel: f.Name(), BlockM: blocksMN, BlockN: blocksMN, BlockK: blocksK,
		NumWarps: []int{4, 8}, NumStages: []int{2, 3, 4, 5}, SplitK: splits,
	}
}

// Check implements kernel.Family.
func (tiles) Check(d *gpu.Device, o kernel.Operands, c gemm.Config, need kernel.Resources) (arch.Reason, string) {
	if reason, detail := checkShape(d.SM, o.DType, &c); reason != "" {
		return reason, detail
	}
	if columns := tensorColumns(d.SM, o.DType, &c); columns > d.SM.TensorMemory {
		return arch.ReasonModelRule, fmt.Sprintf("the tile's sums take %d columns of tensor memory, and an SM has %d",
			columns, d.SM.TensorMemory)
	}
	if threads := 32 * c.NumWarps; d.RegisterLimit(threads) < d.SM.RegisterGranule {
		return arch.ReasonRegisters, fmt.Sprintf("%d registers of an SM are not %d for each of %d threads",
			d.RegisterFile, d.SM.RegisterGranule, threads)
	}
	return kernel.CheckShared(d, need.SharedMemory)
}

// leastBlock is the smallest extent of an operand of tl.dot in any dimension, and leastK8 that along K for 8-bit types
// (Triton's documentation, tl.dot).
const (
	leastBlock = 16
	leastK8    = 32
)

// leastFP8 is the first target for which Triton 3.6 compiles kernels of 8-bit floats: below, it refuses e4m3, and ptxas
// what it writes for e5m2.
var leastFP8 = target.Target{CC: 89}

// checkShape returns the reason why Triton cannot compile or launch a configuration.
func checkShape(sm *gpu.SM, t gemm.DType, c *gemm.Config) (arch.Reason, string) {
	switch {
	case compiles(sm, t, c):
		return "", ""
	case !tile(t, c):
		return arch.ReasonAtomShape, fmt.Sprintf("tile %dx%dx%d: tl.arange and tl.dot take powers of two from %d, and "+
			"from %d along K for 8-bit types", c.BlockM, c.BlockN, c.BlockK, leastBlock, leastK8)
	case c.Axes != (gemm.Axes{}):
		return arch.ReasonModelRule, fmt.Sprintf("the family has no axes, but the configuration sets %s", c.Axes)
	case !takes(sm, t):
		return arch.ReasonModelRule, fmt.Sprintf("Triton takes %s from %s on", t, leastFP8)
	default:
		return arch.ReasonWarps,
			fmt.Sprintf("%d warps: Triton launches a power of two, up to %d", c.NumWarps, sm.ThreadsPerCTA/32)
	}
}

// compiles reports whether Triton compiles and launches a configuration.
func compiles(sm *gpu.SM, t gemm.DType, c *gemm.Config) bool {
	return tile(t, c) && c.NumWarps&(c.NumWarps-1) == 0 && 32*c.NumWarps <= sm.ThreadsPerCTA &&
		c.Axes == (gemm.Axes{}) && takes(sm, t)
}

// takes reports whether Triton multiplies operands of a type on an architecture.
func takes(sm *gpu.SM, t gemm.DType) bool {
	return t.CostsLike() != gemm.FP8 || sm.Target.Covers(leastFP8)
}

// tile reports whether a tile suits tl.arange, which takes powers of two, and tl.dot, which has a smallest extent.
func tile(t gemm.DType, c *gemm.Config) bool {
	return c.BlockM&(c.BlockM-1)|c.BlockN&(c.BlockN-1)|c.BlockK&(c.BlockK-1) == 0 &&
		min(c.BlockM, c.BlockN, c.BlockK) >= leastBlock && (c.BlockK >= leastK8 || t.Bytes() > 1)
}

// Loop implements kernel.Family.
func (Family) Loop(d *gpu.Device, o kernel.Operands, c gemm.Config) kernel.Loop {
	return loopOf(d, &o, &c, serial(&o, &c) || serialColumnsOf(&o, &c))
}

// loopOf describes the K loop of a kernel. serial: its wgmma instructions wait for one another.
func loopOf(d *gpu.Device, o *kernel.Operands, c *gemm.Config, serial bool) kernel.Loop {
	loop := kernel.Loop{WGMMA: usesWGMMA(d.SM, o.DType, c), WarpsK: 1, Multiplies: o.DType}
	loop.WarpsM, loop.WarpsN = warpGrid(c, loop.WGMMA)
	if columns := tensorColumns(d.SM, o.DType, c); columns > 0 {
		loop.WGMMA, loop.TensorMemory = true, columns
		loop.Rows, loop.Columns = min(c.BlockM, gpu.TensorRows), min(c.BlockN, gpu.TensorColumns)
	}
	if !loop.WGMMA {
		loop.Multiplies = d.SM.Multiplies(o.DType)
	}
	k := copiesOf(d.SM, o, c, loop.WGMMA)
	if !k.AsyncA || !k.AsyncB {
		loop.LoadWaits = 1 // both operands at once
	}
	// Rows and columns are taken modulo M and N. With mma.sync there is one buffer less than stages.
	loop.RepeatM, loop.RepeatN, loop.Wraps = o.AMajor == gemm.MajorK, o.BMajor == gemm.MajorK, true
	loop.LateCopies = !loop.WGMMA
	if loop.WGMMA && loop.TensorMemory == 0 {
		loop.Columns = min(c.BlockN/loop.WarpsN, columnsOf(o.DType))
		loop.Serial, loop.LateCopies = serial, serial
		loop.Interleaved = !loop.Serial && o.DType.Bytes() == matrixBytes &&
			o.AMajor == gemm.MajorK && o.BMajor == gemm.MajorK
	}
	return loop
}

// columnsOf are the most columns of a wgmma. Triton does not use the widest one of 8-bit integers.
func columnsOf(t gemm.DType) int {
	if t == gemm.INT8 {
		return 128
	}
	return 256
}

// ptxas serialises the wgmma instructions of kernels with at least serialAccumulators registers of accumulators per
// thread. Of Family, it also serialises those of serialWarps warps whose tile has serialColumns columns of a B that is
// contiguous along K. Of 8-bit integers, Triton itself waits for the instructions of a K step before it copies. Found
// in the assembled loops of Triton 3.6: 7,260 of Family (testdata/loops.csv.gz) and 107 of Persistent
// (testdata/persistent-loops.csv).
const (
	serialAccumulators = 256
	serialWarps        = 8
	serialColumns      = 256
	serialColumnsTF32  = 128
)

// serial reports whether each wgmma of a kernel of either family waits for the one before.
func serial(o *kernel.Operands, c *gemm.Config) bool {
	return o.DType == gemm.INT8 || c.BlockM*c.BlockN >= 32*c.NumWarps*serialAccumulators
}

// serialColumnsOf reports whether ptxas serialises a kernel of Family for its columns.
func serialColumnsOf(o *kernel.Operands, c *gemm.Config) bool {
	columns := serialColumns
	if o.DType == gemm.TF32 {
		columns = serialColumnsTF32
	}
	return o.BMajor == gemm.MajorK && c.NumWarps == serialWarps && c.BlockN == columns
}

// Overhead implements kernel.Family.
func (tiles) Overhead() kernel.Overhead {
	const dataSet = "h200-triton"
	const fit = "fitted on " + dataSet + " (34,240 times of 856 kernels on 40 sizes) with the others as they are, " +
		"2026-11-28"
	return kernel.Overhead{
		Slots: model.Bounded("loop_slots", "1", 87.29, 10, 300,
			"instructions of a warp per K step beside loads and matrix instructions: pointers, masks, barriers").
			Over(87.9, 88.8).From(dataSet, fit),
		Latency: model.Bounded("step_latency", "cycles", 63.69, 20, 600, "wait and barriers of a K step with mma.sync").
			Over(49.9, 75.7).From(dataSet, fit+", and held since"),
	}
}
