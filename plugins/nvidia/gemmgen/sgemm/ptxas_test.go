package sgemm

import (
	"fmt"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// TestAssemble assembles every rung, in every layout and without alignment, and configurations of the candidate list.
// None may spill more than what is needed behind the loop alone, and each fits as many times on an SM as it says. It
// needs no GPU.
func TestAssemble(t *testing.T) {
	bin := gentest.Ptxas(t)
	configs := map[string]gemm.Config{}
	for _, r := range Rungs() {
		configs[r.Name] = r.Config
	}
	for _, c := range []string{
		"128x128x16,warps=4,stages=3,lanes_m=8,pad=a4", "128x128x8,warps=8,stages=3,pad=a4",
		"256x128x16,warps=8,stages=2,staging=registers,thread_m=16", "64x64x32,warps=2,stages=4,lane_map=quad",
		"128x256x32,warps=8,stages=2,staging=registers,lanes_m=8,pad=a4", "32x32x8,warps=2,stages=2,thread_m=4",
		"128x256x16,warps=8,stages=2,staging=registers,lanes_m=8,pad=a4,split=4",
	} {
		config := must.Get(gemm.ParseConfig(c, gemm.Config{GroupM: 1, SplitK: 1, Kernel: Name}, axes...))(t)
		configs[c] = config
	}
	for name, c := range configs {
		for i, p := range []gemm.Problem{fp32(512, 512, 512), fp32(512, 512, 512), fp32(512, 512, 512), fp32(511, 511, 511)} {
			p.SetTrans(i == 1, i == 2)
			if _, why := Guard(&p, c); why != "" {
				continue
			}
			s := SpecFor(gemmgen.NewCall(p), c)
			r, reason, detail := s.Resources()
			must.Need(t, reason == "", "%s: %s: %s", name, reason, detail)
			to := []target.Target{{CC: 90}, {CC: 80}, {CC: 89}, {CC: 90}}[i]
			k := must.Get(s.Emit(to))(t)
			t.Run(fmt.Sprintf("%s/%s", name, k.Name), func(t *testing.T) {
				t.Parallel()
				registers, spills := must.Two(gentest.Assemble(t, bin, k.Text, to))(t)
				ctas := r.CTAs
				if to.CC == 89 { // has 1536 threads
					ctas = min(ctas, max(1, 1536/k.Threads))
				}
				const behindLoop = 32 // bytes: addresses for the output
				must.That(t, spills <= behindLoop && registers*k.Threads*ctas <= target.RegisterFile && registers >= r.Accumulators,
					"%d registers, %d bytes of stack and spills; %d expected, for %d CTAs", registers, spills, r.Registers, r.CTAs)
			})
		}
	}
}
