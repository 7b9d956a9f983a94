// Package example models GPUs as an abstract machine of equal units behind one memory, with a roofline: each K step of
// a tile costs whatever takes longer, computing it or loading its operands. It is a whole plugin, to read and to
// change.
//
// Reference: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", CACM 52(4), 2009.
package example

import (
	"embed"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/catalog"
	"github.com/origami-gemm/origami/sdk/declare"
)

//go:embed *.yaml
var devices embed.FS

// Provider returns the plugin: the devices of the YAML files under the model below.
func Provider() (arch.Provider, error) {
	return declare.Provider(catalog.Definition{
		Name: "example", Version: "1.0.0", Vendor: "none", Files: devices,
		Specs: []hw.Spec{ // the numbers that a device file has
			{Name: "units", Unit: "1", Doc: "compute units", Integer: true},
			{Name: "macs_per_cycle", Unit: "1", Doc: "multiply-adds per unit and cycle", Integer: true},
			{Name: "memory_bandwidth", Unit: "B/cycle", Doc: "memory bandwidth"},
			{Name: "shared_memory", Unit: "B", Doc: "on-chip memory of a unit"},
			{Name: "clock", Unit: "Hz", Doc: "clock"},
		},
	}, roofline)
}

// roofline is the model. Every string that is no name or prose is a formula over the numbers above, the problem, the
// configuration, and the terms before it.
var roofline = declare.Model{
	Name:     "roofline",
	UnitName: "unit", Units: "units", AtomsPerUnit: "macs_per_cycle", Clock: "clock", SharedMemory: "shared_memory",

	// Which configurations there are, and which of them cannot be used.
	Kernels: []declare.Kernel{{
		Name:  "tiled",
		Space: arch.Space{BlockM: []int{32, 64, 128}, BlockN: []int{32, 64, 128}, BlockK: []int{32, 64}},
		Rules: []declare.Rule{
			{Reason: arch.ReasonSharedMemory, When: "tile_bytes > shared_memory",
				Detail: "needs {tile_bytes} B of shared memory, {shared_memory} B available"},
		},
	}},

	// What one of them takes.
	Terms: []declare.Term{
		{Name: "tiles", Unit: "1", Formula: "cdiv(m, block_m)*cdiv(n, block_n)*batch", Doc: "output tiles"},
		{Name: "waves", Unit: "1", Formula: "cdiv(tiles, units)", Common: arch.CommonWaves,
			Doc: "rounds in which the units work off the tiles"},
		{Name: "active_units", Unit: "1", Formula: "min(tiles, units)", Common: arch.CommonActiveUnits, Doc: "units at work"},
		{Name: "tile_bytes", Unit: "B", Formula: "(block_m + block_n)*block_k*element_bytes", Common: arch.CommonLoadPerUnit,
			Doc: "operands of one K step"},
		{Name: "compute", Unit: "cycles", Formula: "block_m*block_n*block_k/macs_per_cycle", Kind: arch.KindStep,
			Bound:  arch.BoundCompute,
			Common: arch.CommonComputeStep, Doc: "arithmetic of one K step"},
		{Name: "traffic", Unit: "B", Formula: "active_units*tile_bytes", Common: arch.CommonDRAMTraffic,
			Doc: "loads of one K step of all active units"},
		{Name: "memory", Unit: "cycles", Formula: "traffic/memory_bandwidth", Kind: arch.KindStep, Bound: arch.BoundDRAM,
			Common: arch.CommonMemoryStep, Doc: "time of these loads"},
		{Name: "total", Unit: "cycles", Formula: "waves*cdiv(k, block_k)*max(compute, memory)", Kind: arch.KindTotal,
			Common: arch.CommonTotal, Doc: "predicted time"},
	},
	// Among equal ones the tile that computes most per byte is first.
	Order: arch.Order{Keys: []arch.Key{arch.KeyIntensity}},
	// More rows and columns never take less time. (For K every model must keep that.)
	Monotone: []arch.Dim{arch.DimM, arch.DimN},

	// The memory hierarchy, from near to far.
	Levels: []declare.Level{
		{Name: "DRAM", Bound: arch.BoundDRAM, Bandwidth: "memory_bandwidth"},
	},
}
