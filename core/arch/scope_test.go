package arch_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// checked describes a model that was checked on fp16, and, on other problems, on bf16 with a split of K.
func checked() *arch.Description {
	half := arch.Uncertainty{Kernel: "tiled", Level: 0.9, Widening: 2, Ranges: []arch.ErrorRange{
		{Bound: arch.BoundDRAM, Low: 0.9, High: 1.1}, {Low: 0.8, High: 1.25},
	}}
	half.Checked = arch.Checked{DataSet: "halves", Sizes: 2}
	for _, p := range []gemm.Problem{gemm.New(16, 4096, 4096), gemm.New(4096, 64, 128)} {
		half.Checked.Add(&p, 1)
	}
	brain := arch.Uncertainty{Kernel: "tiled", Level: 0.9, Ranges: []arch.ErrorRange{{Low: 0.5, High: 2}}}
	p := gemm.New(256, 256, 65536)
	p.DType = gemm.BF16
	brain.Checked.Add(&p, 1)
	brain.Checked.Add(&p, 16)
	return &arch.Description{
		Arch: "chip", Device: "one", Uncertainty: []arch.Uncertainty{half, brain},
		Params: []hw.Param{{Name: "clock", Tier: hw.Derived}},
	}
}

func TestScope(t *testing.T) {
	const seconds = unit.Seconds(1)
	for name, tc := range map[string]struct {
		kernel    string
		change    func(*gemm.Problem, *arch.Description)
		split     int
		low, high unit.Seconds // 0 without an interval
		outside   []string
	}{
		"inside": {low: 0.8, high: 1.25},
		"a split that is not chosen yet": {
			split: -1, low: 0.8, high: 1.25,
		},
		"larger": {
			change: func(p *gemm.Problem, _ *arch.Description) { p.K = 8192 }, low: 0.4, high: 2.5,
			outside: []string{"K = 8192 above 4096"},
		},
		"smaller, and several": {
			change: func(p *gemm.Problem, _ *arch.Description) { p.M, p.Batch = 1, 3 }, low: 0.4, high: 2.5,
			outside: []string{"M = 1 below 16", "batch = 3 above 1"},
		},
		"more work in each range": {
			change: func(p *gemm.Problem, _ *arch.Description) { p.M, p.N, p.K = 4096, 4096, 4096 }, low: 0.4, high: 2.5,
			outside: []string{"2·M·N·K·batch = 1.37e+11 above 5.37e+08"},
		},
		"another type": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.DType = gemm.FP8 },
			outside: []string{"fp8"},
		},
		"another type, and larger": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.DType, p.K = gemm.INT8, 8192 },
			outside: []string{"int8", "K = 8192 above 4096"},
		},
		"other results": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.Out = gemm.FP32 },
			outside: []string{"fp16 with fp32 results"},
		},
		"another storage": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.SetTrans(false, true) },
			outside: []string{"A contiguous along k and B along k"},
		},
		"odd rows": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.N, p.K = 512, 1000 },
			outside: []string{"rows or addresses that 16 does not divide"},
		},
		"odd addresses": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.AlignC = 4 },
			outside: []string{"rows or addresses that 16 does not divide"},
		},
		"a number of rows that no access depends on": {
			change: func(p *gemm.Problem, _ *arch.Description) { p.M = 1001 }, low: 0.8, high: 1.25,
		},
		"a split": {split: 4, outside: []string{"split = 4 above 1"}},
		"another data set": {
			change: func(p *gemm.Problem, _ *arch.Description) { p.M, p.N, p.K, p.DType = 256, 256, 65536, gemm.BF16 },
			split:  4, low: 0.5, high: 2,
		},
		"its sizes, where the widening is unknown": {
			change:  func(p *gemm.Problem, _ *arch.Description) { p.M, p.N, p.K, p.DType = 512, 256, 65536, gemm.BF16 },
			outside: []string{"M = 512 above 256"},
		},
		"another family": {
			kernel: "streamed", outside: []string{"no times of the kernel family streamed on this device were compared"},
		},
		"another device": {
			change:  func(_ *gemm.Problem, d *arch.Description) { d.Uncertainty = nil },
			outside: []string{"no times of this device were compared"},
		},
		"another clock": {
			change:  func(_ *gemm.Problem, d *arch.Description) { d.Params[0].Tier = hw.Override },
			outside: []string{"clock was overridden"},
		},
		"too few times": {
			change:  func(_ *gemm.Problem, d *arch.Description) { d.Uncertainty[0].Ranges = nil },
			outside: []string{"too few measured times"},
		},
		"no envelope": {
			change:  func(_ *gemm.Problem, d *arch.Description) { d.Uncertainty = []arch.Uncertainty{{Kernel: "tiled"}} },
			outside: []string{"the model does not say what it was checked on"},
		},
	} {
		d, p := checked(), gemm.New(512, 1024, 256)
		if tc.change != nil {
			tc.change(&p, d)
		}
		kernel := "tiled"
		if tc.kernel != "" {
			kernel = tc.kernel
		}
		split := max(tc.split, 0)
		if tc.split == 0 {
			split = 1
		}
		low, high, ok := d.Scope(kernel, &p, split).Interval(arch.Estimate{Bound: arch.BoundCompute}, seconds)
		must.That(t, low == tc.low && high == tc.high && ok == (tc.low > 0), "%s: from %v to %v, %v", name, low, high, ok)
		must.Alike(t, d.Outside(kernel, &p, split), tc.outside, name)
	}
}

// What is outside is said, what is inside is not, and an interval outside contains the one inside.
func TestScopeAgrees(t *testing.T) {
	d := checked()
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int { return rapid.IntRange(1, 1<<17).Draw(t, name) }
		p := gemm.New(size("m"), size("n"), size("k"))
		if rapid.Bool().Draw(t, "divisible") {
			p.M, p.N, p.K = 16*p.M, 16*p.N, 16*p.K
		}
		p.SetTrans(rapid.Bool().Draw(t, "a"), rapid.Bool().Draw(t, "b"))
		p.DType = rapid.SampledFrom(gemm.DTypes()).Draw(t, "dtype")
		split := rapid.IntRange(1, 32).Draw(t, "split")
		scope, outside := d.Scope("tiled", &p, split), d.Outside("tiled", &p, split)
		if inside := scope.Uncertainty != nil && !scope.Wide; inside != (len(outside) == 0) {
			t.Fatalf("%s, split %d: inside %v, outside in %q", p, split, inside, outside)
		}
		bound := arch.Bound(rapid.IntRange(0, arch.NumBounds-1).Draw(t, "bound"))
		low, high, ok := scope.Interval(arch.Estimate{Bound: bound}, 1)
		if !ok {
			return
		}
		if !slices.ContainsFunc(d.Uncertainty, func(u arch.Uncertainty) bool {
			return slices.Contains(u.Checked.Layouts, arch.LayoutOf(&p))
		}) || strings.Contains(strings.Join(outside, " "), "split") {
			t.Fatalf("%s, split %d has an interval", p, split)
		}
		insideLow, insideHigh, _ := scope.Uncertainty.Interval(bound, 1)
		if scope.Wide && (low >= insideLow || high <= insideHigh) {
			t.Fatalf("%s: %v–%v outside, %v–%v inside", p, low, high, insideLow, insideHigh)
		}
	})
}

// A problem that the model was fitted to is in-sample, however it is written.
func TestInSample(t *testing.T) {
	d := arch.Description{Fitted: []arch.Fitted{
		{DataSet: "a"}, {DataSet: "b", Problems: []gemm.Problem{gemm.New(1, 2, 3)}},
		{DataSet: "c", Kernel: "one", Problems: []gemm.Problem{gemm.New(7, 8, 9)}},
	}}
	p := gemm.New(1, 2, 3)
	p.Out, p.LDA = gemm.FP16, 3
	must.That(t, d.InSample(p, "one") && d.InSample(p, "other"),
		"a default that is written out makes it another problem")
	if p.K = 4; d.InSample(p, "one") {
		t.Error("another problem is in-sample")
	}
	if p = gemm.New(7, 8, 9); !d.InSample(p, "one") || d.InSample(p, "other") {
		t.Error("a fit of one family is not in-sample there, or is for another family")
	}
}

// What was not checked has the interval of sisters for the same types, else that of all, which is also that of changed
// hardware. Only what was checked counts as an uncertainty of the family.
func TestEvidence(t *testing.T) {
	d := checked()
	d.Uncertainty = append(d.Uncertainty,
		arch.Uncertainty{
			Kernel: "tiled", Level: 0.9, Evidence: arch.EvidenceSister, Ranges: []arch.ErrorRange{{Low: 0.7, High: 1.5}},
		},
		arch.Uncertainty{
			Kernel: "tiled", Level: 0.9, Evidence: arch.EvidenceUnchecked, Ranges: []arch.ErrorRange{{Low: 0.5, High: 3}},
		},
		arch.Uncertainty{
			Kernel: "other", Level: 0.9, Evidence: arch.EvidenceUnchecked, Ranges: []arch.ErrorRange{{Low: 0.5, High: 3}},
		})
	fp8 := gemm.New(512, 1024, 256)
	fp8.DType = gemm.FP8
	d.Uncertainty[2].Checked.Add(&fp8, 1)
	half, int8 := gemm.New(512, 1024, 256), gemm.New(512, 1024, 256)
	int8.DType = gemm.INT8
	scaled := fp8
	scaled.Beta = 1
	overridden := *d
	overridden.Params = []hw.Param{{Name: "clock", Tier: hw.Override}}
	for _, c := range []struct {
		d      *arch.Description
		kernel string
		p      gemm.Problem
		want   arch.Evidence
		high   unit.Seconds
	}{
		{d, "tiled", half, arch.EvidenceChecked, 1.25},
		{d, "tiled", fp8, arch.EvidenceSister, 1.5},
		{d, "tiled", int8, arch.EvidenceUnchecked, 3},
		{d, "tiled", scaled, arch.EvidenceUnchecked, 3},
		{d, "other", half, arch.EvidenceUnchecked, 3},
		{&overridden, "tiled", half, arch.EvidenceUnchecked, 3},
		{&overridden, "tiled", fp8, arch.EvidenceUnchecked, 3},
	} {
		s := c.d.Scope(c.kernel, &c.p, 1)
		_, high, ok := s.Interval(arch.Estimate{Bound: arch.BoundCompute}, 1)
		must.That(t, s.Evidence == c.want && high == c.high && ok && s.Checked() == (c.want == arch.EvidenceChecked),
			"%s %v: %s to %v, want %s to %v", c.kernel, c.p, s.Evidence, high, c.want, c.high)
	}
	for i, want := range map[int]arch.Evidence{
		0: arch.EvidenceChecked, 2: arch.EvidenceSister, 3: arch.EvidenceUnchecked,
	} {
		u := &d.Uncertainty[i]
		must.Equal(t, d.EvidenceOf(u), want, i)
		without := *u
		without.Ranges = nil
		must.That(t, d.EvidenceOf(&without) == arch.EvidenceUnchecked && overridden.EvidenceOf(u) == arch.EvidenceUnchecked,
			"uncertainty %d without ranges, or of other hardware, counts", i)
	}
	if !d.HasUncertainty("tiled") || d.HasUncertainty("other") || !d.HasElsewhere("other") || d.HasElsewhere("none") {
		t.Error("uncertainties are found that are not there")
	}
}

// What a command writes for a model to ship is what the model reads.
func TestUncertaintyRecord(t *testing.T) {
	p := gemm.New(16, 4096, 4096)
	p.DType, p.Out = gemm.FP8, gemm.BF16
	p.SetTrans(false, true)
	u := arch.Uncertainty{
		Kernel: "tiled", Level: 0.9, Sigma: 0.1, PlanSigma: 0.2, Source: "a sweep", MedianError: 0.05, Widening: 1.5,
		Ranges: []arch.ErrorRange{{Bound: arch.BoundDRAM, Below: 2e-5, Low: 0.9, High: 1.1}, {Low: 0.8, High: 1.25}},
	}
	u.Checked = arch.Checked{DataSet: "eights", Sizes: 1, Times: 3}
	u.Checked.Add(&p, 4)
	for name, want := range map[string]arch.Uncertainty{"full": u, "empty": {Kernel: "tiled"}} {
		text := must.Get(json.Marshal(&want))(t)
		var r arch.Uncertainty
		must.Do(t, json.Unmarshal(text, &r))
		must.Alike(t, r, want, name)
	}
	u = arch.Uncertainty{Ranges: []arch.ErrorRange{{Low: 2.3, High: 3.2}, {Low: 0.5, High: 0.9}}}
	u.Contain()
	must.Alike(t, u.Ranges, []arch.ErrorRange{{Low: 1, High: 3.2}, {Low: 0.5, High: 1}}, "ranges without the time")
	must.Fail(t, json.Unmarshal([]byte(`{"ranges":[{"bound":"heat"}]}`), &u), "unknown bound \"heat")
}
