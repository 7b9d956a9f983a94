// Package example is the smallest complete architecture plugin, to read and to copy. It models no GPU but an abstract
// machine of 16 equal units behind one memory, whose numbers are what they are by definition, with a roofline: each K
// step of a tile costs whatever takes longer, computing it or loading its operands.
//
// Reference: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", CACM 52(4), 2009.
package example

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Provider opens the architecture "example".
type Provider struct{}

// Manifest implements arch.Provider.
func (Provider) Manifest() arch.Manifest {
	return arch.Manifest{Name: "example", Version: "1.0.0", Archs: []arch.ArchEntry{{
		ID: "example", Vendor: "none", Models: []string{"roofline"}, Kernels: []string{"tiled"},
		Devices: []arch.DeviceEntry{{ID: "abstract", Name: "abstract machine of 16 units"}},
	}}}
}

// specs are the numbers that the model needs; sheet has them. A real plugin reads its sheets from device files.
var specs = []hw.Spec{
	{Name: "units", Unit: "1", Doc: "compute units", Integer: true},
	{Name: "macs_per_cycle", Unit: "1", Doc: "multiply-adds per unit and cycle"},
	{Name: "memory_bandwidth", Unit: "B/cycle", Doc: "memory bandwidth"},
	{Name: "shared_memory", Unit: "B", Doc: "on-chip memory of a unit"},
	{Name: "clock", Unit: "Hz", Doc: "clock"},
}

func sheet() *hw.Sheet {
	number := func(v float64, u string) hw.Number {
		return hw.Number{Value: v, Unit: u, Source: "definition of the abstract machine", Method: hw.Assumed, Date: "2026-11-20"}
	}
	return &hw.Sheet{Header: hw.Header{File: "example", Arch: "example", Device: "abstract"}, Derived: map[string]hw.Number{
		"units": number(16, "1"), "macs_per_cycle": number(512, "1"), "memory_bandwidth": number(256, "B/cycle"),
		"shared_memory": number(32, "KiB"), "clock": number(1, "GHz"),
	}}
}

// Open implements arch.Provider.
func (Provider) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	for _, name := range []struct{ what, got, known string }{{"architecture", r.Arch, "example"}, {"device", r.Device, "abstract"}, {"model", r.Model, "roofline"}} {
		if name.got != "" && name.got != name.known {
			return nil, diag.Inputf("example has no %s %q", name.what, name.got).Do("there is only %s", name.known)
		}
	}
	for key := range r.Options {
		return nil, diag.Inputf("example has no option %q", key).Do("leave it out")
	}
	params, err := hw.Resolve(specs, sheet(), nil, r.Overrides)
	if err != nil {
		return nil, err
	}
	units := params.Int("units")
	m := &model{macs: params.Get("macs_per_cycle")}
	m.desc = arch.Description{
		Arch: "example", Vendor: "none", Device: "abstract", DeviceName: "abstract machine of 16 units",
		Model: "roofline", Models: []string{"roofline"}, Kernels: []string{"tiled"}, Rung: arch.RungSpec,
		UnitName: "unit", Units: units, Partitions: 1, Clock: unit.Hertz(params.Get("clock")), ClockRung: arch.RungSpec,
		SharedMemory: unit.Bytes(params.Get("shared_memory")),
		Atoms:        []arch.Atom{{DType: gemm.FP16, M: 1, N: 1, K: 1, Latency: 1, PerUnit: int(m.macs)}},
		Params:       params,
		Order:        arch.Order{Keys: []arch.Key{arch.KeyIntensity}},
		Terms: []arch.Term{
			{Name: "waves", Unit: "1", Formula: "cdiv(cdiv(m, block_m)*cdiv(n, block_n)*batch, units)", Doc: "rounds in which the units work off the tiles"},
			{Name: "compute", Unit: "cycles", Formula: "block_m*block_n*block_k/macs_per_cycle", Doc: "arithmetic of one K step", Kind: arch.KindStep},
			{Name: "memory", Unit: "cycles", Formula: "min(cdiv(m, block_m)*cdiv(n, block_n)*batch, units)*(block_m+block_n)*block_k*2/memory_bandwidth",
				Doc: "loads of one K step of all active units", Kind: arch.KindStep},
			{Name: "total", Unit: "cycles", Formula: "waves*cdiv(k, block_k)*max(compute, memory)", Doc: "predicted time", Kind: arch.KindTotal},
		},
	}
	m.levels = []arch.Level{{Name: "DRAM", Partitions: 1, Bound: arch.BoundDRAM,
		Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(params.Get("memory_bandwidth")), Units: units, C2: 1}}}
	return m, nil
}

type model struct {
	desc   arch.Description
	levels []arch.Level
	macs   float64
}

func (m *model) Describe() *arch.Description     { return &m.desc }
func (m *model) Hierarchy() arch.MemoryHierarchy { return m }
func (m *model) Levels() []arch.Level            { return m.levels }

// check refuses what the formulas cannot take.
func (m *model) check(p gemm.Problem, cfgs ...gemm.Config) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.DType != gemm.FP16 {
		return diag.Inputf("example does not model %s", p.DType).Do("use fp16")
	}
	for _, c := range cfgs {
		if c.Kernel != "tiled" && c.Kernel != "" {
			return diag.Inputf("example has no kernel %q", c.Kernel).Do("use tiled")
		}
		if err := c.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// need is the shared memory for the operands of one K step.
func need(c gemm.Config) unit.Bytes { return unit.Bytes((c.BlockM + c.BlockN) * c.BlockK * 2) }

func (m *model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if p.DType != gemm.FP16 {
		return nil, diag.Inputf("example does not model %s", p.DType).Do("use fp16")
	}
	if s.Kernel != "" && s.Kernel != "tiled" {
		return nil, diag.Inputf("example has no kernel %q", s.Kernel).Do("use tiled")
	}
	list, position := &arch.Candidates{}, 0
	for _, bm := range axis(s.BlockM, 32, 64, 128) {
		for _, bn := range axis(s.BlockN, 32, 64, 128) {
			for _, bk := range axis(s.BlockK, 32, 64) {
				c := gemm.Config{BlockM: bm, BlockN: bn, BlockK: bk, NumWarps: 1, NumStages: 1, SplitK: 1, Kernel: "tiled"}
				if err := m.check(gemm.New(1, 1, 1), c); err != nil {
					return nil, err
				}
				if need(c) > m.desc.SharedMemory {
					list.Rejected = append(list.Rejected, arch.Rejection{Config: c, Position: position, Reason: arch.ReasonSharedMemory,
						Detail: fmt.Sprintf("needs %.0f B of shared memory, %.0f B available", float64(need(c)), float64(m.desc.SharedMemory))})
				} else {
					list.Configs = append(list.Configs, c)
				}
				position++
			}
		}
	}
	return list, nil
}

func axis(asked []int, own ...int) []int {
	if len(asked) > 0 {
		return asked
	}
	return own
}

// row is one row of Terms.
func (m *model) row(p gemm.Problem, c gemm.Config) (waves, compute, memory, total float64) {
	tiles := cdiv(p.M, c.BlockM) * cdiv(p.N, c.BlockN) * p.Batch
	waves = float64(cdiv(tiles, m.desc.Units))
	compute = float64(c.BlockM*c.BlockN*c.BlockK) / m.macs
	memory = float64(m.load(c, min(tiles, m.desc.Units)).Time)
	return waves, compute, memory, waves * float64(cdiv(p.K, c.BlockK)) * max(compute, memory)
}

// load is the cost of the operands of one K step on `active` units at once.
func (m *model) load(c gemm.Config, active int) arch.LevelCost {
	traffic := unit.Bytes(active) * need(c)
	return arch.LevelCost{HitRate: 1, Traffic: traffic, Time: unit.Cycles(float64(traffic) / float64(m.levels[0].Bandwidth.At(active)))}
}

func (m *model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.check(p, cfgs...); err != nil {
		return err
	}
	for i, c := range cfgs {
		if need(c) > m.desc.SharedMemory {
			dst[i] = arch.Estimate{Reject: arch.ReasonSharedMemory}
			continue
		}
		_, compute, memory, total := m.row(p, c)
		dst[i] = arch.Estimate{Cycles: unit.Cycles(total), Bound: arch.BoundDRAM}
		if compute >= memory {
			dst[i].Bound = arch.BoundCompute
		}
	}
	return nil
}

func (m *model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.check(p, cfgs...); err != nil {
		return err
	}
	for i, c := range cfgs {
		row := dst[4*i:]
		row[0], row[1], row[2], row[3] = m.row(p, c)
	}
	return nil
}

func (m *model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: 1}, m.check(p, c)
}

func (m *model) Iteration(_ context.Context, dst []arch.LevelCost, p gemm.Problem, c gemm.Config, active int) (unit.Cycles, error) {
	if err := m.check(p, c); err != nil {
		return 0, err
	}
	if active < 1 || active > m.desc.Units {
		return 0, diag.Inputf("%d active units of %d", active, m.desc.Units).Do("give 1 to %d", m.desc.Units)
	}
	dst[0] = m.load(c, active)
	return dst[0].Time, nil
}

func cdiv(a, b int) int { return (a + b - 1) / b }
