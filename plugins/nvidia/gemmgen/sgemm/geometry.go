package sgemm

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// The sizes of an element and of a word of shared memory, and the widest access, in bytes.
const (
	wordBytes = 4
	widest    = 16
	warpSize  = 32
)

// geometry is how a CTA's work is laid out over threads, registers and shared memory.
type geometry struct {
	choices
	blockM, blockN, blockK, stages int
	threads                        int
	// threadN are the columns of a thread, lanesN the lanes of a warp along N. The CTA has warpsM×warpsN warps, each with
	// a part of warpM×warpN elements.
	threadN, lanesN              int
	warpsM, warpsN, warpM, warpN int
	// groupM and groupN are the rows and columns of a thread that are neighbours.
	groupM, groupN int
	// a and b are the operand tiles of a stage, which has stageBytes bytes.
	a, b       tile
	stageBytes int
	// readA and readB are the elements of a read from shared memory: of A along M, or along K if its rows are. storeC is
	// that of a store to C.
	readA, readB, storeC int
	// tensor describes math=wmma.
	tensor tensor
}

// layFMA lays out a kernel that multiplies with FMA instructions.
func (s *Spec) layFMA(g *geometry) (reason arch.Reason, detail string) {
	c := &s.Config
	g.blockM, g.blockN, g.blockK, g.stages, g.threads = c.BlockM, c.BlockN, c.BlockK, c.NumStages, warpSize*c.NumWarps
	perThread := g.blockM * g.blockN / g.threads
	g.threadN, g.lanesN = perThread/g.threadM, warpSize/g.lanesM
	g.warpM, g.warpN = g.lanesM*g.threadM, g.lanesN*g.threadN
	if g.threadN < 1 || g.warpM > g.blockM || g.warpN > g.blockN {
		return arch.ReasonWarps, fmt.Sprintf(
			"%d warps of %dx%d lanes with %d rows per thread do not divide a %dx%d tile", c.NumWarps, g.lanesM, g.lanesN,
			g.threadM, g.blockM, g.blockN)
	}
	g.warpsM, g.warpsN = g.blockM/g.warpM, g.blockN/g.warpN
	g.groupM, g.groupN = min(g.widthA, g.threadM), min(g.widthB, g.threadN)
	switch g.laneMap {
	case mapBlock:
		g.groupM, g.groupN = g.threadM, g.threadN
	case mapQuad:
		if g.lanesM < 2 || g.lanesN < 2 {
			return arch.ReasonModelRule, fmt.Sprintf("lane_map=quad needs two lanes along M and N, not %dx%d", g.lanesM,
				g.lanesN)
		}
	}
	g.storeC = min(g.copyWidth, g.groupN, s.AlignC/wordBytes)
	if g.staging == stagingNone {
		g.readA, g.readB = 1, 1
		return "", ""
	}
	g.layTiles(s)
	for _, t := range []*tile{&g.a, &g.b} {
		if t.chunks() < warpSize {
			return arch.ReasonModelRule, fmt.Sprintf("the block of %s has %d copies, less than one per lane of a warp",
				t.name, t.chunks())
		}
	}
	return "", ""
}

// layTiles lays out shared memory.
func (g *geometry) layTiles(s *Spec) {
	g.a = tile{name: "a", operand: gemm.A, kRows: g.sharedA == alongM, align: s.AlignA, rows: g.blockM, cols: g.blockK}
	if g.a.kRows {
		g.a.rows, g.a.cols = g.blockK, g.blockM
	}
	g.a.transposed = (s.AMajor == gemm.MajorM) != g.a.kRows
	g.b = tile{name: "b", operand: gemm.B, kRows: true, align: s.AlignB, rows: g.blockK, cols: g.blockN}
	g.b.transposed = s.BMajor == gemm.MajorK
	for i, t := range []*tile{&g.a, &g.b} {
		pad := [...]int{g.padA, g.padB}[i]
		t.stride = t.cols + pad
		t.threads = g.threads
		t.width = min(g.copyWidth, t.align/wordBytes)
		if t.transposed && g.staging == stagingAsync {
			t.width = 1 // an asynchronous copy keeps the order of what it copies
		}
		if !t.transposed {
			t.width = fitting(t.width, t.stride)
			t.stored = t.width
		} else {
			t.stored = 1
		}
		t.width = min(t.width, t.length())
		t.stored = min(t.stored, t.width)
	}
	up := func(bytes int) int { return (bytes + widest - 1) / widest * widest }
	g.b.at = up(g.a.bytes())
	g.stageBytes = g.b.at + up(g.b.bytes())
	along := g.groupM
	if !g.a.kRows {
		along = g.blockK
	}
	g.readA = fitting(min(g.widthA, along), g.a.stride)
	g.readB = fitting(min(g.widthB, g.groupN), g.b.stride)
}

// fitting returns the largest power of two up to width that divides the stride of rows: wider accesses would not be
// aligned.
func fitting(width, stride int) int { return min(width, stride&-stride) }

// resources counts registers and shared memory.
func (g *geometry) resources() Resources {
	if g.math == mathWMMA {
		return g.tensor.resources(g.threads)
	}
	r := Resources{
		Threads: g.threads, SharedMemory: unit.Bytes(g.stages * g.stageBytes), Accumulators: g.threadM * g.threadN,
		ThreadM: g.threadM, ThreadN: g.threadN, WarpM: g.warpM, WarpN: g.warpN,
	}
	steps := 1 // of K in a set of operands
	if g.staging != stagingNone && !g.a.kRows {
		steps = g.readA
	}
	r.Operands = (g.threadM + g.threadN) * steps
	switch {
	case g.staging == stagingNone:
		r.Operands *= g.blockK
	case g.stages == 1 && steps > 1: // one row of A after the other
		r.Operands = (g.threadN + 1) * steps
	case g.blockK > steps:
		r.Operands *= 2
	}
	held := r.Operands
	if g.staging == stagingRegisters {
		r.Prefetch = g.a.copies()*g.a.width + g.b.copies()*g.b.width
		held += r.Prefetch
	}
	if g.stages == 1 { // copies are stored before operands are read
		held = max(r.Operands, r.Prefetch)
	}
	r.limit(r.Accumulators + held + otherRegisters)
	return r
}

// limit sets the registers to those that a kernel is expected to need, and the CTAs to as many as then fit.
func (r *Resources) limit(registers int) {
	r.Registers = registers
	granules := (registers + target.RegisterGranule - 1) / target.RegisterGranule * target.RegisterGranule
	r.CTAs = min(max(1, target.RegisterFile/(granules*r.Threads)), target.MostThreads/r.Threads, target.LeastCTAs)
}

// otherRegisters is an allowance for addresses, pointers and counters, in registers per thread.
const otherRegisters = 20

// tile is the block of an operand in shared memory: rows of cols elements, stride words apart.
//
// A thread copies width neighbours of a contiguous line of global memory at a time. The threads of a CTA have
// consecutive places: first along a line, then in the next lines. If the lines of global memory run across the rows of
// shared memory, the tile is transposed on the way.
type tile struct {
	name    string
	operand gemm.Operand
	// kRows says that there is a row for each index along K. Otherwise rows are along K.
	kRows, transposed  bool
	rows, cols, stride int
	// align is the alignment of lines in global memory, at the offset of the tile in a stage, both in bytes.
	align, at int
	// width is the elements of a copy, stored the elements of a store to shared memory.
	width, stored int
	threads       int
}

func (t *tile) bytes() int { return t.rows * t.stride * wordBytes }

// length is the elements of a line in global memory that belong to the tile, lines their number.
func (t *tile) length() int {
	if t.transposed {
		return t.rows
	}
	return t.cols
}

// chunks is the copies of the tile, copies the copies of a thread. perLine is the copies of a line.
func (t *tile) chunks() int  { return t.rows * t.cols / t.width }
func (t *tile) perLine() int { return t.length() / t.width }
func (t *tile) copies() int  { return max(1, t.chunks()/t.threads) }

// alongK says that lines in global memory run along K.
func (t *tile) alongK() bool { return t.kRows == t.transposed }

// partial says that some threads have no copy.
func (t *tile) partial() bool { return t.chunks() < t.threads }

// step returns how far copy i of a thread is from its first: lines further on, and elements further on in a line.
func (t *tile) step(i int) (line, element int) {
	perLine := t.perLine()
	if perLine >= t.threads {
		across := perLine / t.threads
		return i / across, i % across * t.threads * t.width
	}
	return i * (t.threads / perLine), 0
}

// word is the place of an element of a line in shared memory, in words from the tile's begin, linear in both.
func (t *tile) word(line, element int) int {
	if t.transposed {
		return element*t.stride + line
	}
	return line*t.stride + element
}

// arithmetic is the integer operations of addresses. The generator implements it with instructions, ints with numbers.
type arithmetic[T any] interface {
	And(a T, mask int) T
	Shr(a T, n int) T
	Shl(a T, n int) T
	Mad(a T, factor int, b T) T
}

// lineAndElement returns the first copy of a thread: its line, and its first element in the line.
func lineAndElement[T any](c arithmetic[T], t *tile, thread T) (line, element T) {
	width, perLine := asm.Log2(t.width), t.perLine()
	if perLine >= t.threads {
		return c.And(thread, 0), c.Shl(thread, width)
	}
	return c.Shr(thread, asm.Log2(perLine)), c.Shl(c.And(thread, perLine-1), width)
}

// rowAndColumn returns a thread's first row and column in the tile of C.
func rowAndColumn[T any](c arithmetic[T], g *geometry, thread T) (row, column T) {
	lane, warp := c.And(thread, warpSize-1), c.Shr(thread, 5)
	laneM, laneN := c.Shr(lane, asm.Log2(g.lanesN)), c.And(lane, g.lanesN-1)
	if g.laneMap == mapQuad { // bit 0 of the lane is along N, bit 1 along M
		rest := c.Shr(lane, 2)
		laneN = c.Mad(c.And(rest, g.lanesN/2-1), 2, c.And(lane, 1))
		laneM = c.Mad(c.Shr(rest, asm.Log2(g.lanesN/2)), 2, c.Shr(c.And(lane, 2), 1))
	}
	row = c.Mad(c.Shr(warp, asm.Log2(g.warpsN)), g.warpM, c.Mad(laneM, g.groupM, c.And(lane, 0)))
	column = c.Mad(c.And(warp, g.warpsN-1), g.warpN, c.Mad(laneN, g.groupN, c.And(lane, 0)))
	return row, column
}

// rowAt and columnAt are how far row i and column i of a thread are from its first.
func (g *geometry) rowAt(i int) int    { return i/g.groupM*g.groupM*g.lanesM + i%g.groupM }
func (g *geometry) columnAt(i int) int { return i/g.groupN*g.groupN*g.lanesN + i%g.groupN }

// integers is the arithmetic of ints.
type integers struct{}

func (integers) And(a, mask int) int      { return a & mask }
func (integers) Shr(a, n int) int         { return a >> n }
func (integers) Shl(a, n int) int         { return a << n }
func (integers) Mad(a, factor, b int) int { return a*factor + b }
