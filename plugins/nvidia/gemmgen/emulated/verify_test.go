package emulated

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// TestVerifiersCompute runs the reference of every type and layout, and the comparison of a right result and of wrong
// ones.
func TestVerifiersCompute(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2, gemm.INT8, gemm.TF32, gemm.FP32} {
		out := gemm.FP32
		if d == gemm.INT8 {
			out = gemm.INT32
		}
		for j, transposed := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			p := gemm.New(6, 5, 11)
			p.Batch, p.DType = 2, d
			p.SetTrans(transposed[0], transposed[1])
			call, a, b := gemmgen.NewCall(p), storedOf(p, gemm.A, d, 1, 1), storedOf(p, gemm.B, d, 2, 0)
			call.A, call.B, call.C.Address = a.Matrix, b.Matrix, 3<<32
			v := gemmgen.Verification{Call: call, Rows: 3, RowStep: 2, Want: 4 << 32, Verdict: 5 << 32, Scale: 2,
				Tolerance: 0x1p-12}
			if d == gemm.INT8 {
				v.Tolerance = 0
			}
			want := product(p, a, b, func() float64 { return float64(random.IntN(7) - 3) })
			m := Memory{a.Address: a.bytes, b.Address: b.bytes, call.C.Address: make([]byte, 2*30*4),
				v.Want: make([]byte, int(v.WantBytes()))}
			check := func(name string, wrong, first uint64) {
				m[v.Verdict] = gemmgen.NewVerdict()
				verdict := runVerifiers(t, v, out, m)
				if verdict.Wrong != wrong || wrong > 0 && verdict.First != first || (wrong > 0) != (verdict.MaxError > 0) {
					t.Errorf("%s trans %v, %s: %+v, want %d wrong, first %d", d, transposed, name, verdict, wrong, first)
				}
			}
			set := func(i int, w float64) { // in C, which has the elements of 6 rows of 5, twice
				binary.LittleEndian.PutUint32(m[call.C.Address][4*i:], gemmgen.Bits(out, w))
			}
			for i, w := range want {
				set(i, w)
			}
			check("right", 0, 0)
			set(30+2*5+4, want[30+2*5+4]+1)
			set(30+4*5+1, math.MaxInt32)
			check("two wrong", 2, 15+1*5+4)
			set(30+2*5+4, want[30+2*5+4])
			set(30+4*5+1, want[30+4*5+1])
			set(5+i%5, -100-float64(j)) // in a row that is not checked
			check("not checked", 0, 0)
		}
	}
}

// runVerifiers runs the reference and the comparison.
func runVerifiers(t *testing.T, v gemmgen.Verification, out gemm.DType, m Memory) gemmgen.Verdict {
	t.Helper()
	p := v.Call.Problem
	r := must.Get(gemmgen.EmitReference(p.DType, p.AMajor, p.BMajor, target.Target{CC: 90}))(t)
	c := must.Get(gemmgen.EmitComparison(out, target.Target{CC: 90}))(t)
	for _, k := range []struct {
		text   string
		launch func(gemmgen.Verification) (gemmgen.Launch, error)
	}{{r.Text, r.Launch}, {c.Text, c.Launch}} {
		l := must.Get(k.launch(v))(t)
		must.Do(t, Run(Launch{Text: k.text, Params: l.Params, Grid: [3]int{l.GridX, l.GridY, l.GridZ},
			Threads: l.Threads, Shared: int(l.SharedMemory)}, m))
	}
	return must.Get(gemmgen.ParseVerdict(m[v.Verdict]))(t)
}
