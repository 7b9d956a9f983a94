//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// common returns a term by the name that all models have for it.
func common(t *testing.T, d *arch.Description, row []float64, name string) float64 {
	t.Helper()
	for i := range d.Terms {
		if d.Terms[i].CommonName() == name {
			return row[i]
		}
	}
	t.Fatalf("%s: no term %s", d.ID(), name)
	return 0
}

// What limits a kernel, its waves and the SMs at work agree with each other and with the roofs, at every rung.
func TestBoundAgreesWithRoofs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	seen := map[arch.Bound]int{}
	for _, d := range refinedDevices(t) {
		for _, rung := range []arch.Rung{"", arch.RungCalibrated} {
			d.Rung = rung
			a := d.open(t, nil)
			desc := a.Describe()
			params := hw.Set(desc.Params)
			memory := a.Hierarchy().Levels()
			dram := float64(memory[len(memory)-1].Rate())
			for range 3 {
				p := nvtest.RandomProblem(rng)
				list := must.Get(a.Candidates(t.Context(), p, arch.Space{Kernel: d.kernel}))(t)
				for range 20 {
					c := list.Configs[rng.IntN(len(list.Configs))]
					estimate, row := make([]arch.Estimate, 1), make([]float64, len(desc.Terms))
					must.Do(t, a.Estimate(t.Context(), estimate, p, []gemm.Config{c}))
					must.Do(t, a.Terms(t.Context(), row, p, []gemm.Config{c}))
					bound, cycles := estimate[0].Bound, float64(estimate[0].Cycles)
					seen[bound]++
					seconds := cycles / float64(desc.Clock)
					moved := common(t, desc, row, arch.CommonDRAMTotal)
					compute := p.Flops() / seconds / params.Get("peak_"+p.DType.String())
					memory := moved / seconds / params.Get("dram_bandwidth")
					reached := moved / cycles / dram
					if bound == arch.BoundCompute && compute < 0.3 && memory > 0.9 ||
						bound == arch.BoundDRAM && reached < 0.35 || // half of the time, at the share that spills reach
						bound == arch.BoundLatency && (compute > 0.56 || reached > 0.55) {
						t.Errorf("%s %s %s: bound by %s at %.3f of the peak and %.3f of DRAM's", d, p, c, bound, compute, memory)
					}
					ctas := common(t, desc, row, arch.CommonTilesM) * common(t, desc, row, arch.CommonTilesN) *
						float64(p.Batch*c.SplitK)
					units := desc.Units
					if m, n := wgmma.Cluster(c); m*n > 2 { // which cannot have all of them
						units = wgmma.Resident(units, m*n) * m * n
					}
					fit := common(t, desc, row, arch.CommonCTAsPerUnit) * float64(units)
					active := common(t, desc, row, arch.CommonActiveUnits)
					if waves := common(t, desc, row, arch.CommonWaves); waves != ctas/fit ||
						!(active > 0 && active <= min(ctas, float64(desc.Units))) {
						t.Errorf("%s %s %s: %v waves and %v SMs for %v CTAs", d, p, c, waves, active, ctas)
					}
				}
			}
		}
	}
	for _, b := range []arch.Bound{arch.BoundCompute, arch.BoundL2, arch.BoundDRAM, arch.BoundLatency} {
		if seen[b] < 30 {
			t.Errorf("%d of the kernels are bound by %s", seen[b], b)
		}
	}
}
