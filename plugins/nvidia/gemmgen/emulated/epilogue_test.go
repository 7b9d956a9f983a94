package emulated

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// TestStoreEpilogues compares gated activations, and R that is added last, with their definitions in float64: at edges
// within a tile, in both orientations, into C of 4 and of 2 bytes. What lies outside of C, and between its rows, stays.
func TestStoreEpilogues(t *testing.T) {
	const addressC, addressR, addressBias, m, n, stride, batch = 1 << 32, 2 << 32, 3 << 32, 101, 240, 300 * 110, 2
	const addressA, addressB = 4 << 32, 5 << 32
	for _, name := range []string{"128x32x64,warps=12,stages=2", "8x256x64,warps=12,stages=2"} {
		for _, text := range []string{
			"silu_gated", "bias+gelu_gated", "gelu_tanh_gated+residual", "bias+gelu+residual", "residual",
			"scales", "scales+bias_fp32+silu_gated", "scales+bias_fp32+residual",
		} {
			for _, out := range []gemm.DType{gemm.FP32, gemm.BF16} {
				if out == gemm.BF16 && !strings.HasSuffix(text, "residual") {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s", name, text, out), func(t *testing.T) {
					e := must.Get(gemm.ParseEpilogue(text))(t)
					p := gemm.Problem{N: n, Epilogue: e}
					config, columns, ldc := wgmmaConfig(t, name), p.Columns(), 300
					half := config.BlockN * columns / n // a tile's columns of C
					m0, n0 := 96, 0
					if config.BlockM > 64 {
						m0, n0 = 0, columns-half/2
					}
					place := func(address uint64) *stored {
						s := newStored(address, out, m, columns, ldc, batch)
						s.Stride = stride
						s.bytes = make([]byte, (stride+ldc*(m+9))*out.Bytes())
						for i := range s.bytes {
							s.bytes[i] = byte(i%59) &^ 0x40
						}
						return s
					}
					c, r := place(addressC), place(addressR)
					biasType := out
					if e.BiasType != 0 {
						biasType = e.BiasType
					}
					bias := newStored(addressBias, biasType, 1, n, n, 1)
					for i := range n {
						bias.set(0, 0, i, float64(i%7)/8-0.25)
					}
					// A scale for each row, over a factor of 1000, and one for each column or for all.
					scaleA, scaleB := newStored(addressA, gemm.FP32, 1, m, m, 1), newStored(addressB, gemm.FP32, 1, n, n, 1)
					stepB := 1 - len(text)%2
					for i := range m {
						scaleA.set(0, 0, i, math.Pow(1000, float64(i%11)/10-1))
					}
					for i := range n {
						scaleB.set(0, 0, i, 1+float64(i%5)/8)
					}
					for i := range m * columns {
						r.set(1, i/columns, i%columns, float64(i%13)/4-1)
					}
					before := append([]byte(nil), c.bytes...)
					const alpha = 0x1p-13
					program := part(t, fmt.Sprintf("store-%s,%s,%s", name, text, out))
					values := map[string]uint64{"c": addressC, "r": addressR, "bias": addressBias, "ldc": uint64(ldc),
						"stride_c": stride, "m": m, "n": uint64(columns), "m0": uint64(m0), "n0": uint64(n0),
						"alpha": uint64(math.Float32bits(alpha)), "scale_a": addressA, "scale_b": addressB, "step_a": 1,
						"step_b": uint64(stepB)}
					must.Do(t, Run(Launch{Text: program, Params: pack(program, values), Grid: [3]int{1, 1, 1},
						Threads: warpgroup * (config.NumWarps/4 - 1)},
						Memory{addressC: c.bytes, addressR: r.bytes, addressBias: bias.bytes, addressA: scaleA.bytes,
							addressB: scaleB.bytes}))
					// x is A·B and the bias in a column of C, of a gate or what it is multiplied with.
					x := func(row, column, second int) float64 {
						inRow, inTile := row-m0, column-n0+second*half
						v := float64(1000*inRow + inTile)
						if config.BlockM < 64 {
							v = float64(1000*inTile + inRow)
						}
						v *= alpha
						if e.Scales {
							v *= valueOf(gemm.FP32, scaleA.at(0, 0, row))
							v *= valueOf(gemm.FP32, scaleB.at(0, 0, stepB*(column+second*columns)))
						}
						if e.Bias {
							v += valueOf(biasType, bias.at(0, 0, column+second*columns))
						}
						return v
					}
					written, allowed := map[int]bool{}, 0x1p-18
					if out == gemm.BF16 {
						allowed = 0x1p-8
					}
					for row := m0; row < min(m, m0+config.BlockM); row++ {
						for column := n0; column < min(columns, n0+half); column++ {
							want := e.Activation.Of(x(row, column, 0))
							if e.Activation.Gated() {
								want *= x(row, column, 1)
							}
							if e.Residual {
								want += valueOf(out, r.at(1, row, column))
							}
							got := valueOf(out, c.at(1, row, column))
							if math.IsNaN(got) || math.Abs(got-want) > allowed*(1+math.Abs(want)) {
								t.Fatalf("row %d, column %d is %g, want %g", row, column, got, want)
							}
							for i := range out.Bytes() {
								written[(stride+row*ldc+column)*out.Bytes()+i] = true
							}
						}
					}
					for i := range before {
						if !written[i] && before[i] != c.bytes[i] {
							t.Fatalf("byte %d of C was written, in element %d", i, i/out.Bytes()-stride)
						}
					}
				})
			}
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
