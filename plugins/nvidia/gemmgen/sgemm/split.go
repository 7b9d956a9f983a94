package sgemm

import (
	"slices"

	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// part finds this split's part of K: where it begins, and how long it is. The last splits may have none. They multiply
// a block of zeros.
func (e *emitter) part() {
	e.Comment("this split's part of K")
	per := e.Param32(e.p.kPerSplit)
	e.begin = e.MulLoS32(e.B32(), e.Special(ptx.CtaidY), per)
	e.SubS32(e.k, e.k, e.begin)
	e.MinS32(e.k, e.k, per)
	e.MaxS32(e.k, e.k, ptx.Int(0))
}

// reduceSplits sums over the splits of K, in groups as wide as a thread stores at once.
func (e *emitter) reduceSplits() {
	sums := slices.Concat(e.sums...)
	groups := slices.Collect(slices.Chunk(sums, min(widest/wordBytes, len(sums))))
	e.AddSplits(&asm.Splits{Partials: e.p.partials, Counters: e.p.counters, TilesM: e.p.tilesM, TilesN: e.p.tilesN,
		Thread: e.thread, Smem: e.smem, Exit: e.exit, Threads: e.g.threads,
		SumBytes: e.g.blockM * e.g.blockN * wordBytes,
		Register: e.F32, Clear: func(d ptx.Operand) { e.MovF32(d, ptx.Float(0)) }, Add: e.AddF32}, groups)
}
