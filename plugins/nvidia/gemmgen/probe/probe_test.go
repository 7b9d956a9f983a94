package probe

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// types are the types of matrix instructions.
var types = []gemm.DType{gemm.FP16, gemm.BF16, gemm.TF32, gemm.FP8, gemm.FP8E5M2, gemm.INT8}

// all returns every kernel that a target has.
func all(t *testing.T, to target.Target) []*ptx.Kernel {
	t.Helper()
	var kernels []*ptx.Kernel
	add := func(k *ptx.Kernel, err error) {
		t.Helper()
		must.Do(t, err)
		kernels = append(kernels, k)
	}
	for _, emit := range []func(target.Target) (*ptx.Kernel, error){
		Empty, FMA, Slabs, CachedSlabs, Stream, Triad, Chase,
	} {
		add(emit(to))
	}
	for _, p := range []LoadPattern{
		{Bytes: 4}, {Bytes: 16}, {Bytes: 4, Broadcast: true}, {Global: true, Bytes: 4}, {Global: true, Bytes: 16},
		{Global: true, Bytes: 4, Broadcast: true},
	} {
		add(Loads(p, to))
	}
	for _, d := range types {
		if fp8 := d == gemm.FP8 || d == gemm.FP8E5M2; !fp8 || to.CC >= 89 && !to.EmulatesFP8() {
			add(mma.EmitPeak(d, to))
			add(mma.EmitLatency(d, to))
		}
		if to == (target.Target{CC: 90, Suffix: target.ArchFeatures}) {
			add(Wgmma(d, 1, true, to))
			add(Wgmma(d, 2, false, to))
		}
	}
	return kernels
}

var targets = []target.Target{{CC: 80}, {CC: 86}, {CC: 89}, {CC: 90, Suffix: target.ArchFeatures}, {CC: 120}}

// TestKernels: every kernel is built for every target that has its instructions, and the same each time.
func TestKernels(t *testing.T) {
	for _, to := range targets {
		first, second := all(t, to), all(t, to)
		for i, k := range first {
			must.That(t, k.Text == second[i].Text, "%s of %s differs", k.Name, to)
		}
	}
	_, err := Wgmma(gemm.FP16, 2, false, target.Target{CC: 120})
	must.That(t, err != nil, "wgmma on sm_120")
	_, err = Wgmma(gemm.FP32, 2, false, targets[3])
	must.That(t, err != nil, "wgmma of fp32")
	_, err = Loads(LoadPattern{Bytes: 8}, targets[0])
	must.That(t, err != nil, "loads of 8 bytes")
}

// TestAssemble: the assembler accepts every kernel and spills nothing. It needs no GPU.
func TestAssemble(t *testing.T) {
	ptxas := gentest.Ptxas(t)
	for _, to := range []target.Target{targets[0], targets[3]} {
		for _, k := range all(t, to) {
			if _, stack, err := gentest.Assemble(t, ptxas, k.Text, to); err != nil || stack > 0 {
				t.Errorf("%s for %s: %d bytes of stack: %v", k.Name, to, stack, err)
			}
		}
	}
}
