package declare_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/catalog"
	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/declare"
)

const device = `arch: chip
device: one
name: A Chip
vendor: Ours
aliases: [uno]
default: true
derived:
  units: {value: 12, unit: "1", source: data sheet, method: datasheet, date: 2026-01-02}
  clock: {value: 1.5, unit: GHz, source: data sheet, method: datasheet, date: 2026-01-02}
  memory: {value: 64, unit: KiB, source: data sheet, method: datasheet, date: 2026-01-02}
  cache: {value: 4, unit: MiB, source: data sheet, method: datasheet, date: 2026-01-02}
  cache_bandwidth: {value: 1.2, unit: TB/s, source: data sheet, method: datasheet, date: 2026-01-02}
  peak_fp16: {value: 40, unit: TFLOP/s, source: data sheet, method: datasheet, date: 2026-01-02}
calibrated:
  dram_bandwidth: {value: 150, unit: B/cycle, source: a benchmark, method: microbenchmark, date: 2026-01-03}
atoms:
  - {type: fp16, m: 16, n: 16, k: 16, cycles: 20, source: manual, method: isa, date: 2026-01-02}
  - {type: fp16, m: 32, n: 32, k: 8, cycles: 30, source: manual, method: isa, date: 2026-01-02}
  - {type: int8, m: 16, n: 16, k: 32, cycles: 20, source: manual, method: isa, date: 2026-01-02}
`

func definition() catalog.Definition {
	return catalog.Definition{
		Name: "test", Version: "1.2.3", Vendor: "Ours", Files: fstest.MapFS{"one.yaml": {Data: []byte(device)}},
		Specs: []hw.Spec{
			{Name: "units", Unit: "1", Integer: true}, {Name: "clock", Unit: "Hz"},
			{Name: "memory", Unit: "B"}, {Name: "cache", Unit: "B"},
			{Name: "cache_bandwidth", Unit: "B/s"}, {Name: "dram_bandwidth", Unit: "B/cycle", Calibrates: true},
			{Name: "peak_fp16", Unit: "FLOP/s", Optional: true}, {Name: "peak_int8", Unit: "FLOP/s", Optional: true},
		},
	}
}

// full uses every feature of a declaration.
func full() declare.Model {
	return declare.Model{
		Name: "full", UnitName: "core", Units: "units", Partitions: "2",
		Clock:              "clock",
		SharedMemory:       "memory - reserved",
		RegisterFile:       "65536",
		RegistersPerThread: "255",
		AtomsPerUnit:       "4",
		Constants: []arch.Constant{
			{Name: "reserved", Value: 1024, Unit: "B", Doc: "kept by the system", Source: "manual"},
		},
		Kernels: []declare.Kernel{
			{
				Name: "tiled",
				Space: arch.Space{
					BlockM:    []int{16, 64, 128, 256},
					BlockN:    []int{16, 64, 128, 256},
					BlockK:    []int{16, 64},
					NumWarps:  []int{4, 8},
					NumStages: []int{1, 2},
				},
				Rules: []declare.Rule{
					{
						Reason: arch.ReasonSharedMemory,
						When:   "tile_bytes*num_stages > memory - reserved",
						Detail: "needs {tile_bytes*num_stages} B, {memory - reserved} B available," +
							" {memory/reserved/3} times",
					},
					{Reason: "waste", When: "block_m > 64 && block_m >= 2*m", Detail: "{block_m} rows for {m}"},
				},
			},
			{Name: "plain", Space: arch.Space{BlockM: []int{32}, BlockN: []int{32}, BlockK: []int{32}}},
		},
		Terms: []declare.Term{
			{Name: "tiles", Unit: "1", Formula: "cdiv(m, block_m)*cdiv(n, block_n)*batch", Doc: "tiles"},
			{Name: "active", Unit: "1", Formula: "min(tiles, units)", Doc: "units at work"},
			{Name: "tile_bytes", Unit: "B", Formula: "(block_m + block_n)*block_k*element_bytes", Doc: "operands"},
			{Name: "layout", Unit: "1", Formula: "1 + trans_a*0.5 + trans_b*0.25", Doc: "cost of the layout"},
			{
				Name:    "compute",
				Unit:    "cycles",
				Formula: "cdiv(block_m, atom_m)*cdiv(block_n, atom_n)*cdiv(block_k, atom_k)*atom_cycles/atoms_per_unit",
				Kind:    arch.KindStep,
				Bound:   arch.BoundCompute,
				Doc:     "instructions",
			},
			{
				Name: "hit", Unit: "1", Formula: "rule: what fits the cache", Doc: "share that the cache serves",
				Args: []string{"active", "tile_bytes", "cache"},
				Func: func(v []float64) float64 { return 1 - 1/math.Sqrt(1+v[2]/(v[0]*v[1])) }},
			{
				Name: "cache_step", Unit: "cycles", Formula: "active*tile_bytes*layout/(cache_bandwidth/clock)",
				Kind: arch.KindStep, Bound: arch.BoundL2, Doc: "loads",
			},
			{
				Name: "dram_step", Unit: "cycles", Formula: "active*tile_bytes*(1 - hit)/(dram_bandwidth*active/units)",
				Kind: arch.KindStep, Bound: arch.BoundDRAM, Doc: "misses",
			},
			{Name: "step", Unit: "cycles", Formula: "max(compute, cache_step, dram_step)", Doc: "one K step"},
			{
				Name: "total", Unit: "cycles", Formula: "cdiv(tiles, units)*cdiv(k, block_k)*step",
				Kind: arch.KindTotal, Common: arch.CommonTotal, Doc: "time",
			},
		},
		Order:    arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}},
		Monotone: []arch.Dim{arch.DimK},
		Levels: []arch.Level{
			{Name: "L2", Bound: arch.BoundL2, Names: arch.LevelNames{
				Capacity: "cache", Latency: "200", Partitions: "2", Bandwidth: "cache_bandwidth/clock",
			}},
			{
				Name: "DRAM", Bound: arch.BoundDRAM, Names: arch.LevelNames{Bandwidth: "dram_bandwidth"},
				Bandwidth: arch.Bandwidth{Linear: true},
			},
		},
		GroupM: "min(8, cdiv(m, block_m))",
		XCDs:   "2",
		Chunk:  "4",
	}
}

// simple is full with another name and every optional field empty.
func simple() declare.Model {
	m := full()
	m.Name, m.Partitions, m.RegisterFile, m.RegistersPerThread, m.AtomsPerUnit = "simple", "", "", "", ""
	m.GroupM, m.XCDs, m.Chunk = "", "", ""
	m.Order = arch.Order{}
	m.Levels = []arch.Level{
		{Name: "DRAM", Bound: arch.BoundDRAM, Names: arch.LevelNames{Bandwidth: "dram_bandwidth"}},
	}
	return m
}

func open(t testing.TB, r arch.OpenRequest, models ...declare.Model) arch.Architecture {
	t.Helper()
	p := must.Get(declare.Provider(definition(), models...))(t)
	r.Arch = "chip"
	a := must.Get(p.Open(t.Context(), r))(t)
	return a
}

func TestConformance(t *testing.T) {
	p := must.Get(declare.Provider(definition(), full(), simple(), clustered()))(t)
	conformance.Architecture(t, p, conformance.Options{Untimed: true})
}

func TestDescription(t *testing.T) {
	d := open(t, arch.OpenRequest{Device: "uno"}, full(), simple()).Describe()
	must.That(t, d.ID() == "chip@one" && d.DeviceName == "A Chip" && d.Vendor == "Ours" &&
		slices.Equal(d.Aliases, []string{"uno"}) && d.Model == "full" &&
		slices.Equal(d.Models, []string{"full", "simple"}) && slices.Equal(d.Kernels, []string{"tiled", "plain"}) &&
		d.Rung == arch.RungCalibrated && d.UnitName == "core" && d.Units == 12 && d.Partitions == 2 &&
		d.Clock == 1.5e9 && d.SharedMemory == 63<<10 && d.RegisterFile == 65536 && d.RegistersPerThread == 255, "%+v", d)
	must.That(t, d.Order.Window == 0.01 && len(d.Order.Keys) == 2 && slices.Equal(d.Monotone, []arch.Dim{arch.DimK}) &&
		len(d.Constants) == 1 && len(d.Terms) == 10, "%+v", d)
	if a := d.Atom(gemm.FP16); a == nil || a.M != 16 || a.Latency != 20 || a.PerUnit != 4 || d.Atom(gemm.BF16) != nil ||
		len(d.Atoms) != 2 {
		t.Errorf("%+v", d.Atoms)
	}
	must.That(t, d.PeakFor(gemm.FP16) == 40e12 && len(d.Peak) == 1, "%+v", d.Peak)
	override := map[string]hw.OverrideValue{"dram_bandwidth": {Value: 99}}
	spec := open(t, arch.OpenRequest{Rung: arch.RungSpec, Overrides: override}, full())
	d = spec.Describe()
	must.That(t, d.Rung == arch.RungCalibrated && hw.Set(d.Params).Get("dram_bandwidth") == 99, "%s, %v", d.Rung, d.Params)
	d = open(t, arch.OpenRequest{Model: "simple"}, full(), simple()).Describe()
	must.That(t, d.Model == "simple" && d.Partitions == 1 && d.RegisterFile == 0 && d.Atom(gemm.FP16).PerUnit == 1,
		"%+v", d)
	levels := open(t, arch.OpenRequest{}, full()).Hierarchy().Levels()
	l := levels[0]
	must.That(t, l.Capacity == 4<<20 && l.Latency == 200 && l.Partitions == 2 && l.Bandwidth.Peak == 800 &&
		l.Bandwidth.At(3) == 800, "%+v", l)
	l = levels[1]
	must.That(t, l.Capacity == 0 && l.Partitions == 1 && l.Bandwidth.At(3) == 150.0/4, "%+v", l)
}

// Of the parameters, those count that a term, a rule, an argument of a function or the clock needs.
func TestUnusedParameters(t *testing.T) {
	got := open(t, arch.OpenRequest{}, full()).Describe().Unused
	must.That(t, slices.Equal(got, []string{"peak_fp16"}), "%v are unused, want peak_fp16", got)
	m := full()
	m.Kernels[0].Rules, m.Terms[5].Args[2] = nil, "active" // only the description shows them now
	want := []string{"memory", "cache", "peak_fp16"}
	got = open(t, arch.OpenRequest{}, m).Describe().Unused
	must.That(t, slices.Equal(got, want), "%v are unused, want memory, cache and peak_fp16", got)
}

// A rule that does not depend on sizes removes a candidate. Others reject it in an estimate. The first rule counts.
func TestRules(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	list := must.Get(a.Candidates(t.Context(), gemm.New(1, 1, 1), arch.Space{}))(t)
	must.That(t, len(list.Configs)+len(list.Rejected) == 4*4*2*2*2 && len(list.Rejected) != 0,
		"%d and %d", len(list.Configs), len(list.Rejected))
	for _, r := range list.Rejected {
		c := r.Config
		must.That(t, r.Reason == arch.ReasonSharedMemory && (c.BlockM+c.BlockN)*c.BlockK*2*c.NumStages > 63<<10 &&
			c.Kernel == "tiled", "%s is rejected: %s", c, r.Reason)
	}
	c := list.Rejected[0].Config
	bytes := (c.BlockM + c.BlockN) * c.BlockK * 2 * c.NumStages
	want := fmt.Sprintf("needs %d B, 64512 B available, 21.33 times", bytes)
	must.Equal(t, list.Rejected[0].Detail, want, "detail")
	p := gemm.New(100, 4096, 4096)
	est := make([]arch.Estimate, len(list.Configs))
	must.Do(t, a.Estimate(t.Context(), est, p, list.Configs))
	for i, c := range list.Configs {
		waste := c.BlockM > 64 && c.BlockM >= 200
		if (est[i].Reject == "waste") != waste || !waste && (est[i].Reject != "" || est[i].Cycles <= 0) {
			t.Errorf("%s: %+v", c, est[i])
		}
	}
	// 8-bit operands need half the memory.
	p.DType = gemm.INT8
	int8s, err := a.Candidates(t.Context(), p, arch.Space{})
	if err != nil || len(int8s.Rejected) >= len(list.Rejected) {
		t.Errorf("%v: %d of fp16 and %d of int8 are rejected", err, len(list.Rejected), len(int8s.Rejected))
	}
	one, err := a.Candidates(t.Context(), p, arch.Space{Kernel: "plain", SplitK: []int{1, 2}})
	split := gemm.Config{
		BlockM: 32, BlockN: 32, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 2, Kernel: "plain",
	}
	must.That(t, err == nil && len(one.Configs) == 2 && one.Configs[1] == split, "%v: %+v", err, one)
}

// The bound is the largest step. That every answer equals its formula is what the conformance checks say.
func TestBoundsAreTheLargestSteps(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	d := a.Describe()
	bounds := map[arch.Bound]bool{}
	for _, p := range []gemm.Problem{
		gemm.New(1, 1, 1), gemm.New(512, 512, 64), gemm.New(4096, 4097, 4095),
		{M: 300, N: 200, K: 100, Batch: 3, AMajor: gemm.MajorM, BMajor: gemm.MajorK, DType: gemm.INT8},
	} {
		list := must.Get(a.Candidates(t.Context(), p, arch.Space{}))(t)
		rows, est := make([]float64, len(list.Configs)*len(d.Terms)), make([]arch.Estimate, len(list.Configs))
		must.Do(t, a.Terms(t.Context(), rows, p, list.Configs))
		must.Do(t, a.Estimate(t.Context(), est, p, list.Configs))
		for i, c := range list.Configs {
			row := rows[i*len(d.Terms):][:len(d.Terms)]
			values := formula.Values(d, p, c, row)
			largest := 0.0
			for j, term := range d.Terms {
				if term.Kind == arch.KindStep {
					largest = max(largest, row[j])
				}
			}
			if est[i].Reject == "" {
				bounds[est[i].Bound] = true
				step := map[arch.Bound]string{
					arch.BoundCompute: "compute", arch.BoundL2: "cache_step", arch.BoundDRAM: "dram_step",
				}[est[i].Bound]
				if values[step] != largest || float64(est[i].Cycles) != values["total"] {
					t.Errorf("%s for %s: %+v of %v", c, p, est[i], row)
				}
			}
		}
	}
	must.That(t, len(bounds) == 3, "only the bounds %v occur", bounds)
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}
	m, err := a.Mapping(t.Context(), gemm.New(200, 200, 200), c)
	must.That(t, err == nil && m == (arch.Mapping{GroupM: 4, XCDs: 2, Chunk: 4}), "%+v, %v", m, err)
}

// thousand returns the model with 1,024 candidates.
func thousand(t testing.TB) (arch.Architecture, []gemm.Config) {
	m := full()
	sizes := []int{16, 32, 48, 64, 80, 96, 112, 128}
	m.Kernels = []declare.Kernel{{
		Name: "tiled", Rules: m.Kernels[0].Rules,
		Space: arch.Space{
			BlockM: sizes, BlockN: sizes, BlockK: []int{16, 32},
			NumWarps: []int{4, 8}, NumStages: []int{1, 2}, SplitK: []int{1, 2},
		},
	}}
	a := open(t, arch.OpenRequest{}, m)
	list, err := a.Candidates(t.Context(), gemm.New(1, 1, 1), arch.Space{})
	if err != nil || len(list.Configs) != 1024 {
		t.Fatal(len(list.Configs), err)
	}
	return a, list.Configs
}

func TestEstimateAllocatesNothing(t *testing.T) {
	a, configs := thousand(t)
	est := make([]arch.Estimate, len(configs))
	n := testing.AllocsPerRun(20, func() {
		must.Do(t, a.Estimate(t.Context(), est, gemm.New(4096, 4096, 4096), configs))
	})
	must.That(t, n <= 1, "%v allocations for %d configurations", n, len(configs))
}
