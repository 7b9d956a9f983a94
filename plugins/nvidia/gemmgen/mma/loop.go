package mma

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// mainLoop is the multistage pipeline. With S stages, the copies of S−1 blocks are in flight when the loop begins.
// Each turn computes one block and issues the copies of the block S−1 ahead into the stage that the previous turn
// left free. One barrier per turn both publishes the next block and frees the stage behind it.
//
// Within a turn the fragments of the next step, which at the last step are those of the next block, are loaded
// while the tensor cores work on the current ones. A warp that has a single step per block has nothing to load ahead.
func (e *emitter) mainLoop() {
	e.Comment("pipeline prologue")
	drained := e.Label("drained")
	if e.s.Config.SplitK > 1 {
		// A split without a part of K contributes zeros.
		e.IfNot(e.SetpGtS32(e.Pred(), e.K, ptx.Int(0))).BraUni(drained)
	}
	blocks, turn := e.fillPipeline(), e.turn
	switch {
	case e.fragA == nil:
		turn = e.turnOfFMA
	case e.g.steps == 1:
		turn = e.turnOfOneStep
	}
	e.Repeat("loop", blocks, turn())
	e.Place(drained)
	e.Comment("shared memory is free for the epilogue")
	e.CpAsyncWaitAll()
	e.BarSync(ptx.Int(0))
}

// fillPipeline issues the copies of the first S−1 blocks. It returns the number of blocks along K.
func (e *emitter) fillPipeline() (blocks ptx.Operand) {
	s, blockK := e.s.Config.NumStages, e.s.Config.BlockK
	blocks = e.Add(e.K, ptx.Int(blockK-1))
	e.ShrU32(blocks, blocks, ptx.Int(asm.Log2(blockK)))
	e.toCopy = e.Add(blocks, ptx.Int(-1))
	firstK := e.Mad(e.toCopy, -blockK, e.K) // indices along K in the first block, the only one that may be short
	e.writeStage, e.readStage = e.MovB32(e.B32(), e.Smem), e.MovB32(e.B32(), e.Smem)
	e.stagesEnd = e.Add(e.Smem, ptx.Int(s*e.g.stageBytes))
	if e.shortLast {
		e.left, firstK = e.K, e.K
	}
	e.copyA.first(firstK)
	e.copyB.first(firstK)
	if e.shortLast {
		e.left = e.Add(e.K, ptx.Int(-blockK))
	}
	e.CpAsyncCommitGroup()
	e.nextStage(e.writeStage)
	for range s - 2 {
		e.copyBlock()
	}
	return blocks
}

// ready waits until the next block is in shared memory, for all threads.
func (e *emitter) ready() {
	e.CpAsyncWaitGroup(ptx.Int(e.s.Config.NumStages - 2))
	e.BarSync(ptx.Int(0))
}

// turnOfOneStep returns a turn of the loop for warps that compute one step per block.
func (e *emitter) turnOfOneStep() func() {
	a, b := e.fragmentRegisters()
	return func() {
		e.ready()
		e.copyBlock()
		e.load(0, a, b)
		e.nextStage(e.readStage)
		e.round(a, b)
		e.multiply(a, b, func(int) {})
	}
}

// turn returns a turn of the loop for warps that compute several steps per block. It loads the first fragments before
// the loop.
func (e *emitter) turn() func() {
	g := e.g
	var a, b [2][]ptx.Operand
	for i := range a {
		a[i], b[i] = e.fragmentRegisters()
	}
	e.ready()
	e.load(0, a[0], b[0])
	e.round(a[0], b[0])
	// The copies are issued together, among the matrix instructions of the first step. On an H200 that was faster
	// than issuing them at the start or the end of the step, or spreading them over the steps.
	stepB, column, more := 0, 0, ptx.Operand{}
	if g.steps > 2 {
		column = g.tilesN / 2
		if e.tight() {
			stepB = 1 // fewer addresses at a time
		}
	}
	return func() {
		for step := range g.steps {
			if step == g.steps-1 {
				e.ready()
				e.nextStage(e.readStage)
			}
			next := (step + 1) % g.steps
			e.load(next, a[next%2], b[next%2])
			e.multiply(a[step%2], b[step%2], func(n int) {
				if step == 0 && n == column {
					more = e.beginCopy()
					e.copyA.next(more)
				}
				if step == stepB && n == column {
					e.copyB.next(more)
					e.endCopy()
				}
			})
			e.round(a[next%2], b[next%2])
		}
	}
}

// fragmentRegisters returns registers for the fragments of a step.
func (e *emitter) fragmentRegisters() (a, b []ptx.Operand) {
	return e.Regs(4*e.g.tilesM, e.B32), e.Regs(2*e.g.tilesN, e.B32)
}

// copyBlock copies the next block, if one is left, into the next stage. The group of copies may be empty.
func (e *emitter) copyBlock() {
	more := e.beginCopy()
	e.copyA.next(more)
	e.copyB.next(more)
	e.endCopy()
}

// tight reports whether the addresses of a block's copies do not fit into registers beside sums and fragments. ptxas
// 13.x spills from about this sum on, and, in kernels with fewer sums, from about that many copies.
func (e *emitter) tight() bool {
	g, copies := e.g, e.copyA.copies+e.copyB.copies
	return 4*g.tilesM*g.tilesN+g.fragments+copies > 208 || copies > 40 && g.a.size == 4
}

func (e *emitter) beginCopy() (more ptx.Operand) { return e.SetpGtS32(e.Pred(), e.toCopy, ptx.Int(0)) }

func (e *emitter) endCopy() {
	e.CpAsyncCommitGroup()
	e.AddS32(e.toCopy, e.toCopy, ptx.Int(-1))
	if e.shortLast {
		e.AddS32(e.left, e.left, ptx.Int(-e.s.Config.BlockK))
	}
	e.nextStage(e.writeStage)
}

// nextStage moves the address of a stage on, from the last stage to the first.
func (e *emitter) nextStage(stage ptx.Operand) {
	e.AddS32(stage, stage, ptx.Int(e.g.stageBytes))
	wrap := e.SetpEqS32(e.Pred(), stage, e.stagesEnd)
	e.SelpB32(stage, e.Smem, stage, wrap)
}

// load reads the fragments of a step.
func (e *emitter) load(step int, a, b []ptx.Operand) {
	for i := range e.g.tilesM {
		e.fragA.load(step, i, a[4*i:4*i+4])
	}
	for i := 0; i < e.g.tilesN; i += 2 {
		e.fragB.load(step, i/2, b[2*i:min(2*i+4, len(b))])
	}
}

// round makes fragments of fp32 numbers tf32. The matrix instruction leaves it open what the lower bits of fp32 do.
func (e *emitter) round(fragments ...[]ptx.Operand) {
	if !instructionOf(e.s.DType).round {
		return
	}
	for _, registers := range fragments {
		for _, r := range registers {
			e.CvtRnaTF32F32(r, r)
		}
	}
}

// multiply issues the matrix instructions of a step. It walks the tiles in a serpentine, so that consecutive
// instructions share an operand. It calls before at the start of each column of tiles.
func (e *emitter) multiply(a, b []ptx.Operand, before func(n int)) {
	if e.widened {
		e.multiplyWidened(a, b, before)
		return
	}
	mma := instructionOf(e.s.DType).emit
	av := e.vectors(a, 4)
	for n := range e.g.tilesN {
		before(n)
		bv := e.Vec(b[2*n : 2*n+2]...)
		for m := range e.g.tilesM {
			if n%2 == 1 {
				m = e.g.tilesM - 1 - m
			}
			acc := e.accVec[m*e.g.tilesN+n]
			mma(e.Builder.Builder, acc, av[m], bv, acc)
		}
	}
}

// vectors groups registers by n.
func (e *emitter) vectors(registers []ptx.Operand, n int) []ptx.Operand {
	v := make([]ptx.Operand, len(registers)/n)
	for i := range v {
		v[i] = e.Vec(registers[n*i : n*i+n]...)
	}
	return v
}

// multiplyWidened is multiply for fp8 operands as fp16. Of each register, which has four indices along K, the lower two
// make one step of the fp16 instruction and the upper two another. The indices are in another order than along K, but
// in the same for A and B.
func (e *emitter) multiplyWidened(a, b []ptx.Operand, before func(n int)) {
	var av [2][]ptx.Operand
	for i, halves := range e.widen(a) {
		av[i] = e.vectors(halves, 4)
	}
	for n := range e.g.tilesN {
		before(n)
		for i, halves := range e.widen(b[2*n : 2*n+2]) {
			bv := e.Vec(halves...)
			for m := range e.g.tilesM {
				if (n+i)%2 == 1 {
					m = e.g.tilesM - 1 - m
				}
				acc := e.accVec[m*e.g.tilesN+n]
				e.MmaSyncM16N8K16F32F16(acc, av[i][m], bv, acc)
			}
		}
	}
}

// widen converts registers of four fp8 numbers. It returns the lower two of each as fp16, and the upper two.
func (e *emitter) widen(registers []ptx.Operand) (pairs [2][]ptx.Operand) {
	convert := instructionOf(e.s.DType).widen
	for _, r := range registers {
		halves := e.Regs(2, e.B16)
		e.MovB32Unpack(e.Vec(halves...), r)
		for i, h := range halves {
			pairs[i] = append(pairs[i], convert(e.Builder.Builder, e.B32(), h))
		}
	}
	return pairs
}
