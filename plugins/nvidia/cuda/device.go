//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// device is one GPU with everything that the executor keeps on it between calls.
type device struct {
	ordinal cu.Device
	context cu.CUContext
	stream  cu.Stream
	// begin and end are recorded before and after the run that is timed.
	begin, end cu.Event
	state      state
	name       string
	target     target.Target
	attributes map[string]float64
	modules    modules
	blas       *blas // nil without cuBLAS
	assembler  assembler

	// quiet is held while kernels are timed, and while one is loaded. A load holds the driver's locks for tens of
	// milliseconds. A launch between two events that waits for these locks would be timed with the wait.
	quiet sync.Mutex

	// running is held while kernels run, so that runs on a device take turns. It guards the fields below.
	running sync.Mutex
	flush   region
	// delaying is the kernel that pauses the stream.
	delaying cu.Function
	pool     region
	// poolType is the element type of the numbers in the pool.
	poolType gemm.DType
	// operands are those of the last problem.
	operands *operands
	checks   *checks
	scratch  scratch
}

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
	d.checks = &checks{
		references:  map[layout]*compiled[*gemmgen.Reference]{},
		comparisons: map[gemm.DType]*compiled[*gemmgen.Comparison]{},
	}
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

// do calls f on a thread that has the device's context.
func (d *device) do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		return err
	}
	return f()
}

// families returns the generated families whose instructions the device has.
func (d *device) families() []gemmgen.Family {
	return slices.DeleteFunc(families.All(), func(f gemmgen.Family) bool { return !d.target.Covers(f.Target()) })
}

// registersPerThread is the limit of the instruction encoding. The driver has no attribute for it. Source: CUDA C++
// Programming Guide, table "Technical Specifications per Compute Capability": all targets have the same.
const registersPerThread = 255

// limits are what the device lets a kernel use.
func (d *device) limits() gemmgen.Limits {
	return gemmgen.Limits{
		Target:             d.target,
		RegistersPerThread: registersPerThread, RegisterFile: int(d.attributes["register_file"]),
		SharedMemory: unit.Bytes(d.attributes["shared_memory_bytes"]),
		Processors:   int(d.attributes["num_sms"]),
	}
}

// describe answers exec.Executor.Devices.
func (d *device) describe() exec.Device {
	out := exec.Device{Name: d.name, Arch: fmt.Sprintf("sm%d", d.target.CC), Attributes: d.attributes}
	for _, f := range d.families() {
		out.Kernels = append(out.Kernels, f.Name())
	}
	if d.blas != nil {
		out.Libraries = []string{libraryDefault, libraryBest}
	}
	return out
}

// runtime names the CUDA version of the driver and the version of cuBLAS.
func (d *device) runtime() string {
	v := cu.Version()
	s := fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	if d.blas != nil {
		s += ", cuBLAS " + d.blas.version
	}
	return s
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
