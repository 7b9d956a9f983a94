package mma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// mainLoop is the multistage pipeline. With S stages, the copies of S−1 tiles are in flight when the loop begins. Each
// turn computes one tile and issues the copies of the tile S−1 ahead into the stage that the previous turn left free;
// one barrier per turn both publishes the next tile and frees the stage behind it.
//
// Within a turn the fragments of the next k16 step, which at the last step are those of the next tile, are loaded while
// the tensor cores work on the current ones. A warp that has a single step per tile has nothing to load ahead.
func (e *emitter) mainLoop() {
	g, s := e.g, e.s.Config.NumStages
	e.Comment("pipeline prologue")
	drained := e.Label("drained")
	if e.s.Config.SplitK > 1 {
		some := e.Pred()
		e.SetpGtS32(some, e.k, ptx.Int(0))
		e.IfNot(some).BraUni(drained) // a split that got nothing to do contributes zeros
	}
	tiles, firstK, end := e.B32(), e.B32(), e.B32()
	e.AddS32(tiles, e.k, ptx.Int(e.s.Config.BlockK-1))
	e.ShrU32(tiles, tiles, ptx.Int(asm.Log2(e.s.Config.BlockK)))
	e.toCopy = e.Add(tiles, ptx.Int(-1))
	e.MadLoS32(firstK, e.toCopy, ptx.Int(-e.s.Config.BlockK), e.k)
	e.writeStage, e.readStage = e.B32(), e.B32()
	e.MovB32(e.writeStage, e.smem)
	e.MovB32(e.readStage, e.smem)
	e.AddS32(end, e.smem, ptx.Int(s*g.stageBytes))
	e.copyA.first(firstK)
	e.copyB.first(firstK)
	e.CpAsyncCommitGroup()
	e.nextStage(e.writeStage, end)
	for range s - 2 {
		e.copyTile(end)
	}

	fa, fb := make([][]ptx.Operand, g.buffers), make([][]ptx.Operand, g.buffers)
	for i := range fa {
		fa[i], fb[i] = e.Regs(4*g.tilesM, e.B32), e.Regs(2*g.tilesN, e.B32)
	}
	ready := func() {
		e.CpAsyncWaitGroup(ptx.Int(s - 2))
		e.BarSync(ptx.Int(0))
	}
	loop, again := e.Label("loop"), e.Pred()
	if g.steps == 1 {
		e.Place(loop)
		ready()
		e.copyTile(end)
		e.load(0, fa[0], fb[0])
		e.nextStage(e.readStage, end)
		e.multiply(fa[0], fb[0], func(int) {})
	} else {
		ready()
		e.load(0, fa[0], fb[0])
		// The copies are issued together, among the first step's matrix instructions: on an H200 that was faster than at its
		// begin or end, and than spread over the steps.
		stepB, column, more := 0, 0, ptx.Operand{}
		if g.steps > 2 {
			column = g.tilesN / 2
			if e.tight() {
				stepB = 1 // fewer addresses at a time
			}
		}
		e.Place(loop)
		for step := range g.steps {
			if step == g.steps-1 {
				ready()
				e.nextStage(e.readStage, end)
			}
			next := (step + 1) % g.steps
			e.load(next, fa[next%2], fb[next%2])
			e.multiply(fa[step%2], fb[step%2], func(n int) {
				if step == 0 && n == column {
					more = e.beginCopy()
					e.copyA.next(more)
				}
				if step == stepB && n == column {
					e.copyB.next(more)
					e.endCopy(end)
				}
			})
		}
	}
	e.AddS32(tiles, tiles, ptx.Int(-1))
	e.SetpGtS32(again, tiles, ptx.Int(0))
	e.If(again).BraUni(loop)
	e.Place(drained)
	e.Comment("shared memory is free for the epilogue")
	e.CpAsyncWaitAll()
	e.BarSync(ptx.Int(0))
}

// copyTile copies the next tile, if there is one left, into the next stage. Its group of copies may be empty.
func (e *emitter) copyTile(end ptx.Operand) {
	more := e.beginCopy()
	e.copyA.next(more)
	e.copyB.next(more)
	e.endCopy(end)
}

// tight reports whether the addresses of a tile's copies do not fit into registers beside sums and fragments. ptxas 13.x
// spills from about this sum on.
func (e *emitter) tight() bool {
	g := e.g
	return 4*g.tilesM*g.tilesN+g.buffers*(4*g.tilesM+2*g.tilesN)+e.copyA.copies+e.copyB.copies > 208
}

func (e *emitter) beginCopy() (more ptx.Operand) {
	more = e.Pred()
	e.SetpGtS32(more, e.toCopy, ptx.Int(0))
	return more
}

func (e *emitter) endCopy(end ptx.Operand) {
	e.CpAsyncCommitGroup()
	e.AddS32(e.toCopy, e.toCopy, ptx.Int(-1))
	e.nextStage(e.writeStage, end)
}

// nextStage moves a stage's address on, from the last stage to the first.
func (e *emitter) nextStage(stage, end ptx.Operand) {
	wrap := e.Pred()
	e.AddS32(stage, stage, ptx.Int(e.g.stageBytes))
	e.SetpEqS32(wrap, stage, end)
	e.SelpB32(stage, e.smem, stage, wrap)
}

// load reads the fragments of a k16 step.
func (e *emitter) load(step int, a, b []ptx.Operand) {
	for i := range e.g.tilesM {
		e.fragA.load(step, i, a[4*i:4*i+4])
	}
	for i := 0; i < e.g.tilesN; i += 2 {
		e.fragB.load(step, i/2, b[2*i:min(2*i+4, len(b))])
	}
}

// multiply issues the k16 step's matrix instructions. The walk turns at the end of each column, so that consecutive
// instructions share an operand. before is called before each column of tiles.
func (e *emitter) multiply(a, b []ptx.Operand, before func(n int)) {
	mma := e.MmaSyncM16N8K16F32F16
	if e.s.DType == gemm.BF16 {
		mma = e.MmaSyncM16N8K16F32BF16
	}
	av := make([]ptx.Operand, e.g.tilesM)
	for i := range av {
		av[i] = e.Vec(a[4*i : 4*i+4]...)
	}
	for n := range e.g.tilesN {
		before(n)
		bv := e.Vec(b[2*n : 2*n+2]...)
		for i := range e.g.tilesM {
			m := i
			if n%2 == 1 {
				m = e.g.tilesM - 1 - i
			}
			acc := e.accVec[m*e.g.tilesN+n]
			mma(acc, av[m], bv, acc)
		}
	}
}
