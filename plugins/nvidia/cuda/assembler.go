//go:build cuda

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/sdk/durable"
)

// assembler is ptxas of the toolkit, if it is of the same version as the compiler in the driver. It runs on every core
// and beside measurements, while the driver's compiler holds the driver's locks. What it has made is kept in a folder,
// by content. The driver compiles what it does not, and keeps that in ~/.nv/ComputeCache.
type assembler struct {
	ptxas  string // "" if there is none
	folder string // "" keeps nothing
}

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
		sum := sha256.Sum256(version)
		folder := filepath.Join(cache, "origami", "kernels", hex.EncodeToString(sum[:8]))
		if os.MkdirAll(folder, 0o700) == nil {
			a.folder = folder
		}
	}
	return a
}

// assemble returns the machine code of a PTX text, or nothing if the driver has to compile it.
func (a assembler) assemble(text string, t target.Target) []byte {
	if a.ptxas == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(text))
	cached := filepath.Join(a.folder, hex.EncodeToString(sum[:])+".cubin")
	if a.folder != "" {
		if image, err := os.ReadFile(cached); err == nil {
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
	if a.folder != "" {
		_ = durable.Write(cached, 0o600, image) // a cache that cannot be written only costs time
	}
	return image
}
