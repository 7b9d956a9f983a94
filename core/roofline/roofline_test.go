package roofline_test

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// gpu is a made-up device with 100 units at 1 GHz.
type gpu struct {
	arch.Architecture
	d      arch.Description
	levels []arch.Level
}

func (g *gpu) Describe() *arch.Description     { return &g.d }
func (g *gpu) Hierarchy() arch.MemoryHierarchy { return g }
func (g *gpu) Levels() []arch.Level            { return g.levels }

func made() *gpu {
	number := func(v float64, unit string, m hw.Method) hw.Number {
		return hw.Number{Value: v, Unit: unit, Source: "made up", Method: m}
	}
	return &gpu{
		d: arch.Description{
			Arch: "x1", Device: "made", DeviceName: "Made-up", Units: 100, Clock: 1e9,
			Peak:      []arch.PeakRate{{DType: gemm.FP16, Rate: 400e12}},
			Constants: []arch.Constant{{Name: "scratch_width", Value: 128, Unit: "B/cycle", Source: "banks"}},
			Ceilings:  []arch.Ceiling{{Name: "L2", Level: arch.AtL2, Reached: 5e12, Source: "made up"}},
			Params: hw.Set{
				{Name: "dram_bandwidth", Number: number(2e12, "B/s", hw.Datasheet), Tier: hw.Derived},
				{Name: "peak_fp32", Number: number(20e12, "FLOP/s", hw.Datasheet), Tier: hw.Derived},
			},
			Terms: []arch.Term{
				{Name: "requested", Common: arch.CommonRequested}, {Name: "l2_total", Common: arch.CommonL2Total},
				{Name: "dram_total", Common: arch.CommonDRAMTotal}, {Name: "shared_total", Common: arch.CommonSharedTotal},
			},
		},
		levels: []arch.Level{
			{Name: "L2", Bound: arch.BoundL2, Bandwidth: arch.Bandwidth{Peak: 1}},
			{Name: "HBM", Bound: arch.BoundDRAM, Bandwidth: arch.Bandwidth{Peak: 1}, DataSheet: 2e12,
				Names: arch.LevelNames{DataSheet: "dram_bandwidth"}},
		},
	}
}

func TestCeilings(t *testing.T) {
	g := made()
	want := []roofline.Ceiling{
		{Name: "fp16 matrix", Level: roofline.Compute, Limit: 400e12},
		{Name: "fp32 FMA", Level: roofline.Compute, Limit: 20e12},
		{Name: "scratch", Level: roofline.Shared, Limit: 12.8e12},
		{Name: "L2", Level: roofline.L2, Reached: 5e12},
		{Name: "HBM", Level: roofline.DRAM, Limit: 2e12},
	}
	check := func() {
		t.Helper()
		d := roofline.New(g, gemm.FP16)
		must.Need(t, len(d.Ceilings) == len(want), "%+v", d.Ceilings)
		for i, c := range d.Ceilings {
			must.That(t, c.Source != "", "%s has no source", c.Name)
			c.Source = ""
			must.Equal(t, c, want[i])
		}
	}
	g.d.Widen("scratch", arch.AtShared, "scratch_width")
	check()
	// What a plugin states replaces what is known otherwise. A memory has the name of the model's level.
	g.d.Ceilings = append(g.d.Ceilings,
		arch.Ceiling{Name: "slow multiply", DType: gemm.FP16, Limit: 400e12, Reached: 160e12, Source: "measured"},
		arch.Ceiling{Name: "fast multiply", DType: gemm.FP16, Limit: 410e12, Reached: 328e12, Source: "measured"},
		arch.Ceiling{Name: "wrong multiply", DType: gemm.INT8, Limit: 900e12, Source: "measured"},
		arch.Ceiling{Name: "memory", Level: arch.AtDRAM, Limit: 2e12, Reached: 1.9e12, Source: "measured"},
		arch.Ceiling{Name: "port", Level: arch.AtRequested, Limit: 9e12, Source: "measured"})
	want = []roofline.Ceiling{
		{Name: "fp16 fast multiply", Level: roofline.Compute, Limit: 410e12, Reached: 328e12},
		{Name: "fp16 slow multiply", Level: roofline.Compute, Limit: 400e12, Reached: 160e12}, want[1], want[2],
		{Name: "port", Level: roofline.Requested, Limit: 9e12}, want[3],
		{Name: "HBM", Level: roofline.DRAM, Limit: 2e12, Reached: 1.9e12},
	}
	check()
	fp32 := roofline.New(g, gemm.FP32)
	must.That(t, fp32.Ceilings[0].Name == "fp32 FMA" &&
		fp32.Ceiling(roofline.Compute).Roof() == 20e12, "%+v", fp32.Ceilings)
}

func TestPlace(t *testing.T) {
	g := made()
	d := roofline.New(g, gemm.FP16)
	p, c := gemm.New(1000, 1000, 1000), gemm.Config{BlockM: 100, BlockN: 100, BlockK: 50, SplitK: 1}
	const requested, l2, dram, shared = 400e6, 300e6, 8e6, 500e6
	row := []float64{requested, l2, dram, shared}
	k := d.Place(&g.d, p, c, row, 100e-6)
	must.That(t, k.Rate == 20e12 && k.Bound == roofline.L2 && math.Abs(k.Attainable-2e9/l2*5e12) <= 1 && k.Share <= 1,
		"%+v", k)
	var levels []roofline.Level
	for _, point := range k.Levels {
		levels = append(levels, point.Level)
		must.That(t, point.Above == roofline.Nothing && point.Counted && point.Intensity == 2e9/point.Bytes, "%+v", point)
	}
	must.That(t, len(levels) == 4 && levels[0] == roofline.Shared && levels[3] == roofline.DRAM, "%v", levels)
	// Faster than a limit of the hardware, and than a microbenchmark.
	fast := d.Place(&g.d, p, c, row, 3.9e-6)
	must.That(t, fast.Above == roofline.AboveLimit && fast.Levels[3].Above == roofline.AboveLimit &&
		fast.Levels[2].Above == roofline.AboveReached, "%+v", fast)
	// Without terms, bytes are those of whole tiles; without a configuration, the least.
	tiles := d.Place(&g.d, p, c, nil, 100e-6)
	must.That(t, tiles.Levels[0].Level == roofline.Requested && tiles.Levels[0].Bytes == 100*200*1000*2+2e6 &&
		!tiles.Levels[0].Counted, "%+v", tiles.Levels)
	library := d.Place(&g.d, p, gemm.Config{}, nil, 100e-6)
	must.That(t, len(library.Levels) == 1 && library.Levels[0].Bytes == 6e6 && roofline.Compulsory(p) == 6e6,
		"%+v", library.Levels)
}
