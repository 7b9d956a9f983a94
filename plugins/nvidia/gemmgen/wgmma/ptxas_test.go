package wgmma

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// hopper are the limits of an H100 or H200.
var hopper = gemmgen.Limits{
	RegistersPerThread: 255, RegisterFile: 65536, RegisterGranule: 8, SharedMemory: unit.Bytes(227 << 10),
	Processors: 132, Target: Family{}.Target(),
}

// spec returns the specification of a configuration, as "128x256x64,warps=12,stages=4,cluster=2".
func spec(t *testing.T, config, majors string, in, out gemm.DType) Spec {
	t.Helper()
	c := must.Get(gemm.ParseConfig(config, gemm.Config{SplitK: 1}, Family{}.Axes()...))(t)
	c.Kernel = Name
	s := Spec{DType: in, Out: out, AMajor: gemm.MajorK, BMajor: gemm.MajorK, Addressable: true, PairsC: true, Config: c}
	s.PairsC = Pairs(gemm.MaxVector, out, c)
	s.TilesC = Tiles(mapAlign, out, gemm.Epilogue{}, c)
	if majors[0] == 'm' {
		s.AMajor = gemm.MajorM
	}
	if majors[1] == 'n' {
		s.BMajor = gemm.MajorN
	}
	return s
}

// TestAssemble assembles kernels of every kind and compares registers and spills with what Check promises. It needs no
// GPU.
func TestAssemble(t *testing.T) {
	bin := gentest.Ptxas(t)
	for i, config := range []string{
		"64x16x64,warps=8,stages=8", "64x256x64,warps=8,stages=5", "128x128x64,warps=8,stages=4",
		"128x96x64,warps=12,stages=6,cluster=2", "128x128x64,warps=12,stages=7,cluster=2",
		"128x256x64,warps=12,stages=4", "128x256x64,warps=12,stages=4,cluster=2", "256x128x64,warps=12,stages=4,cluster=2",
		"256x176x64,warps=12,stages=3", "128x208x64,warps=12,stages=3,cluster=2",
		"128x256x64,warps=12,stages=4,split=2", "64x128x128,warps=8,stages=4,split=2,cluster=2",
		"128x192x128,warps=12,stages=2,split=2", "192x192x64,warps=16,stages=3", "256x192x64,warps=12,stages=3",
		"192x144x64,warps=8,stages=5,cluster=2", "192x128x128,warps=16,stages=2,split=3",
		"128x256x64,warps=12,stages=4,stream_k=1", "192x192x64,warps=16,stages=3,cluster=2,stream_k=1",
		"64x256x128,warps=8,stages=2,stream_k=1",
		"104x192x64,warps=16,stages=5", "104x192x64,warps=8,stages=5,cluster=2", "8x128x128,warps=8,stages=5",
		"176x128x64,warps=12,stages=4,cluster=2", "24x64x128,warps=8,stages=6", "240x128x64,warps=12,stages=4",
		"88x256x64,warps=12,stages=4", "128x120x64,warps=12,stages=4", "104x192x64,warps=8,stages=5,split=2",
		"128x104x64,warps=12,stages=5,cluster_n=2", "64x128x64,warps=8,stages=6,cluster_n=2",
		"128x112x64,warps=8,stages=6,cluster=2x4",
		"80x128x64,warps=8,stages=5,cluster_n=2,split=2", "128x256x64,warps=12,stages=4,cluster=2",
		"24x256x64,warps=12,stages=4",
	} {
		for n, j := range []int{i % 4, (i + 1) % 4} {
			s := spec(t, config, []string{"kk", "kn", "mk", "mn"}[j], gemm.FP16, gemm.FP16)
			if n == 1 {
				s.Epilogue = gemm.Epilogues()[i%len(gemm.Epilogues())]
				if s.Epilogue.Activation.Gated() && (s.Config.BlockN%s.gateStep() != 0 || s.BMajor != gemm.MajorK) {
					s.Epilogue.Activation = gemm.GELU
				}
				if i >= 32 { // two kinds of gates
					s.BMajor, s.Epilogue = gemm.MajorK, gemm.Epilogue{Bias: true, Activation: gemm.GatedSiLU, Residual: i > 32}
				}
				s.TilesC = Tiles(mapAlign, s.Out, s.Epilogue, s.Config)
			}
			switch {
			case j == 1:
				s.Out, s.TilesC = gemm.FP32, false
			case i == 0:
				s.PairsC, s.TilesC = false, false
			case i == 2:
				s.Adds, s.Epilogue = true, gemm.Epilogue{Activation: s.Epilogue.Activation.Single()}
			case j == 2:
				s.DType, s.Out = gemm.BF16, gemm.BF16
			case s.Config.BlockK == 128 && j == 0:
				s.DType = gemm.FP8
			}
			if reason, detail := s.Check(hopper); reason == arch.ReasonSharedMemory ||
				reason == arch.ReasonRegisters && s.Epilogue.Activation > gemm.ReLU {
				continue
			} else if reason != "" {
				t.Fatalf("%s: %s: %s", s.name(), reason, detail)
			}
			allowed := 0
			if g, _, _ := s.layout(); g.sums > 150 && s.Epilogue != (gemm.Epilogue{}) {
				allowed = 24 // behind the loop
			}
			if s.Epilogue.Residual {
				allowed = 96 // where R is added, behind the loop
			}
			assembled(t, bin, s, allowed)
		}
	}
}

// assembled assembles a kernel, which may spill so many bytes.
func assembled(t *testing.T, bin string, s Spec, allowed int) {
	t.Run(s.name(), func(t *testing.T) {
		t.Parallel()
		k := must.Get(s.Emit(hopper.Target))(t)
		registers, spills := must.Two(gentest.Assemble(t, bin, k.Text, hopper.Target))(t)
		// Consumers wait for registers that the producer gives up. They would wait for ever if there were fewer.
		if split := registerSplits[s.Config.NumWarps/4-1]; split.start != 0 && registers != split.start {
			t.Errorf("%d registers at the start, and the split wants %d", registers, split.start)
		}
		must.That(t, spills <= allowed && registers*k.Threads <= hopper.RegisterFile,
			"%d registers, %d bytes of spills", registers, spills)
	})
}

// TestAssembleTrees: kernels whose K is a tree, in a CTA or in several, do not spill, but for the largest tile of one
// warpgroup behind its loop, where it reads the parts of eight splits, and values of the epilogue of the largest tile
// with eight leaves, which are read again once a tile.
func TestAssembleTrees(t *testing.T) {
	bin := gentest.Ptxas(t)
	for i, config := range []string{
		"128x256x64,warps=12,stages=4,cluster=2,tree=8", "256x128x64,warps=12,stages=4,tree=2",
		"64x256x64,warps=8,stages=5,split=8,tree=8", "128x192x64,warps=12,stages=4,split=2,tree=8",
		"24x64x64,warps=8,stages=8,split=4,tree=8", "104x192x64,warps=16,stages=5,tree=4",
		"128x256x64,warps=12,stages=3,tree=2", "128x128x64,warps=12,stages=4,cluster=2,tree=8",
	} {
		s := spec(t, config, []string{"kk", "kn", "mn"}[i%3], gemm.BF16, []gemm.DType{gemm.BF16, gemm.FP32}[i%2])
		if reason, detail := s.Check(hopper); reason != "" {
			t.Fatalf("%s: %s: %s", s.name(), reason, detail)
		}
		assembled(t, bin, s, []int{16, 0, 184, 0, 0, 0, 0, 0}[i])
	}
}

// TestAssembleScaled: kernels of fp8 with scales, with and without promotion, which Check accepts do not spill in
// the loop.
func TestAssembleScaled(t *testing.T) {
	bin, built := gentest.Ptxas(t), 0
	for _, config := range []string{
		"64x128x128,warps=8,stages=4", "64x256x128,warps=8,stages=4", "128x128x128,warps=8,stages=4",
		"128x128x128,warps=12,stages=4,cluster=2", "128x160x128,warps=12,stages=3", "128x256x128,warps=12,stages=3",
		"192x128x128,warps=16,stages=3", "256x128x128,warps=12,stages=3", "16x128x128,warps=8,stages=6,split=2",
		"64x96x128,warps=8,stages=4,stream_k=1", "104x128x128,warps=8,stages=4", "200x128x128,warps=12,stages=3",
	} {
		for _, promote := range []string{"", ",promote=1"} {
			s := spec(t, config+promote, "kk", gemm.FP8, gemm.BF16)
			s.Epilogue = gemm.Epilogue{Scales: true, Bias: true, BiasType: gemm.FP32}
			if reason, detail := s.Check(hopper); reason != "" {
				must.That(t, promote != "", "%s: %s: %s", config, reason, detail)
				continue
			}
			built++
			allowed := 0
			if g, _, _ := s.layout(); g.sums >= 128 {
				allowed = 24 // behind the loop
			}
			assembled(t, bin, s, allowed)
		}
	}
	must.That(t, built >= 18, "only %d kernels", built)
}
