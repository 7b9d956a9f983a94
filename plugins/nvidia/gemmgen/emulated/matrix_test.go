package emulated

import (
	"encoding/binary"
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// together are the instructions that the lanes of a warp execute together.
var together = map[string]func(lanes []*thread, in *instruction) error{
	"bar.warp.sync":                 func([]*thread, *instruction) error { return nil },
	"cp.async.bulk.wait_group.read": func([]*thread, *instruction) error { return nil }, // none stores in bulk
	"shfl.sync.idx.b32":             shuffle,

	"ldmatrix.sync.aligned.m8n8.x2.shared.b16":       ldmatrix(2, false),
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16": ldmatrix(2, true),
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16":       ldmatrix(4, false),
	"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": ldmatrix(4, true),

	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32":   multiplyTiles("f16"),
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": multiplyTiles("bf16"),
	"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32": multiplyTiles("e4m3"),
	"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32": multiplyTiles("e5m2"),
	"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32":     multiplyTiles("s8"),
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32":  multiplyTiles("tf32"),

	"wmma.load.a.sync.aligned.row.m16n16k16.global.f16":  wmmaLoad(2, false),
	"wmma.load.a.sync.aligned.col.m16n16k16.global.f16":  wmmaLoad(2, true),
	"wmma.load.b.sync.aligned.row.m16n16k16.global.f16":  wmmaLoad(2, false),
	"wmma.load.b.sync.aligned.col.m16n16k16.global.f16":  wmmaLoad(2, true),
	"wmma.load.c.sync.aligned.row.m16n16k16.global.f32":  wmmaLoad(4, false),
	"wmma.store.d.sync.aligned.row.m16n16k16.global.f32": wmmaStore,
	"wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32":    wmmaMultiply,
	"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32":    wmmaMultiply,
	"wmma.mma.sync.aligned.col.row.m16n16k16.f32.f32":    wmmaMultiply,
	"wmma.mma.sync.aligned.col.col.m16n16k16.f32.f32":    wmmaMultiply,
}

// shuffle gives each lane the value of the lane whose number it names, of all 32.
func shuffle(lanes []*thread, in *instruction) error {
	values := make([]uint64, len(lanes))
	for i, t := range lanes {
		values[i] = t.get(in.operands[1])
	}
	for _, t := range lanes {
		t.set(in.operands[0], values[t.get(in.operands[2])%warpSize])
	}
	return nil
}

// ldmatrix reads n matrices of 8×8 elements of 16 bits. The address of row r of matrix i is that of lane 8·i + r.
func ldmatrix(n int, transposed bool) func(lanes []*thread, in *instruction) error {
	return func(lanes []*thread, in *instruction) error {
		for i := range n {
			var m [8][8]uint16
			for r := range m {
				t := lanes[8*i+r]
				b := t.memory("shared", in.operands[1], 16)
				if t.err != nil {
					return t.err
				}
				for c := range m[r] {
					m[r][c] = binary.LittleEndian.Uint16(b[2*c:])
				}
			}
			for l, t := range lanes {
				row, column := l/4, l%4*2
				low, high := m[row][column], m[row][column+1]
				if transposed {
					low, high = m[column][row], m[column+1][row]
				}
				t.set(in.operands[0].parts[i], uint64(high)<<16|uint64(low))
			}
		}
		return nil
	}
}

// format is the fragments of a matrix instruction. Source: PTX ISA, "Matrix Fragments for mma.m16n8k8", "mma.m16n8k16"
// and "mma.m16n8k32", which give the row and the column of element i of lane l, where g = l/4 and t = l mod 4.
type format struct {
	k, perRegister int
	a, b           func(i, g, t int) (row, column int)
}

// formatOf returns the fragments for an element type.
func formatOf(element string) format {
	switch element {
	case "tf32":
		return format{8, 1,
			func(i, g, t int) (int, int) { return g + i%2*8, t + i/2*4 },
			func(i, g, t int) (int, int) { return t + i*4, g }}
	case "f16", "bf16":
		return format{16, 2,
			func(i, g, t int) (int, int) { return g + i/2%2*8, 2*t + i%2 + i/4*8 },
			func(i, g, t int) (int, int) { return 2*t + i%2 + i/2*8, g }}
	default:
		return format{32, 4,
			func(i, g, t int) (int, int) { return g + i/4%2*8, 4*t + i%4 + i/8*16 },
			func(i, g, t int) (int, int) { return 4*t + i%4 + i/4*16, g }}
	}
}

// mma multiplies A of 16×k with B of k×8 and adds the sums, in float64, rounded once. Products of integers are exact.
func multiplyTiles(element string) func(lanes []*thread, in *instruction) error {
	f := formatOf(element)
	return func(lanes []*thread, in *instruction) error {
		a, b := make([]float64, 16*f.k), make([]float64, f.k*8)
		for l, t := range lanes {
			for i := range 16 * f.k / 32 {
				row, column := f.a(i, l/4, l%4)
				a[row*f.k+column] = f.element(element, t, in.operands[1].parts, i)
			}
			for i := range 8 * f.k / 32 {
				row, column := f.b(i, l/4, l%4)
				b[row*8+column] = f.element(element, t, in.operands[2].parts, i)
			}
			if t.err != nil {
				return t.err
			}
		}
		for l, t := range lanes {
			for i, d := range in.operands[0].parts {
				row, column := l/4+i/2*8, l%4*2+i%2
				c := t.get(in.operands[3].parts[i])
				sum := float64(f32(c))
				if element == "s8" {
					sum = float64(signed(c))
				}
				for k := range f.k {
					sum += a[row*f.k+k] * b[k*8+column]
				}
				if element == "s8" {
					t.set(d, uint64(int64(sum)))
				} else {
					t.set(d, bits32(float32(sum)))
				}
			}
		}
		return nil
	}
}

// element returns element i of a lane's fragment.
func (f format) element(element string, t *thread, registers []operand, i int) float64 {
	bits := 32 / f.perRegister
	v := uint32(t.get(registers[i/f.perRegister]) >> (i % f.perRegister * bits) & (1<<bits - 1))
	if element == "tf32" && v&(1<<13-1) != 0 {
		t.err = fmt.Errorf("%#x is no tf32 number", v)
	}
	return gemmgen.Number(elements[element], v)
}

// elements are the types of elements, as PTX names them.
var elements = map[string]gemm.DType{
	"f16": gemm.FP16, "bf16": gemm.BF16, "e4m3": gemm.FP8, "e5m2": gemm.FP8E5M2, "s8": gemm.INT8, "tf32": gemm.TF32,
}

// pairToHalf converts two fp8 numbers to fp16.
func pairToHalf(d gemm.DType) func(v uint64) uint64 {
	return func(v uint64) uint64 {
		low, high := gemmgen.Number(d, uint32(v&0xFF)), gemmgen.Number(d, uint32(v>>8&0xFF))
		return rounded(gemm.FP16, low) | rounded(gemm.FP16, high)<<16
	}
}

// rounded is a number rounded to a type.
func rounded(d gemm.DType, v float64) uint64 { return uint64(gemmgen.Bits(d, v)) }
