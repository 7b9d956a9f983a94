package ptx

import "github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"

// Wgmma is the multiplication of a warpgroup with an extent of n along N, a multiple of 8 up to 256, for operands in
// the PTX type f16 or bf16: WgmmaM64N16K16F32F16 and the like.
func (b *Builder) Wgmma(n int, operands string, d, a, bDesc, add, transA, transB Operand) Operand {
	return b.wgmma(n, operands, d, a, bDesc, add, transA, transB)
}

// Wgmma8 is the multiplication for operands in e4m3 or e5m2, which are contiguous along K: WgmmaM64N16K32F32E4M3 and
// the like.
func (b *Builder) Wgmma8(n int, operands string, d, a, bDesc, add Operand) Operand {
	return b.wgmma(n, operands, d, a, bDesc, add)
}

func (b *Builder) wgmma(n int, operands string, all ...Operand) Operand {
	op := inst.Wgmma(n, operands)
	if op < 0 {
		b.errorf("there is no wgmma for %s with an extent of %d along N", operands, n)
		return Operand{}
	}
	return b.emit(int16(op), all...)
}
