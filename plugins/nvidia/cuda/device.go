//go:build cuda

package cuda

import (
	"errors"
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

// device is one GPU with everything that is kept on it between calls.
type device struct {
	ordinal cu.Device
	context cu.CUContext
	stream  cu.Stream
	// begin and end stand around the run that is timed.
	begin, end cu.Event
	state      state
	name       string
	target     target.Target
	attributes map[string]float64
	modules    modules
	blas       *blas // nil without cuBLAS

	// quiet is held by whoever times kernels and by whoever loads one. A load keeps the driver's locks for tens of
	// milliseconds, and a launch between two events that waits for them is timed with the wait.
	quiet sync.Mutex

	// running is held by whoever runs kernels: runs of a device take turns. It guards what follows.
	running sync.Mutex
	flush   region
	// delaying is the kernel that pauses the stream.
	delaying cu.Function
	pool     region
	// poolType is the element type of what the pool holds.
	poolType gemm.DType
	// operands are those of the last problem.
	operands *operands
	checks   *checks
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
	memoryTransfersPerClock = 2                      // double data rate: how the driver counts its memory clock
	flushSize               = 4                      // times the L2: what is written between runs
	smallestFlush           = unit.Bytes(64 << 20)
	transferBits            = 8
	kilohertz               = 1e3
)

// open readies a GPU.
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
	d.target = target.Target{CC: 10*major + minor, Suffix: target.ArchFeatures} // a device has all of its features
	if id, err := ordinal.UUID(); err == nil {
		d.state = newState(id)
	}
	d.state.attributes(d.attributes)
	if d.context, err = ordinal.RetainPrimaryCtx(); err != nil {
		return nil, err
	}
	d.modules.device = d
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

// registersPerThread is the limit of the instruction encoding, for which the driver has no attribute. Source: CUDA C++
// Programming Guide, table "Technical Specifications per Compute Capability": the same for all.
const registersPerThread = 255

// limits are what the device lets a kernel use.
func (d *device) limits() gemmgen.Limits {
	return gemmgen.Limits{
		RegistersPerThread: registersPerThread, RegisterFile: int(d.attributes["register_file"]),
		SharedMemory: unit.Bytes(d.attributes["shared_memory_bytes"]),
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

// runtime names the driver's CUDA version and cuBLAS's.
func (d *device) runtime() string {
	v := cu.Version()
	s := fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	if d.blas != nil {
		s += ", cuBLAS " + d.blas.version
	}
	return s
}

// dropL2 puts a run that replaces the contents of the L2 on the stream.
func (d *device) dropL2() error {
	if d.flush.bytes == 0 {
		size := max(flushSize*unit.Bytes(d.attributes["l2_bytes"]), smallestFlush)
		var err error
		if d.flush, err = allocate(size); err != nil {
			return err
		}
	}
	return cu.MemsetD8Async(d.flush.at, 0xA5, int64(d.flush.bytes), d.stream)
}

// timed runs once and returns how long it took on the device. What comes before keeps the device busy until the host has put
// everything on the stream: the flush of the L2 does, and for a warm one, after a run that fills it, a delay. The stream must
// not be held back by the host instead: loading a kernel meanwhile would wait for the stream, and the host for the load.
func (d *device) timed(run func() error, warm bool) (s exec.Sample, err error) {
	before := d.dropL2
	if warm {
		before = func() error { return errors.Join(run(), d.delay()) }
	}
	begin, end := func() error { return d.begin.Record(d.stream) }, func() error { return d.end.Record(d.stream) }
	for _, step := range []func() error{before, begin, run, end} {
		if err := step(); err != nil {
			return s, err
		}
	}
	s.Clock = d.state.clock() // while it runs
	if err := d.end.Synchronize(); err != nil {
		return s, err
	}
	ms, err := d.begin.Elapsed(d.end)
	s.Time = unit.Seconds(ms / 1e3)
	return s, err
}

// delayText is a kernel that ends after 30 µs. Putting a launch and two events on a stream takes the host less than that:
// 3.6 µs each on the machine of the H200 that this was written with.
const delayText = `.version 7.0
.target sm_75
.address_size 64
.visible .entry delay()
{
	.reg .b64 %now, %end;
	.reg .pred %more;
	mov.u64 %end, %globaltimer;
	add.u64 %end, %end, 30000;
again:
	mov.u64 %now, %globaltimer;
	setp.lt.u64 %more, %now, %end;
	@%more bra again;
	ret;
}
`

// delay puts a pause on the stream.
func (d *device) delay() error {
	if d.delaying == (cu.Function{}) {
		var err error
		if _, d.delaying, err = loadFunction(delayText, "delay"); err != nil {
			return err
		}
	}
	return d.start(d.delaying, gemmgen.Launch{GridX: 1, GridY: 1, GridZ: 1, Threads: 1})
}

// close gives everything back.
func (d *device) close() error {
	d.running.Lock()
	defer d.running.Unlock()
	return d.do(func() error {
		d.operands.free()
		d.checks.free()
		d.flush.free()
		d.pool.free()
		d.blas.close()
		d.modules.close()
		return d.ordinal.ReleasePrimaryCtx()
	})
}

// region is device memory.
type region struct {
	at    cu.DevicePtr
	bytes unit.Bytes
}

// allocate returns device memory, undefined.
func allocate(bytes unit.Bytes) (region, error) {
	if bytes == 0 {
		return region{}, nil
	}
	at, err := cu.MemAlloc(int64(bytes))
	return region{at, bytes}, err
}

func (r *region) free() {
	if r.bytes > 0 {
		_ = cu.MemFree(r.at) // fails only when the context is lost, and the memory with it
		*r = region{}
	}
}

// address is where something of the region lies.
func (r *region) address(offset unit.Bytes) uint64 { return uint64(r.at) + uint64(offset) }
