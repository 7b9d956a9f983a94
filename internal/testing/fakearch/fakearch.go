// Package fakearch is a small provider for the tests of the command line: two made-up architectures with a model simple
// enough to check by hand, every kind of term, an option, and configurations that are rejected for every reason.
//
//	toy1@small (default), toy1@big   8 and 16 units, terms load and math
//	toy2@mono                        4 units on 2 dies, terms load, math and spill
//
// The kernel family fancy of toy1 has kernels for multiples of 16 along K alone.
//
// The model reference of toy1 ranks and does not time. For tests of failure there is broken@one, whose plugin dies
// whenever it is opened.
package fakearch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Providers returns a provider that works and one that fails.
func Providers() []arch.Provider { return []arch.Provider{Toy{}, Broken{}} }

// Toy provides toy1 and toy2.
type Toy struct{}

// Manifest implements arch.Provider.
func (Toy) Manifest() arch.Manifest {
	return arch.Manifest{
		Name: "toy", Version: "1.2.3",
		Archs: []arch.ArchEntry{
			{ID: "toy1", Vendor: "acme", Models: []string{"refined", "reference"}, Kernels: []string{"plain", "fancy"},
				Devices: []arch.DeviceEntry{
					{ID: "small", Name: "Acme Small", Aliases: []string{"s1"}}, {ID: "big", Name: "Acme Big"}}},
			{ID: "toy2", Vendor: "acme", Models: []string{"reference"}, Kernels: []string{"plain"},
				Devices: []arch.DeviceEntry{{ID: "mono", Name: "Acme Mono"}}},
		},
		Options: []arch.Option{{Key: "pace", Default: "normal", Values: []string{"normal", "slow"},
			Doc: "how fast the units run"}},
	}
}

// Open implements arch.Provider.
func (Toy) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	t := &Arch{units: 8, model: r.Model, pace: "normal"}
	switch r.Arch + "@" + r.Device {
	case "toy1@small":
		t.name = "Acme Small"
	case "toy1@big":
		t.name, t.units = "Acme Big", 16
	case "toy2@mono":
		t.name, t.units, t.dies = "Acme Mono", 4, 2
	default:
		return nil, diag.Inputf("no device %s@%s", r.Arch, r.Device)
	}
	t.arch, t.device = r.Arch, r.Device
	if t.model == "" {
		t.model = "refined"
		if t.arch == "toy2" {
			t.model = "reference"
		}
	}
	if pace, ok := r.Options["pace"]; ok {
		if pace != "normal" && pace != "slow" {
			return nil, diag.Inputf("option pace: unknown value %q", pace).Do("use one of normal, slow")
		}
		t.pace = pace
	}
	sheet := &hw.Sheet{Header: hw.Header{File: "toy.yaml", Arch: t.arch, Device: t.device},
		Derived: map[string]hw.Number{"units": {Value: float64(t.units), Unit: "1", Source: "brochure",
			Method: hw.Datasheet, Date: "2026-01-02"}},
		Calibrated: map[string]hw.Number{"bandwidth": {Value: 64, Unit: "B/cycle", Source: "bench",
			Method: hw.Microbenchmark, Date: "2026-02-03"}},
	}
	specs := []hw.Spec{{Name: "units", Unit: "1", Doc: "units", Integer: true},
		{Name: "bandwidth", Unit: "B/cycle", Doc: "bytes per cycle", Calibrates: true}}
	var err error
	if t.params, err = hw.Resolve(specs, sheet, nil, r.Overrides); err != nil {
		return nil, err
	}
	return t, nil
}

// Arch is an opened toy.
type Arch struct {
	arch, device, name, model, pace string
	units, dies                     int
	params                          hw.Set
}

// Describe implements arch.Architecture.
func (t *Arch) Describe() *arch.Description {
	d := &arch.Description{
		Arch: t.arch, Vendor: "acme", Device: t.device, DeviceName: t.name, Model: t.model,
		Models:  []string{"refined", "reference"},
		Kernels: []string{"plain", "fancy"}, Rung: arch.RungCalibrated, UnitName: "TU", Units: t.units,
		Partitions: max(t.dies, 1),
		Clock:      1e9, ClockRung: arch.RungSpec, SharedMemory: 16384, RegisterFile: 65536, RegistersPerThread: 255,
		RanksOnly: t.arch == "toy1" && t.model == "reference",
		Peak:      []arch.PeakRate{{DType: gemm.FP16, Rate: unit.FlopsPerSecond(1024e9 * float64(t.units))}},
		Atoms:     []arch.Atom{{DType: gemm.FP16, M: 16, N: 16, K: 16, Latency: 8, PerUnit: 1}},
		Params:    t.params,
		Constants: []arch.Constant{
			{Name: "step_overhead", Value: 0.5, Unit: "cycles", Doc: "cost of a step that nothing explains",
				Source: "made up"}},
		Terms: []arch.Term{
			{Name: "tiles", Unit: "1", Formula: "cdiv(m, block_m)*cdiv(n, block_n)*batch", Doc: "output tiles",
				Source: "Toy, eq. 1"},
			{Name: "waves", Unit: "1", Formula: "cdiv(tiles, units)", Doc: "rounds of tiles", Source: "Toy, eq. 2"},
			{Name: "steps", Unit: "1", Formula: "cdiv(k, block_k)", Doc: "K steps"},
			{Name: "math", Unit: "cycles", Kind: arch.KindStep, Formula: "block_m*block_n*block_k/512",
				Doc: "arithmetic of one step"},
			{Name: "load", Unit: "cycles", Kind: arch.KindStep,
				Formula: "(block_m + block_n)*block_k*element_bytes/bandwidth",
				Doc:     "loads of one step"},
			{Name: "loop", Unit: "cycles", Kind: arch.KindShare,
				Formula: "(max(math, load) + step_overhead)*steps*waves",
				Doc:     "the K loop"},
			{Name: "store", Unit: "cycles", Kind: arch.KindShare,
				Formula: "block_m*block_n*output_bytes/bandwidth*waves",
				Doc:     "the epilogue"},
			{Name: "total", Unit: "cycles", Kind: arch.KindTotal,
				Formula: "rule: loop + store, unless a tile is larger than the problem"},
		},
		Order:   arch.Order{Keys: []arch.Key{arch.KeyIntensity}},
		Options: []arch.OptionValue{{Key: "pace", Value: t.pace}},
	}
	if t.arch == "toy1" {
		d.Families = []arch.Family{{Name: "fancy", Doc: "with named axes, which change nothing", Axes: fancy}}
	}
	if t.arch == "toy2" {
		d.Models, d.Kernels, d.Rung = d.Models[1:], d.Kernels[:1], arch.RungSpec
		d.Terms = slices.Insert(d.Terms, 3, arch.Term{Name: "spill", Unit: "B", Formula: "0", Doc: "what does not fit"})
	}
	return d
}

// Hierarchy implements arch.Architecture.
func (t *Arch) Hierarchy() arch.MemoryHierarchy { return hierarchy{t} }

type hierarchy struct{ t *Arch }

func (h hierarchy) Levels() []arch.Level {
	return []arch.Level{
		{Name: "L2", Capacity: 1 << 20, Latency: 100, Partitions: 1,
			Bandwidth: arch.Bandwidth{Peak: 64, Units: h.t.units, Linear: true}, Bound: arch.BoundL2},
		{Name: "DRAM", Latency: 500, Partitions: 1, Bandwidth: arch.Bandwidth{Peak: 32, Units: h.t.units, C1: 0.25},
			Bound: arch.BoundDRAM},
	}
}

// fancy is what the kernel family of that name has beyond the numbers that all configurations have.
var fancy = []gemm.Axis{
	{Name: "cluster", Doc: "CTAs per cluster", Type: gemm.Enumeration, Values: []string{"1x1", "2x1"}, Default: "1x1"},
	{Name: "unroll", Unit: "steps", Doc: "K steps per round of the loop", Type: gemm.Integer, Default: "1"},
}

// axes are the named axes of a kernel family.
func axes(kernel string) []gemm.Axis {
	if kernel == "fancy" {
		return fancy
	}
	return nil
}

func (t *Arch) space() arch.Space {
	return arch.Space{Kernel: "plain", BlockM: []int{16, 32, 64}, BlockN: []int{16, 64}, BlockK: []int{16, 32, 64, 128},
		NumWarps: []int{4}, NumStages: []int{2}, SplitK: []int{1}}
}

// Candidates implements arch.Architecture.
func (t *Arch) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := t.Describe().Supports("", &p); err != nil {
		return nil, err
	}
	if p.DType != gemm.FP16 {
		return nil, diag.Inputf("the %s model of %s@%s does not take %s", t.model, t.arch, t.device,
			p.DType).Do("use fp16")
	}
	list := &arch.Candidates{}
	space := t.space()
	if s.Kernel == "fancy" {
		space.Axes = []arch.AxisValues{{Name: "cluster", Values: fancy[0].Values}}
	}
	all, err := s.Enumerate(space, axes(s.Kernel)...)
	if err != nil {
		return nil, err
	}
	for position, c := range all {
		c.Kernel = s.Kernel
		if withoutKernel(p, c) {
			list.Rejected = append(list.Rejected, arch.Rejection{Config: c, Position: position,
				Reason: arch.ReasonModelRule, Detail: "fancy copies whole lines: K has to be a multiple of 16"})
		} else if need := sharedMemory(c); need > 16384 {
			list.Rejected = append(list.Rejected, arch.Rejection{Config: c, Position: position,
				Reason: arch.ReasonSharedMemory,
				Detail: fmt.Sprintf("needs %d B of shared memory, 16384 B available", need)})
		} else {
			list.Configs = append(list.Configs, c)
		}
	}
	return list, nil
}

// withoutKernel reports whether the configuration's family has no kernel for a problem.
func withoutKernel(p gemm.Problem, c gemm.Config) bool { return c.Kernel == "fancy" && p.K%16 != 0 }

func sharedMemory(c gemm.Config) int { return (c.BlockM + c.BlockN) * c.BlockK * 2 }

// Estimate implements arch.Architecture.
func (t *Arch) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		if err := c.Validate(axes(c.Kernel)...); err != nil {
			return err
		}
		switch row := t.row(p, c); {
		case withoutKernel(p, c):
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
		case sharedMemory(c) > 16384:
			dst[i] = arch.Estimate{Reject: arch.ReasonSharedMemory}
		case row[len(row)-1] == arch.RejectedTotal:
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
		default:
			dst[i] = arch.Estimate{Cycles: unit.Cycles(row[len(row)-1]), Bound: arch.BoundCompute}
			if row[4] > row[3] {
				dst[i].Bound = arch.BoundL2
			}
		}
	}
	return nil
}

// Terms implements arch.Architecture.
func (t *Arch) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	n := len(t.Describe().Terms)
	for i, c := range cfgs {
		row := t.row(p, c)
		if t.arch == "toy2" {
			row = slices.Insert(row, 3, 0)
		}
		copy(dst[i*n:(i+1)*n], row)
	}
	return nil
}

// row computes the terms of toy1.
func (t *Arch) row(p gemm.Problem, c gemm.Config) []float64 {
	cdiv := func(a, b int) int { return (a + b - 1) / b }
	tiles := cdiv(p.M, c.BlockM) * cdiv(p.N, c.BlockN) * p.Batch
	waves, steps := cdiv(tiles, t.params.Int("units")), cdiv(p.K, c.BlockK)
	math := float64(c.BlockM*c.BlockN*c.BlockK) / 512
	if t.pace == "slow" {
		math *= 3
	}
	load := float64((c.BlockM+c.BlockN)*c.BlockK*2) / t.params.Get("bandwidth")
	loop := (max(math, load) + 0.5) * float64(steps) * float64(waves)
	store := float64(c.BlockM*c.BlockN*2) / t.params.Get("bandwidth") * float64(waves)
	total := loop + store
	if c.BlockM > p.M || c.BlockN > p.N {
		total = arch.RejectedTotal
	}
	return []float64{float64(tiles), float64(waves), float64(steps), math, load, loop, store, total}
}

// Mapping implements arch.Architecture.
func (t *Arch) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	m := arch.Mapping{GroupM: 2}
	if t.dies > 0 {
		m.XCDs, m.Chunk = t.dies, 4
	}
	return m, nil
}

// Broken is a plugin that dies when it is opened.
type Broken struct{}

// Manifest implements arch.Provider.
func (Broken) Manifest() arch.Manifest {
	return arch.Manifest{Name: "broken", Version: "0.0.1", Archs: []arch.ArchEntry{
		{ID: "broken", Vendor: "acme", Models: []string{"refined", "reference"}, Kernels: []string{"plain"},
			Devices: []arch.DeviceEntry{{ID: "one", Name: "Acme One"}}}}}
}

// Open implements arch.Provider.
func (Broken) Open(context.Context, arch.OpenRequest) (arch.Architecture, error) {
	return nil, &diag.Error{Kind: diag.Plugin, Where: "plugin broken", What: "it exited with status 2",
		Fix: strings.TrimSpace("look at its log with --log-level debug")}
}
