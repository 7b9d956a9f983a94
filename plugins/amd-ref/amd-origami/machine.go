package amdorigami

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/amd-ref/device"
)

// atomTypes maps an element type to the operand type of its matrix instruction.
var atomTypes = map[gemm.DType]string{
	gemm.FP16: "fp16", gemm.BF16: "bf16", gemm.FP32: "fp32", gemm.TF32: "xf32", gemm.FP8: "fp8", gemm.INT8: "int8",
}

// newMachine builds the device from its resolved parameters.
func newMachine(sheet *hw.Sheet, params hw.Set, o options) (*machine, error) {
	get := func(name string) uint64 { return uint64(params.Get(name)) }
	m := &machine{
		cus: get("num_cus"), xcds: get("num_xcds"), parallelMI: get("parallel_mi"),
		ldsBytes: get("lds_bytes"), memory: device.Memory(params),
		// gfx950 has no XF32 instructions. The library emulates TF32 with BF16 products and models their cost.
		emulatesXF32: sheet.Arch == "gfx950",
		gridMode:     o.grid, occupancy: o.occupancy, februaryMapping: o.februaryMapping, ordered: o.workgroups,
	}
	if m.xcds > m.cus {
		return nil, diag.Inputf("num_xcds is %d, which is more than num_cus (%d)", m.xcds, m.cus).
			Do("give each die at least one compute unit")
	}
	m.l2, m.hbm = arch.LevelOf(m.memory, arch.BoundL2), arch.LevelOf(m.memory, arch.BoundDRAM)
	m.mall = arch.LevelOf(m.memory, arch.BoundMALL)
	m.l2Bytes, m.hbmLatency = uint64(m.l2.Capacity), float64(m.hbm.Latency)
	if !(m.hbm.Bandwidth.Fraction(1) > 0) {
		return nil, diag.Inputf("bw_c0, bw_c1 and bw_c2 are all zero, which leaves no bandwidth").
			Do("set at least one to a positive value")
	}
	m.assumedWGM = ceilSqrt(m.cus / m.xcds)
	return m, nil
}

// missingMICycles is the latency that the library assumes for an instruction that its table lacks.
const missingMICycles = 32

// miLatency returns the cycles of a matrix instruction with all matrix cores of a compute unit busy, rounded down.
func (m *machine) miLatency(atoms []hw.Atom, atomType string, s shape) uint64 {
	cycles := uint64(missingMICycles)
	for _, a := range atoms {
		if a.Type == atomType && (shape{a.M, a.N, a.K}) == s {
			cycles = uint64(a.Cycles)
		}
	}
	return cycles / m.parallelMI
}
