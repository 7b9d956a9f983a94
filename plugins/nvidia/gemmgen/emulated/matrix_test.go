package emulated

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"
)

// together are the instructions that the lanes of a warp execute together.
var together = map[string]func(lanes []*thread, in *instruction) error{
	"bar.warp.sync":                 func([]*thread, *instruction) error { return nil },
	"cp.async.bulk.wait_group.read": func([]*thread, *instruction) error { return nil }, // no part of a kernel stores in bulk
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
	return widen(element, v)
}

// layout is the bits of a float type, without the sign.
type layout struct {
	exponent, mantissa int
	// finite says that the largest exponent is that of numbers, and only the largest mantissa with it is NaN.
	finite bool
}

var layouts = map[string]layout{
	"f16": {5, 10, false}, "bf16": {8, 7, false}, "e4m3": {4, 3, true}, "e5m2": {5, 2, false},
}

// widen returns the number that the bits of an element stand for.
func widen(element string, v uint32) float64 {
	switch element {
	case "s8":
		return float64(int8(v))
	case "tf32", "f32":
		return float64(math.Float32frombits(v))
	}
	l := layouts[element]
	sign := 1.0
	if v>>(l.exponent+l.mantissa)&1 == 1 {
		sign = -1
	}
	e, m := int(v>>l.mantissa)&(1<<l.exponent-1), int(v)&(1<<l.mantissa-1)
	bias, top := 1<<(l.exponent-1)-1, 1<<l.exponent-1
	switch {
	case e == top && l.finite && m == 1<<l.mantissa-1, e == top && !l.finite && m != 0:
		return math.NaN()
	case e == top && !l.finite:
		return sign * math.Inf(1)
	case e == 0:
		return sign * math.Ldexp(float64(m), 1-bias-l.mantissa)
	}
	return sign * math.Ldexp(float64(m|1<<l.mantissa), e-bias-l.mantissa)
}

// Narrow returns the bits of the number of an element type that is nearest to v, the even one of two. Element types are
// f16, bf16, e4m3, e5m2, s8, s32, tf32 and f32.
func Narrow(element string, v float64) uint32 {
	switch element {
	case "s8":
		return uint32(uint8(int8(v)))
	case "s32":
		return uint32(int32(v))
	case "tf32":
		return (math.Float32bits(float32(v)) + 1<<12) &^ (1<<13 - 1)
	case "f32":
		return math.Float32bits(float32(v))
	}
	l := layouts[element]
	// The bits of numbers that are not negative have the order of the numbers.
	size := math.Abs(v)
	above := sort.Search(1<<(l.exponent+l.mantissa), func(b int) bool { return !(widen(element, uint32(b)) <= size) })
	best := uint32(max(above-1, 0))
	low, high := size-widen(element, best), widen(element, best+1)-size
	if high < low || high == low && best&1 == 1 {
		best++
	}
	if math.Signbit(v) {
		best |= 1 << (l.exponent + l.mantissa)
	}
	return best
}

// pairToHalf converts two fp8 numbers to fp16.
func pairToHalf(element string, v uint64) uint64 {
	low, high := widen(element, uint32(v&0xFF)), widen(element, uint32(v>>8&0xFF))
	return uint64(Narrow("f16", low)) | uint64(Narrow("f16", high))<<16
}

// ElementOf returns the name of an element type here from its name in PTX or in core/gemm.
func ElementOf(name string) string {
	switch {
	case name == "fp16":
		return "f16"
	case name == "fp8":
		return "e4m3"
	case strings.HasSuffix(name, "e5m2"):
		return "e5m2"
	case name == "int8":
		return "s8"
	case name == "int32":
		return "s32"
	case name == "fp32":
		return "f32"
	}
	return name
}
