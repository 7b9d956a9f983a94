package gemmgen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
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
	spilled       = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
)

// assemble returns the registers per thread and the bytes of stack and spills of a kernel.
func assemble(t *testing.T, ptxas, text string, sm int) (registers, spills int, err error) {
	file := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, 0, err
	}
	log, err := exec.Command(ptxas, "-v", fmt.Sprintf("-arch=sm_%d", sm), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", err, log)
	}
	r, s := usedRegisters.FindSubmatch(log), spilled.FindSubmatch(log)
	if r == nil || s == nil {
		return 0, 0, fmt.Errorf("cannot read registers and spills from\n%s", log)
	}
	registers, _ = strconv.Atoi(string(r[1]))
	for _, n := range s[1:] {
		v, _ := strconv.Atoi(string(n))
		spills += v
	}
	return registers, spills, nil
}

// sharedPerCTA is what a CTA may use, by target. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability".
var sharedPerCTA = map[int]int{80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10}
