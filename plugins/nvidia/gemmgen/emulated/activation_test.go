package emulated

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

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
