package tritonblas_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// The memory terms of the published report's worked example.
func TestMemoryTermsOfTheWorkedExample(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"})
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 1}
	terms := a.Describe().Terms
	row := archtest.Terms(t, a, gemm.New(2048, 2048, 2048), c)
	want := map[string]float64{"l_mem": 3318.278481012658, "l2_hit": 0.9166666666666666, "l_dram": 2151.9822105570147}
	for i := range terms {
		if v, ok := want[terms[i].Name]; ok && row[i] != v {
			t.Errorf("%s = %v, want %v", terms[i].Name, row[i], v)
		}
		delete(want, terms[i].Name)
	}
	must.That(t, len(want) <= 0, "no terms %v", want)
}

func TestRefusals(t *testing.T) {
	ctx := context.Background()
	a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"})
	estimates := make([]arch.Estimate, 2)
	configs := []gemm.Config{
		{BlockM: 256, BlockN: 256, BlockK: 256, NumWarps: 8, NumStages: 2, SplitK: 1},
		{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 4},
	}
	must.Do(t, a.Estimate(ctx, estimates, gemm.New(64, 64, 64), configs))
	must.That(t, estimates[0].Reject == arch.ReasonSharedMemory && estimates[1].Reject == arch.ReasonModelRule &&
		estimates[0].Cycles == 0, "infeasible configurations: %+v", estimates)
	s := selector.New(a, arch.Space{BlockM: []int{256}, BlockN: []int{256}, BlockK: []int{512}})
	var result selector.Result
	err := s.Select(ctx, gemm.New(64, 64, 64), &result)
	must.That(t, diag.KindOf(err) == diag.Input && result.RejectedTotal() == 1, "nothing fits: %v, %+v", err, result)
}

// Devices differ only in their parameters: an override changes the answer, and the rung shows a missing calibration.
func TestOverridesAndRungs(t *testing.T) {
	ctx := context.Background()
	p := gemm.New(2048, 2048, 2048)
	c := []gemm.Config{{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 1}}
	base, slower := make([]arch.Estimate, 1), make([]arch.Estimate, 1)
	must.Do(t, nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"}).Estimate(ctx, base, p, c))
	a := nvtest.Open(t, arch.OpenRequest{
		Model: "reference", Arch: "sm89",
		Overrides: map[string]hw.OverrideValue{"dram_perf_ratio": {Value: 171.45}},
	})
	must.Do(t, a.Estimate(ctx, slower, p, c))
	if slower[0].Cycles <= base[0].Cycles {
		t.Errorf("half the DRAM bandwidth: %v cycles, before %v", slower[0].Cycles, base[0].Cycles)
	}
	plain := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"})
	got := plain.Describe().Rung
	must.That(t, got == arch.RungCalibrated, "sm89 stands on rung %s", got)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	s := selector.New(nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"}), arch.Space{})
	var result selector.Result
	p := gemm.New(4096, 4096, 4096)
	n := testing.AllocsPerRun(100, func() {
		must.Do(t, s.Select(ctx, p, &result))
	})
	must.That(t, n == 0, "%v allocations per select", n)
}

// With a compiler's report the model leaves out what spills or does not build, for the same reason in a list and in an
// estimate. The cycles of all others stay the same.
func TestCompiledReport(t *testing.T) {
	ctx := context.Background()
	open := func(rung arch.Rung) arch.Architecture {
		return nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Model: "reference", Rung: rung})
	}
	published, filtered := open(""), open(arch.RungCompiled)
	if got := filtered.Describe().Rung; got != arch.RungCompiled {
		t.Errorf("rung %s", got)
	}
	p := gemm.New(4096, 4096, 4096)
	all := must.Get(published.Candidates(ctx, p, arch.Space{}))(t)
	want, got := make([]arch.Estimate, len(all.Configs)), make([]arch.Estimate, len(all.Configs))
	must.Do(t, errors.Join(published.Estimate(ctx, want, p, all.Configs),
		filtered.Estimate(ctx, got, p, all.Configs)))
	rest := must.Get(filtered.Candidates(ctx, p, arch.Space{}))(t)
	listed := map[string]arch.Reason{}
	for _, r := range rest.Rejected {
		listed[r.Config.String()] = r.Reason
	}
	reasons := map[arch.Reason]int{}
	for i, e := range got {
		reasons[e.Reject]++
		if name := all.Configs[i].String(); e.Reject != listed[name] || e.Reject == "" && e != want[i] {
			t.Errorf("%s: %+v without the report, %+v with it, and the list says %q", name, want[i], e, listed[name])
		}
	}
	if reasons[arch.ReasonRegisters] != 6 || reasons[arch.ReasonModelRule] == 0 || len(rest.Configs) != reasons[""] {
		t.Errorf("%v, and %d are listed", reasons, len(rest.Configs))
	}
}

// A term shows the footprint of each group, counted here over program ids, and phase two takes the first group with the
// least.
func TestFootprintsAreShown(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: "sm89"})
	d := a.Describe()
	for range 200 {
		p := gemm.New(1+rng.IntN(9000), 1+rng.IntN(9000), 64)
		c := gemm.Config{BlockM: 16 << rng.IntN(5), BlockN: 16 << rng.IntN(5), BlockK: 64, NumWarps: 8, NumStages: 2,
			SplitK: 1}
		row := archtest.Terms(t, a, p, c)
		gridM, gridN := (p.M+c.BlockM-1)/c.BlockM, (p.N+c.BlockN-1)/c.BlockN
		best, least := 0, 0
		for _, g := range []int{1, 2, 3, 4, 5, 6, 8, 16} {
			rows, columns := map[int]bool{}, map[int]bool{}
			for id := range min(gridM*gridN, d.Units) {
				first := id / (g * gridN) * g
				height := min(gridM-first, g)
				rows[first+id%(g*gridN)%height], columns[id%(g*gridN)/height] = true, true
			}
			want := len(rows)*c.BlockM + len(columns)*c.BlockN
			at := slices.IndexFunc(d.Terms, func(t arch.Term) bool { return t.Name == fmt.Sprintf("footprint_%d", g) })
			if row[at] != float64(want) {
				t.Fatalf("%s %s: footprint_%d is %v, want %d", p, c, g, row[at], want)
			}
			if best == 0 || want < least {
				best, least = g, want
			}
		}
		if got, err := a.Mapping(t.Context(), p, c); err != nil || got.GroupM != best {
			t.Errorf("%s %s: group %d, %v; the least footprint is that of %d", p, c, got.GroupM, err, best)
		}
	}
}
