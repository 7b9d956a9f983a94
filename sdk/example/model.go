// Package example models an abstract GPU: equal units that share one memory. It uses a roofline. A K step of a tile
// takes as long as the slower of two things: computing it, or loading its operands. The package is a complete plugin to
// read and to change.
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

// Provider returns the plugin: the devices of the YAML files, with the model below.
func Provider() (arch.Provider, error) {
	return declare.Provider(catalog.Definition{
		Name: "example", Version: "1.0.0", Files: devices,
		Specs: []hw.Spec{ // the parameters in a device file
			{Name: "units", Unit: "1", Doc: "compute units", Integer: true},
			{Name: "macs_per_cycle", Unit: "1", Doc: "multiply-adds per unit and cycle", Integer: true},
			{Name: "memory_bandwidth", Unit: "B/cycle", Doc: "memory bandwidth"},
			{Name: "shared_memory", Unit: "B", Doc: "on-chip memory of a unit"},
			{Name: "clock", Unit: "Hz", Doc: "clock"},
		},
	}, roofline)
}

// roofline is the model. Formulas use the parameters above, the problem, the configuration and the preceding terms.
var roofline = declare.Model{
	Name:     "roofline",
	UnitName: "unit", Units: "units", AtomsPerUnit: "macs_per_cycle", Clock: "clock", SharedMemory: "shared_memory",

	// What no data sheet says. `origami fit` moves the values between the bounds, to measured times of a device.
	Constants: []arch.Constant{
		{
			Name: "compute_efficiency", Value: 1, Unit: "1", Low: 0.1, High: 1.5, Source: "assumed",
			Doc: "share of macs_per_cycle that a tile reaches",
		},
		{
			Name: "memory_efficiency", Value: 1, Unit: "1", Low: 0.1, High: 1.5, Source: "assumed",
			Doc: "share of memory_bandwidth that loads reach",
		},
	},

	// The configurations, and the rules that reject some of them.
	Kernels: []declare.Kernel{{
		Name:  "tiled",
		Space: arch.Space{BlockM: []int{32, 64, 128}, BlockN: []int{32, 64, 128}, BlockK: []int{32, 64}},
		Rules: []declare.Rule{
			{
				Reason: arch.ReasonSharedMemory, When: "tile_bytes > shared_memory",
				Detail: "needs {tile_bytes} B of shared memory, {shared_memory} B available",
			},
		},
	}},

	// The time of a configuration.
	Terms: []declare.Term{
		{
			Name: "tiles", Unit: "1", Doc: "output tiles",
			Formula: "cdiv(m, block_m)*cdiv(n, block_n)*batch",
		},
		{
			Name: "waves", Unit: "1", Common: arch.CommonWaves, Doc: "tiles ÷ tiles that run at once",
			Formula: "tiles/units",
		},
		{
			Name: "active_units", Unit: "1", Common: arch.CommonActiveUnits, Doc: "busy units",
			Formula: "min(tiles, units)",
		},
		{
			Name: "tile_bytes", Unit: "B", Common: arch.CommonLoadPerUnit, Doc: "operands of one K step",
			Formula: "(block_m + block_n)*block_k*element_bytes",
		},
		{
			Name: "compute", Unit: "cycles", Common: arch.CommonComputeStep, Doc: "arithmetic of one K step",
			Formula: "block_m*block_n*block_k/(macs_per_cycle*compute_efficiency)", Kind: arch.KindStep,
			Bound: arch.BoundCompute,
		},
		{
			Name: "traffic", Unit: "B", Common: arch.CommonDRAMTraffic, Doc: "loads of all active units in one K step",
			Formula: "active_units*tile_bytes",
		},
		{
			Name: "memory", Unit: "cycles", Common: arch.CommonMemoryStep, Doc: "time of these loads",
			Formula: "traffic/(memory_bandwidth*memory_efficiency)", Kind: arch.KindStep, Bound: arch.BoundDRAM,
		},
		{
			Name: "total", Unit: "cycles", Common: arch.CommonTotal, Doc: "predicted time",
			Formula: "ceil(waves)*cdiv(k, block_k)*max(compute, memory)", Kind: arch.KindTotal,
		},
	},
	// Of candidates with equal times, the one with the highest arithmetic intensity is first.
	Order: arch.Order{Keys: []arch.Key{arch.KeyIntensity}},
	// More rows or columns never take less time. The same must hold for K in every model.
	Monotone: []arch.Dim{arch.DimM, arch.DimN},

	// The memory hierarchy, from the nearest level to the farthest.
	Levels: []arch.Level{
		{Name: "DRAM", Bound: arch.BoundDRAM, Names: arch.LevelNames{Bandwidth: "memory_bandwidth"}},
	},
}
