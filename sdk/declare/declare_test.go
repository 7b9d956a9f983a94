package declare_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
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
			{Name: "units", Unit: "1", Integer: true}, {Name: "clock", Unit: "Hz"}, {Name: "memory", Unit: "B"}, {Name: "cache",
				Unit: "B"},
			{Name: "cache_bandwidth", Unit: "B/s"}, {Name: "dram_bandwidth", Unit: "B/cycle", Calibrates: true},
			{Name: "peak_fp16", Unit: "FLOP/s", Optional: true}, {Name: "peak_int8", Unit: "FLOP/s", Optional: true},
		},
	}
}

// full uses everything that a model can declare.
func full() declare.Model {
	return declare.Model{
		Name: "full", UnitName: "core", Units: "units", Partitions: "2", Clock: "clock", SharedMemory: "memory - reserved",
		RegisterFile: "65536", RegistersPerThread: "255", AtomsPerUnit: "4",
		Constants: []arch.Constant{{Name: "reserved", Value: 1024, Unit: "B", Doc: "kept by the system", Source: "manual"}},
		Kernels: []declare.Kernel{
			{
				Name: "tiled",
				Space: arch.Space{BlockM: []int{16, 64, 128, 256}, BlockN: []int{16, 64, 128, 256}, BlockK: []int{16, 64},
					NumWarps: []int{4, 8}, NumStages: []int{1, 2}},
				Rules: []declare.Rule{
					{Reason: arch.ReasonSharedMemory, When: "tile_bytes*num_stages > memory - reserved",
						Detail: "needs {tile_bytes*num_stages} B, {memory - reserved} B available, {memory/reserved/3} times"},
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
			{Name: "compute", Unit: "cycles", Formula: "cdiv(block_m, atom_m)*cdiv(block_n, atom_n)*cdiv(block_k, " +
				"atom_k)*atom_cycles/atoms_per_unit",
				Kind: arch.KindStep, Bound: arch.BoundCompute, Doc: "instructions"},
			{Name: "hit", Unit: "1", Formula: "rule: what fits the cache", Doc: "share that the cache serves",
				Args: []string{"active", "tile_bytes", "cache"},
				Func: func(v []float64) float64 { return 1 - 1/math.Sqrt(1+v[2]/(v[0]*v[1])) }},
			{Name: "cache_step", Unit: "cycles", Formula: "active*tile_bytes*layout/(cache_bandwidth/clock)",
				Kind: arch.KindStep, Bound: arch.BoundL2, Doc: "loads"},
			{Name: "dram_step", Unit: "cycles", Formula: "active*tile_bytes*(1 - hit)/(dram_bandwidth*active/units)",
				Kind: arch.KindStep, Bound: arch.BoundDRAM, Doc: "misses"},
			{Name: "step", Unit: "cycles", Formula: "max(compute, cache_step, dram_step)", Doc: "one K step"},
			{Name: "total", Unit: "cycles", Formula: "cdiv(tiles, units)*cdiv(k, block_k)*step", Kind: arch.KindTotal,
				Common: arch.CommonTotal, Doc: "time"},
		},
		Order:    arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}},
		Monotone: []arch.Dim{arch.DimK},
		Levels: []declare.Level{
			{Name: "L2", Bound: arch.BoundL2, Capacity: "cache", Latency: "200", Partitions: "2",
				Bandwidth: "cache_bandwidth/clock"},
			{Name: "DRAM", Bound: arch.BoundDRAM, Bandwidth: "dram_bandwidth", Linear: true},
		},
		GroupM: "min(8, cdiv(m, block_m))", XCDs: "2", Chunk: "4",
	}
}

// simple is the same under another name, in which everything that may be empty is.
func simple() declare.Model {
	m := full()
	m.Name, m.Partitions, m.RegisterFile, m.RegistersPerThread, m.AtomsPerUnit, m.GroupM, m.XCDs, m.Chunk = "simple", "",
		"", "", "", "", "", ""
	m.Order = arch.Order{}
	m.Levels = []declare.Level{{Name: "DRAM", Bound: arch.BoundDRAM, Bandwidth: "dram_bandwidth"}}
	return m
}

func open(t testing.TB, r arch.OpenRequest, models ...declare.Model) arch.Architecture {
	t.Helper()
	p, err := declare.Provider(definition(), models...)
	if err != nil {
		t.Fatal(err)
	}
	r.Arch = "chip"
	a, err := p.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestConformance(t *testing.T) {
	p, err := declare.Provider(definition(), full(), simple())
	if err != nil {
		t.Fatal(err)
	}
	conformance.Architecture(t, p, conformance.Options{Untimed: true})
}

func TestDescription(t *testing.T) {
	d := open(t, arch.OpenRequest{Device: "uno"}, full(), simple()).Describe()
	if d.ID() != "chip@one" || d.DeviceName != "A Chip" || d.Vendor != "Ours" || !slices.Equal(d.Aliases,
		[]string{"uno"}) || d.Model != "full" ||
		!slices.Equal(d.Models, []string{"full", "simple"}) || !slices.Equal(d.Kernels, []string{"tiled", "plain"}) ||
		d.Rung != arch.RungCalibrated ||
		d.UnitName != "core" || d.Units != 12 || d.Partitions != 2 || d.Clock != 1.5e9 || d.SharedMemory != 63<<10 ||
		d.RegisterFile != 65536 || d.RegistersPerThread != 255 {
		t.Errorf("%+v", d)
	}
	if d.Order.Window != 0.01 || len(d.Order.Keys) != 2 || !slices.Equal(d.Monotone, []arch.Dim{arch.DimK}) ||
		len(d.Constants) != 1 || len(d.Terms) != 10 {
		t.Errorf("%+v", d)
	}
	if a := d.Atom(gemm.FP16); a == nil || a.M != 16 || a.Latency != 20 || a.PerUnit != 4 || d.Atom(gemm.BF16) != nil ||
		len(d.Atoms) != 2 {
		t.Errorf("%+v", d.Atoms)
	}
	if d.PeakFor(gemm.FP16) != 40e12 || len(d.Peak) != 1 {
		t.Errorf("%+v", d.Peak)
	}
	spec := open(t, arch.OpenRequest{Rung: arch.RungSpec,
		Overrides: map[string]hw.OverrideValue{"dram_bandwidth": {Value: 99}}}, full())
	if d := spec.Describe(); d.Rung != arch.RungCalibrated || hw.Set(d.Params).Get("dram_bandwidth") != 99 {
		t.Errorf("%s, %v", d.Rung, d.Params)
	}
	d = open(t, arch.OpenRequest{Model: "simple"}, full(), simple()).Describe()
	if d.Model != "simple" || d.Partitions != 1 || d.RegisterFile != 0 || d.Atom(gemm.FP16).PerUnit != 1 {
		t.Errorf("%+v", d)
	}
	levels := open(t, arch.OpenRequest{}, full()).Hierarchy().Levels()
	if l := levels[0]; l.Capacity != 4<<20 || l.Latency != 200 || l.Partitions != 2 || l.Bandwidth.Peak != 800 ||
		l.Bandwidth.At(3) != 800 {
		t.Errorf("%+v", l)
	}
	if l := levels[1]; l.Capacity != 0 || l.Partitions != 1 || l.Bandwidth.At(3) != 150.0/4 {
		t.Errorf("%+v", l)
	}
}

// What does not depend on sizes is no candidate; what does is rejected when it is estimated. The first rule counts.
func TestRules(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	list, err := a.Candidates(t.Context(), gemm.New(1, 1, 1), arch.Space{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Configs)+len(list.Rejected) != 4*4*2*2*2 || len(list.Rejected) == 0 {
		t.Errorf("%d and %d", len(list.Configs), len(list.Rejected))
	}
	for _, r := range list.Rejected {
		if c := r.Config; r.Reason != arch.ReasonSharedMemory || (c.BlockM+c.BlockN)*c.BlockK*2*c.NumStages <= 63<<10 ||
			c.Kernel != "tiled" {
			t.Errorf("%s is rejected: %s", c, r.Reason)
		}
	}
	c := list.Rejected[0].Config
	if want, got := fmt.Sprintf("needs %d B, 64512 B available, 21.33 times",
		(c.BlockM+c.BlockN)*c.BlockK*2*c.NumStages), list.Rejected[0].Detail; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
	p := gemm.New(100, 4096, 4096)
	est := make([]arch.Estimate, len(list.Configs))
	if err := a.Estimate(t.Context(), est, p, list.Configs); err != nil {
		t.Fatal(err)
	}
	for i, c := range list.Configs {
		if waste := c.BlockM > 64 && c.BlockM >= 200; (est[i].Reject == "waste") != waste || !waste && (est[i].Reject != "" ||
			est[i].Cycles <= 0) {
			t.Errorf("%s: %+v", c, est[i])
		}
	}
	// 8-bit operands need half.
	p.DType = gemm.INT8
	if bytes, err := a.Candidates(t.Context(), p, arch.Space{}); err != nil || len(bytes.Rejected) >= len(list.Rejected) {
		t.Errorf("%v: %d of fp16 and %d of int8 are rejected", err, len(list.Rejected), len(bytes.Rejected))
	}
	one, err := a.Candidates(t.Context(), p, arch.Space{Kernel: "plain", SplitK: []int{1, 2}})
	if err != nil || len(one.Configs) != 2 || one.Configs[1] != (gemm.Config{BlockM: 32, BlockN: 32, BlockK: 32,
		NumWarps: 1, NumStages: 1, SplitK: 2, Kernel: "plain"}) {
		t.Errorf("%v: %+v", err, one)
	}
}

// Every answer is what the formulas give by the values of the row, and the bound is the largest step.
func TestAnswersAreTheFormulas(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	d := a.Describe()
	bounds := map[arch.Bound]bool{}
	for _, p := range []gemm.Problem{gemm.New(1, 1, 1), gemm.New(512, 512, 64), gemm.New(4096, 4097, 4095),
		{M: 300, N: 200, K: 100, Batch: 3, AMajor: gemm.MajorM, BMajor: gemm.MajorK, DType: gemm.INT8}} {
		list, err := a.Candidates(t.Context(), p, arch.Space{})
		if err != nil {
			t.Fatal(err)
		}
		rows, est := make([]float64, len(list.Configs)*len(d.Terms)), make([]arch.Estimate, len(list.Configs))
		if err := a.Terms(t.Context(), rows, p, list.Configs); err != nil {
			t.Fatal(err)
		}
		if err := a.Estimate(t.Context(), est, p, list.Configs); err != nil {
			t.Fatal(err)
		}
		for i, c := range list.Configs {
			row := rows[i*len(d.Terms):][:len(d.Terms)]
			values := formula.Values(d, p, c, row)
			largest := 0.0
			for j, term := range d.Terms {
				if term.Kind == arch.KindStep {
					largest = max(largest, row[j])
				}
				if formula.IsRule(term.Formula) {
					continue
				}
				if want, err := formula.Eval(term.Formula, values); err != nil ||
					math.Float64bits(want) != math.Float64bits(row[j]) {
					t.Errorf("%s of %s for %s: %v, want %v, %v", term.Name, c, p, row[j], want, err)
				}
			}
			if est[i].Reject == "" {
				bounds[est[i].Bound] = true
				step := map[arch.Bound]string{arch.BoundCompute: "compute", arch.BoundL2: "cache_step",
					arch.BoundDRAM: "dram_step"}[est[i].Bound]
				if values[step] != largest || float64(est[i].Cycles) != values["total"] {
					t.Errorf("%s for %s: %+v of %v", c, p, est[i], row)
				}
			}
		}
	}
	if len(bounds) != 3 {
		t.Errorf("only the bounds %v occur", bounds)
	}
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}
	m, err := a.Mapping(t.Context(), gemm.New(200, 200, 200), c)
	if err != nil || m != (arch.Mapping{GroupM: 4, XCDs: 2, Chunk: 4}) {
		t.Errorf("%+v, %v", m, err)
	}
}

// Whatever is asked of it, an error of kind input says what is wrong.
func TestBadInput(t *testing.T) {
	ctx := t.Context()
	a := open(t, arch.OpenRequest{}, full())
	good, c := gemm.New(64, 64, 64), gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}
	type change func(*gemm.Problem, *gemm.Config)
	for name, f := range map[string]change{
		"no size":     func(p *gemm.Problem, _ *gemm.Config) { p.M = 0 },
		"huge":        func(p *gemm.Problem, _ *gemm.Config) { p.M, p.N, p.K = math.MaxInt, math.MaxInt, 2 },
		"no type":     func(p *gemm.Problem, _ *gemm.Config) { p.DType = 0 },
		"other type":  func(p *gemm.Problem, _ *gemm.Config) { p.DType = gemm.TF32 },
		"no layout":   func(p *gemm.Problem, _ *gemm.Config) { p.AMajor = 0 },
		"no block":    func(_ *gemm.Problem, c *gemm.Config) { c.BlockK = 0 },
		"huge block":  func(_ *gemm.Problem, c *gemm.Config) { c.BlockM = 1 << 40 },
		"no warps":    func(_ *gemm.Problem, c *gemm.Config) { c.NumWarps = -1 },
		"other group": func(_ *gemm.Problem, c *gemm.Config) { c.GroupM = -1 },
		"kernel":      func(_ *gemm.Problem, c *gemm.Config) { c.Kernel = "unheard of" },
	} {
		p, own := good, c
		f(&p, &own)
		row := make([]float64, len(a.Describe().Terms))
		_, err1 := a.Mapping(ctx, p, own)
		for i, err := range []error{a.Estimate(ctx, make([]arch.Estimate, 1), p, []gemm.Config{own}),
			a.Terms(ctx, row, p, []gemm.Config{own}), err1} {
			if err == nil || diag.KindOf(err) != diag.Input || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %d: %v", name, i, err)
			}
		}
	}
	for _, s := range []arch.Space{{Kernel: "unheard of"}, {BlockM: []int{0}}, {SplitK: []int{1 << 13}},
		{BlockM: make([]int, 1<<21)}} {
		if _, err := a.Candidates(ctx, good, s); err == nil || diag.KindOf(err) != diag.Input {
			t.Errorf("%v", err)
		}
	}
	bf16 := good
	bf16.DType = gemm.BF16
	if _, err := a.Candidates(ctx, bf16, arch.Space{}); err == nil || !strings.Contains(err.Error(),
		"chip does not model bf16; use fp16, int8") {
		t.Errorf("%v", err)
	}
	for _, err := range []error{a.Estimate(ctx, nil, good, []gemm.Config{c}), a.Terms(ctx, nil, good, []gemm.Config{c})} {
		if err == nil {
			t.Error("an answer without a place to put it")
		}
	}
}

// A declaration that cannot be is refused when the provider is made, with the place.
func TestMistakes(t *testing.T) {
	term := func(name string) func(*declare.Model) *declare.Term {
		return func(m *declare.Model) *declare.Term {
			i := slices.IndexFunc(m.Terms, func(t declare.Term) bool { return t.Name == name })
			m.Terms = slices.Clone(m.Terms)
			return &m.Terms[i]
		}
	}
	for want, change := range map[string]func(*declare.Model){
		`model full: Units is missing`: func(m *declare.Model) {
			m.Units = ""
		},
		`model full: Clock: formula "clock +"`: func(m *declare.Model) {
			m.Clock = "clock +"
		},
		`SharedMemory: formula "block_m" depends on more than parameters and constants`: func(m *declare.Model) {
			m.SharedMemory = "block_m"
		},
		`term tiles: formula "cdiv(q, block_m)": unknown name "q"`: func(m *declare.Model) {
			term("tiles")(m).Formula = "cdiv(q, block_m)"
		},
		`term active: formula "min(total, units)": unknown name "total"`: func(m *declare.Model) {
			term("active")(m).Formula = "min(total, units)"
		},
		`term block_m: the name "block_m" is taken`: func(m *declare.Model) {
			term("layout")(m).Name = "block_m"
		},
		`constant units: the name "units" is taken`: func(m *declare.Model) {
			m.Constants = []arch.Constant{{Name: "units"}}
		},
		`term 4 is named "Lay Out": use snake_case`: func(m *declare.Model) {
			term("layout")(m).Name = "Lay Out"
		},
		`term compute: a step needs a Bound`: func(m *declare.Model) {
			term("compute")(m).Bound = 0
		},
		`term layout: only a step has a Bound`: func(m *declare.Model) {
			term("layout")(m).Bound = arch.BoundL2
		},
		`term total: step is the total already`: func(m *declare.Model) {
			term("step")(m).Kind = arch.KindTotal
		},
		`no term is the total`: func(m *declare.Model) {
			term("total")(m).Kind = arch.KindShare
		},
		`term hit: it has a function, so its formula is prose`: func(m *declare.Model) {
			term("hit")(m).Formula = "1"
		},
		`term hit: unknown name "cash"`: func(m *declare.Model) {
			term("hit")(m).Args = []string{"cash"}
		},
		`it has no kernels`: func(m *declare.Model) {
			m.Kernels = nil
		},
		`a kernel has no name`: func(m *declare.Model) {
			m.Kernels = []declare.Kernel{{}}
		},
		`kernel k: config`: func(m *declare.Model) {
			m.Kernels = []declare.Kernel{{Name: "k", Space: arch.Space{BlockM: []int{0}}}}
		},
		`rule bad: When: formula "n >": `: func(m *declare.Model) {
			m.Kernels[0].Rules = []declare.Rule{{Reason: "bad", When: "n >"}}
		},
		`a rule has the reason "Bad"`: func(m *declare.Model) {
			m.Kernels[0].Rules = []declare.Rule{{Reason: "Bad", When: "1"}}
		},
		`rule bad: When is missing`: func(m *declare.Model) {
			m.Kernels[0].Rules = []declare.Rule{{Reason: "bad"}}
		},
		`lacks a closing brace`: func(m *declare.Model) {
			m.Kernels[0].Rules = []declare.Rule{{Reason: "bad", When: "1", Detail: "{n"}}
		},
		`{m} depends on the problem's sizes, the rule does not`: func(m *declare.Model) {
			m.Kernels[0].Rules = []declare.Rule{{Reason: "bad", When: "block_m > 9", Detail: "{m}"}}
		},
		`it has no levels of memory`:                  func(m *declare.Model) { m.Levels = nil },
		`a level has no name`:                         func(m *declare.Model) { m.Levels = []declare.Level{{}} },
		`level x: Bandwidth is missing`:               func(m *declare.Model) { m.Levels = []declare.Level{{Name: "x"}} },
		`GroupM: formula "rows": unknown name "rows"`: func(m *declare.Model) { m.GroupM = "rows" },
		`model 1 has no name of its own`:              func(m *declare.Model) { m.Name = "" },
	} {
		m := full()
		m.Kernels = slices.Clone(m.Kernels)
		change(&m)
		if _, err := declare.Provider(definition(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	other := full()
	other.Name, other.Kernels = "other", other.Kernels[:1]
	if _, err := declare.Provider(definition(), full(), other); err == nil || !strings.Contains(err.Error(),
		"model other has the kernels tiled, and full has tiled, plain") {
		t.Errorf("%v", err)
	}
	if _, err := declare.Provider(definition()); err == nil {
		t.Error("a plugin without a model")
	}
	def := definition()
	def.Options = []arch.Option{{Key: "occ"}}
	if _, err := declare.Provider(def, full()); err == nil {
		t.Error("options that nothing could use")
	}
}

// What is wrong with a device's numbers is told when it is opened.
func TestDevicesThatCannotBeOpened(t *testing.T) {
	for want, change := range map[string]func(*catalog.Definition, *declare.Model){
		`one.yaml: Units of model full comes out as 0.5, which is no whole number from 1`: func(_ *catalog.Definition,
			m *declare.Model) {
			m.Units = "units/24"
		},
		`one.yaml: Clock of model full comes out as +Inf`: func(_ *catalog.Definition,
			m *declare.Model) {
			m.Clock = "1/(units - 12)"
		},
		`one.yaml: SharedMemory of model full comes out as NaN`: func(_ *catalog.Definition,
			m *declare.Model) {
			m.SharedMemory = "(units - 12)/(units - 12)"
		},
		`one.yaml: L2 Bandwidth of model full comes out as 0`: func(_ *catalog.Definition,
			m *declare.Model) {
			m.Levels[0].Bandwidth = "units - 12"
		},
		`unknown name "peak_int8"`: func(_ *catalog.Definition,
			m *declare.Model) {
			m.Terms[3].Formula = "peak_int8"
		},
		`it has no atoms`: func(d *catalog.Definition, _ *declare.Model) {
			text, _, _ := strings.Cut(device, "atoms:")
			d.Files = fstest.MapFS{"one.yaml": {Data: []byte(text)}}
		},
		`one.yaml: atoms[0]: unknown dtype "xf32"`: func(d *catalog.Definition, _ *declare.Model) {
			d.Files = fstest.MapFS{"one.yaml": {Data: []byte(strings.Replace(device, "type: fp16", "type: xf32", 1))}}
		},
	} {
		def, m := definition(), full()
		change(&def, &m)
		p, err := declare.Provider(def, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open(t.Context(), arch.OpenRequest{Arch: "chip"}); err == nil || !strings.Contains(err.Error(),
			want) || diag.KindOf(err) != diag.Input || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A model that gives what cannot be is told so; a configuration that cannot be used need not have a value.
func TestImpossibleValues(t *testing.T) {
	ctx := t.Context()
	p, c := gemm.New(64, 64, 64), []gemm.Config{{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}}
	for value, bad := range map[string]string{"0/(m - 64)": "NaN", "1/(m - 64)": "+Inf", "0": "0", "m - 65": "-1"} {
		m := full()
		m.Terms = slices.Clone(m.Terms)
		total := &m.Terms[len(m.Terms)-1]
		total.Formula = value
		a := open(t, arch.OpenRequest{}, m)
		err := a.Estimate(ctx, make([]arch.Estimate, 1), p, c)
		if diag.KindOf(err) != diag.Plugin || !strings.Contains(err.Error(),
			"chip@one: total of the full model is "+bad+" for 64x64x64") {
			t.Errorf("%s: %v", value, err)
		}
		row := make([]float64, len(m.Terms))
		err = a.Terms(ctx, row, p, c)
		if finite := bad == "0" || bad == "-1"; (err == nil) != finite || !finite && diag.KindOf(err) != diag.Plugin {
			t.Errorf("%s: %v", value, err)
		}
		m.Kernels = []declare.Kernel{{Name: "tiled", Rules: []declare.Rule{{Reason: "never", When: "m"}}}}
		a = open(t, arch.OpenRequest{}, m)
		est := make([]arch.Estimate, 1)
		if err := a.Estimate(ctx, est, p, c); err != nil || est[0] != (arch.Estimate{Reject: "never"}) {
			t.Errorf("%s: %+v, %v", value, est, err)
		}
		if err := a.Terms(ctx, row, p, c); err != nil || math.IsNaN(row[len(row)-1]) || math.IsInf(row[len(row)-1], 0) {
			t.Errorf("%s: %v, %v", value, row, err)
		}
	}
	for what, change := range map[string]func(*declare.Model){
		"GroupM of the full model is 0.5": func(m *declare.Model) { m.GroupM = "m/128" },
		"XCDs of the full model is -1":    func(m *declare.Model) { m.XCDs = "m - 65" },
		"Chunk of the full model is NaN":  func(m *declare.Model) { m.Chunk = "0/(m - 64)" },
	} {
		m := full()
		change(&m)
		a := open(t, arch.OpenRequest{}, m)
		_, err := a.Mapping(ctx, p, c[0])
		if diag.KindOf(err) != diag.Plugin || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	list, err := a.Candidates(t.Context(), gemm.New(1, 1, 1), arch.Space{})
	if err != nil {
		t.Fatal(err)
	}
	estimate := func(n int) []arch.Estimate {
		est := make([]arch.Estimate, len(list.Configs))
		if err := a.Estimate(t.Context(), est, gemm.New(64*n, 1000, 1000), list.Configs); err != nil {
			t.Error(err)
		}
		return est
	}
	want := [][]arch.Estimate{estimate(1), estimate(2), estimate(3)}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if got := estimate(i%3 + 1); !slices.Equal(got, want[i%3]) {
				t.Errorf("problem %d differs", i%3)
			}
		})
	}
	wg.Wait()
}

// thousand returns the model over 1,024 candidates.
func thousand(t testing.TB) (arch.Architecture, []gemm.Config) {
	m := full()
	m.Kernels = []declare.Kernel{{Name: "tiled", Rules: m.Kernels[0].Rules, Space: arch.Space{
		BlockM: []int{16, 32, 48, 64, 80, 96, 112, 128}, BlockN: []int{16, 32, 48, 64, 80, 96, 112, 128}, BlockK: []int{16,
			32},
		NumWarps: []int{4, 8}, NumStages: []int{1, 2}, SplitK: []int{1, 2}}}}
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
	if n := testing.AllocsPerRun(20, func() {
		if err := a.Estimate(t.Context(), est, gemm.New(4096, 4096, 4096), configs); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for %d configurations", n, len(configs))
	}
}

// BenchmarkEstimate is 1,024 candidates of a model of ten terms.
func BenchmarkEstimate(b *testing.B) {
	a, configs := thousand(b)
	est := make([]arch.Estimate, len(configs))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Estimate(b.Context(), est, gemm.New(4096, 4096, 4096), configs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(configs)), "ns/config")
}

// BenchmarkOpen is what a plugin pays for its formulas, and for reading its device file.
func BenchmarkOpen(b *testing.B) {
	p, err := declare.Provider(definition(), full())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Open(b.Context(), arch.OpenRequest{Arch: "chip"}); err != nil {
			b.Fatal(err)
		}
	}
}
