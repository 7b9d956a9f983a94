package wgmma

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/emu"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// storer is the part of a kernel that stores a tile of Cᵀ whose first element is row m0, column n0 of C. In place of
// products, a sum is 1000 times its row of the transposed tile, plus its column. Source of which these are: PTX ISA,
// the accumulator of wgmma, "D fragment".
func storer(t *testing.T, s Spec, m0, n0 int) *ptx.Kernel {
	t.Helper()
	g, reason, detail := s.layout()
	if reason != "" {
		t.Fatal(reason, detail)
	}
	e := &emitter{Builder: asm.New("storer"), s: s, g: g}
	e.p = params{
		c: e.Param("c", ptx.U64), ldc: e.Param("ldc", ptx.S64), strideC: e.Param("stride_c", ptx.S64),
		m: e.Param("m", ptx.S32), n: e.Param("n", ptx.S32),
		alpha: e.Param("alpha", ptx.F32), beta: e.Param("beta", ptx.F32), bias: e.Param("bias", ptx.U64),
	}
	tid := e.Special(ptx.TidX)
	thread, consumer := e.And(tid, warpgroup-1), e.Shr(tid, 7)
	place := tile{m0: e.B32(), n0: e.B32(), batch: e.B32()}
	e.MovB32(place.m0, ptx.Int(m0))
	e.MovB32(place.n0, ptx.Int(n0))
	e.MovB32(place.batch, ptx.Int(1))
	lane := e.And(tid, 31)
	row := e.Mad(consumer, tileM*g.tiles, e.Mad(e.Shr(thread, 5), 16, e.Shr(lane, 2)))
	column := e.Shl(e.And(lane, 3), 1)
	sums := make([][]ptx.Operand, g.tiles)
	for i := range sums {
		sums[i] = e.Regs(g.columns/2, e.F32)
		for j, v := range sums[i] { // of each 8 columns two neighbours, and the same 8 rows below
			at := e.Add(row, ptx.Int(tileM*i+8*(j/2%2)))
			e.CvtF32S32(v, e.Mad(at, 1000, e.Add(column, ptx.Int(j/4*8+j%2))))
		}
	}
	e.store(place, thread, consumer, sums, nil)
	e.Ret()
	k, err := e.Build(hopper.Target)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestStoreTurned: each sum of a transposed tile goes to its place in C, scaled, added to what was there, with the bias
// of its column. What lies outside of C, and between its rows, stays.
func TestStoreTurned(t *testing.T) {
	const addressC, addressBias, ldc, stride, rows = 1 << 32, 2 << 32, 300, 300 * 120, 200
	for _, c := range []struct {
		config string
		m0, n0 int
	}{
		{"24x64x64,warps=8,stages=2", 0, 0},
		{"40x192x64,warps=16,stages=2", 80, 64},
		{"104x128x64,warps=8,stages=2", 8, 128},
		{"8x256x64,warps=12,stages=2", 96, 0},
	} {
		for _, adds := range []bool{false, true} {
			for _, bias := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s adds %t bias %t", c.config, adds, bias), func(t *testing.T) {
					s := spec(t, c.config, "kk", gemm.FP16, gemm.FP32)
					s.Adds, s.Epilogue.Bias = adds, bias
					k := storer(t, s, c.m0, c.n0)
					const m, n = 100, 250 // C, of the second matrix of a batch
					old, biases := make([]byte, 4*(stride+ldc*rows)), make([]byte, 4*n)
					for i := range len(old) / 4 {
						binary.LittleEndian.PutUint32(old[4*i:], math.Float32bits(float32(i%977)))
					}
					for i := range n {
						binary.LittleEndian.PutUint32(biases[4*i:], math.Float32bits(float32(3*i)))
					}
					got := append([]byte(nil), old...)
					values := map[string]uint64{
						"c": addressC, "ldc": ldc, "stride_c": stride, "m": m, "n": n, "bias": addressBias,
						"alpha": uint64(math.Float32bits(2)), "beta": uint64(math.Float32bits(4)),
					}
					if err := emu.Run(emu.Launch{Text: k.Text, Params: gemmgen.Pack(k, values), Grid: [3]int{1, 1, 1},
						Threads: warpgroup * (s.Config.NumWarps/4 - 1)}, emu.Memory{addressC: got, addressBias: biases}); err != nil {
						t.Fatal(err)
					}
					at := func(b []byte, i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
					for i := range len(old) / 4 {
						row, column := (i-stride)/ldc, (i-stride)%ldc
						want := at(old, i)
						if i >= stride && row >= c.m0 && row < min(m, c.m0+s.Config.BlockM) &&
							column >= c.n0 && column < min(n, c.n0+s.Config.BlockN) {
							want = 2 * float32(1000*(column-c.n0)+row-c.m0)
							if bias {
								want += at(biases, column)
							}
							if adds {
								want += 4 * at(old, i)
							}
						}
						if at(got, i) != want {
							t.Fatalf("C has %v in row %d, column %d, want %v", at(got, i), row, column, want)
						}
					}
				})
			}
		}
	}
}
