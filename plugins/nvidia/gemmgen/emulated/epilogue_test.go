package emulated

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// storing is a part of a kernel that stores a tile, of which package wgmma has the text.
type storing struct {
	text, config, epilogue string
	adds                   bool // beta·C
	out                    gemm.DType
	m0, n0                 int     // where the tile begins, -1 where its columns end at half of it
	alpha, allowed         float64 // allowed is the relative error
}

// TestStore compares what is stored of a tile with its definition in float64: scaled, added to what was there, with the
// bias of its column, gated activations, and R that is added last: at edges within a tile, in both orientations, into C
// of 4 and of 2 bytes. What lies outside of C, and between its rows, stays.
func TestStore(t *testing.T) {
	var all []storing
	for _, s := range []storing{
		{config: "24x64x64,warps=8,stages=2"}, {config: "40x192x64,warps=16,stages=2", m0: 80, n0: 64},
		{config: "104x128x64,warps=8,stages=2", m0: 8, n0: 128}, {config: "8x256x64,warps=12,stages=2", m0: 96},
	} {
		for i := range 4 {
			s.adds, s.epilogue, s.out, s.alpha = i&1 > 0, []string{"", "bias"}[i/2], gemm.FP32, 2
			s.text = fmt.Sprintf("store-%s,adds=%t,bias=%t", s.config, s.adds, i > 1)
			all = append(all, s)
		}
	}
	for _, s := range []storing{
		{config: "128x32x64,warps=12,stages=2", n0: -1}, {config: "8x256x64,warps=12,stages=2", m0: 96},
	} {
		for _, s.epilogue = range []string{
			"silu_gated", "bias+gelu_gated", "gelu_tanh_gated+residual", "bias+gelu+residual", "residual",
			"scales", "scales+bias_fp32+silu_gated", "scales+bias_fp32+residual",
		} {
			s.out, s.alpha, s.allowed = gemm.FP32, 0x1p-13, 0x1p-18
			s.text = fmt.Sprintf("store-%s,%s,%s", s.config, s.epilogue, s.out)
			all = append(all, s)
			if strings.HasSuffix(s.epilogue, "residual") {
				s.out, s.allowed = gemm.BF16, 0x1p-8
				s.text = fmt.Sprintf("store-%s,%s,%s", s.config, s.epilogue, s.out)
				all = append(all, s)
			}
		}
	}
	for _, s := range all {
		t.Run(s.text, func(t *testing.T) { s.run(t) })
	}
}

func (s storing) run(t *testing.T) {
	const addressC, addressR, addressBias, addressA, addressB = 1 << 32, 2 << 32, 3 << 32, 4 << 32, 5 << 32
	const m, n, ldc, stride, batch = 101, 240, 300, 300 * 110, 2
	e := gemm.Epilogue{}
	if s.epilogue != "" {
		e = must.Get(gemm.ParseEpilogue(s.epilogue))(t)
	}
	p := gemm.Problem{N: n, Epilogue: e}
	config, columns := wgmmaConfig(t, s.config), p.Columns()
	half := config.BlockN * columns / n // a tile's columns of C
	m0, n0, beta := s.m0, s.n0, 0.0
	if n0 < 0 {
		n0 = columns - half/2
	}
	if s.adds {
		beta = 4
	}
	place := func(address uint64) *stored {
		to := newStored(address, s.out, m, columns, ldc, batch)
		to.Stride = stride
		to.bytes = make([]byte, (stride+ldc*(m+9))*s.out.Bytes())
		for i := range to.bytes {
			to.bytes[i] = byte(i%59) &^ 0x40
		}
		return to
	}
	c, r := place(addressC), place(addressR)
	biasType := s.out
	if e.BiasType != 0 {
		biasType = e.BiasType
	}
	bias := newStored(addressBias, biasType, 1, n, n, 1)
	for i := range n {
		bias.set(0, 0, i, float64(i%7)/8-0.25)
	}
	// A scale for each row, over a factor of 1000, and one for each column or for all.
	scaleA, scaleB := newStored(addressA, gemm.FP32, 1, m, m, 1), newStored(addressB, gemm.FP32, 1, n, n, 1)
	stepB := 1 - len(s.epilogue)%2
	for i := range m {
		scaleA.set(0, 0, i, math.Pow(1000, float64(i%11)/10-1))
	}
	for i := range n {
		scaleB.set(0, 0, i, 1+float64(i%5)/8)
	}
	for i := range m * columns {
		r.set(1, i/columns, i%columns, float64(i%13)/4-1)
		if s.adds {
			c.set(1, i/columns, i%columns, float64(i%977))
		}
	}
	before, program := slices.Clone(c.bytes), part(t, s.text)
	was := func(row, column int) float64 {
		at := (stride + row*ldc + column) * s.out.Bytes()
		return valueOf(s.out, before[at:])
	}
	rAt := uint64(addressR)
	if !e.Residual {
		rAt = addressC
	}
	values := map[string]uint64{"c": addressC, "r": rAt, "bias": addressBias, "ldc": ldc, "stride_c": stride,
		"m": m, "n": uint64(columns), "m0": uint64(m0), "n0": uint64(n0),
		"alpha": uint64(math.Float32bits(float32(s.alpha))), "beta": uint64(math.Float32bits(float32(beta))),
		"scale_a": addressA, "scale_b": addressB, "step_a": 1, "step_b": uint64(stepB)}
	must.Do(t, Run(Launch{Text: program, Params: pack(program, values), Grid: [3]int{1, 1, 1},
		Threads: warpgroup * (config.NumWarps/4 - 1)},
		Memory{addressC: c.bytes, addressR: r.bytes, addressBias: bias.bytes, addressA: scaleA.bytes,
			addressB: scaleB.bytes}))
	// x is A·B and the bias in a column of C, of a gate or what it is multiplied with.
	x := func(row, column, second int) float64 {
		inRow, inTile := row-m0, column-n0+second*half
		v := float64(1000*inRow + inTile)
		if wgmma.Turned(config) {
			v = float64(1000*inTile + inRow)
		}
		v *= s.alpha
		if e.Scales {
			v *= valueOf(gemm.FP32, scaleA.at(0, 0, row))
			v *= valueOf(gemm.FP32, scaleB.at(0, 0, stepB*(column+second*columns)))
		}
		if s.adds {
			v += beta * was(row, column)
		}
		if e.Bias {
			v += valueOf(biasType, bias.at(0, 0, column+second*columns))
		}
		return v
	}
	written := map[int]bool{}
	for row := m0; row < min(m, m0+config.BlockM); row++ {
		for column := n0; column < min(columns, n0+half); column++ {
			want := e.Activation.Of(x(row, column, 0))
			if e.Activation.Gated() {
				want *= x(row, column, 1)
			}
			if e.Residual {
				want += valueOf(s.out, r.at(1, row, column))
			}
			got := valueOf(s.out, c.at(1, row, column))
			must.Need(t, !math.IsNaN(got) && math.Abs(got-want) <= s.allowed*(1+math.Abs(want)),
				"row %d, column %d is %g, want %g", row, column, got, want)
			for i := range s.out.Bytes() {
				written[(stride+row*ldc+column)*s.out.Bytes()+i] = true
			}
		}
	}
	for i := range before {
		if !written[i] && before[i] != c.bytes[i] {
			t.Fatalf("byte %d of C was written, in element %d", i, i/s.out.Bytes()-stride)
		}
	}
}

// valueOf is the element in some bytes.
func valueOf(d gemm.DType, b []byte) float64 {
	if d == gemm.BF16 {
		return float64(math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24))
	}
	return float64(math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
}

// TestActivate compares the instructions of each activation with its definition in float64.
func TestActivate(t *testing.T) {
	xs := []float32{0, 1e-20, -1e-20, 0.5, -0.5, 300, -300, float32(math.Inf(1)), float32(math.NaN())}
	for x := float32(-12); x < 12; x += 0.01 {
		xs = append(xs, x)
	}
	for _, a := range []gemm.Activation{gemm.Identity, gemm.ReLU, gemm.ReLU2, gemm.QuickGELU, gemm.GELU,
		gemm.GELUTanh, gemm.SiLU} {
		b := asm.New("activate")
		b.Params(ptx.U64, "x")
		at := b.At(b.Special(ptx.TidX), 4, b.Pointer("x"))
		x := b.LdGlobalF32(b.F32(), ptx.Global(at, 0))
		b.Activate(x, a)
		b.StGlobalF32(ptx.Global(at, 0), x)
		b.Ret()
		k := must.Get(b.Build(target.Target{CC: 80}))(t)
		const address = 1 << 32
		memory := make([]byte, 4*len(xs))
		for i, x := range xs {
			binary.LittleEndian.PutUint32(memory[4*i:], math.Float32bits(x))
		}
		must.Do(t, Run(Launch{Text: k.Text, Params: binary.LittleEndian.AppendUint64(nil, address),
			Grid: [3]int{1, 1, 1}, Threads: len(xs)}, Memory{address: memory}))
		for i, x := range xs {
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(memory[4*i:])))
			want := a.Of(float64(x))
			allowed := 0x1p-20 * (math.Abs(want) + math.Min(1, math.Abs(float64(x))))
			must.That(t, math.IsNaN(want) == math.IsNaN(got) && !(math.Abs(got-want) > allowed),
				"activation %d of %g is %g, want %g", a, x, got, want)
		}
	}
}
