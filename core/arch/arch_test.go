package arch

import (
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestEnumerate(t *testing.T) {
	defaults := Space{Kernel: "triton", BlockM: []int{16, 32}, BlockN: []int{64}, BlockK: []int{16, 32},
		NumWarps: []int{4}, NumStages: []int{2}, SplitK: []int{1}}
	got := must.Get(Space{NumWarps: []int{4, 8}}.Enumerate(defaults))(t)
	var want []gemm.Config
	for _, m := range []int{16, 32} {
		for _, k := range []int{16, 32} {
			for _, warps := range []int{4, 8} {
				want = append(want, gemm.Config{BlockM: m, BlockN: 64, BlockK: k, NumWarps: warps, NumStages: 2, SplitK: 1,
					Kernel: "triton"})
			}
		}
	}
	must.Need(t, len(got) == len(want), "%d configurations, want %d", len(got), len(want))
	for i := range want {
		must.Equal(t, got[i], want[i], i)
	}

	long := make([]int, 2000)
	for i := range long {
		long[i] = 1 + i
	}
	for name, s := range map[string]Space{
		"a block of 0":           {BlockK: []int{0}},
		"a negative split":       {SplitK: []int{-1}},
		"a block beyond 4096":    {BlockM: []int{4097}},
		"four million":           {BlockM: long, BlockN: long},
		"a product beyond int64": {BlockM: long, BlockN: long, BlockK: long, NumWarps: long, NumStages: long, SplitK: long},
	} {
		configs, err := s.Enumerate(defaults)
		must.That(t, diag.KindOf(err) == diag.Input, "%s: %d configurations, %v", name, len(configs), err)
	}
}

func TestBandwidth(t *testing.T) {
	linear := Bandwidth{Peak: 1896, Units: 128, Linear: true}
	must.Equal(t, linear.At(64), 948)
	saturating := Bandwidth{Peak: 1000, Units: 304, C1: 0.015}
	for active, want := range map[int]float64{1: 0.015, 66: 0.99, 67: 1, 304: 1, 305: 1} {
		must.Equal(t, saturating.Fraction(active), want, active)
	}
	must.Equal(t, (Bandwidth{Units: 10, C0: 0.01, C1: 0.02, C2: 0.1}).Fraction(2), 0.01*4+0.02*2+0.1)
}

func TestBoundNames(t *testing.T) {
	for b, want := range map[Bound]string{BoundCompute: "compute", BoundL2: "l2", BoundMALL: "mall", BoundDRAM: "dram",
		BoundLatency: "latency", BoundL1: "l1", BoundSharedMemory: "shared_memory", BoundIssue: "issue",
		BoundUnknown: "unknown", 200: "unknown"} {
		must.Equal(t, b.String(), want, uint8(b), b)
	}
}

func TestFind(t *testing.T) {
	manifests := []Manifest{
		{Name: "first", Archs: []ArchEntry{
			{ID: "sm90", Devices: []DeviceEntry{{ID: "h100", Aliases: []string{"hopper"}},
				{ID: "h200", Name: "Acme Fast H200 SXM"}}},
			{ID: "empty"},
		}},
		{Name: "second", Archs: []ArchEntry{
			{ID: "sm90", Devices: []DeviceEntry{{ID: "gh200"}}},
			{ID: "gfx942", Devices: []DeviceEntry{{ID: "mi300x"}}},
		}},
	}
	for name, want := range map[string]string{
		"sm90": "first sm90@h100", "SM90": "first sm90@h100", "sm90@h200": "first sm90@h200",
		"sm90@Hopper": "first sm90@h100",
		"sm90@gh200":  "second sm90@gh200", "h200": "first sm90@h200", "hopper": "first sm90@h100",
		"mi300x": "second gfx942@mi300x", "MI-300 X": "second gfx942@mi300x", "H200 SXM": "first sm90@h200",
		"Acme Fast H200 SXM": "first sm90@h200",
	} {
		m, err := Find(manifests, name)
		must.That(t, err == nil && m.Manifest.Name+" "+m.ID() == want, "%s: %+v, %v; want %s", name, m, err, want)
	}
	for name, want := range map[string]string{
		"sm91":        `unknown architecture "sm91"; did you mean sm90`,
		"sm90@h300":   `sm90 has no device "h300"; did you mean h100, h200`,
		"":            "the architecture is missing",
		"@h200":       "the architecture is missing",
		"empty":       `unknown architecture "empty"`,
		"mi300x@sm90": `unknown architecture "mi300x"`,
	} {
		must.Fail(t, must.Err(Find(manifests, name)), want)
	}
}
