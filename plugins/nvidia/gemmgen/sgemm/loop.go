package sgemm

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// stages is where blocks are copied to and read from.
type stages struct {
	*emitter
	end         ptx.Operand
	write, read ptx.Operand
	a, b        *copier
	reader      *reader
}

// stage prepares the copies of operands to shared memory, and their reads from it.
func (e *emitter) stage() {
	e.Smem = e.MovU32(e.B32(), e.DynamicShared("smem", widest))
	s := &stages{emitter: e, end: e.Add(e.Smem, ptx.Int(e.g.stages*e.g.stageBytes))}
	s.a, s.b = e.newCopier(&e.g.a, e.M0, e.M), e.newCopier(&e.g.b, e.N0, e.N)
	s.reader = e.newReader()
	s.write, s.read = e.MovB32(e.B32(), e.Smem), e.MovB32(e.B32(), e.Smem)
	s.reader.from(s.read)
	e.stages = s
}

// stagedLoop multiplies blocks that pass through shared memory.
func (e *emitter) stagedLoop() {
	s := e.stages
	blocks, first := e.firstBlock()
	e.blocks = blocks
	switch {
	case e.g.stages == 1:
		s.single(first)
	case e.g.staging == stagingRegisters:
		s.double(first)
	default:
		s.pipeline(first)
	}
}

// copy copies a block of both operands.
func (s *stages) copy(k, guard ptx.Operand) {
	s.a.copy(s.write, k, guard)
	s.b.copy(s.write, k, guard)
}

// store stores the loaded block to shared memory.
func (s *stages) store(guard ptx.Operand) {
	s.a.store(s.write, guard)
	s.b.store(s.write, guard)
}

// next moves an address to the next stage.
func (s *stages) next(stage ptx.Operand) {
	wrapped := s.Add(stage, ptx.Int(s.g.stageBytes))
	s.SelpB32(stage, s.Smem, wrapped, s.SetpGeU32(s.Pred(), wrapped, s.end))
}

// single has one buffer: load, store, wait, multiply, wait.
func (s *stages) single(first ptx.Operand) {
	loop, r := s.Label("loop"), s.reader
	s.copy(first, ptx.Operand{})
	s.Place(loop)
	s.store(ptx.Operand{})
	s.BarSync(ptx.Int(0))
	if r.span > 1 {
		for i := range r.steps {
			r.multiplyRows(i)
		}
		// The loop ends at its end: one that ends here makes the assembler write its body twice, and spill.
		more := s.CountDown(s.blocks)
		s.BarSync(ptx.Int(0))
		s.copy(ptx.Operand{}, more)
		s.If(more).BraUni(loop)
		return
	}
	done := s.Label("done")
	set := [2]operands{r.registers(), r.registers()}
	r.read(0, set[0])
	for i := range r.steps {
		if i+1 < r.steps {
			r.read(i+1, set[(i+1)%2])
		}
		r.multiplyStep(set[i%2])
	}
	s.IfNot(s.CountDown(s.blocks)).BraUni(done)
	s.BarSync(ptx.Int(0))
	s.copy(ptx.Operand{}, ptx.Operand{})
	s.BraUni(loop)
	s.Place(done)
}

// double has two buffers. Threads load a block while the one before is multiplied, and store it before its last step.
func (s *stages) double(first ptx.Operand) {
	s.copy(first, ptx.Operand{})
	s.store(ptx.Operand{})
	s.BarSync(ptx.Int(0))
	more := s.Pred()
	s.turns(func() {
		s.SetpGtS32(more, s.blocks, ptx.Int(1))
		s.copy(ptx.Operand{}, more)
	}, func() {
		s.next(s.write)
		s.store(more)
		s.BarSync(ptx.Int(0))
	})
}

// pipeline has several buffers, which asynchronous copies fill ahead.
func (s *stages) pipeline(first ptx.Operand) {
	more := s.Pred()
	left := s.Add(s.blocks, ptx.Int(-1)) // to be copied
	s.copy(first, ptx.Operand{})
	s.CpAsyncCommitGroup()
	ahead := func() {
		s.next(s.write)
		s.SetpGtS32(more, left, ptx.Int(0))
		s.copy(ptx.Operand{}, more)
		s.CpAsyncCommitGroup()
		s.AddS32(left, left, ptx.Int(-1))
	}
	ready := func() {
		s.CpAsyncWaitGroup(ptx.Int(s.g.stages - 2))
		s.BarSync(ptx.Int(0))
	}
	for range s.g.stages - 2 {
		ahead()
	}
	ready()
	s.turns(ahead, ready)
	s.CpAsyncWaitAll()
}

// turns is the loop over blocks with several buffers. copies issues the copies of a later block, publish makes the next
// one visible to all threads. The operands of a step are read while the step before is multiplied; the operands of the
// first step before the last step of the block before, so that multiplications hide the barrier.
func (s *stages) turns(copies, publish func()) {
	r := s.reader
	set := [2]operands{r.registers(), r.registers()}
	if r.steps > 1 {
		r.read(0, set[0])
	}
	s.Repeat("loop", s.blocks, func() {
		copies()
		if r.steps == 1 { // nothing to read ahead
			r.read(0, set[0])
			r.multiplyStep(set[0])
			s.move(publish)
			return
		}
		for i := range r.steps {
			if i+1 == r.steps {
				s.move(publish)
			}
			r.read((i+1)%r.steps, set[(i+1)%2])
			r.multiplyStep(set[i%2])
		}
	})
}

// move publishes the next block and reads from it.
func (s *stages) move(publish func()) {
	publish()
	s.next(s.read)
	s.reader.from(s.read)
}

// directLoop multiplies operands that threads read from global memory.
func (e *emitter) directLoop() {
	g := &e.g
	a := e.newLines("a", g.threadM, g.rowAt, e.Add(e.M0, e.row), e.M, e.s.AMajor == 'k')
	b := e.newLines("b", g.threadN, g.columnAt, e.Add(e.N0, e.column), e.N, e.s.BMajor == 'k')
	e.loopOver("loop", e.Shr(e.K, asm.Log2(g.blockK)), func() { e.direct(a, b, g.blockK) })
	if g.blockK > 1 {
		e.loopOver("rest", e.And(e.K, g.blockK-1), func() { e.direct(a, b, 1) })
	}
}

// loopOver emits a loop of so many turns, which may be none.
func (e *emitter) loopOver(name string, turns ptx.Operand, body func()) {
	done := e.Label(name + "_done")
	e.IfNot(e.SetpGtS32(e.Pred(), turns, ptx.Int(0))).BraUni(done)
	e.Repeat(name, turns, body)
	e.Place(done)
}

// lines are the elements of a thread's rows or columns along K in global memory.
type lines struct {
	pointers []ptx.Operand
	// step is the bytes from an index along K to the next, invalid if they are neighbours.
	step ptx.Operand
}

// newLines emits the set-up for n rows or columns from first on, at most limit.
func (e *emitter) newLines(
	name string, n int, at func(int) int, first, limit ptx.Operand, alongK bool,
) (l lines) {
	base, line := e.matrix(name, wordBytes)
	last := e.Add(limit, ptx.Int(-1))
	across := line
	if !alongK {
		l.step, across = line, e.MovB64(e.B64(), ptx.Int(wordBytes))
	}
	for i := range n {
		index := e.Add(first, ptx.Int(at(i)))
		e.MinS32(index, index, last)
		l.pointers = append(l.pointers, e.MadLoS64(e.B64(), e.Wide(index), across, base))
	}
	return l
}

// direct reads operands at n indices along K, and then multiplies them.
func (e *emitter) direct(a, b lines, n int) {
	var av, bv [][]ptx.Operand
	for k := range n {
		av, bv = append(av, e.take(a, k)), append(bv, e.take(b, k))
	}
	for _, l := range []lines{a, b} {
		for _, p := range l.pointers {
			if l.step == (ptx.Operand{}) {
				e.AddS64(p, p, ptx.Int(n*wordBytes))
			}
		}
	}
	for k := range n {
		e.multiply(av[k], bv[k])
	}
}

// take reads the elements at an index along K.
func (e *emitter) take(l lines, k int) (v []ptx.Operand) {
	for _, p := range l.pointers {
		if l.step == (ptx.Operand{}) {
			v = append(v, e.LdGlobalF32(e.F32(), ptx.Global(p, k*wordBytes)))
			continue
		}
		v = append(v, e.LdGlobalF32(e.F32(), ptx.Global(p, 0)))
		e.AddS64(p, p, l.step)
	}
	return v
}
