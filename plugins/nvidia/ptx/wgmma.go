package ptx

import "github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"

// Wgmma is the multiplication of a warpgroup with an extent of n along N, a multiple of 16 up to 256, for operands in
// bf16 or fp16: WgmmaM64N16K16F32F16 and the like.
func (b *Builder) Wgmma(n int, bf16 bool, d, a, bDesc, add, transA, transB Operand) {
	op := inst.Wgmma(n, bf16)
	if op < 0 {
		b.errorf("there is no wgmma with an extent of %d along N", n)
		return
	}
	b.emit(int16(op), d, a, bDesc, add, transA, transB)
}
