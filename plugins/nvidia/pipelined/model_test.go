//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package pipelined_test

import (
	"math/rand/v2"
	"os"
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

// Every formula of the schema computes the value beside it, to the bit, from names that a reader has already seen: the
// generated code is what the formulas say.
func TestRefinedFormulasComputeTheirTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	batched := gemm.New(256, 512, 4000)
	batched.Batch = 7
	problems := []gemm.Problem{
		gemm.New(2048, 2048, 2048), gemm.New(100, 3000, 777), gemm.New(40000, 16, 1024), gemm.New(65, 1, 13),
		gemm.New(16384, 16384, 16384), batched,
	}
	for range 2 {
		problems = append(problems, nvtest.RandomProblem(rng))
	}
	for n, request := range nvtest.Devices(t, "refined", "mma") {
		a := nvtest.Open(t, request)
		for i, p := range problems {
			if (n+i)%3 != 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				continue // devices differ in numbers alone
			}
			family := a.Describe().Kernels[i%len(a.Describe().Kernels)]
			list := must.Get(a.Candidates(t.Context(), p, arch.Space{Kernel: family, SplitK: []int{1, 8}}))(t)
			for range 2 {
				c := list.Configs[rng.IntN(len(list.Configs))]
				c.GroupM = []int{0, 1, 8, 32}[rng.IntN(4)]
				archtest.Formulas(t, a, p, c, 0)
			}
			c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 4, SplitK: 4, Kernel: family}
			archtest.Formulas(t, a, p, c, 0)
		}
		if a.Describe().Kernels[0] == "triton" {
			c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 4, SplitK: 1, Kernel: "triton"}
			archtest.Formulas(t, a, grouped(t, 4096, 777, 100, 0, 3000, 7, 65), c, 0)
		}
	}
}

// The rungs can be chosen, say which they are, and know what they may know.
func TestRefinedRungs(t *testing.T) {
	h200 := arch.OpenRequest{Arch: "sm90", Device: "h200"}
	for rung, want := range map[arch.Rung]arch.Rung{
		"": arch.RungCharacterized, arch.RungSpec: arch.RungSpec, arch.RungCalibrated: arch.RungCalibrated,
		arch.RungCompiled: arch.RungCompiled, arch.RungCharacterized: arch.RungCharacterized,
	} {
		h200.Rung = rung
		d := nvtest.Open(t, h200).Describe()
		must.That(t, d.Rung == want, "rung %q opens at %s", rung, d.Rung)
		for _, p := range d.Params {
			must.That(t, rung != arch.RungSpec || p.Tier == hw.Derived, "rung spec knows %s from tier %v", p.Name, p.Tier)
		}
	}
	provider := nvtest.Provider(t)
	const header = "bm,bn,bk,stages,warps,even_k,n_regs,n_spills,shared,status\n"
	for _, request := range []arch.OpenRequest{
		{Arch: "sm90", Compiled: []byte("bm,bn\n1,2\n")},
		{Arch: "sm90", Compiled: []byte(header + "64,64,64,3,4,1,many,0,49152,ok\n")},
		{Arch: "sm90", Compiled: []byte(header)},
		{Arch: "sm90", Characterization: []byte("{}")},
	} {
		_, err := provider.Open(t.Context(), request)
		must.That(t, diag.KindOf(err) == diag.Input, "%+v: %v", request, err)
	}
	// A report of the compiler counts: the kernel that spills takes longer than the one that does not.
	h200.Rung = arch.RungCompiled
	p, c := gemm.New(4096, 4096, 4096), []gemm.Config{
		{BlockM: 64, BlockN: 64, BlockK: 64, NumStages: 3, NumWarps: 4, SplitK: 1, Kernel: "triton"},
	}
	estimate := func(spills string) unitless {
		h200.Compiled = []byte(header + "64,64,64,3,4,1,96," + spills + ",49152,ok\n")
		e := make([]arch.Estimate, 1)
		must.Do(t, nvtest.Open(t, h200).Estimate(t.Context(), e, p, c))
		return unitless(e[0].Cycles)
	}
	clean, spilled := estimate("0"), estimate("200")
	must.That(t, spilled > 1.5*clean, "200 words spilled: %v cycles, without %v", spilled, clean)
}

type unitless float64

// The model takes what its families have, and says why not the rest.
func TestRefinedRefusals(t *testing.T) {
	p := gemm.New(64, 64, 64)
	p.DType = gemm.FP8
	a100 := nvtest.Open(t, arch.OpenRequest{Arch: "sm80", Device: "a100"})
	_, err := a100.Candidates(t.Context(), p, arch.Space{})
	must.That(t, diag.KindOf(err) == diag.Input, "fp8 on an A100: %v", err)
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	err = a.Estimate(t.Context(), nil, gemm.New(0, 64, 64), nil)
	must.That(t, diag.KindOf(err) == diag.Input, "m = 0: %v", err)
	p = gemm.New(64, 64, 64)
	_, err = a.Candidates(t.Context(), p, arch.Space{Kernel: "cutlass"})
	must.That(t, diag.KindOf(err) == diag.Input, "kernel cutlass: %v", err)
	_, err = a.Candidates(t.Context(), p, arch.Space{BlockM: []int{0}})
	must.That(t, diag.KindOf(err) == diag.Input, "block_m 0: %v", err)
	configs := []gemm.Config{
		{BlockM: 256, BlockN: 256, BlockK: 256, NumWarps: 8, NumStages: 2, SplitK: 1, Kernel: "triton"},
		{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 4, Kernel: "triton"},
		{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 2, SplitK: 4, Kernel: "mma"},
	}
	e := make([]arch.Estimate, len(configs))
	must.Do(t, a.Estimate(t.Context(), e, gemm.New(64, 64, 64), configs))
	must.That(t, e[0].Reject == arch.ReasonSharedMemory && e[0].Cycles == 0 && e[1].Reject == "" &&
		e[2].Reject == "", "estimates %+v", e)
	list, err := a.Candidates(t.Context(), gemm.New(64, 64, 64), arch.Space{SplitK: []int{1}})
	if err != nil || len(list.Configs) != 876 {
		t.Errorf("%d kernels of triton fit an H200, %v; 856 were swept, and 20 were not tried", len(list.Configs), err)
	}
}

// A problem that fills the device needs a launch order that keeps operands in the L2; a steady stream allocates
// nothing.
func TestRefinedMappingAndSteadyState(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, SplitK: 1, Kernel: "triton"}
	m, err := a.Mapping(t.Context(), gemm.New(16384, 16384, 16384), c)
	must.That(t, err == nil && m.GroupM >= 2, "mapping %+v, %v", m, err)
	s := selector.New(a, arch.Space{})
	var result selector.Result
	n := testing.AllocsPerRun(100, func() {
		must.Do(t, s.Select(t.Context(), gemm.New(4096, 4096, 4096), &result))
	})
	must.That(t, n == 0, "%v allocations per select", n)
}

// An override of the registers counts on every rung: a kernel that was compiled and timed with more registers is
// predicted anew, and spills.
func TestRegisterOverridesCountOnEveryRung(t *testing.T) {
	p := gemm.New(4096, 4096, 4096)
	configs := []gemm.Config{{
		BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: "triton",
	}}
	for _, rung := range arch.Rungs() {
		request := arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: rung}
		estimate := func() float64 {
			var e [1]arch.Estimate
			err := nvtest.Open(t, request).Estimate(t.Context(), e[:], p, configs)
			must.Need(t, err == nil && e[0].Reject == "", "%+v, %v", e, err)
			return float64(e[0].Cycles)
		}
		plain := estimate()
		request.Overrides = map[string]hw.OverrideValue{"registers_per_thread": {Value: 96}}
		few := estimate()
		must.That(t, few > 1.5*plain, "rung %s: %v cycles with 96 registers per thread, %v with all", rung, few, plain)
	}
}
