//go:build cuda

package cuda

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Attributes that gorgonia.org/cu has no name for. Source: CUDA driver API, CUdevice_attribute.
const (
	attributeMemoryClock    = cu.DeviceAttribute(36) // kHz
	attributeBusWidth       = cu.DeviceAttribute(37) // bits
	attributeL2             = cu.DeviceAttribute(38) // bytes
	attributeMajor          = cu.DeviceAttribute(75)
	attributeMinor          = cu.DeviceAttribute(76)
	attributeRegistersPerSM = cu.DeviceAttribute(82)
	attributeSharedPerCTA   = cu.DeviceAttribute(97) // bytes, opt-in
	attributeSharedPerSM    = cu.DeviceAttribute(81) // bytes
	memoryTransfersPerClock = 2                      // double data rate
	transferBits            = 8
	kilohertz               = 1e3
)

// open prepares a GPU.
func open(ordinal cu.Device) (_ *device, err error) {
	d := &device{ordinal: ordinal, attributes: map[string]float64{}}
	if d.name, err = ordinal.Name(); err != nil {
		return nil, err
	}
	for _, a := range []struct {
		name      string
		attribute cu.DeviceAttribute
		scale     float64
	}{
		{"num_sms", cu.MultiprocessorCount, 1}, {"clock", cu.ClockRate, kilohertz}, {"l2_bytes", attributeL2, 1},
		{"shared_memory_bytes", attributeSharedPerCTA, 1}, {"shared_memory_per_sm", attributeSharedPerSM, 1},
		{"register_file", attributeRegistersPerSM, 1},
		{"memory_clock", attributeMemoryClock, kilohertz}, {"bus_width_bits", attributeBusWidth, 1},
		{"compute_capability_major", attributeMajor, 1}, {"compute_capability_minor", attributeMinor, 1},
	} {
		v, err := ordinal.Attribute(a.attribute)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		if v > 0 {
			d.attributes[a.name] = float64(v) * a.scale
		}
	}
	total, err := ordinal.TotalMem()
	if err != nil {
		return nil, err
	}
	d.attributes["memory_bytes"] = float64(total)
	if clock, bits := d.attributes["memory_clock"], d.attributes["bus_width_bits"]; clock > 0 && bits > 0 {
		d.attributes["dram_bandwidth"] = memoryTransfersPerClock * clock * bits / transferBits
	}
	major, minor := int(d.attributes["compute_capability_major"]), int(d.attributes["compute_capability_minor"])
	d.target = target.Target{CC: 10*major + minor, Suffix: target.ArchFeatures} // the device runs code for itself alone
	if id, err := ordinal.UUID(); err == nil {
		d.state = newState(id)
	}
	d.state.attributes(d.attributes)
	if d.context, err = ordinal.RetainPrimaryCtx(); err != nil {
		return nil, err
	}
	d.modules.device = d
	d.assembler = newAssembler()
	d.checks.kernels = map[any]compiled{}
	err = d.do(func() error {
		if d.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		if d.begin, err = cu.MakeEvent(cu.DefaultEvent); err != nil {
			return err
		}
		d.end, err = cu.MakeEvent(cu.DefaultEvent)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.blas = openBLAS(d)
	return d, nil
}

// close frees everything on the device.
func (d *device) close() error {
	d.running.Lock()
	defer d.running.Unlock()
	return d.do(func() error {
		d.operands.free()
		d.checks.free()
		d.flush.free()
		d.pool.free()
		d.scratch.free()
		d.blas.close()
		d.modules.close()
		return d.ordinal.ReleasePrimaryCtx()
	})
}
