package families

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// calls are problems that ask for different kernels: layouts, types, epilogues, sums, batches, alignments and nests.
func calls(t *testing.T) []gemm.Problem {
	t.Helper()
	var all []gemm.Problem
	for _, types := range [][2]gemm.DType{
		{gemm.FP16, gemm.FP16}, {gemm.FP16, gemm.FP32}, {gemm.BF16, gemm.BF16}, {gemm.BF16, gemm.FP32},
		{gemm.TF32, gemm.FP32}, {gemm.FP32, gemm.FP32}, {gemm.FP8, gemm.FP16}, {gemm.FP8, gemm.BF16},
		{gemm.INT8, gemm.INT32},
	} {
		for layout := range 4 {
			p := gemm.New(512, 768, 1024)
			p.DType, p.Out = types[0], types[1]
			p.SetTrans(layout&1 != 0, layout&2 != 0)
			all = append(all, p)
		}
	}
	for _, change := range []func(p *gemm.Problem){
		func(p *gemm.Problem) { p.Batch = 6 },
		func(p *gemm.Problem) { p.Alpha, p.Beta = 0.5, 1 },
		func(p *gemm.Problem) { p.M, p.N, p.K = 511, 770, 1001 },
		func(p *gemm.Problem) { p.LDA, p.AlignA, p.AlignC = 1032, 8, 4 },
	} {
		for _, dtype := range []gemm.DType{gemm.FP16, gemm.FP32} {
			p := gemm.New(512, 768, 1024)
			p.DType = dtype
			change(&p)
			all = append(all, p)
		}
	}
	for i, epilogue := range []string{
		"bias+gelu", "relu", "scales+silu", "silu_gated", "residual", "bias_fp32",
		"gelu_tanh", "gelu_tanh_gated", "gelu_gated", "bias+silu+residual",
	} {
		p := gemm.New(512, 768, 1024)
		p.DType = []gemm.DType{gemm.FP16, gemm.BF16}[i%2]
		p.SetTrans(false, i%2 == 0)
		var err error
		if p.Epilogue, err = gemm.ParseEpilogue(epilogue); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return append(all, nested(t))
}

// nested is a contraction whose tensors are no matrices in memory.
func nested(t *testing.T) gemm.Problem {
	t.Helper()
	p := gemm.New(64, 63, 144)
	p.Batch, p.AlignA, p.AlignB, p.AlignC = 45, 2, 2, 2
	p.SetTrans(false, true)
	var err error
	p.Nest, err = gemm.ParseNest("m64:2160:0:945,n63:0:9:1,k9:1:1:0,k16:135:8505:0,b15:9:567:63,b3:138240:136080:60480")
	must.Do(t, err)
	return p
}

// TestSame writes the hash of about two thousand kernels, by name, to the file that $ORIGAMI_SAME_KERNELS names. `make
// same` compares them with those of an earlier state.
func TestSame(t *testing.T) {
	path := os.Getenv("ORIGAMI_SAME_KERNELS")
	if path == "" {
		t.Skip("ORIGAMI_SAME_KERNELS names no file")
	}
	file := must.Get(os.Create(path))(t)
	defer file.Close()
	out := bufio.NewWriter(file)
	written := 0
	for _, f := range All() {
		least := f.Target()
		if least.Suffix == 0 {
			least = target.Target{CC: 90, Suffix: target.ArchFeatures}
		}
		configs := must.Get(arch.Space{}.Enumerate(f.Space(), f.Axes()...))(t)
		for i, p := range calls(t) {
			written += hashes(t, out, f, p.Canonical(), configs, i, least)
		}
	}
	err := out.Flush()
	must.Need(t, err == nil && written >= 1000, "%d kernels: %v", written, err)
}

// hashes writes up to perCall kernels of a family for a problem. Calls begin at different configurations.
func hashes(t *testing.T, out *bufio.Writer, f gemmgen.Family, p gemm.Problem, configs []gemm.Config, call int,
	to target.Target,
) int {
	t.Helper()
	const perCall, steps = 32, 800
	step := len(configs)/steps + 1
	found := 0
	for i := call * 7 % step; i < len(configs) && found < perCall; i += step {
		c := configs[(i*31)%len(configs)]
		program, reason, _ := f.Program(gemmgen.NewCall(p), p.Output(), c, roomy)
		if reason != "" {
			continue
		}
		hash := sha256.New()
		for k := emit(t, program, to); k != nil; k = k.Before {
			hash.Write([]byte(k.Text))
		}
		fmt.Fprintf(out, "%s: %s: %s %x\n", f.Name(), p, c, hash.Sum(nil))
		found++
	}
	return found
}
