package amdref

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdorigami "github.com/origami-gemm/origami/plugins/amd-ref/amd-origami"
)

func TestManifest(t *testing.T) {
	p := must.Get(Provider())(t)
	m := p.Manifest()
	var got []string
	for _, a := range m.Archs {
		for _, d := range a.Devices {
			got = append(got, fmt.Sprint(a.ID, " ", d.ID, " ", d.Aliases, " ", a.Models, " ", a.Kernels, " ", a.Vendor))
		}
	}
	want := []string{
		"gfx900 vega10 [vega-fe vega-frontier] [tensile library] [tensile library] AMD",
		"gfx906 vega20 [mi60] [library] [library] AMD",
		"gfx906 mi50 [mi50-32gb mi50-16gb] [library] [library] AMD",
		"gfx908 mi100 [mi100-32gb cdna cdna1] [library] [library] AMD",
		"gfx90a mi210 [mi250-gcd cdna2] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx90a mi250x-gcd [mi250x] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx942 mi300x [cdna3] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx942 mi300a [mi300a-128gb] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx942 mi308x [mi308x-192gb] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx942 mi325x [mi325x-256gb] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx950 mi355x [cdna4] [tensile amd-origami library] [tensile triton library] AMD",
		"gfx950 mi350x [mi350x-288gb] [tensile amd-origami library] [tensile triton library] AMD",
	}
	must.That(t, m.Name == "amd-ref" && fmt.Sprint(got) == fmt.Sprint(want), "%s provides %v, want %v", m.Name, got, want)
	for _, o := range m.Options {
		must.That(t, o.Key != "" && o.Doc != "", "incomplete option %+v", o)
	}
}

// modes are the values of the option grid.
const modes = "data_parallel, k_split_aware, number_of_cus, min_resources, energy_aware, reduction_cost_aware"

const occupancyRange = " a whole number from 1 to 32, the number of wavefronts that a compute unit holds;" +
	" give occ=N"

func withOption(archID, key, value string) arch.OpenRequest {
	return arch.OpenRequest{Arch: archID, Model: amdorigami.Name, Options: map[string]string{key: value}}
}

func withOverride(key string, value float64) arch.OpenRequest {
	return arch.OpenRequest{
		Arch: "gfx942", Model: amdorigami.Name, Overrides: map[string]hw.OverrideValue{key: {Value: value}},
	}
}

var openTests = []struct {
	r    arch.OpenRequest
	want string // id and options, or the error
}{
	{
		arch.OpenRequest{Arch: "gfx942", Model: amdorigami.Name},
		"gfx942@mi300x [{grid data_parallel} {occ 1} {mi auto} {mapping jan} {workgroups auto}]",
	},
	{
		arch.OpenRequest{Arch: "gfx90a", Device: "mi250-gcd", Model: "reference"},
		"gfx90a@mi210 [{grid data_parallel} {occ 1} {mi auto} {mapping jan} {workgroups auto}]",
	},
	{
		arch.OpenRequest{Arch: "gfx950", Model: amdorigami.Name, Options: map[string]string{
			"grid": "energy_aware", "occ": "32", "mi": "32x32x16", "mapping": "feb",
		}},
		"gfx950@mi355x [{grid energy_aware} {occ 32} {mi 32x32x16} {mapping feb} {workgroups auto}]",
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
		`gfx942 has no model "oracle"; use one of tensile, amd-origami, library`,
	},
	{
		withOption("gfx942", "occupancy", "2"),
		`plugin amd-ref has no option "occupancy"; its options: release, timing, scheme, nearby, grid, occ, mi, mapping, ` +
			"workgroups",
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
	p := must.Get(Provider())(t)
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
		must.That(t, got == c.want, "%+v:\n got %s\nwant %s", c.r, got, c.want)
	}
}

// An overridden clock changes what follows from it, and what an override gives stays. With every bandwidth overridden,
// the rung is calibrated.
func TestOverrides(t *testing.T) {
	p := must.Get(Provider())(t)
	openWith := func(o map[string]hw.OverrideValue) *arch.Description {
		a := must.Get(p.Open(context.Background(), arch.OpenRequest{Arch: "gfx942", Model: amdorigami.Name, Overrides: o}))(t)
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
		must.That(t, d.Rung == arch.RungSpec, "with %v, rung %s", c.overrides, d.Rung)
	}
	all := map[string]hw.OverrideValue{}
	for _, name := range []string{"mem1_perf_ratio", "mem2_perf_ratio", "mem3_perf_ratio", "bw_c0", "bw_c1", "bw_c2"} {
		all[name] = hw.OverrideValue{Value: 1}
	}
	if d := openWith(all); d.Rung != arch.RungCalibrated {
		t.Errorf("all bandwidths overridden: rung %s", d.Rung)
	}
}

// No model of an AMD GPU has a margin that was chosen on another vendor's, and constants of another vendor's GPU say
// that they are assumed.
func TestConstantsOfOtherVendors(t *testing.T) {
	p := must.Get(Provider())(t)
	for _, r := range []arch.OpenRequest{{Arch: "gfx942"}, {Arch: "gfx942", Model: "library"},
		{Arch: "gfx942", Model: amdorigami.Name}, {Arch: "gfx950"}} {
		a := must.Get(p.Open(t.Context(), r))(t)
		for _, c := range a.Describe().Constants {
			of := strings.Contains(c.Source, "H200") || strings.Contains(c.Source, "H100") || strings.Contains(c.Source, "CUDA")
			must.That(t, c.Reader() != "bands" && (!of || strings.HasPrefix(c.Source, "assumed")),
				"%+v: %s is from %s", r, c.Name, c.Source)
		}
	}
}
