// Package exec defines the Executor, the interface to whatever runs kernels. It knows no vendor and has no clock. How often
// to measure is up to the caller.
package exec

import (
	"context"
	"errors"
	"time"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Provider opens an Executor. An executor plugin implements it.
type Provider interface {
	// Manifest identifies the executor. It is cheap and needs no device.
	Manifest() Manifest
	// Open prepares the executor. A missing driver or device is an error of kind diag.Device.
	Open(ctx context.Context) (Executor, error)
}

// Manifest identifies an executor by its name ("cuda") and its version.
type Manifest struct{ Name, Version string }

// Executor compiles kernel configurations for a device, checks their results and measures them. It is safe for concurrent
// use: compilations run beside a measurement, while checks and measurements on one device take turns.
//
// Errors are *diag.Error values. The kind says what to do:
//
//   - Input: this configuration or problem cannot be built or run here (the compiler's log, too little memory). Others can.
//   - Plugin: running this kernel ended the executor's device context or process, or it hung. With a remote executor the
//     next call starts a fresh process. All kernels compiled before are lost.
//   - Device: there is no device or driver, or it was lost. Nothing more can be run.
//
// An error of kind Plugin that wraps ErrKernelLost is not the fault of the kernel that the call was about.
type Executor interface {
	// Devices lists the devices in the executor's numbering.
	Devices(ctx context.Context) ([]Device, error)
	// Compile builds the kernel of one configuration for one problem. The error contains the compiler's log.
	Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (Kernel, error)
	// Library prepares the routine of a vendor library for one problem. library is one of Device.Libraries.
	Library(ctx context.Context, device int, p gemm.Problem, library string) (Kernel, error)
	// Environment reads the current state of a device.
	Environment(ctx context.Context, device int) (Environment, error)
	// Close frees everything.
	Close() error
}

// ErrKernelLost says that a kernel was lost because of another one: the device context or the process ended, or its
// compilation, check or measurement was cut short. The kernel itself may be fine. Compile it again.
var ErrKernelLost = errors.New("the kernel was lost with the executor's process")

// Kernel is a compiled configuration, or a library's routine, for one problem. Close frees it.
type Kernel interface {
	Resources() Resources
	// Check runs the kernel once on random inputs and compares every element with a reference. The output is filled with a
	// pattern before, and has guard bytes around it.
	Check(ctx context.Context) (Numerics, error)
	// Measure runs the kernel and calls sample after each timed run, in order, until sample returns false or the context
	// ends. The executor may be a few runs ahead of the samples. Results are not checked.
	Measure(ctx context.Context, o MeasureOptions, sample func(Sample) bool) error
	Close() error
}

// Device is one device.
type Device struct {
	// Name is the product name in the driver, Arch the id of the architecture ("sm90").
	Name, Arch string
	// Attributes are the driver's numbers that a hardware description can be derived from: by parameter name (num_sms, clock,
	// l2_bytes, dram_bandwidth, …), in base units (Hz, B, B/s, W).
	Attributes map[string]float64
	// Kernels are the kernel families that can be compiled for the device. Libraries are the vendor libraries that can be
	// measured for comparison, the default one first ("cublas", "cublas-best").
	Kernels, Libraries []string
}

// Resources is what the compiler and the driver report about a kernel.
type Resources struct {
	Registers    int // per thread
	SpillBytes   unit.Bytes
	SharedMemory unit.Bytes // per CTA
	CTAsPerSM    int
}

// Numerics is the outcome of a result check.
type Numerics struct {
	// MaxError is the largest |got − want| / (|want| + √K) over the checked elements, +Inf if one is not a number. Tolerance
	// is the largest error allowed. √K is the typical size of an element if A and B are standard normal.
	MaxError, Tolerance float64
	// Checked counts the elements that were compared, Wrong those beyond the tolerance, OutOfBounds the bytes that the
	// kernel wrote outside its output.
	Checked, Wrong, OutOfBounds int64
	// Reference says what the result was compared with.
	Reference string
}

// OK reports whether the result is right.
func (n Numerics) OK() bool { return n.MaxError <= n.Tolerance && n.Wrong == 0 && n.OutOfBounds == 0 }

// MeasureOptions are the conditions of a measurement.
type MeasureOptions struct {
	// WarmL2 keeps the L2 contents between runs; false flushes them before each.
	WarmL2 bool
	// Input is the distribution of the operands. Empty means InputNormal.
	Input string
	// Warmup is the number of runs before the first timed run.
	Warmup int
}

// InputNormal is the standard normal distribution.
const InputNormal = "normal"

// Sample is one timed run.
type Sample struct {
	Time unit.Seconds
	// Clock is the clock of the SMs or CUs during the run, 0 if unknown.
	Clock unit.Hertz
}

// Environment is the state of a device that a measurement depends on.
type Environment struct {
	Time            time.Time
	Driver, Runtime string
	Clock           unit.Hertz
	PowerWatts      float64
	PowerLimitWatts float64
	TemperatureC    float64
	ThrottleReasons []string
}
