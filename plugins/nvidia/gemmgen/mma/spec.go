package gemmgen

import (
	"fmt"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Family is the name of this kernel family in gemm.Config.Kernel.
const Family = "mma"

// ReasonStages rejects a pipeline depth that the family does not have.
const ReasonStages arch.Reason = "stages"

// Spec is everything that the text of a kernel depends on. Sizes, leading dimensions, strides, alpha, beta, group_m and
// the number of splits are parameters of the kernel (see Call), so one kernel serves all of them.
type Spec struct {
	// DType is the element type of A and B, FP16 or BF16; Out that of C: FP16, BF16 or FP32. Accumulation is in FP32.
	DType, Out gemm.DType
	// AMajor and BMajor say along which dimension A and B are contiguous. C is row-major.
	AMajor, BMajor gemm.Major
	// AlignA, AlignB and AlignC are the bytes (16, 8, 4 or 2) that divide the address and the length of every contiguous row
	// or column of the matrix; see Call.Spec.
	AlignA, AlignB, AlignC int
	// Config is the configuration. Of SplitK only whether it is above one matters to the text, of GroupM nothing.
	Config gemm.Config
}

// Key returns the specification with everything removed that the text does not depend on: specifications with equal
// keys have the same kernel.
func (s Spec) Key() Spec {
	s.Config.GroupM = 0
	s.Config.SplitK = min(s.Config.SplitK, 2)
	s.Config.Kernel = Family
	return s
}

// Axes of the space that the family covers.
var (
	blocksMN = []int{16, 32, 64, 128, 256}
	blocksK  = []int{16, 32, 64, 128}
	warps    = []int{4, 8}
	stages   = []int{2, 3, 4, 5, 6}
)

// Space is every configuration of the family before feasibility, for arch.Space.Enumerate.
func Space() arch.Space {
	return arch.Space{Kernel: Family, BlockM: blocksMN, BlockN: blocksMN, BlockK: blocksK, NumWarps: warps, NumStages: stages, SplitK: []int{1}}
}

// Resources is what a kernel of the family needs, known before it is compiled.
type Resources struct {
	// Threads is the CTA size.
	Threads int
	// SharedMemory is the dynamic shared memory of one CTA: the pipeline's buffers, or the epilogue's if larger.
	SharedMemory unit.Bytes
	// Accumulators and Fragments are 32-bit registers per thread: the fp32 sums of the warp's tile, and the operands of
	// the current k16 step and, where there is more than one step, of the next.
	Accumulators, Fragments int
	// WarpsM, WarpsN and WarpsK are the warp grid. WarpsK warps share an output tile and split the k16 steps of a block.
	WarpsM, WarpsN, WarpsK int
}

// otherRegisters is an allowance for addresses, pointers, counters and predicates, in 32-bit registers per thread. With it,
// ptxas 13.0 and 13.5 spill at most a few words in a handful of kernels with 20 or more copies per thread.
const otherRegisters = 36

// registersPerThread is the limit of the instruction encoding. Source: CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability".
const registersPerThread = 255

// Check returns what a kernel needs. If it cannot be built, or does not fit into the shared memory that a CTA may use,
// the reason says why and the detail puts it in numbers; an empty reason is feasible.
func (s Spec) Check(shared unit.Bytes) (r Resources, reason arch.Reason, detail string) {
	c := s.Config
	switch {
	case s.DType != gemm.FP16 && s.DType != gemm.BF16:
		return r, arch.ReasonAtomShape, fmt.Sprintf("mma.sync.m16n8k16 takes fp16 or bf16, not %s", s.DType)
	case s.Out != gemm.FP16 && s.Out != gemm.BF16 && s.Out != gemm.FP32:
		return r, arch.ReasonAtomShape, fmt.Sprintf("the epilogue writes fp16, bf16 or fp32, not %s", s.Out)
	case !oneOf(c.BlockM, blocksMN) || !oneOf(c.BlockN, blocksMN) || !oneOf(c.BlockK, blocksK):
		return r, arch.ReasonAtomShape, fmt.Sprintf("tile %dx%dx%d: block_m and block_n are a power of two from 16 to 256, block_k from 16 to 128", c.BlockM, c.BlockN, c.BlockK)
	case !oneOf(c.NumWarps, warps):
		return r, arch.ReasonWarps, fmt.Sprintf("%d warps: the family has 4 or 8", c.NumWarps)
	case !oneOf(c.NumStages, stages):
		return r, ReasonStages, fmt.Sprintf("%d stages: the family has 2 to 6", c.NumStages)
	case c.SplitK < 1:
		return r, arch.ReasonModelRule, fmt.Sprintf("split_k is %d, not at least 1", c.SplitK)
	}
	g, ok := newGeometry(s)
	if !ok {
		return r, arch.ReasonWarps, fmt.Sprintf("%d warps cannot share a %dx%d tile: it has %d warp tiles of 16x8 and %d k16 steps to split",
			c.NumWarps, c.BlockM, c.BlockN, c.BlockM/16*c.BlockN/8, c.BlockK/16)
	}
	r = Resources{
		Threads: g.threads, SharedMemory: unit.Bytes(g.sharedBytes), WarpsM: g.warpsM, WarpsN: g.warpsN, WarpsK: g.warpsK,
		Accumulators: 4 * g.tilesM * g.tilesN, Fragments: g.buffers * (4*g.tilesM + 2*g.tilesN),
	}
	if need := r.Accumulators + r.Fragments + otherRegisters; need > registersPerThread {
		return r, arch.ReasonRegisters, fmt.Sprintf("a %dx%d warp tile needs about %d registers per thread (%d accumulators, %d fragments), %d available",
			g.warpM, g.warpN, need, r.Accumulators, r.Fragments, registersPerThread)
	}
	if unit.Bytes(g.sharedBytes) > shared {
		return r, arch.ReasonSharedMemory, fmt.Sprintf("needs %d B of shared memory, %d B available", g.sharedBytes, int64(shared))
	}
	return r, "", ""
}

func oneOf(v int, list []int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// geometry is how a CTA's work is laid out over warps, registers and shared memory.
type geometry struct {
	threads                int
	warpsM, warpsN, warpsK int
	// warpM×warpN is the warp's output tile, tilesM×tilesN the 16×8 tiles in it, steps the k16 steps of a block that the
	// warp computes, buffers the fragment sets that it holds.
	warpM, warpN, tilesM, tilesN, steps, buffers int
	// a and b are the operand tiles of one pipeline stage of stageBytes.
	a, b       tile
	stageBytes int
	// stagingStride is the row length in floats of a warp's staging area in the epilogue, stagingBytes its size.
	stagingStride, stagingBytes int
	sharedBytes                 int
}

// newGeometry chooses the warp grid: as few K slices as the tile allows (more need a reduction), then the squarest warp
// tile, which reads the fewest operand bytes from shared memory, then the wider one, whose rows of C are longer. It
// reports false if the warps cannot share the tile.
func newGeometry(s Spec) (geometry, bool) {
	c := s.Config
	best, found := geometry{}, false
	for warpsK := 1; warpsK <= c.NumWarps && !found; warpsK *= 2 {
		if c.BlockK/16%warpsK != 0 {
			break
		}
		for warpsM := 1; warpsM*warpsK <= c.NumWarps; warpsM *= 2 {
			warpsN := c.NumWarps / warpsK / warpsM
			warpM, warpN := c.BlockM/warpsM, c.BlockN/warpsN
			if warpM < 16 || warpN < 8 {
				continue
			}
			sum, bestSum := warpM+warpN, best.warpM+best.warpN
			if !found || sum < bestSum || sum == bestSum && warpN > best.warpN {
				best, found = geometry{warpsM: warpsM, warpsN: warpsN, warpsK: warpsK, warpM: warpM, warpN: warpN}, true
			}
		}
	}
	if !found {
		return geometry{}, false
	}
	g := best
	g.threads = 32 * c.NumWarps
	g.tilesM, g.tilesN = g.warpM/16, g.warpN/8
	g.steps = c.BlockK / 16 / g.warpsK
	g.buffers = min(g.steps, 2)
	g.a = tile{name: "a", rows: c.BlockM, cols: c.BlockK, align: s.AlignA}
	if s.AMajor == gemm.MajorM {
		g.a.rows, g.a.cols, g.a.kRows = c.BlockK, c.BlockM, true
	}
	g.b = tile{name: "b", rows: c.BlockN, cols: c.BlockK, align: s.AlignB, at: g.a.bytes()}
	if s.BMajor == gemm.MajorN {
		g.b.rows, g.b.cols, g.b.kRows = c.BlockK, c.BlockN, true
	}
	g.stageBytes = g.a.bytes() + g.b.bytes()
	g.stagingStride = g.warpN
	if g.warpN%16 == 0 {
		g.stagingStride += 8 // 8 or 24 modulo 32: the 8-byte writes of four rows fall into different banks
	}
	g.stagingBytes = 16 * g.stagingStride * 4
	g.sharedBytes = max(c.NumStages*g.stageBytes, g.warpsM*g.warpsN*g.stagingBytes, (g.warpsK-1)*c.BlockM*c.BlockN*4)
	return g, true
}

// tile is one operand's block in shared memory: rows of cols 16-bit elements, contiguous along cols as in global memory.
//
// Rows are swizzled in chunks of 16 bytes so that neither the copies, which write along rows, nor ldmatrix, which reads
// the same chunk of eight consecutive rows, meet a bank conflict: chunk c of row r lies at chunk
//
//	c xor ((r >> shift) and mask),   2^shift rows per 128 bytes, mask = min(chunks per row, 8) − 1
type tile struct {
	name       string
	rows, cols int
	// kRows says that rows run along K: A contiguous along M, B along N.
	kRows bool
	// align is the alignment of global rows in bytes, at the tile's byte offset in a stage.
	align, at int
}

func (t tile) rowBytes() int { return 2 * t.cols }
func (t tile) bytes() int    { return t.rows * t.rowBytes() }

func (t tile) swizzle() (shift, mask int) {
	chunks := t.rowBytes() / 16
	return log2(max(1, 8/chunks)), min(chunks, 8) - 1
}

// log2 is the exponent of a power of two.
func log2(v int) int { return bits.TrailingZeros(uint(v)) }
