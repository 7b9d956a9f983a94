package ptx

import (
	"strconv"
	"sync"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// Load reads 1, 2 or 4 neighbours of a class of registers from global or shared memory.
func (b *Builder) Load(to []Operand, from Operand) {
	d := b.neighbours(to)
	b.access("ld", from, d, d, from)
}

// Store writes 1, 2 or 4 neighbours to global or shared memory.
func (b *Builder) Store(to Operand, v []Operand) {
	a := b.neighbours(v)
	b.access("st", to, a, to, a)
}

func (b *Builder) neighbours(v []Operand) Operand {
	if len(v) == 1 {
		return v[0]
	}
	return b.Vec(v...)
}

func (b *Builder) access(kind string, at, v Operand, operands ...Operand) {
	opcode, space := kind+".global.", inst.Global
	if at.form == inst.Shared {
		opcode, space = kind+".shared.", inst.Shared
	}
	if v.vector > 0 {
		opcode += "v" + strconv.Itoa(int(v.vector)) + "."
	}
	op, ok := opcodes()[opcode+classes[classOf(v.form)].name]
	if !ok || at.form != space {
		b.errorf("there is no %s of %s at %s", opcode, describe(v), describe(at))
		return
	}
	b.emit(op, operands...)
}

// opcodes are the rows of the table by opcode.
var opcodes = sync.OnceValue(func() map[string]int16 {
	rows := map[string]int16{}
	for i, row := range inst.Table() {
		rows[row.Opcode] = int16(i)
	}
	return rows
})
