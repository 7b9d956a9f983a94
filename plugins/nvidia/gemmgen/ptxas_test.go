package gemmgen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// ptxas finds the assembler: ORIGAMI_PTXAS, or ptxas in PATH. Without it the test is skipped, unless ORIGAMI_REQUIRE_PTXAS=1
// says that it should be there.
func ptxas(t *testing.T) string {
	t.Helper()
	name := os.Getenv("ORIGAMI_PTXAS")
	if name == "" {
		name = "ptxas"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("ORIGAMI_REQUIRE_PTXAS") == "1" {
			t.Fatalf("ORIGAMI_REQUIRE_PTXAS=1, but there is no ptxas: %v", err)
		}
		t.Skipf("no ptxas (pip install nvidia-cuda-nvcc has one; ORIGAMI_PTXAS names it): %v", err)
	}
	return path
}

var (
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	stackFrame    = regexp.MustCompile(`(\d+) bytes stack frame`)
)

// assemble returns the registers per thread of a kernel and the bytes of its stack, which is where spills go.
func assemble(t *testing.T, ptxas, text string, cc int) (registers, stack int, err error) {
	file := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, 0, err
	}
	log, err := exec.Command(ptxas, "-v", fmt.Sprintf("-arch=sm_%d", cc), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", err, log)
	}
	r, s := usedRegisters.FindSubmatch(log), stackFrame.FindSubmatch(log)
	if r == nil || s == nil {
		return 0, 0, fmt.Errorf("cannot read registers and spills from\n%s", log)
	}
	registers, _ = strconv.Atoi(string(r[1]))
	stack, _ = strconv.Atoi(string(s[1]))
	return registers, stack, nil
}

// sharedPerCTA is what a CTA may use, by target. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability".
var sharedPerCTA = map[int]int{80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10}

// TestAssemble assembles kernels of every kind for every target and compares registers and spills with what Check
// promises. It needs no GPU.
func TestAssemble(t *testing.T) {
	bin := ptxas(t)
	for _, config := range []string{"16x16x64,warps=4,stages=4", "32x64x32,warps=4,stages=3", "64x64x64,warps=4,stages=2,split=2", "128x128x32,warps=4,stages=4", "128x128x64,warps=4,stages=2",
		"128x256x32,warps=8,stages=3", "256x128x64,warps=8,stages=2", "128x256x64,warps=8,stages=3", "64x16x16,warps=8,stages=6"} {
		for i, align := range []int{16, 16, 16, 16, 8, 4} {
			s := spec(t, config, []string{"kn", "kk", "mn", "mk"}[i%4], gemm.FP16, gemm.FP16, align, align, align)
			if i%2 == 1 {
				s.DType, s.Out = gemm.BF16, gemm.FP32
			}
			for cc, shared := range sharedPerCTA {
				if i >= 2 && cc != 90 { // the other layouts and widths differ little between targets
					continue
				}
				r, reason, _ := s.Check(unit.Bytes(shared))
				if reason == arch.ReasonSharedMemory {
					continue
				}
				if reason != "" {
					t.Fatalf("%s: %s", s.name(), reason)
				}
				k, err := Emit(s, sm(cc))
				if err != nil {
					t.Fatal(err)
				}
				t.Run(fmt.Sprintf("%s/sm_%d", s.name(), cc), func(t *testing.T) {
					registers, spills, err := assemble(t, bin, k.Text, cc)
					if err != nil {
						t.Fatal(err)
					}
					if spills > 0 || registers < r.Accumulators || registers*k.Threads > 1<<16 {
						t.Errorf("%d registers, %d bytes of stack and spills; %d accumulators", registers, spills, r.Accumulators)
					}
				})
			}
		}
	}
	t.Run("verify", func(t *testing.T) {
		for cc := range sharedPerCTA {
			for name, text := range verifiers(t, sm(cc)) {
				registers, spills, err := assemble(t, bin, text, cc)
				if err != nil || spills > 0 || registers > 64 {
					t.Errorf("%s on sm_%d: %d registers, %d bytes of spills: %v", name, cc, registers, spills, err)
				}
			}
		}
	})
	t.Run("peak", func(t *testing.T) {
		k, err := EmitPeak(gemm.FP16, sm(80))
		if err != nil {
			t.Fatal(err)
		}
		if registers, spills, err := assemble(t, bin, k.Text, 80); err != nil || spills > 0 || registers < 4*peakTilesM*peakTilesN {
			t.Errorf("%d registers, %d bytes of spills: %v", registers, spills, err)
		}
	})
}
