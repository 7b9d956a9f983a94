package ptx

import (
	"fmt"
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

// wgmmaSteps are the indices along K of the multiplications of a warpgroup, by the PTX type of their operands.
var wgmmaSteps = map[string]int{"f16": 16, "bf16": 16, "e4m3": 32, "e5m2": 32, "tf32": 8, "s8": 32}

// Wgmma is the multiplication of a warpgroup with n columns, a multiple of 8 up to 256 (for tf32 and s8 only 256), for
// operands of a PTX type: d = a · b, plus d if the predicate add is true. The descriptors of operands of 16 bits are
// followed by whether a and b are transposed.
func (b *Builder) Wgmma(n int, operands string, d, a, bDesc, add Operand, transposed ...Operand) {
	sums := "f32"
	if operands == "s8" {
		sums = "s32"
	}
	op, ok := opcodes()[fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", n, wgmmaSteps[operands], sums,
		operands, operands)]
	if !ok {
		b.errorf("there is no wgmma for %s with an extent of %d along N", operands, n)
		return
	}
	b.emit(op, append([]Operand{d, a, bDesc, add}, transposed...)...)
}
