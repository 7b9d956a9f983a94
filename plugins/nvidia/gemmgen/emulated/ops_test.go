package emulated

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// find returns how to execute an opcode: for one thread, or for the lanes of a warp together.
func find(opcode string) (func(*thread, *instruction), func([]*thread, *instruction) error) {
	if f := together[opcode]; f != nil {
		return nil, f
	}
	if f := alone[opcode]; f != nil {
		return f, nil
	}
	for _, prefix := range []string{"ld.global", "ld.shared", "st.global", "st.shared"} {
		if strings.HasPrefix(opcode, prefix+".") {
			return move(opcode), nil
		}
	}
	return nil, nil
}

// move returns a load or a store: "ld.global.v2.f32".
func move(opcode string) func(*thread, *instruction) {
	parts := strings.Split(opcode, ".")
	count := 1
	if parts[2][0] == 'v' {
		count = int(parts[2][1] - '0')
	}
	last := parts[len(parts)-1]
	size := map[string]int{"8": 1, "16": 2, "32": 4, "64": 8}[last[1:]]
	space, load := parts[1], parts[0] == "ld"
	return func(t *thread, in *instruction) {
		value, at := in.operands[0], in.operands[1]
		if !load {
			value, at = at, value
		}
		b := t.memory(space, at, count*size)
		values := []operand{value}
		if value.kind == vector {
			values = value.parts
		}
		for i, v := range values {
			if load {
				t.set(v, uintOf(b[i*size:(i+1)*size]))
			} else {
				putUint(b[i*size:(i+1)*size], t.get(v))
			}
		}
	}
}

// unary, binary and ternary make instructions from functions of values.
func unary(f func(a uint64) uint64) func(*thread, *instruction) {
	return func(t *thread, in *instruction) { t.set(in.operands[0], f(t.get(in.operands[1]))) }
}

func binaryOp(f func(a, b uint64) uint64) func(*thread, *instruction) {
	return func(t *thread, in *instruction) {
		t.set(in.operands[0], f(t.get(in.operands[1]), t.get(in.operands[2])))
	}
}

func ternary(f func(a, b, c uint64) uint64) func(*thread, *instruction) {
	return func(t *thread, in *instruction) {
		t.set(in.operands[0], f(t.get(in.operands[1]), t.get(in.operands[2]), t.get(in.operands[3])))
	}
}

func f32(bits uint64) float32       { return math.Float32frombits(uint32(bits)) }
func f64(bits uint64) float64       { return math.Float64frombits(bits) }
func bits32(f float32) uint64       { return uint64(math.Float32bits(f)) }
func signed(v uint64) int64         { return int64(int32(v)) }
func same(a uint64) uint64          { return a }
func truth(b bool) (v uint64)       { return map[bool]uint64{true: 1}[b] }
func nothing(*thread, *instruction) {}

func floats(f func(a, b float32) float32) func(*thread, *instruction) {
	return binaryOp(func(a, b uint64) uint64 { return bits32(f(f32(a), f32(b))) })
}

func compare(f func(a, b int64) bool) func(*thread, *instruction) {
	return binaryOp(func(a, b uint64) uint64 { return truth(f(signed(a), signed(b))) })
}

func compareUnsigned(f func(a, b uint32) bool) func(*thread, *instruction) {
	return binaryOp(func(a, b uint64) uint64 { return truth(f(uint32(a), uint32(b))) })
}

func readParam(t *thread, in *instruction) {
	at, n := t.offset[in.operands[1].name], 4
	if strings.HasSuffix(in.opcode, "64") {
		n = 8
	}
	t.set(in.operands[0], uintOf(t.launch.Params[at:at+n]))
}

// alone are the instructions of one thread, but for loads and stores.
var alone = map[string]func(*thread, *instruction){
	"mov.b16": unary(same), "mov.b64": unary(same), "mov.f32": unary(same), "mov.u32": unary(same),
	"mov.b32": moveWord, "cvta.to.global.u64": unary(same),
	"ld.param.u32": readParam, "ld.param.u64": readParam, "ld.param.f32": readParam,

	"add.s32":      binaryOp(func(a, b uint64) uint64 { return a + b }),
	"sub.s32":      binaryOp(func(a, b uint64) uint64 { return a - b }),
	"add.s64":      binaryOp(func(a, b uint64) uint64 { return a + b }),
	"mul.lo.s32":   binaryOp(func(a, b uint64) uint64 { return a * b }),
	"mul.lo.s64":   binaryOp(func(a, b uint64) uint64 { return a * b }),
	"mad.lo.s32":   ternary(func(a, b, c uint64) uint64 { return a*b + c }),
	"mad.lo.s64":   ternary(func(a, b, c uint64) uint64 { return a*b + c }),
	"mul.wide.u32": binaryOp(func(a, b uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) }),
	"mad.wide.u32": ternary(func(a, b, c uint64) uint64 { return uint64(uint32(a))*uint64(uint32(b)) + c }),
	"cvt.s64.s32":  unary(func(a uint64) uint64 { return uint64(signed(a)) }),
	"cvt.u64.u32":  unary(same), "cvt.u32.u64": unary(same), "cvt.u32.u16": unary(same),
	"cvt.s32.s8": unary(func(a uint64) uint64 { return uint64(int8(a)) }),
	"div.u32":    binaryOp(func(a, b uint64) uint64 { return uint64(uint32(a) / uint32(b)) }),
	"min.s32":    binaryOp(func(a, b uint64) uint64 { return uint64(min(signed(a), signed(b))) }),
	"max.s32":    binaryOp(func(a, b uint64) uint64 { return uint64(max(signed(a), signed(b))) }),
	"min.u32":    binaryOp(func(a, b uint64) uint64 { return uint64(min(uint32(a), uint32(b))) }),
	"max.u32":    binaryOp(func(a, b uint64) uint64 { return uint64(max(uint32(a), uint32(b))) }),
	"min.u64":    binaryOp(func(a, b uint64) uint64 { return min(a, b) }),
	"abs.s32":    unary(func(a uint64) uint64 { return uint64(max(signed(a), -signed(a))) }),

	"and.b32": binaryOp(func(a, b uint64) uint64 { return a & b }),
	"or.b32":  binaryOp(func(a, b uint64) uint64 { return a | b }),
	"xor.b32": binaryOp(func(a, b uint64) uint64 { return a ^ b }),
	"shl.b32": binaryOp(func(a, b uint64) uint64 { return a << b }),
	"shr.u32": binaryOp(func(a, b uint64) uint64 { return a >> b }),
	"shl.b64": binaryOp(func(a, b uint64) uint64 { return a << b }),

	"setp.eq.s32":  compare(func(a, b int64) bool { return a == b }),
	"setp.ne.s32":  compare(func(a, b int64) bool { return a != b }),
	"setp.lt.s32":  compare(func(a, b int64) bool { return a < b }),
	"setp.gt.s32":  compare(func(a, b int64) bool { return a > b }),
	"setp.ge.u32":  compareUnsigned(func(a, b uint32) bool { return a >= b }),
	"setp.lt.u32":  compareUnsigned(func(a, b uint32) bool { return a < b }),
	"setp.gtu.f32": binaryOp(func(a, b uint64) uint64 { return truth(!(f32(a) <= f32(b))) }),
	"setp.neu.f32": binaryOp(func(a, b uint64) uint64 { return truth(f32(a) != f32(b)) }),
	"and.pred":     binaryOp(func(a, b uint64) uint64 { return a & b }),
	"selp.b32": ternary(func(a, b, c uint64) uint64 {
		if c != 0 {
			return a
		}
		return b
	}),

	"add.rn.f32":   floats(func(a, b float32) float32 { return a + b }),
	"sub.rn.f32":   floats(func(a, b float32) float32 { return a - b }),
	"mul.rn.f32":   floats(func(a, b float32) float32 { return a * b }),
	"div.full.f32": floats(func(a, b float32) float32 { return a / b }),
	"min.f32": floats(func(a, b float32) float32 {
		if a != a {
			return b
		}
		return min(a, b)
	}),
	"max.NaN.f32":        floats(func(a, b float32) float32 { return max(a, b) }),
	"ex2.approx.ftz.f32": unary(func(a uint64) uint64 { return bits32(float32(math.Exp2(float64(f32(a))))) }),
	"rcp.approx.ftz.f32": unary(func(a uint64) uint64 { return bits32(1 / f32(a)) }),
	"abs.f32":            unary(func(a uint64) uint64 { return a &^ (1 << 31) }),
	"fma.rn.f32": ternary(func(a, b, c uint64) uint64 {
		// The product is exact in float64. Tests use numbers whose sums are, too.
		return bits32(float32(float64(f32(a))*float64(f32(b)) + float64(f32(c))))
	}),
	"fma.rn.f64": ternary(func(a, b, c uint64) uint64 { return math.Float64bits(math.FMA(f64(a), f64(b), f64(c))) }),

	"cvt.f32.f16":     unary(func(a uint64) uint64 { return bits32(float32(gemmgen.Number(gemm.FP16, uint32(a)))) }),
	"cvt.f64.f16":     unary(func(a uint64) uint64 { return math.Float64bits(gemmgen.Number(gemm.FP16, uint32(a))) }),
	"cvt.f64.f32":     unary(func(a uint64) uint64 { return math.Float64bits(float64(f32(a))) }),
	"cvt.rn.f32.f64":  unary(func(a uint64) uint64 { return bits32(float32(f64(a))) }),
	"cvt.rn.f32.s32":  unary(func(a uint64) uint64 { return bits32(float32(signed(a))) }),
	"cvt.rn.f64.s32":  unary(func(a uint64) uint64 { return math.Float64bits(float64(signed(a))) }),
	"cvt.rni.s32.f64": unary(func(a uint64) uint64 { return uint64(int64(math.RoundToEven(f64(a)))) }),
	"cvt.rn.f16.f32":  unary(func(a uint64) uint64 { return rounded(gemm.FP16, float64(f32(a))) }),
	"cvt.rn.bf16.f32": unary(func(a uint64) uint64 { return rounded(gemm.BF16, float64(f32(a))) }),
	"cvt.rn.f16x2.f32": binaryOp(func(a, b uint64) uint64 {
		return rounded(gemm.FP16, float64(f32(a)))<<16 | rounded(gemm.FP16, float64(f32(b)))
	}),
	"cvt.rn.bf16x2.f32": binaryOp(func(a, b uint64) uint64 {
		return rounded(gemm.BF16, float64(f32(a)))<<16 | rounded(gemm.BF16, float64(f32(b)))
	}),
	"cvt.rn.f16x2.e4m3x2": unary(pairToHalf(gemm.FP8)),
	"cvt.rn.f16x2.e5m2x2": unary(pairToHalf(gemm.FP8E5M2)),
	"cvt.rna.tf32.f32":    unary(func(a uint64) uint64 { return (a + 1<<12) &^ (1<<13 - 1) }),

	"fence.acq_rel.gpu": nothing,
	"atom.acq_rel.gpu.global.add.u32": func(t *thread, in *instruction) {
		b := t.memory("global", in.operands[1], 4)
		old := binary.LittleEndian.Uint32(b)
		binary.LittleEndian.PutUint32(b, old+uint32(t.get(in.operands[2])))
		t.set(in.operands[0], uint64(old))
	},
	"red.global.max.u32": reduce("global", 4, func(a, b uint64) uint64 { return max(a, b) }),
	"red.global.add.u64": reduce("global", 8, func(a, b uint64) uint64 { return a + b }),
	"red.global.min.u64": reduce("global", 8, func(a, b uint64) uint64 { return min(a, b) }),
	"red.shared.max.u32": reduce("shared", 4, func(a, b uint64) uint64 { return max(a, b) }),
	"red.shared.add.u32": reduce("shared", 4, func(a, b uint64) uint64 { return a + b }),
	"red.shared.min.u64": reduce("shared", 8, func(a, b uint64) uint64 { return min(a, b) }),

	"cp.async.ca.shared.global":          copyAsync,
	"cp.async.cg.shared.global.L2::128B": copyAsync,
	"cp.async.commit_group": func(t *thread, _ *instruction) {
		t.groups, t.open = append(t.groups, t.open), nil
	},
	"cp.async.wait_group": func(t *thread, in *instruction) { t.arrive(int(t.get(in.operands[0]))) },
	"cp.async.wait_all": func(t *thread, _ *instruction) {
		t.groups, t.open = append(t.groups, t.open), nil
		t.arrive(0)
	},
}

// moveWord is mov.b32: of a word, from a word to two halves, or the other way around.
func moveWord(t *thread, in *instruction) {
	d, a := in.operands[0], in.operands[1]
	switch {
	case d.kind == vector:
		v := t.get(a)
		t.set(d.parts[0], v)
		t.set(d.parts[1], v>>16)
	case a.kind == vector:
		t.set(d, t.get(a.parts[0])|t.get(a.parts[1])<<16)
	default:
		t.set(d, t.get(a))
	}
}

func reduce(space string, n int, f func(a, b uint64) uint64) func(*thread, *instruction) {
	return func(t *thread, in *instruction) {
		b := t.memory(space, in.operands[0], n)
		putUint(b, f(uintOf(b), t.get(in.operands[1])))
	}
}

func copyAsync(t *thread, in *instruction) {
	n := int(t.get(in.operands[2]))
	c := copied{to: t.regs[in.operands[0].index] + in.operands[0].value,
		from: t.regs[in.operands[1].index] + in.operands[1].value, n: n, size: n}
	if len(in.operands) > 3 {
		c.size = int(t.get(in.operands[3]))
	}
	t.traced("global", c.from, c.size)
	for i := range t.memory("shared", in.operands[0], n) {
		t.shared[int(uint32(c.to))+i] = poison
	}
	t.open = append(t.open, c)
}
