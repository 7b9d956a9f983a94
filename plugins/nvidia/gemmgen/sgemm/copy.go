package sgemm

import (
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// copier copies blocks of an operand to shared memory.
type copier struct {
	*emitter
	t *tile
	// line and element are the thread's first copy.
	line, element ptx.Operand
	// pointers are the addresses of the copies in line 0 of the next block, for each position along a line. rowBytes is
	// the distance of lines, as 32 bits and as 64.
	pointers               []ptx.Operand
	rowBytes, rowBytesWide ptx.Operand
	// last is the last line inside the matrix, for lines along K.
	last ptx.Operand
	// to is where the thread's first copy goes in a stage.
	to ptx.Operand
	// active says whether the thread has a copy at all. It is invalid if all threads have.
	active ptx.Operand
	// loaded are the registers of the copies on their way, with staging=registers.
	loaded [][]ptx.Operand
}

// newCopier emits the set-up. first and limit are the CTA's first index and the matrix's size across K.
func (e *emitter) newCopier(t *tile, first, limit ptx.Operand) *copier {
	e.Comment("copies of " + t.name)
	c := &copier{emitter: e, t: t}
	c.line, c.element = lineAndElement(e.Builder, t, e.Thread)
	if t.partial() {
		c.active = e.SetpLtS32(e.Pred(), e.Thread, ptx.Int(t.chunks()))
	}
	lineStep, elementStep := t.word(1, 0)*wordBytes, t.word(0, 1)*wordBytes
	c.to = e.Add(e.Mad(c.line, lineStep, e.Mad(c.element, elementStep, e.And(c.line, 0))), ptx.Int(t.at))

	base, wide := e.matrix(t.name, wordBytes)
	if e.s.splits() {
		along := wide
		if t.alongK() {
			along = ptx.Int(wordBytes)
		}
		e.MadLoS64(base, e.Wide(e.FirstK), along, base)
	}
	c.rowBytesWide, c.rowBytes = wide, e.CvtU32U64(e.B32(), wide)
	if t.alongK() {
		c.last = e.Add(limit, ptx.Int(-1))
		c.line = e.Add(c.line, first)
	}
	for i := range c.positions() {
		_, further := t.step(i)
		element := e.Add(c.element, ptx.Int(further))
		if !t.alongK() {
			e.AddS32(element, element, first)
			e.MinS32(element, element, e.Add(limit, ptx.Int(-t.width)))
		}
		c.pointers = append(c.pointers, e.MadLoS64(e.B64(), e.Wide(element), ptx.Int(wordBytes), base))
	}
	if e.g.staging == stagingRegisters {
		for range t.copies() {
			c.loaded = append(c.loaded, e.Sums.Zeros(t.width))
		}
	}
	return c
}

// positions is how many copies a thread has along a line.
func (c *copier) positions() int { return max(1, c.t.perLine()/c.t.threads) }

// copy emits the copies of a block to a stage, or to registers, and moves on. Only k indices are inside the matrix if
// k is valid; the others become zeros. The copies are only made if the guard is true or invalid.
func (c *copier) copy(stage, k, guard ptx.Operand) {
	run := c.Both(c.active, guard)
	to := ptx.Operand{}
	if c.g.staging == stagingAsync {
		to = c.Add(stage, c.to)
	}
	line0 := c.line
	if k == (ptx.Operand{}) && c.g.a.copies()+c.g.b.copies() > fewCopies {
		// The lines are the same in every block. If they are many, the assembler must not keep them in registers: they
		// depend on a zero that it cannot see through.
		line0 = c.Add(line0, c.Shr(c.blocks, 31))
	}
	for i := range c.t.copies() {
		lines, further := c.t.step(i)
		line, position := c.Add(line0, ptx.Int(lines)), i%c.positions()
		inside := ptx.Operand{}
		if k != (ptx.Operand{}) {
			index := line
			if c.t.alongK() {
				index = c.Add(c.element, ptx.Int(further))
			}
			inside = c.SetpLtS32(c.Pred(), index, k)
		}
		if c.t.alongK() {
			c.MinS32(line, line, c.last)
		}
		from := c.MadWideU32(c.B64(), line, c.rowBytes, c.pointers[position])
		if c.g.staging == stagingAsync {
			c.async(ptx.Shared(to, c.t.word(lines, further)*wordBytes), ptx.Global(from, 0), inside, run)
			continue
		}
		v := c.loaded[i]
		if inside != (ptx.Operand{}) {
			c.Sums.Clear([][]ptx.Operand{v})
		}
		c.When(c.Both(run, inside)).Load(v, ptx.Global(from, 0))
	}
	c.advance(k)
}

// fewCopies is the most copies of a thread whose lines the assembler may keep in registers.
const fewCopies = 6

// async copies neighbours, or writes zeros if they are not inside.
func (c *copier) async(to, from, inside, guard ptx.Operand) {
	bytes := c.t.width * wordBytes
	size := ptx.Operand{}
	if inside != (ptx.Operand{}) {
		size = c.SelpB32(c.B32(), ptx.Int(bytes), ptx.Int(0), inside)
	}
	c.CopyAsync(bytes, to, from, size, guard)
}

// advance moves on by k indices along K, or by a whole block if k is invalid.
func (c *copier) advance(k ptx.Operand) {
	block := c.g.blockK
	for _, p := range c.pointers {
		switch whole := k == (ptx.Operand{}); {
		case whole && c.t.alongK():
			c.AddS64(p, p, ptx.Int(block*wordBytes))
		case whole:
			c.MadLoS64(p, c.rowBytesWide, ptx.Int(block), p)
		case c.t.alongK():
			c.MadWideU32(p, k, ptx.Int(wordBytes), p)
		default:
			c.MadLoS64(p, c.rowBytesWide, c.Wide(k), p)
		}
	}
}

// store writes the loaded copies to a stage, if the guard is true or invalid.
func (c *copier) store(stage, guard ptx.Operand) {
	run, to := c.Both(c.active, guard), c.Add(stage, c.to)
	for i, v := range c.loaded {
		line, further := c.t.step(i)
		for j := 0; j < c.t.width; j += c.t.stored {
			c.When(run).Store(ptx.Shared(to, c.t.word(line, further+j)*wordBytes), v[j:j+c.t.stored])
		}
	}
}

// reader reads the operands of a thread from shared memory.
type reader struct {
	*emitter
	// a and b are the places of the thread's first elements in a stage, atA and atB in the one that is read.
	a, b, atA, atB ptx.Operand
	// steps is the reads of a block, each of span indices along K.
	steps, span int
}

func (e *emitter) newReader() *reader {
	g := &e.g
	r := &reader{emitter: e, span: 1, atA: e.B32(), atB: e.B32()}
	if !g.a.kRows {
		r.span = g.readA
	}
	r.steps = g.blockK / r.span
	r.a = e.Mad(e.row, g.a.across(1)*wordBytes, e.And(e.row, 0))
	r.b = e.Add(e.Mad(e.column, g.b.across(1)*wordBytes, e.And(e.column, 0)), ptx.Int(g.b.at))
	r.a, r.b = e.asRead(r.a, g.readA), e.asRead(r.b, g.readB)
	return r
}

// asRead returns the place of words that are to be read one by one. The assembler merges reads of neighbours where it
// sees that they are aligned. It does not see it of a place to which a zero is added that it cannot see through.
func (e *emitter) asRead(place ptx.Operand, elements int) ptx.Operand {
	if elements > 1 {
		return place
	}
	return e.Add(place, e.Shr(e.K, 31))
}

// from makes a stage the one to read.
func (r *reader) from(stage ptx.Operand) {
	r.AddS32(r.atA, r.a, stage)
	r.AddS32(r.atB, r.b, stage)
}

// operands are the elements of a thread for the indices of a step along K.
type operands struct{ a, b [][]ptx.Operand }

func (r *reader) registers() (o operands) {
	for range r.span {
		o.a, o.b = append(o.a, r.Regs(r.g.threadM, r.F32)), append(o.b, r.Regs(r.g.threadN, r.F32))
	}
	return o
}

// multiplyRows reads the operands of a step and adds its products, one row of A after the other: the next read of A is
// all that has to be ahead, so a step that spans several indices along K takes few registers.
func (r *reader) multiplyRows(step int) {
	b := make([][]ptx.Operand, r.span)
	for j := range b {
		b[j] = r.Regs(r.g.threadN, r.F32)
	}
	r.readB(step, b)
	for i := range r.g.threadM {
		a := r.Regs(r.span, r.F32)
		r.Load(a, ptx.Shared(r.atA, (r.g.rowAt(i)*r.g.a.stride+step*r.span)*wordBytes))
		for j, x := range a {
			for n, y := range b[j] {
				r.FmaF32(r.acc[i][n], x, y, r.acc[i][n])
			}
		}
	}
}

// read reads the operands of a step.
func (r *reader) read(step int, o operands) {
	g, k := &r.g, step*r.span
	if g.a.kRows {
		for i := 0; i < g.threadM; i += g.readA {
			r.Load(o.a[0][i:i+g.readA], ptx.Shared(r.atA, (k*g.a.stride+g.rowAt(i))*wordBytes))
		}
	} else {
		for i := range g.threadM {
			var v []ptx.Operand
			for j := range r.span {
				v = append(v, o.a[j][i])
			}
			r.Load(v, ptx.Shared(r.atA, (g.rowAt(i)*g.a.stride+k)*wordBytes))
		}
	}
	r.readB(step, o.b)
}

// readB reads the elements of B of a step.
func (r *reader) readB(step int, b [][]ptx.Operand) {
	g := &r.g
	for j, v := range b {
		for i := 0; i < g.threadN; i += g.readB {
			r.Load(v[i:i+g.readB], ptx.Shared(r.atB, ((step*r.span+j)*g.b.stride+g.columnAt(i))*wordBytes))
		}
	}
}

// multiplyStep adds the products of a step.
func (r *reader) multiplyStep(o operands) {
	for j := range r.span {
		r.multiply(o.a[j], o.b[j])
	}
}

// firstBlock returns the number of blocks along K and how many indices the first one has.
func (e *emitter) firstBlock() (blocks, first ptx.Operand) {
	blocks = e.Shr(e.Add(e.K, ptx.Int(e.g.blockK-1)), asm.Log2(e.g.blockK))
	if e.s.splits() {
		e.MaxS32(blocks, blocks, ptx.Int(1))
	}
	return blocks, e.Mad(e.Add(blocks, ptx.Int(-1)), -e.g.blockK, e.K)
}
