package gpu

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Device is one GPU: its SM, and its hardware parameters after all tiers are resolved. Kernel families and models get
// limits from it, so that a parameter that the user overrides counts everywhere.
type Device struct {
	SM     *SM
	Sheet  *hw.Sheet
	Params hw.Set
	// Memory are the levels that Levels declares.
	Memory []arch.Level

	SMs   int
	Clock unit.Hertz
	// SharedMemory is the limit of one CTA.
	SharedMemory unit.Bytes
	// RegisterFile has the registers of an SM. RegistersPerThread is the limit of one thread.
	RegisterFile, RegistersPerThread int
}

// Limits are the parameters behind SharedMemory, RegisterFile and RegistersPerThread, by which kernel families decide
// what fits.
var Limits = []string{"shared_memory_bytes", "register_file", "registers_per_thread"}

// NewDevice reads the resolved numbers of Specs.
func NewDevice(sm *SM, sheet *hw.Sheet, params hw.Set) *Device {
	return &Device{
		SM: sm, Sheet: sheet, Params: params, Memory: arch.Hierarchy(Levels, params, params.Int("num_sms")),
		SMs: params.Int("num_sms"), Clock: unit.Hertz(params.Get("clock")),
		SharedMemory: unit.Bytes(params.Get("shared_memory_bytes")),
		RegisterFile: params.Int("register_file"), RegistersPerThread: params.Int("registers_per_thread"),
	}
}

// RegisterShare is the number of registers that each of a number of resident threads can get.
func (d *Device) RegisterShare(threads int) int {
	share := d.RegisterFile / threads
	return share - share%d.SM.RegisterGranule
}

// RegisterLimit is the largest number of registers for each thread of a CTA.
func (d *Device) RegisterLimit(threads int) int {
	return min(d.RegistersPerThread, d.RegisterShare(threads))
}

// AllocatedRegisters is the number of registers that is allocated for a thread that uses this many.
func (d *Device) AllocatedRegisters(used int) int {
	granule := d.SM.RegisterGranule
	return max((used+granule-1)/granule, 1) * granule
}

// FlopsPerCycle is the rate of one SM behind a peak rate: the power of two next to it, since data sheets give peaks at
// other clocks than clock, and those of tensor cores at other clocks than those of FMA instructions. An override of the
// peak changes it in proportion.
func (d *Device) FlopsPerCycle(peak string) float64 {
	p, nominal := d.Params, d.Params.Nominal(peak)
	return math.Exp2(math.Round(math.Log2(nominal/(p.Get("num_sms")*p.Get("clock"))))) * (p.Get(peak) / nominal)
}

// Calibrated reports whether every parameter that a microbenchmark should supply comes from one, or from the user.
func (d *Device) Calibrated() bool { return d.Params.Calibrated(Specs) }

// BandwidthsMeasured reports whether the bandwidths of L2 and DRAM come from a microbenchmark of the device, or from
// the user.
func (d *Device) BandwidthsMeasured() bool {
	for _, name := range []string{"l2_perf_ratio", "dram_perf_ratio"} {
		if p, ok := d.Params.Lookup(name); !ok || p.Tier < hw.Calibrated {
			return false
		}
	}
	return true
}

// Description returns the part that does not depend on a model: identity, parameters, peak rates and matrix
// instructions.
func (d *Device) Description() arch.Description {
	description := arch.Description{
		Arch: d.Sheet.Arch, Vendor: d.Sheet.Vendor,
		Device: d.Sheet.Device, DeviceName: d.Sheet.Name, Aliases: d.Sheet.Aliases,
		UnitName: "SM", Units: d.SMs, Partitions: 1,
		Clock: d.Clock, ClockRung: arch.RungSpec,
		SharedMemory: d.SharedMemory, RegisterFile: d.RegisterFile, RegistersPerThread: d.RegistersPerThread,
		Params: d.Params, Peak: arch.PeakRates(d.Params),
	}
	description.Ceilings = d.ceilings(&description)
	if p, ok := d.Params.Lookup("clock"); ok && p.Tier == hw.Calibrated {
		description.ClockRung = arch.RungCalibrated
	}
	latency, ok := d.Params.Lookup("mma_latency")
	if !ok {
		return description
	}
	for _, t := range []gemm.DType{gemm.FP16, gemm.BF16} {
		description.Atoms = append(description.Atoms, arch.Atom{
			DType: t, M: MMAM, N: MMAN, K: MMAK,
			Latency: unit.Cycles(latency.Value), PerUnit: d.Params.Int("tensor_cores_per_sm"),
		})
	}
	return description
}
