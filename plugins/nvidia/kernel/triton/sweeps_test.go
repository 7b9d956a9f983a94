package triton

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// The family's resources of kernels that were measured: of every type, layout, alignment and split. No constant was
// chosen for them. The floors are below what each set has.
func TestSweepResources(t *testing.T) {
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	f := Family{}
	for set, floor := range map[string]struct{ shared, registers, spills float64 }{
		"bf16": {1, 0.94, 1}, "layouts": {1, 0.97, 0.97}, "split": {1, 0.97, 0.96}, "fp8": {1, 0.99, 1},
		"int8": {1, 0.99, 1}, "tf32": {1, 0.94, 0.98}, "unaligned": {0.95, 0.8, 0.95},
	} {
		var all, shared, registers, spills float64
		for _, list := range []string{"h200-fit", "h200-test"} {
			folder := filepath.Join("..", "..", "data", "sweeps", set, list)
			data := must.Get(dataset.Read(folder, os.DirFS(folder)))(t)
			for _, p := range data.Problems() {
				o := kernel.OperandsOf(&p).WithWidths(f, &p)
				for _, m := range data.Sweep(p) {
					if m.Library != "" {
						continue
					}
					r := f.Resources(d, o, m.Config, p.K%(m.Config.BlockK*m.Config.SplitK) != 0)
					diff := r.Registers - m.Resources.Registers
					all++
					shared += share(r.SharedMemory == m.Resources.SharedMemory)
					registers += share(max(diff, -diff) <= 32)
					spills += share((r.SpillBytes > 0) == (m.Resources.SpillBytes > 0))
				}
			}
		}
		must.Hold(t, shared >= floor.shared*all && registers >= floor.registers*all && spills >= floor.spills*all,
			"%s: of %.0f, shared memory of %.3f is exact, registers of %.3f within 32, spills of %.3f right; floors %+v", set,
			all, shared/all, registers/all, spills/all, floor)
	}
}

func share(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
