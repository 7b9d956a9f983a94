//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// assembler is ptxas of the toolkit, if it is of the same version as the compiler in the driver. It runs on every core
// and beside measurements, while the driver's compiler holds the driver's locks. What it has made is kept in the user's
// cache. The driver compiles what it does not, and keeps that in ~/.nv/ComputeCache.
type assembler struct {
	ptxas string  // "" if there is none
	kept  *cubins // nil keeps nothing
}

// keptBytes bounds the kept code. With ptxas 13.0 a kernel of mma has 9 to 32 kB, so there is room for some 10,000.
const keptBytes = 256 << 20

// newAssembler finds ptxas: the one on the path, or the toolkit's in its usual place.
func newAssembler() assembler {
	path, err := exec.LookPath("ptxas")
	if err != nil {
		if path, err = exec.LookPath("/usr/local/cuda/bin/ptxas"); err != nil {
			return assembler{}
		}
	}
	version, err := exec.Command(path, "--version").Output()
	driver := cu.Version()
	if err != nil || !strings.Contains(string(version), fmt.Sprintf("release %d.%d,", driver/1000, driver%1000/10)) {
		return assembler{}
	}
	a := assembler{ptxas: path}
	if cache, err := os.UserCacheDir(); err == nil {
		a.kept, _ = newCubins(filepath.Join(cache, "origami", "kernels"), version, keptBytes) // none only costs time
	}
	return a
}

// assemble returns the machine code of a PTX text, or nothing if the driver has to compile it.
func (a assembler) assemble(text string, t target.Target) []byte {
	if a.ptxas == "" {
		return nil
	}
	if a.kept != nil {
		if image := a.kept.get(text); image != nil {
			return image
		}
	}
	work, err := os.MkdirTemp("", "origami-ptxas-")
	if err != nil {
		return nil
	}
	defer func() { _ = os.RemoveAll(work) }()
	in, out := filepath.Join(work, "kernel.ptx"), filepath.Join(work, "kernel.cubin")
	if os.WriteFile(in, []byte(text), 0o600) != nil {
		return nil
	}
	if exec.Command(a.ptxas, "-arch="+t.String(), in, "-o", out).Run() != nil {
		return nil // the driver says what is wrong
	}
	image, err := os.ReadFile(out)
	if err != nil {
		return nil
	}
	if a.kept != nil {
		a.kept.put(text, image)
	}
	return image
}
