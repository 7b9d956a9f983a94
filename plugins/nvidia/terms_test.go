//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/archtest"
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
					estimate, row := archtest.Estimates(t, a, p, c)[0], archtest.Terms(t, a, p, c)
					bound, cycles := estimate.Bound, float64(estimate.Cycles)
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

// What is said not to enter a total does not change it.
func TestTermsThatDoNotEnterTheTotal(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, r := range []arch.OpenRequest{
		{Arch: "sm90", Device: "h200"}, {Arch: "sm90", Device: "h200", Rung: arch.RungCompiled}, {Arch: "sm89"},
		{Arch: "sm89", Model: "reference"},
	} {
		a := nvtest.Open(t, r)
		d := a.Describe()
		left := 0
		for range 60 {
			p := nvtest.RandomProblem(rng)
			p.DType = gemm.FP16
			list := must.Get(a.Candidates(t.Context(), p, arch.Space{}))(t)
			c := list.Configs[rng.IntN(len(list.Configs))]
			row := archtest.Terms(t, a, p, c)
			values := formula.Values(d, p, c, row)
			entering := formula.Entering(d, values)
			for i, term := range d.Terms {
				if !entering[i] && row[i] != 0 {
					values[term.Name] = 7*row[i] + 1
					left++
				}
			}
			for i, term := range d.Terms {
				if !entering[i] || term.Kind == arch.KindIntermediate || formula.IsRule(term.Formula) {
					continue
				}
				v, err := formula.Eval(term.Formula, values)
				if err != nil || math.Abs(v-row[i]) > 1e-9*math.Abs(row[i]) {
					t.Errorf("%s %s %s: %s is %v, %v without the others", d.ID(), p, c, term.Name, row[i], v)
				}
			}
		}
		must.That(t, left != 0 || d.Model != "pipelined", "%s on %s: every term enters every total", d.ID(), d.Rung)
	}
}

// The times of a kernel by itself enter its total at the rung that has them only, and a last wave only if there is one.
func TestTermsEnterWhereTheyCount(t *testing.T) {
	p := gemm.New(4096, 4096, 4096)
	c := gemm.Config{Kernel: "triton", BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, SplitK: 1}
	for rung, timed := range map[arch.Rung]bool{arch.RungCharacterized: true, arch.RungCompiled: false} {
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: rung})
		d := a.Describe()
		row := archtest.Terms(t, a, p, c)
		want := map[string]bool{
			"chip_pace": timed, "one_2048": timed, "ctas": true, "waves": true, "l2_hit": true,
			"spill_step": false, "tail_loop": false, // 512 CTAs are 4 on the busiest of 132 SMs, one at a time
		}
		for i, entered := range formula.Entering(d, formula.Values(d, p, c, row)) {
			name := d.Terms[i].Name
			if expected, listed := want[name]; listed && entered != expected {
				t.Errorf("%s: %s = %v enters the total: %t", rung, name, row[i], entered)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s: no term %s", rung, name)
		}
	}
}
