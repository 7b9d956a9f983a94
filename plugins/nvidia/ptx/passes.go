package ptx

import (
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// passes is what Build does, in order. A pass that verifies reports every mistake it finds; the first pass that finds
// one ends the build, since later passes rely on what it checks.
var passes = []struct {
	name string
	run  func(*assembly)
}{
	{"verify operands", (*assembly).verifyOperands},       // types, state spaces, vector lengths, guards
	{"verify labels", (*assembly).verifyLabels},           // placed once, named once
	{"split blocks", (*assembly).splitBlocks},             // basic blocks and their successors
	{"verify ends", (*assembly).verifyEnds},               // no path falls off the end
	{"verify definitions", (*assembly).verifyDefinitions}, // every register is written on every path before it is read
	{"verify barriers", (*assembly).verifyBarriers},       // all threads of the CTA reach a barrier
	{"derive target", (*assembly).deriveTarget},           // .target and .version from the instructions
	{"number registers", (*assembly).numberRegisters},     // dense numbers per class, in order of appearance
	{"verify registers", (*assembly).verifyRegisters},     // declared counts cover every use
	{"print", (*assembly).print},
}

// Kernel is a built kernel.
type Kernel struct {
	Name string
	// Text is the PTX module.
	Text string
	// SM and PTX are the target and ISA version that the instructions need, as 80 and 70: what .target and .version say.
	SM, PTX int
	Params  []Param
	// ParamBytes is the size of the parameter buffer.
	ParamBytes int
	// SharedBytes is the fixed shared memory; what is dynamic is set at launch.
	SharedBytes int
	// Registers counts the virtual registers per class (pred, b16, b32, b64, f32, f64). The assembler reuses registers whose
	// lives do not overlap, so hardware registers are fewer.
	Registers map[string]int
}

// assembly is the state that the passes share.
type assembly struct {
	*Builder
	arch   int
	blocks []block
	// number is the printed number of each register within its class, -1 for one that no instruction uses.
	number []int32
	counts [len(classes)]int
	kernel Kernel
	errs   []error
}

// block is a run of code[start:end] that is entered at its start only.
type block struct {
	start, end int
	next       []int
}

// classes are the register classes in the order of their declarations.
var classes = [...]struct {
	form         inst.Form
	name, prefix string
}{{inst.Pred, "pred", "%p"}, {inst.B16, "b16", "%h"}, {inst.B32, "b32", "%r"}, {inst.B64, "b64", "%d"}, {inst.F32, "f32", "%f"},
	{inst.F64, "f64", "%g"}}

func classOf(f inst.Form) int {
	switch f {
	case inst.Pred:
		return 0
	case inst.B16:
		return 1
	case inst.B32:
		return 2
	case inst.B64:
		return 3
	case inst.F32:
		return 4
	default:
		return 5
	}
}

// Build checks the kernel and returns it for any GPU of compute capability arch (as 90) or later. The target printed is
// the lowest that has all instructions; it is an error if that is above arch.
func (b *Builder) Build(arch int) (*Kernel, error) {
	a := &assembly{Builder: b, arch: arch, errs: b.errs}
	a.kernel = Kernel{Name: b.name, Params: b.params}
	for _, p := range b.params {
		a.kernel.ParamBytes = p.Offset + p.Type.Bytes()
	}
	for _, v := range b.shared {
		a.kernel.SharedBytes = (a.kernel.SharedBytes+v.align-1)/v.align*v.align + v.bytes
	}
	stage := "build"
	for _, pass := range passes {
		if len(a.errs) > 0 {
			break
		}
		stage = pass.name
		pass.run(a)
	}
	if len(a.errs) > 0 {
		for i, err := range a.errs {
			a.errs[i] = fmt.Errorf("kernel %s: %s: %w", b.name, stage, err)
		}
		return nil, errors.Join(a.errs...)
	}
	return &a.kernel, nil
}

func (a *assembly) failf(format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf(format, args...))
}

// line is an instruction as it is printed, for errors.
func (a *assembly) line(i int) string { return string(a.appendInstruction(nil, &a.code[i])) }

// given returns the operands that the constructor was given, without the literals.
func (a *assembly) given(in *instruction) []Operand {
	return a.operands[in.first : in.first+uint32(in.n)]
}

func (a *assembly) verifyOperands() {
	for i := range a.code {
		in := &a.code[i]
		if in.op < 0 {
			continue
		}
		next := in.first
		row := &inst.Table[in.op]
		for j := range row.Operands {
			want := &row.Operands[j]
			if want.Literal != "" {
				continue
			}
			got := &a.operands[next]
			next++
			if got.form&want.Forms == 0 || int(got.vector) != want.Vector {
				expected := want.Forms.String()
				if want.Vector > 0 {
					expected = fmt.Sprintf("a vector of %d %s", want.Vector, want.Forms)
				}
				a.failf("%q: operand %s takes %s, not %s", a.line(i), want.Name, expected, describe(*got))
			}
		}
		if in.guard != 0 && inst.Table[in.op].Flow == inst.Barrier {
			a.failf("%q: a barrier under a guard is not reached by all threads", a.line(i))
		}
	}
	if a.guard != 0 {
		a.failf("a guard at the end of the kernel guards nothing")
	}
}

func (a *assembly) verifyLabels() {
	names := map[string]bool{}
	for _, l := range a.labels {
		if l.at < 0 {
			a.failf("label %s is never placed", l.name)
		}
		if names[l.name] {
			a.failf("two labels are named %s", l.name)
		}
		names[l.name] = true
	}
}

func (a *assembly) splitBlocks() {
	starts := make([]bool, len(a.code)+1)
	starts[0] = true
	for i := range a.code {
		in := &a.code[i]
		switch {
		case in.op == opLabel:
			starts[i] = true
		case in.op >= 0 && inst.Table[in.op].Flow != inst.Next && inst.Table[in.op].Flow != inst.Barrier:
			starts[i+1] = true
		}
	}
	at := make(map[int]int) // block by its first instruction
	for i := range a.code {
		if starts[i] {
			at[i] = len(a.blocks)
			a.blocks = append(a.blocks, block{start: i})
		}
		a.blocks[len(a.blocks)-1].end = i + 1
	}
	for n := range a.blocks {
		bl := &a.blocks[n]
		last := a.code[bl.end-1]
		through := true
		if last.op >= 0 {
			switch row := inst.Table[last.op]; row.Flow {
			case inst.Jump, inst.JumpSame:
				bl.next = append(bl.next, at[a.labels[a.operands[last.first].id].at])
				through = last.guard != 0
			case inst.Exit:
				through = last.guard != 0
			default: // falls through
			}
		}
		if through {
			bl.next = append(bl.next, n+1) // may be len(blocks): the end
		}
	}
}

func (a *assembly) verifyEnds() {
	if len(a.blocks) == 0 {
		a.failf("the kernel is empty")
	}
	for n, bl := range a.blocks {
		for _, next := range bl.next {
			if next == len(a.blocks) {
				a.failf("control falls off the end after %q", a.line(a.blocks[n].end-1))
			}
		}
	}
}

// set is a set of registers.
type set []uint64

func (s set) add(id uint32)      { s[id/64] |= 1 << (id % 64) }
func (s set) has(id uint32) bool { return s[id/64]&(1<<(id%64)) != 0 }

// each calls f for every register of an operand.
func (a *assembly) each(o *Operand, f func(id uint32)) {
	switch {
	case o.vector != 0:
		for _, id := range a.vectors[o.id : o.id+uint32(o.vector)] {
			f(id)
		}
	case o.form&(inst.Registers|inst.Global|inst.Shared) != 0:
		f(o.id)
	}
}

// visit calls read, if it is given, and then write for the registers of an instruction. A write under a guard is no
// definition, but it does not need one either.
func (a *assembly) visit(in *instruction, read, write func(id uint32)) {
	if in.op < 0 {
		return
	}
	guarded := in.guard != 0
	if guarded && read != nil {
		read(in.guard - 1)
	}
	given, writes := a.given(in), inst.Table[in.op].Writes()
	if read != nil {
		for i := writes; i < len(given); i++ {
			a.each(&given[i], read)
		}
	}
	for i := 0; i < writes && !guarded; i++ {
		a.each(&given[i], write)
	}
}

// verifyDefinitions solves the forward problem "defined on every path from the entry" over the blocks, then reports
// reads of what is not.
func (a *assembly) verifyDefinitions() {
	words := (len(a.registers) + 63) / 64
	in, gen := make([]set, len(a.blocks)), make([]set, len(a.blocks))
	for n, bl := range a.blocks {
		in[n], gen[n] = make(set, words), make(set, words)
		if n > 0 {
			for w := range in[n] {
				in[n][w] = ^uint64(0)
			}
		}
		for i := bl.start; i < bl.end; i++ {
			a.visit(&a.code[i], nil, gen[n].add)
		}
	}
	for changed := true; changed; {
		changed = false
		for n, bl := range a.blocks {
			for _, next := range bl.next {
				for w, have := range in[next] {
					if now := have & (in[n][w] | gen[n][w]); now != have {
						in[next][w] = now
						changed = true
					}
				}
			}
		}
	}
	reported := make(set, words)
	for n, bl := range a.blocks {
		defined := in[n]
		for i := bl.start; i < bl.end; i++ {
			a.visit(&a.code[i], func(id uint32) {
				if !defined.has(id) && !reported.has(id) {
					reported.add(id)
					a.failf("%q reads a %s register that is not written on every path to it", a.line(i), a.registers[id])
				}
			}, defined.add)
		}
	}
}

// verifyBarriers reports a barrier that a branch can lead some lanes past: one that lies between a guarded Bra (or guarded
// Ret) and the first block that every way from it leads through. BraUni is the author's word that all threads agree.
func (a *assembly) verifyBarriers() {
	for from, bl := range a.blocks {
		last := a.code[bl.end-1]
		if last.op < 0 || last.guard == 0 {
			continue
		}
		if flow := inst.Table[last.op].Flow; flow != inst.Jump && flow != inst.Exit {
			continue
		}
		rejoined := make([]bool, len(a.blocks)) // blocks on every way from the branch to the end
		for n := range a.blocks {
			rejoined[n] = n != from && !a.ends(from, n)
		}
		a.walk(from, rejoined, func(n int) {
			for i := a.blocks[n].start; i < a.blocks[n].end; i++ {
				if op := a.code[i].op; op >= 0 && inst.Table[op].Flow == inst.Barrier {
					a.failf("%q comes after %q, which some threads may leave by another way", a.line(i), a.line(bl.end-1))
				}
			}
		})
	}
}

// ends reports whether a thread can end from a block without entering another one.
func (a *assembly) ends(from, without int) bool {
	if a.exits(from) {
		return true
	}
	avoid, found := make([]bool, len(a.blocks)), false
	avoid[without] = true
	a.walk(from, avoid, func(n int) { found = found || a.exits(n) })
	return found
}

func (a *assembly) exits(n int) bool {
	last := a.code[a.blocks[n].end-1]
	return last.op >= 0 && inst.Table[last.op].Flow == inst.Exit
}

// walk calls f for every block that can follow a block without entering one to avoid; for the block itself only if a
// loop leads back to it.
func (a *assembly) walk(from int, avoid []bool, f func(n int)) {
	seen := make([]bool, len(a.blocks))
	todo := []int{from}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, next := range a.blocks[n].next {
			if !avoid[next] && !seen[next] {
				seen[next] = true
				f(next)
				todo = append(todo, next)
			}
		}
	}
}

func (a *assembly) deriveTarget() {
	k := &a.kernel
	k.SM, k.PTX = 50, 60 // 64-bit addressing and what the directives need
	for i := range a.code {
		in := &a.code[i]
		if in.op < 0 {
			continue
		}
		row := &inst.Table[in.op]
		k.SM, k.PTX = max(k.SM, row.SM), max(k.PTX, row.PTX)
		if row.SM > a.arch {
			a.failf("%q needs sm_%d, the kernel is for sm_%d", a.line(i), row.SM, a.arch)
		}
	}
	k.PTX = max(k.PTX, targetPTX(k.SM))
}

// targetPTX returns the first ISA version, times ten, that knows a target. Source: PTX ISA, section ".target", table
// "PTX Release History".
func targetPTX(sm int) int {
	for _, t := range [...]struct{ sm, ptx int }{{100, 86}, {90, 78}, {89, 78}, {86, 71}, {80, 70}, {75, 63}, {70, 60}} {
		if sm >= t.sm {
			return t.ptx
		}
	}
	return 60
}

func (a *assembly) numberRegisters() {
	a.number = make([]int32, len(a.registers))
	for i := range a.number {
		a.number[i] = -1
	}
	use := func(id uint32) {
		if a.number[id] < 0 {
			c := classOf(a.registers[id])
			a.number[id] = int32(a.counts[c])
			a.counts[c]++
		}
	}
	for i := range a.code {
		in := &a.code[i]
		if in.guard != 0 {
			use(in.guard - 1)
		}
		given := a.given(in)
		for j := range given {
			a.each(&given[j], use)
		}
	}
	a.kernel.Registers = map[string]int{}
	for c, class := range classes {
		a.kernel.Registers[class.name] = a.counts[c]
	}
}

func (a *assembly) verifyRegisters() {
	for id, n := range a.number {
		if c := classOf(a.registers[id]); int(n) >= a.counts[c] {
			a.failf("register %d of class %s is beyond the %d declared", n, a.registers[id], a.counts[c])
		}
	}
	for i := range a.code {
		given := a.given(&a.code[i])
		for j := range given {
			a.each(&given[j], func(id uint32) {
				if a.number[id] < 0 {
					a.failf("%q uses a register without a number", a.line(i))
				}
			})
		}
	}
}
