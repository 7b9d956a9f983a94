package ptx

import (
	"fmt"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// verifyOperands compares every operand with the instruction table.
func (a *assembly) verifyOperands() {
	for i := range a.code {
		in := &a.code[i]
		if in.op < 0 {
			continue
		}
		next := in.first
		row := &inst.Table()[in.op]
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
		if in.guard != 0 && inst.Table()[in.op].Flow == inst.Barrier {
			a.failf("%q: a barrier under a guard is not reached by all threads", a.line(i))
		}
	}
	if a.guard != 0 {
		a.failf("a guard at the end of the kernel guards nothing")
	}
}

// verifyLabels reports labels that are not placed, and names that are not unique.
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
	case o.form == inst.Tensor:
		for _, id := range a.vectors[o.id : o.id+uint32(o.value)] {
			f(id)
		}
	case o.form&(inst.Registers|inst.Global|inst.Shared) != 0:
		f(o.id)
	}
}

// visit calls read, unless it is nil, and then write for the registers of an instruction. It skips writes under a
// guard: they may not happen, so they define nothing.
func (a *assembly) visit(in *instruction, read, write func(id uint32)) {
	if in.op < 0 {
		return
	}
	guarded := in.guard != 0
	if guarded && read != nil {
		read(in.guard - 1)
	}
	given, writes := a.given(in), inst.Table()[in.op].Writes()
	if read != nil {
		for i := writes; i < len(given); i++ {
			a.each(&given[i], read)
		}
	}
	for i := 0; i < writes && !guarded; i++ {
		a.each(&given[i], write)
	}
}

// verifyDefinitions reports registers that are read before they are written on every path. It solves the forward
// dataflow problem "defined on every path from the entry" over the blocks.
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
					a.failf("%q reads a %s register that is not written on every path to it",
						a.line(i), a.registers[id])
				}
			}, defined.add)
		}
	}
}

// verifyBarriers reports barriers that some threads of a CTA may skip: those between a guarded Bra or Ret and the
// first block that every path from there passes through. BraUni is exempt: it states that all threads branch alike.
func (a *assembly) verifyBarriers() {
	for from, bl := range a.blocks {
		last := a.code[bl.end-1]
		if last.op < 0 || last.guard == 0 {
			continue
		}
		if flow := inst.Table()[last.op].Flow; flow != inst.Jump && flow != inst.Exit {
			continue
		}
		rejoined := make([]bool, len(a.blocks)) // blocks on every path from the branch to the end
		for n := range a.blocks {
			rejoined[n] = n != from && !a.ends(from, n)
		}
		a.walk(from, rejoined, func(n int) {
			for i := a.blocks[n].start; i < a.blocks[n].end; i++ {
				if op := a.code[i].op; op >= 0 && inst.Table()[op].Flow == inst.Barrier {
					a.failf("%q comes after %q, which some threads may leave by another way",
						a.line(i), a.line(bl.end-1))
				}
			}
		})
	}
}
