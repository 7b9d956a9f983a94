package mma

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// reduceWarps adds the sums of the warps that share an output tile to the sums of K slice 0, in the order of the
// slices. Slices 1 and up pass their sums through shared memory, each register of a slice's threads side by side.
func (e *emitter) reduceWarps() {
	g := e.g
	e.Comment("sum over the K slices of the warps")
	slice := 32 * g.warpsM * g.warpsN // threads
	receive, received := e.Label("receive"), e.Label("received")
	isFirst := e.SetpEqS32(e.Pred(), e.warpK, ptx.Int(0))
	at := e.Mad(e.And(e.Thread, slice-1), 4, e.Smem)
	e.If(isFirst).Bra(receive)
	registers := 4 * len(e.acc)
	to := e.Mad(e.warpK, registers*slice*4, at)
	for i := range registers {
		e.Store(ptx.Shared(to, (i-registers)*slice*4), e.acc[i/4][i%4:][:1])
	}
	e.Place(receive)
	e.BarSync(ptx.Int(0))
	e.IfNot(isFirst).Bra(received)
	x := []ptx.Operand{e.Sums.Register()}
	for s := range g.warpsK - 1 {
		for i := range registers {
			sum := e.acc[i/4][i%4]
			e.Load(x, ptx.Shared(at, (s*registers+i)*slice*4))
			e.Sums.Add(sum, sum, x[0])
		}
	}
	e.Place(received)
	e.BarSync(ptx.Int(0))
}

// reduceSplits sums over the splits of K. The four sums of an mma tile are a group.
func (e *emitter) reduceSplits() {
	g := e.g
	splits := asm.Splits{Threads: 32 * g.warpsM * g.warpsN, SumBytes: 4 * e.s.Config.BlockM * e.s.Config.BlockN}
	if g.warpsK > 1 {
		splits.Slice = e.warpK
	}
	e.AddSplits(splits, e.acc)
}
