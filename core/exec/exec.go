// Package exec defines the Executor: what runs kernels, or answers from measurements recorded earlier, behind one
// interface. It knows no vendor and no clock; sampling policy belongs to the caller.
package exec

import (
	"context"
	"errors"
	"time"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Provider makes an Executor: it is what an executor plugin implements.
type Provider interface {
	// Manifest says who the executor is. It is cheap and needs no device.
	Manifest() Manifest
	// Open readies the executor. A missing driver or device is an error of kind diag.Device.
	Open(ctx context.Context) (Executor, error)
}

// Manifest identifies an executor: its name ("cuda") and its own version.
type Manifest struct{ Name, Version string }

// Executor compiles kernel configurations for a device, checks their results and measures them. It may be used from
// several goroutines: compiling goes on beside a measurement, checks and measurements of a device take turns.
//
// Errors are *diag.Error values, and the kind says what to do:
//
//   - Input: this configuration or problem cannot be built or run here (the compiler's log, too little memory); others can.
//   - Plugin: running this kernel has cost the executor its device context or its process, or it hung. Whoever holds a
//     remote executor gets a fresh process with the next call; every kernel compiled before is gone.
//   - Device: there is no device or driver, or it was lost. Nothing more can be run.
//
// An error of kind Plugin that wraps ErrKernelLost is not about the kernel that was asked for.
type Executor interface {
	// Devices lists the devices found, in the executor's numbering.
	Devices(ctx context.Context) ([]Device, error)
	// Compile builds the kernel of one configuration for one problem. A compiler's log is part of the error. A library of
	// Device.Libraries is compiled as the configuration that has nothing but its Kernel.
	Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (Kernel, error)
	// Environment reads the device's state now.
	Environment(ctx context.Context, device int) (Environment, error)
	// Close frees everything.
	Close() error
}

// ErrKernelLost says that nothing is known to be wrong with a kernel or a configuration: it was lost with the device context
// or process, or its compilation, check or measurement was cut short, because of another one. Compile it again.
var ErrKernelLost = errors.New("the kernel was lost with the executor's process")

// Kernel is a compiled configuration on a problem. Close ends it.
type Kernel interface {
	Resources() Resources
	// Check runs the kernel once on random inputs, into an output that is poisoned and fenced before, and compares every
	// element with a reference.
	Check(ctx context.Context) (Numerics, error)
	// Measure runs the kernel and calls sample after each timed run, in order, until sample returns false or the context
	// ends. The executor may be a few runs ahead of the samples that it has handed over. Nothing is checked here.
	Measure(ctx context.Context, o MeasureOptions, sample func(Sample) bool) error
	Close() error
}

// Device is one device.
type Device struct {
	// Name is the product's name as the driver tells it, Arch the id of its architecture ("sm90").
	Name, Arch string
	// Attributes are what the driver knows that a hardware description can be derived from: by parameter name (num_sms,
	// clock, l2_bytes, dram_bandwidth, …), in base units (Hz, B, B/s, W).
	Attributes map[string]float64
	// Kernels are the kernel families that can be compiled for it, Libraries the vendor's libraries that are there to
	// compare with, the default one first ("cublas", "cublas-best").
	Kernels, Libraries []string
}

// Resources is what the compiler and the driver report of a kernel.
type Resources struct {
	Registers    int // per thread
	SpillBytes   unit.Bytes
	SharedMemory unit.Bytes // per CTA
	CTAsPerSM    int
}

// Numerics is the outcome of a result check.
type Numerics struct {
	// MaxError is the largest |got − want| / (|want| + √K) over the checked elements, +Inf where one is not a number;
	// Tolerance is what was allowed. √K is the size of an element where A and B are standard normal.
	MaxError, Tolerance float64
	// Checked counts the elements compared, Wrong those beyond the tolerance, OutOfBounds the bytes that the kernel wrote
	// where it must not.
	Checked, Wrong, OutOfBounds int64
	// Reference says what was compared with.
	Reference string
}

// OK reports whether the kernel computes the right result.
func (n Numerics) OK() bool { return n.MaxError <= n.Tolerance && n.Wrong == 0 && n.OutOfBounds == 0 }

// MeasureOptions says under which conditions to measure.
type MeasureOptions struct {
	// WarmL2 keeps the L2 contents between runs; false flushes them before each.
	WarmL2 bool
	// Input is the distribution of the operands; empty means the executor's own, which is InputNormal.
	Input string
	// Warmup is how many runs come before the first that is timed.
	Warmup int
}

// InputNormal is the standard normal distribution.
const InputNormal = "normal"

// Sample is one timed run.
type Sample struct {
	Time unit.Seconds
	// Clock is the SM or CU clock around the run, 0 if unknown.
	Clock unit.Hertz
}

// Environment is what a measurement depends on beside the kernel.
type Environment struct {
	Time            time.Time
	Driver, Runtime string
	Clock           unit.Hertz
	PowerWatts      float64
	PowerLimitWatts float64
	TemperatureC    float64
	ThrottleReasons []string
}
