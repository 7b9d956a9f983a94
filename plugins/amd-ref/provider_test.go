package amdref

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

func TestManifest(t *testing.T) {
	p, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest()
	var got []string
	for _, a := range m.Archs {
		for _, d := range a.Devices {
			got = append(got, fmt.Sprint(a.ID, " ", d.ID, " ", d.Aliases, " ", a.Models, " ", a.Kernels, " ", a.Vendor))
		}
	}
	want := []string{
		"gfx900 vega10 [vega-fe vega-frontier] [refined] [tensile library] AMD",
		"gfx906 vega20 [mi60] [refined] [library] AMD",
		"gfx906 mi50 [mi50-32gb mi50-16gb] [refined] [library] AMD",
		"gfx908 mi100 [mi100-32gb] [refined] [library] AMD",
		"gfx90a mi210 [mi250-gcd] [refined reference] [tensile triton library] AMD",
		"gfx90a mi250x-gcd [mi250x] [refined reference] [tensile triton library] AMD",
		"gfx942 mi300x [] [refined reference] [tensile triton library] AMD",
		"gfx942 mi308x [mi308x-192gb] [refined reference] [tensile triton library] AMD",
		"gfx942 mi325x [mi325x-256gb] [refined reference] [tensile triton library] AMD",
		"gfx950 mi355x [] [refined reference] [tensile triton library] AMD",
	}
	if m.Name != "amd-ref" || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s provides %v, want %v", m.Name, got, want)
	}
	for _, o := range m.Options {
		if o.Key == "" || o.Doc == "" {
			t.Errorf("incomplete option %+v", o)
		}
	}
}

// modes are the values of the option grid.
const modes = "data_parallel, k_split_aware, number_of_cus, min_resources, energy_aware, reduction_cost_aware"

const occupancyRange = " a whole number from 1 to 32, the number of wavefronts that a compute unit holds;" +
	" give occ=N"

func withOption(archID, key, value string) arch.OpenRequest {
	return arch.OpenRequest{Arch: archID, Model: modelName, Options: map[string]string{key: value}}
}

func withOverride(key string, value float64) arch.OpenRequest {
	return arch.OpenRequest{Arch: "gfx942", Model: modelName, Overrides: map[string]hw.OverrideValue{key: {Value: value}}}
}

var openTests = []struct {
	r    arch.OpenRequest
	want string // id and options, or the error
}{
	{
		arch.OpenRequest{Arch: "gfx942", Model: modelName},
		"gfx942@mi300x [{grid data_parallel} {occ 1} {mi auto} {mapping jan}]",
	},
	{
		arch.OpenRequest{Arch: "gfx90a", Device: "mi250-gcd", Model: "reference"},
		"gfx90a@mi210 [{grid data_parallel} {occ 1} {mi auto} {mapping jan}]",
	},
	{
		arch.OpenRequest{Arch: "gfx950", Model: modelName, Options: map[string]string{
			"grid": "energy_aware", "occ": "32", "mi": "32x32x16", "mapping": "feb",
		}},
		"gfx950@mi355x [{grid energy_aware} {occ 32} {mi 32x32x16} {mapping feb}]",
	},
	{
		arch.OpenRequest{Arch: "gfx1250"},
		`unknown architecture "gfx1250"; did you mean gfx950, gfx900?`,
	},
	{
		arch.OpenRequest{Arch: "gfx90a", Device: "mi300x"},
		`gfx90a has no device "mi300x"; did you mean mi210? its devices: mi210, mi250x-gcd`,
	},
	{
		arch.OpenRequest{Arch: "gfx942", Model: "oracle"},
		`gfx942 has no model "oracle"; use one of refined, reference`,
	},
	{
		withOption("gfx942", "occupancy", "2"),
		`plugin amd-ref has no option "occupancy"; its options: l2, scheme, release, grid, occ, mi, mapping`,
	},
	{
		withOption("gfx942", "grid", "analytical"),
		"option: grid=analytical cannot be ranked: the library's analytical grid needs the ranking that it is" +
			" part of; use one of " + modes,
	},
	{withOption("gfx942", "grid", "best"), "option: grid=best is unknown; use one of " + modes},
	{
		withOption("gfx942", "occ", "0"),
		"option: occ=0 is not" + occupancyRange,
	},
	{
		withOption("gfx942", "occ", "1.5"),
		"option: occ=1.5 is not" + occupancyRange,
	},
	{
		withOption("gfx90a", "mi", "16x16x64"),
		"option: mi=16x16x64 is not a matrix instruction of gfx90a; use auto or one of 16x16x16, 32x32x8," +
			" 32x32x4, 16x16x4, 4x4x4, 32x32x2, 32x32x1, 16x16x1, 4x4x1, 16x16x32, 32x32x16",
	},
	{withOption("gfx942", "mapping", "mar"), "option: mapping=mar is unknown; use one of jan, feb"},
	{
		withOverride("num_xcd", 4),
		`hardware override: gfx942 has no parameter "num_xcd"; did you mean num_xcds?`,
	},
	{
		withOverride("num_xcds", 500),
		"num_xcds is 500, which is more than num_cus (304); give each die at least one compute unit",
	},
	{
		withOverride("bw_c1", 0),
		"bw_c0, bw_c1 and bw_c2 are all zero, which leaves no bandwidth; set at least one to a positive value",
	},
}

func TestOpen(t *testing.T) {
	p, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range openTests {
		a, err := p.Open(context.Background(), c.r)
		got := ""
		if err != nil {
			got = err.Error()
			if diag.KindOf(err) != diag.Input {
				t.Errorf("%+v: error of kind %s, want input", c.r, diag.KindOf(err))
			}
		} else {
			got = fmt.Sprint(a.Describe().ID(), " ", a.Describe().Options)
		}
		if got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.r, got, c.want)
		}
	}
}

// An overridden clock changes what follows from it, and what an override gives stays. With every bandwidth overridden,
// the rung is calibrated.
func TestOverrides(t *testing.T) {
	p, err := Provider()
	if err != nil {
		t.Fatal(err)
	}
	openWith := func(o map[string]hw.OverrideValue) *arch.Description {
		a, err := p.Open(context.Background(), arch.OpenRequest{Arch: "gfx942", Model: modelName, Overrides: o})
		if err != nil {
			t.Fatal(err)
		}
		return a.Describe()
	}
	for _, c := range []struct{ overrides, want map[string]float64 }{
		{
			map[string]float64{"clock": 1.05e9}, // half
			map[string]float64{"mem1_perf_ratio": 1, "mem2_perf_ratio": 2, "mem3_perf_ratio": 2, "peak_fp16": 0.5,
				"peak_fp8": 0.5, "dram_bandwidth": 1},
		},
		{
			map[string]float64{"num_cus": 152, "peak_fp8": 1e15},
			map[string]float64{"mem1_perf_ratio": 0.5, "mem3_perf_ratio": 1, "peak_fp16": 0.5, "peak_fp8": 1e15 / 2614.9e12},
		},
		{
			map[string]float64{"memory_clock": 650e6},
			map[string]float64{"mem1_perf_ratio": 1, "mem2_perf_ratio": 0.5, "mem3_perf_ratio": 0.5, "dram_bandwidth": 0.5},
		},
		{
			map[string]float64{"memory_clock": 650e6, "dram_bandwidth": 10.6e12},
			map[string]float64{"mem2_perf_ratio": 0.5, "mem3_perf_ratio": 2, "dram_bandwidth": 2},
		},
	} {
		given := map[string]hw.OverrideValue{}
		for name, v := range c.overrides {
			given[name] = hw.OverrideValue{Value: v}
		}
		plain, d := hw.Set(openWith(nil).Params), openWith(given)
		for name, want := range c.want {
			if got := hw.Set(d.Params).Get(name) / plain.Get(name); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("with %v, %s is %v times what it was, want %v", c.overrides, name, got, want)
			}
		}
		if d.Rung != arch.RungSpec {
			t.Errorf("with %v, rung %s", c.overrides, d.Rung)
		}
	}
	all := map[string]hw.OverrideValue{}
	for _, name := range []string{"mem1_perf_ratio", "mem2_perf_ratio", "mem3_perf_ratio", "bw_c0", "bw_c1", "bw_c2"} {
		all[name] = hw.OverrideValue{Value: 1}
	}
	if d := openWith(all); d.Rung != arch.RungCalibrated {
		t.Errorf("all bandwidths overridden: rung %s", d.Rung)
	}
}

// The matrix instructions are those that tritonBLAS uses, if it specifies them. The element types are those that the
// hardware or the library supports.
func TestAtoms(t *testing.T) {
	for id, want := range map[string]string{
		"gfx90a": "fp16 16x16x16/32 bf16 16x16x16/16 fp32 16x16x4/32 tf32 16x16x16/48 int8 16x16x16/32",
		"gfx942": "fp16 16x16x16/16 bf16 16x16x16/16 fp32 16x16x4/32" +
			" tf32 16x16x32/16 fp8 16x16x32/16 int8 16x16x32/16",
		"gfx950": "fp16 16x16x32/16 bf16 16x16x32/16 fp32 16x16x4/32" +
			" tf32 16x16x32/48 fp8 16x16x128/32 int8 16x16x32/16",
	} {
		var got []string
		for _, a := range open(t, id).Describe().Atoms {
			got = append(got, fmt.Sprintf("%s %dx%dx%d/%v", a.DType, a.M, a.N, a.K, float64(a.Latency)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", id, strings.Join(got, " "), want)
		}
	}
}

func TestCandidates(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		arch    string
		dtype   gemm.DType
		configs int
		fit     int
	}{
		{"gfx942", gemm.FP16, 150, 104},
		{"gfx950", gemm.FP16, 150, 135},
		{"gfx90a", gemm.BF16, 150, 104},
		{"gfx942", gemm.INT8, 216, 158},
		{"gfx942", gemm.FP8, 216, 158},
		{"gfx950", gemm.FP8, 96, 93},
		{"gfx90a", gemm.INT8, 150, 125},
	} {
		p := gemm.New(512, 512, 512)
		p.DType = c.dtype
		list, err := open(t, c.arch).Candidates(ctx, p, arch.Space{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Configs)+len(list.Rejected) != c.configs || len(list.Configs) != c.fit {
			t.Errorf("%s %s: %d of %d candidates fit, want %d of %d", c.arch, c.dtype, len(list.Configs),
				len(list.Configs)+len(list.Rejected), c.fit, c.configs)
		}
		seen := map[gemm.Config]bool{}
		for _, cfg := range list.Configs {
			if seen[cfg] {
				t.Errorf("%s is listed twice", cfg)
			}
			seen[cfg] = true
		}
	}

	a := open(t, "gfx942")
	list, err := a.Candidates(ctx, gemm.New(512, 512, 512), arch.Space{
		BlockM:    []int{64, 256},
		BlockN:    []int{256},
		BlockK:    []int{64, 128},
		NumWarps:  []int{4, 8},
		NumStages: []int{1},
		SplitK:    []int{1, 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Configs) != 8 || list.Configs[1].SplitK != 4 || list.Configs[2].NumWarps != 8 ||
		list.Configs[0].NumStages != 1 {
		t.Errorf("axes of the space are not used: %v", list.Configs)
	}
	if r := list.Rejected[0]; len(list.Rejected) != 8 || r.Position != 4 || r.Reason != arch.ReasonSharedMemory ||
		r.Detail != "needs 81920 B of LDS for one tile of A and B, 65536 B available" {
		t.Errorf("first of %d rejections: %+v", len(list.Rejected), r)
	}
}

func TestRefusals(t *testing.T) {
	ctx := context.Background()
	fp8 := gemm.New(64, 64, 64)
	fp8.DType = gemm.FP8
	_, err := open(t, "gfx90a").Candidates(ctx, fp8, arch.Space{})
	wantError(t, err, "gfx90a has no matrix instructions for fp8; use one of fp16, bf16, fp32, tf32, int8")
	err = open(t, "gfx90a").Estimate(ctx, nil, fp8, nil)
	wantError(t, err, "gfx90a has no matrix instructions for fp8; use one of fp16, bf16, fp32, tf32, int8")
	_, err = open(t, "gfx942", "mi=32x32x8").Candidates(ctx, fp8, arch.Space{})
	wantError(t, err, "option mi: gfx942 has no 32x32x8 matrix instruction for fp8; use one of 16x16x32, 32x32x16")
	fp4 := gemm.New(64, 64, 64)
	fp4.DType = gemm.FP4
	_, err = open(t, "gfx942").Candidates(ctx, fp4, arch.Space{})
	wantError(t, err, "gfx942 has no matrix instructions for fp4; use one of fp16, bf16, fp32, tf32, fp8, int8")
	_, err = open(t, "gfx942", "mi=32x32x8").Candidates(ctx, fp4, arch.Space{})
	wantError(t, err, "gfx942 has no matrix instructions for fp4; use one of fp16, bf16")

	a := open(t, "gfx942")
	p := gemm.New(64, 64, 64)
	_, err = a.Candidates(ctx, p, arch.Space{Kernel: "cutlass"})
	wantError(t, err, `amd-ref does not predict the kernel family "cutlass"; use triton`)
	_, err = a.Candidates(ctx, p, arch.Space{BlockK: []int{64, 0}})
	wantError(t, err,
		"config 16x16x0 w8 s2 has a number outside 1 to 4096; give whole numbers in that range")
	good := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, SplitK: 1, NumWarps: 8, NumStages: 2, Kernel: "triton"}
	for _, bad := range []func(c *gemm.Config){
		func(c *gemm.Config) { c.BlockM = 0 },
		func(c *gemm.Config) { c.BlockN = -64 },
		func(c *gemm.Config) { c.BlockK = 4097 },
		func(c *gemm.Config) { c.SplitK = -1 },
		func(c *gemm.Config) { c.SplitK = 1 << 20 },
		func(c *gemm.Config) { c.Kernel = "cutlass" },
	} {
		c := good
		bad(&c)
		if err := a.Estimate(ctx, make([]arch.Estimate, 1), p, []gemm.Config{c}); diag.KindOf(err) != diag.Input {
			t.Errorf("Estimate of %s: %v", c, err)
		}
		if err := a.Terms(ctx, make([]float64, len(terms)), p, []gemm.Config{c}); diag.KindOf(err) != diag.Input {
			t.Errorf("Terms of %s: %v", c, err)
		}
		if _, err := a.Mapping(ctx, p, c); diag.KindOf(err) != diag.Input {
			t.Errorf("Mapping of %s: %v", c, err)
		}
	}
	err = a.Estimate(ctx, make([]arch.Estimate, 1), gemm.Problem{}, []gemm.Config{good})
	if diag.KindOf(err) != diag.Input {
		t.Errorf("Estimate of an empty problem: %v", err)
	}
	if _, err := a.Candidates(ctx, gemm.Problem{}, arch.Space{}); diag.KindOf(err) != diag.Input {
		t.Errorf("Candidates of an empty problem: %v", err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want || diag.KindOf(err) != diag.Input {
		t.Errorf("error %v, want %s", err, want)
	}
}
