package mma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
)

// geometry is how a CTA's work is laid out over warps, registers and shared memory.
type geometry struct {
	threads int
	warpGrid
	// tilesM×tilesN are the 16×8 tiles in a warp's output tile. steps is the steps along K of a block that the warp
	// computes. fragments is the registers of the operands that it holds at once.
	tilesM, tilesN, steps, fragments int
	// a and b are the operand tiles of one pipeline stage, which has stageBytes bytes.
	a, b       tile
	stageBytes int
	// stagingStride is the row length in floats of a warp's staging area in the epilogue, stagingBytes the size of
	// the area.
	stagingStride, stagingBytes int
	sharedBytes                 int
}

// warpGrid is how warps share a tile. warpM×warpN is the output tile of one warp.
type warpGrid struct {
	warpsM, warpsN, warpsK int
	warpM, warpN           int
}

// newWarpGrid chooses the warp grid among those that have the numbers of want that are not 0. It prefers few K slices,
// since these need a reduction, then square warp tiles, which read the fewest operand bytes from shared memory, then
// wide ones, whose rows of C are longer. It reports false if the warps cannot share the tile.
//
// step is the extent of a matrix instruction along K in elements.
func newWarpGrid(c *gemm.Config, step int, want choices) (best warpGrid, found bool) {
	// All numbers are powers of two, so that divisions are shifts: models ask for a thousand grids at a time.
	warps := asm.Log2(c.NumWarps)
	for k := 0; k <= warps && !found; k++ {
		if c.BlockK/step&(1<<k-1) != 0 {
			break
		}
		if want.warpsK != 0 && want.warpsK != 1<<k {
			continue
		}
		for m := 0; m+k <= warps; m++ {
			n := warps - k - m
			warpM, warpN := c.BlockM>>m, c.BlockN>>n
			if warpM < 16 || warpN < 8 || want.warpsM != 0 && want.warpsM != 1<<m {
				continue
			}
			sum, bestSum := warpM+warpN, best.warpM+best.warpN
			if !found || sum < bestSum || sum == bestSum && warpN > best.warpN {
				best, found = warpGrid{1 << m, 1 << n, 1 << k, warpM, warpN}, true
			}
		}
	}
	return best, found
}

// derivedAnyway returns the first of the axes of the warp grid that changes nothing, so that one kernel has one
// configuration, or an empty name. One warp along K may be said where it is derived: it is what the order of sums is
// about (see Family.Sums).
func derivedAnyway(c *gemm.Config, step int, grid warpGrid) string {
	chosen := choicesOf(c)
	for _, x := range []struct {
		name   string
		value  int
		others choices
	}{
		{axisWarpsM, chosen.warpsM, choices{warpsK: chosen.warpsK}},
		{axisWarpsK, chosen.warpsK, choices{warpsM: chosen.warpsM}},
	} {
		if x.name == axisWarpsK && x.value == 1 {
			continue
		}
		if same, ok := newWarpGrid(c, step, x.others); x.value != 0 && ok && same == grid {
			return x.name
		}
	}
	return ""
}

// lay fills the geometry. It reports false if the warps cannot share the tile.
func (g *geometry) lay(s *Spec) (ok bool) {
	c := &s.Config
	if g.warpGrid, ok = newWarpGrid(c, s.step(), choicesOf(c)); !ok {
		return false
	}
	g.threads = 32 * c.NumWarps
	g.tilesM, g.tilesN = g.warpM/16, g.warpN/8
	g.steps = c.BlockK / s.step() / g.warpsK
	g.fragments = min(g.steps, 2) * (4*g.tilesM + 2*g.tilesN)
	if s.DType == gemm.FP32 {
		g.fragments = fmaUnroll * (2*g.tilesM + 2*g.tilesN)
	}
	size := s.DType.Bytes()
	g.a = tile{name: "a", rows: c.BlockM, cols: c.BlockK, size: size, align: s.AlignA, ragged: s.RaggedA}
	if s.AMajor == gemm.MajorM {
		g.a.rows, g.a.cols, g.a.kRows = c.BlockK, c.BlockM, true
	}
	g.b = tile{name: "b", rows: c.BlockN, cols: c.BlockK, size: size, align: s.AlignB, ragged: s.RaggedB, at: g.a.bytes()}
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
	return true
}

// tile is one operand's block in shared memory: rows of cols elements, contiguous along cols as in global memory.
//
// Rows are swizzled in chunks of 16 bytes so that neither the copies, which write along rows, nor ldmatrix, which reads
// the same chunk of eight consecutive rows, meet a bank conflict: chunk c of row r lies at chunk
//
//	c xor ((r >> shift) and mask),   2^shift rows per 128 bytes, mask = min(chunks per row, 8) − 1
//
// Elements of 32 bits in rows along K are not read with ldmatrix, which transposes 16-bit elements only. A warp reads
// two neighbouring chunks, 8 elements, of four consecutive rows. There, the swizzle moves pairs of chunks:
//
//	c xor 2·((r >> shift) and mask),   mask = min(chunks per row, 8)/2 − 1
type tile struct {
	name       string
	rows, cols int
	// size is the bytes of an element.
	size int
	// kRows says that rows run along K: A contiguous along M, B along N.
	kRows bool
	// ragged says that global rows may end inside of a copy.
	ragged bool
	// align is the alignment of global rows, at the offset of the tile in a stage, both in bytes.
	align, at int
}

func (t tile) rowBytes() int { return t.size * t.cols }
func (t tile) bytes() int    { return t.rows * t.rowBytes() }

// copies is how many copies a thread makes of the tile.
func (t tile) copies(threads int) int { return max(1, t.bytes()/t.align/threads) }

// unrolledCopies is the most narrow copies that are unrolled. More run in a loop. Copies of 16 bytes are always
// unrolled.
const unrolledCopies = 8

// unrolled is how many copies of the tile a thread issues one after the other: all, or those of a turn of a loop, after
// which the swizzle repeats.
func (t tile) unrolled(threads int) int {
	copies, turn := t.copies(threads), 8*max(1, t.rowBytes()/t.align/threads)
	if t.align == chunkBytes || copies <= max(unrolledCopies, turn) {
		return copies
	}
	return turn
}

// byElement reports whether the fragments are read element by element.
func (t tile) byElement() bool { return t.kRows && t.size == 4 }

// swizzle returns the numbers of the swizzle. Chunk c of row r lies at c xor (((r >> shift) and mask) << left).
func (t tile) swizzle() (shift, mask, left int) {
	chunks := t.rowBytes() / chunkBytes
	shift, mask = asm.Log2(max(1, 8/chunks)), min(chunks, 8)-1
	if t.byElement() {
		return shift, mask >> 1, 1
	}
	return shift, mask, 0
}

// swizzled returns (r >> shift and mask) << left for a row that is known when the kernel is generated.
func (t tile) swizzled(row int) int {
	shift, mask, left := t.swizzle()
	return row >> shift & mask << left
}
