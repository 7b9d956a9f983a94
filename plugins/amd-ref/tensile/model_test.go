//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package tensile_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
)

func open(t testing.TB, r arch.OpenRequest) *tensile.Model {
	t.Helper()
	provider := must.Get(amdref.Provider())(t)
	r.Kernel = kernel.Name
	a := must.Get(provider.Open(t.Context(), r))(t)
	return a.(*tensile.Model)
}

// devices are the architectures that the model knows.
var devices = []string{"gfx900", "gfx90a", "gfx942", "gfx950"}

// randomProblem returns a problem that the model takes.
func randomProblem(rng *rand.Rand, d *arch.Description) gemm.Problem {
	size := func() int { return 1 + int(math.Exp(rng.Float64()*math.Log(20000))) }
	p := gemm.New(size(), size(), size())
	types := d.Families[0].Types
	pick := types[rng.IntN(len(types))]
	p.DType, p.Out = pick.In, pick.Out
	p.SetTrans(rng.IntN(2) > 0, rng.IntN(2) > 0)
	if rng.IntN(4) == 0 {
		p.Batch = 1 + rng.IntN(50)
	}
	return p
}

// some returns configurations of the family for a problem.
func some(t *testing.T, rng *rand.Rand, m *tensile.Model, p gemm.Problem, n int) []gemm.Config {
	t.Helper()
	list := must.Get(m.Candidates(t.Context(), p, arch.Space{}))(t)
	out := make([]gemm.Config, n)
	for i := range out {
		out[i] = list.Configs[rng.IntN(len(list.Configs))]
		out[i].GroupM = []int{0, 1, 8, 32}[rng.IntN(4)]
	}
	return out
}

// Every formula computes the value beside it, to the bit, from names that a reader has already seen; the shares add up
// to the total, which is the estimate.
func TestFormulasComputeTheirTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range devices {
		m := open(t, arch.OpenRequest{Arch: name})
		d := m.Describe()
		for range 10 {
			p := randomProblem(rng, d)
			for _, c := range some(t, rng, m, p, 4) {
				archtest.Formulas(t, m, p, c, 0)
			}
		}
	}
}

// No kernel is faster than the peak, nor than DRAM moves the operands and the output once.
func TestNoFasterThanTheDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range devices {
		m := open(t, arch.OpenRequest{Arch: name})
		d := m.Describe()
		bandwidth := hw.Set(d.Params).Get("dram_bandwidth")
		for range 40 {
			p := randomProblem(rng, d)
			cfgs := some(t, rng, m, p, 20)
			sides := float64(p.M)*float64(p.K) + float64(p.K)*float64(p.N)
			bytes := float64(p.Batch) * (sides*float64(p.DType.Bytes()) +
				float64(p.M)*float64(p.N)*float64(p.Output().Bytes()))
			flops := 2 * float64(p.Batch) * float64(p.M) * float64(p.N) * float64(p.K)
			for i, seconds := range archtest.Seconds(t, m, p, cfgs...) {
				if peak := flops / float64(d.PeakFor(p.DType)); seconds < peak*0.999 || seconds < bytes/bandwidth {
					t.Errorf("%s %s %s takes %v s: peak %v, DRAM %v", d.ID(), p, cfgs[i], seconds, peak, bytes/bandwidth)
				}
			}
		}
	}
}

// A kernel never takes less time for a larger problem, by whole blocks.
func TestMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	early := map[string]string{"release": "early"}
	for _, r := range []arch.OpenRequest{ // of today's libraries, the level of each size is that of the model library
		{Arch: "gfx900"}, {Arch: "gfx90a", Options: early}, {Arch: "gfx942", Options: early},
	} {
		m, name := open(t, r), r.Arch
		for range 60 {
			p := randomProblem(rng, m.Describe())
			for _, c := range some(t, rng, m, p, 5) {
				grow := map[string]func(*gemm.Problem){
					"m": func(q *gemm.Problem) { q.M += c.BlockM },
					"n": func(q *gemm.Problem) { q.N += c.BlockN },
					"k": func(q *gemm.Problem) { q.K += c.BlockK },
				}
				for dim, larger := range grow {
					q, last := p, 0.0
					for range 8 {
						cycles := float64(archtest.Estimates(t, m, q, c)[0].Cycles)
						must.That(t, cycles >= last*(1-1e-12), "%s %s %s: %v cycles, %v before %s grew", name, q, c, cycles, last, dim)
						last = cycles
						larger(&q)
					}
				}
			}
		}
	}
}

// A tile that no register file holds is refused with the numbers, as is one that does not fit LDS.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	m := open(t, arch.OpenRequest{Arch: "gfx942"})
	p := gemm.New(8192, 8192, 8192)
	p.DType = gemm.FP8
	for _, test := range []struct {
		m, n, k int
		reason  arch.Reason
		detail  string
	}{
		{512, 512, 64, arch.ReasonRegisters, "registers per lane, 512 available"},
		{256, 256, 256, arch.ReasonSharedMemory, "needs 131072 B of LDS, 65536 B available"},
		{256, 256, 128, "", ""},
	} {
		s := arch.Space{
			BlockM: []int{test.m}, BlockN: []int{test.n}, BlockK: []int{test.k}, NumWarps: []int{4}, SplitK: []int{1},
			Axes: []arch.AxisValues{{Name: "stream_k", Values: []string{"0"}}},
		}
		list := must.Get(m.Candidates(t.Context(), p, s))(t)
		if test.reason == "" {
			must.That(t, len(list.Configs) == 1, "%dx%dx%d is refused: %+v", test.m, test.n, test.k, list.Rejected)
			continue
		}
		must.That(t, len(list.Rejected) == 1 && list.Rejected[0].Reason == test.reason &&
			strings.Contains(list.Rejected[0].Detail, test.detail),
			"%dx%dx%d: %+v, want %s", test.m, test.n, test.k, list.Rejected, test.reason)
	}
}

// The clock falls with the CUs at work: a CU of a full MI300X is slower than one of a part of it.
func TestPowerIsShared(t *testing.T) {
	early := map[string]string{"release": "early"}
	whole := open(t, arch.OpenRequest{Arch: "gfx942", Options: early})
	part := open(t, arch.OpenRequest{Arch: "gfx942", Device: "mi308x", Options: early})
	rate := func(m *tensile.Model) float64 {
		p := gemm.New(8192, 8192, 8192)
		c := gemm.Config{BlockM: 256, BlockN: 256, BlockK: 32, NumWarps: 4, NumStages: 1, SplitK: 1, GroupM: 8}
		return 2 * 8192 * 8192 * 8192 / archtest.Seconds(t, m, p, c)[0] / float64(m.Describe().PeakFor(gemm.FP16))
	}
	all, few := rate(whole), rate(part)
	must.That(t, all <= 0.45 && few >= 0.6, "304 CUs reach %.2f of their peak, 80 reach %.2f", all, few)
}

func TestEstimateAllocatesNothing(t *testing.T) {
	m := open(t, arch.OpenRequest{Arch: "gfx942"})
	p := gemm.New(4096, 4096, 4096)
	list, err := m.Candidates(t.Context(), p, arch.Space{})
	must.Do(t, err)
	estimates := make([]arch.Estimate, len(list.Configs))
	ctx := t.Context()
	n := testing.AllocsPerRun(5, func() { err = m.Estimate(ctx, estimates, p, list.Configs) })
	must.That(t, n <= 0 && err == nil, "%v allocations, %v", n, err)
}
