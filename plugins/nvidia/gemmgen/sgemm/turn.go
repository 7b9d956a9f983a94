package sgemm

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Turn is what a CTA does in a turn of the K loop, which is block_k indices.
type Turn struct {
	// K is the indices along K. Warps is the warps of the CTA.
	K, Warps int
	// FMAs is the FMA instructions of a thread. WMMAs is the multiplications of 16×16×16 of a warp.
	FMAs, WMMAs int
	// Barriers is how often the CTA waits for all of its threads.
	Barriers int
	// Ahead is how many blocks are on their way while one is multiplied. 0: a block is waited for before it is.
	Ahead int
	// Accesses are the instructions that access memory.
	Accesses []Access
}

// Instruction is a kind of access to memory.
type Instruction uint8

// The kinds of accesses.
const (
	LoadGlobal  Instruction = iota + 1 // to registers
	StoreShared                        // from registers
	LoadShared                         // to registers
	CopyAsync                          // cp.async, from global to shared memory
)

var instructionNames = [...]string{
	LoadGlobal: "ld.global", StoreShared: "st.shared", LoadShared: "ld.shared", CopyAsync: "cp.async",
}

// String returns the instruction as PTX begins it.
func (i Instruction) String() string { return instructionNames[i] }

// Access is the instructions of one kind for an operand. They differ in constants that are added to all addresses, so
// that one pattern stands for all.
type Access struct {
	Instruction Instruction
	Operand     gemm.Operand
	// Bytes is what a lane accesses at a time, Count the instructions of a warp in a turn.
	Bytes, Count int
	// Warps is the warps that have the instructions, Lanes the lanes of each.
	Warps, Lanes int
	// Global are the places of the first warp's lanes in global memory, for LoadGlobal and CopyAsync. Shared are byte
	// offsets in a stage, for the others and CopyAsync.
	Global [warpSize]Place
	Shared [warpSize]int
}

// Place is a place in a matrix: a contiguous line, which may be a row or a column, and a byte offset in it.
type Place struct{ Line, Byte int }

// RequestedBytes is what the lanes of all warps access in a turn. Lanes that access the same address count each.
func (a *Access) RequestedBytes() int { return a.Bytes * a.Count * a.Lanes * a.Warps }

// Turn describes a turn of the K loop of a kernel of the family, at full blocks of K inside the matrices.
func (s *Spec) Turn() (t Turn, reason arch.Reason, detail string) {
	var g geometry
	if reason, detail = s.layout(&g); reason != "" {
		return t, reason, detail
	}
	t = Turn{K: g.blockK, Warps: g.threads / warpSize}
	switch {
	case g.math == mathWMMA:
		t.WMMAs = 1
		t.Accesses = g.tensor.accesses(t.Warps)
		return t, "", ""
	case g.staging == stagingNone:
		t.Accesses = g.direct(s)
	default:
		t.Barriers = 1
		if g.stages == 1 {
			t.Barriers = 2
		}
		t.Ahead = g.stages - 1
		t.Accesses = append(g.copying(&g.a), g.copying(&g.b)...)
		t.Accesses = append(t.Accesses, g.reading()...)
	}
	t.FMAs = g.threadM * g.threadN * g.blockK
	return t, "", ""
}

// copying is the accesses that bring an operand to shared memory.
func (g *geometry) copying(t *tile) []Access {
	bytes := t.width * wordBytes
	load := Access{
		Instruction: LoadGlobal, Operand: t.operand, Bytes: bytes, Count: t.copies(),
		Warps: min(g.threads, t.chunks()) / warpSize, Lanes: warpSize,
	}
	store := load
	store.Instruction, store.Bytes, store.Count = StoreShared, t.stored*wordBytes, load.Count*t.width/t.stored
	for lane := range warpSize {
		line, element := lineAndElement(integers{}, t, lane)
		load.Global[lane] = Place{line, element * wordBytes}
		store.Shared[lane] = t.at + t.word(line, element)*wordBytes
	}
	if g.staging == stagingAsync {
		load.Instruction, load.Shared = CopyAsync, store.Shared
		return []Access{load}
	}
	return []Access{load, store}
}

// reading is the accesses that bring operands from shared memory to registers.
func (g *geometry) reading() []Access {
	across, along := g.readA, 1
	if !g.a.kRows {
		across, along = 1, g.readA
	}
	a := Access{
		Instruction: LoadShared, Operand: gemm.A, Bytes: g.readA * wordBytes,
		Count: g.threadM / across * g.blockK / along, Warps: g.threads / warpSize, Lanes: warpSize,
	}
	b := a
	b.Operand, b.Bytes, b.Count = gemm.B, g.readB*wordBytes, g.threadN/g.readB*g.blockK
	for lane := range warpSize {
		row, column := rowAndColumn(integers{}, g, lane)
		a.Shared[lane], b.Shared[lane] = g.a.at+g.a.across(row)*wordBytes, g.b.at+g.b.across(column)*wordBytes
	}
	return []Access{a, b}
}

// across is the place of an index across K at the first index along K, in words.
func (t *tile) across(i int) int {
	if t.kRows {
		return i
	}
	return i * t.stride
}

// direct is the loads of operands from global memory without shared memory.
func (g *geometry) direct(s *Spec) []Access {
	a := Access{
		Instruction: LoadGlobal, Operand: gemm.A, Bytes: wordBytes, Count: g.threadM * g.blockK,
		Warps: g.threads / warpSize, Lanes: warpSize,
	}
	b := a
	b.Operand, b.Count = gemm.B, g.threadN*g.blockK
	for lane := range warpSize {
		row, column := rowAndColumn(integers{}, g, lane)
		a.Global[lane], b.Global[lane] = Place{Line: row}, Place{Line: column}
		if s.AMajor == gemm.MajorM {
			a.Global[lane] = Place{Byte: row * wordBytes}
		}
		if s.BMajor == gemm.MajorN {
			b.Global[lane] = Place{Byte: column * wordBytes}
		}
	}
	return []Access{a, b}
}

// The banks of shared memory. Source: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later.
const banks = 32

// Wavefronts returns in how many passes the lanes of an access go through shared memory, for instructions that access
// it. 32 banks have a word each in a pass, which any number of lanes may read. Accesses of 8 bytes go by half warps and
// those of 16 by quarters, unless the hardware merges parts whose lanes share words. NVIDIA documents no rule for that:
// least merges all parts, most none. For words they are equal.
func (a *Access) Wavefronts() (least, most int) {
	together := a.Lanes * wordBytes / max(a.Bytes, wordBytes)
	for first := 0; first < a.Lanes; first += together {
		most += deepest(a.Shared[first:first+together], a.Bytes)
	}
	if together == a.Lanes {
		return most, most
	}
	return deepest(a.Shared[:a.Lanes], a.Bytes), most
}

// Conflicts returns the degree of bank conflicts: passes through shared memory without merging over those that as many
// different words would take. 1 is no conflict.
func (a *Access) Conflicts() float64 {
	_, most := a.Wavefronts()
	return float64(most) / float64(max(1, a.Bytes/wordBytes))
}

// L1Conflicts returns the most different words of one bank of the L1 that lanes of an access to global memory touch,
// for lines that begin so many bytes apart. The L1 has the banks of shared memory, which is the same memory.
func (a *Access) L1Conflicts(lineBytes int) int {
	var words perBank[Place]
	for _, p := range a.Global[:a.Lanes] {
		for at := p.Byte; at < p.Byte+max(a.Bytes, wordBytes); at += wordBytes {
			words.add((p.Line*lineBytes+at)/wordBytes%banks, Place{p.Line, at / wordBytes})
		}
	}
	return slices.Max(words.count[:])
}

// deepest returns the most different words that lanes access in one bank.
func deepest(offsets []int, bytes int) int {
	var words perBank[int]
	for _, offset := range offsets {
		for w := offset / wordBytes; w < (offset+bytes)/wordBytes; w++ {
			words.add(w%banks, w)
		}
	}
	return slices.Max(words.count[:])
}

// perBank are the different words of each bank that lanes of a warp access. A lane accesses one word of a bank at most:
// it accesses 16 bytes at most. Arrays take less time than slices, and a ranking walks thousands of accesses.
type perBank[W comparable] struct {
	words [banks][warpSize]W
	count [banks]int
}

func (b *perBank[W]) add(bank int, word W) {
	if n := b.count[bank]; !slices.Contains(b.words[bank][:n], word) {
		b.words[bank][n] = word
		b.count[bank]++
	}
}
