package ptx

import "fmt"

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
	opcode := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", n, wgmmaSteps[operands], sums, operands, operands)
	op, ok := opcodes()[opcode]
	if !ok {
		b.errorf("there is no wgmma for %s with an extent of %d along N", operands, n)
		return
	}
	b.emit(op, append([]Operand{d, a, bDesc, add}, transposed...)...)
}
