package arch_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestSupports(t *testing.T) {
	d := arch.Description{
		Arch: "sm90", Model: "refined", Kernels: []string{"triton", "mma", "other"},
		Families: []arch.Family{
			{Name: "triton", Types: []gemm.Types{{In: gemm.FP16, Out: gemm.FP16}, {In: gemm.FP16, Out: gemm.FP32}}},
			{Name: "mma", Types: []gemm.Types{{In: gemm.FP8, Out: gemm.FP16}, {In: gemm.INT8, Out: gemm.INT32}}},
		},
	}
	const fix = "use fp16 (results fp16, fp32) with triton, or fp8, int8 with mma"
	for _, c := range []struct {
		kernel, says string
		change       func(*gemm.Problem)
	}{
		{"", "", func(*gemm.Problem) {}},
		{"", "", func(p *gemm.Problem) { p.Out = gemm.FP32 }},
		{"mma", "", func(p *gemm.Problem) { p.DType = gemm.FP8 }},
		{"mma", "", func(p *gemm.Problem) { p.DType, p.Out = gemm.INT8, gemm.INT32 }},
		{"other", "", func(p *gemm.Problem) { p.DType = gemm.TF32 }}, // declares no types
		{"", "the refined model of sm90 does not predict triton kernels for fp8; " + fix, func(p *gemm.Problem) {
			p.DType = gemm.FP8
		}},
		{"mma", "does not predict mma kernels for fp8 with bf16 results; " + fix, func(p *gemm.Problem) {
			p.DType, p.Out = gemm.FP8, gemm.BF16
		}},
		// Padding that keeps rows aligned, or makes them so, costs nothing.
		{"", "", func(p *gemm.Problem) { p.LDA, p.LDB, p.LDC = 4160, 4104, 4608 }},
		{"", "", func(p *gemm.Problem) { p.K, p.LDA, p.LDC = 1001, 1008, 4100-4 }},
		{"", "", func(p *gemm.Problem) { p.K, p.LDA = 1001, 1003 }}, // as narrow as its dense rows are
		{"", "rows of A are aligned to 8 bytes, and the refined model of sm90 has no cost for loads and stores of less " +
			"than 16; align the address and the leading dimension to 16 bytes", func(p *gemm.Problem) { p.LDA = 4100 }},
		{"", "rows of B are aligned to 2 bytes", func(p *gemm.Problem) { p.LDB = 4097 }},
		{"", "rows of C are aligned to 4 bytes", func(p *gemm.Problem) { p.AlignC = 4 }},
		{"", "rows of C are aligned to 8 bytes", func(p *gemm.Problem) { p.Out, p.LDC = gemm.FP32, 4098 }},
	} {
		p := gemm.New(4096, 4096, 4096)
		c.change(&p)
		must.Do(t, p.Validate())
		err := d.Supports(c.kernel, &p)
		must.That(t, (err == nil) == (c.says == "") && (err == nil ||
			strings.Contains(err.Error(), c.says) && diag.KindOf(err) == diag.Input),
			"%s with %q: %v, want %q", p, c.kernel, err, c.says)
	}
}

// A model that does not declare groups would answer for another problem.
func TestGroupsAreDeclared(t *testing.T) {
	groups := must.Get(gemm.NewGroups(100, 28))(t)
	p := gemm.New(128, 64, 64)
	p.SetGroups(groups)
	d := arch.Description{Arch: "sm90", Model: "refined", Kernels: []string{"mma", "triton"}}
	const refused = "the refined model of sm90 does not predict mma kernels for problems in groups; "
	err := d.Supports("", &p)
	must.That(t, err != nil && err.Error() == refused+
		"use another model, or ask about each group by itself", "without any declaration: %v", err)
	d.Families = []arch.Family{{Name: "mma"}, {Name: "triton", Groups: true}}
	err = d.Supports("mma", &p)
	must.That(t, err != nil && err.Error() == refused+"use triton kernels", "with the wrong family: %v", err)
	must.Do(t, d.Supports("triton", &p))
}

// Both formats of fp8 have one rate and one instruction.
func TestTypesThatCostTheSame(t *testing.T) {
	d := arch.Description{
		Peak:  []arch.PeakRate{{DType: gemm.FP8, Rate: 5}, {DType: gemm.INT8, Rate: 7}},
		Atoms: []arch.Atom{{DType: gemm.FP8, K: 32}},
	}
	if d.PeakFor(gemm.FP8E5M2) != 5 || d.PeakFor(gemm.FP16) != 0 || d.PeakFor(gemm.INT8) != 7 {
		t.Errorf("%v, %v, %v", d.PeakFor(gemm.FP8E5M2), d.PeakFor(gemm.FP16), d.PeakFor(gemm.INT8))
	}
	a := d.Atom(gemm.FP8E5M2)
	must.That(t, a != nil && a.K == 32 && d.Atom(gemm.FP16) == nil, "%v", a)
}
