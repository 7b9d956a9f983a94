// Package gentest is what tests of generated kernels share.
package gentest

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// SharedPerCTA is the shared memory that a CTA may use, by target. Source: CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability".
var SharedPerCTA = map[target.Target]int{
	{CC: 80}: 163 << 10, {CC: 86}: 99 << 10, {CC: 89}: 99 << 10, {CC: 90}: 227 << 10,
}

// Ptxas finds the assembler: ORIGAMI_PTXAS, or ptxas in PATH. Without it the test is skipped, or fails if
// ORIGAMI_REQUIRE_PTXAS=1.
func Ptxas(t *testing.T) string {
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

// Assemble returns the registers per thread of a kernel and the bytes of its stack, which is where spills go.
func Assemble(t *testing.T, ptxas, text string, to target.Target) (registers, stack int, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, 0, err
	}
	log, err := exec.Command(ptxas, "-v", "-arch="+to.String(), "-o", os.DevNull, file).CombinedOutput()
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

// Problem is an fp16 problem of a batch.
func Problem(m, n, k, batch int, transA, transB bool) gemm.Problem {
	p := gemm.New(m, n, k)
	p.Batch = batch
	p.SetTrans(transA, transB)
	return p
}

// Want compares parameters of a launch, by name, and returns how many there are.
func Want(t testing.TB, k *ptx.Kernel, buffer []byte, want map[string]uint64) int {
	t.Helper()
	got := Params(k, buffer)
	for name, v := range want {
		if got[name] != v {
			t.Errorf("parameter %s of %s is %d, want %d", name, k.Name, got[name], v)
		}
	}
	return len(got)
}

// Params reads the parameters of a launch by name.
func Params(k *ptx.Kernel, buffer []byte) map[string]uint64 {
	got := map[string]uint64{}
	for _, p := range k.Params {
		if p.Type.Bytes() == 8 {
			got[p.Name] = binary.LittleEndian.Uint64(buffer[p.Offset:])
		} else {
			got[p.Name] = uint64(binary.LittleEndian.Uint32(buffer[p.Offset:]))
		}
	}
	return got
}
