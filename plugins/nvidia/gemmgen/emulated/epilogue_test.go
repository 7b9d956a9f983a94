package emulated

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

// TestStoreEpilogues compares gated activations, and R that is added last, with their definitions in float64: at edges
// within a tile, in both orientations, into C of 4 and of 2 bytes. What lies outside of C, and between its rows, stays.
func TestStoreEpilogues(t *testing.T) {
	const addressC, addressR, addressBias, m, n, stride, batch = 1 << 32, 2 << 32, 3 << 32, 101, 240, 300 * 110, 2
	for _, name := range []string{"128x32x64,warps=12,stages=2", "8x256x64,warps=12,stages=2"} {
		for _, text := range []string{
			"silu_gated", "bias+gelu_gated", "gelu_tanh_gated+residual", "bias+gelu+residual", "residual",
		} {
			for _, out := range []gemm.DType{gemm.FP32, gemm.BF16} {
				if out == gemm.BF16 && !strings.HasSuffix(text, "residual") {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %s", name, text, out), func(t *testing.T) {
					e, err := gemm.ParseEpilogue(text)
					if err != nil {
						t.Fatal(err)
					}
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
					bias := newStored(addressBias, out, 1, n, n, 1)
					for i := range n {
						bias.set(0, 0, i, float64(i%7)/8-0.25)
					}
					for i := range m * columns {
						r.set(1, i/columns, i%columns, float64(i%13)/4-1)
					}
					before := append([]byte(nil), c.bytes...)
					const alpha = 0x1p-13
					program := part(t, fmt.Sprintf("store-%s,%s,%s", name, text, out))
					values := map[string]uint64{"c": addressC, "r": addressR, "bias": addressBias, "ldc": uint64(ldc),
						"stride_c": stride, "m": m, "n": uint64(columns), "m0": uint64(m0), "n0": uint64(n0),
						"alpha": uint64(math.Float32bits(alpha))}
					if err := Run(Launch{Text: program, Params: pack(program, values), Grid: [3]int{1, 1, 1},
						Threads: warpgroup * (config.NumWarps/4 - 1)},
						Memory{addressC: c.bytes, addressR: r.bytes, addressBias: bias.bytes}); err != nil {
						t.Fatal(err)
					}
					// x is A·B and the bias in a column of C, of a gate or what it is multiplied with.
					x := func(row, column, second int) float64 {
						row, inTile := row-m0, column-n0+second*half
						v := float64(1000*row + inTile)
						if config.BlockM < 64 {
							v = float64(1000*inTile + row)
						}
						v *= alpha
						if e.Bias {
							v += valueOf(out, bias.at(0, 0, column+second*columns))
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
