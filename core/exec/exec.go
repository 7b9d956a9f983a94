// Package exec defines the Executor, the interface to compile, check and time kernels. It depends on no vendor and on
// no clock. The caller decides on the sampling policy.
package exec

import (
	"context"
	"errors"
	"math"
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

// Manifest is the name ("cuda") and the version of an executor.
type Manifest struct{ Name, Version string }

// Executor compiles kernels for a device, checks their results and measures them. It is safe for concurrent use.
// Compiling runs beside a measurement. Checks and measurements of a device take turns.
//
// Errors are *diag.Error values. Their kind tells the caller what to do:
//
//   - Input: this configuration or problem cannot be built or run here, for example because of the compiler or because
//     memory is too small. Others can.
//   - Plugin: the executor failed. The next call on a remote executor starts a new process if there is none, and every
//     kernel compiled before is lost. Only ErrDied and ErrHung in the chain of the error make it possible that the
//     kernel of the call is the cause. ErrKernelLost and ErrNonsense, like all other errors of this kind, for example
//     of an executor that cannot be started, say nothing about the kernel.
//   - Device: there is no device or driver, or it was lost. No further kernel can run.
type Executor interface {
	// Devices lists the devices, in the executor's numbering.
	Devices(ctx context.Context) ([]Device, error)
	// Compile builds the kernel of one configuration for one problem. An error includes the compiler's log.
	Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (Kernel, error)
	// Library prepares the routine of a vendor library for one problem. library is one of Device.Libraries.
	Library(ctx context.Context, device int, p gemm.Problem, library string) (Kernel, error)
	// Environment reads the current state of the device.
	Environment(ctx context.Context, device int) (Environment, error)
	// Close releases all resources.
	Close() error
}

// ErrKernelLost means that a kernel was lost because of another one, with the device context or the process, or that
// its compilation, check or measurement was interrupted. The kernel itself may be fine. Compile it again.
var ErrKernelLost = errors.New("the kernel was lost with the executor's process")

// Causes of errors of kind Plugin.
var (
	// ErrDied means that the executor's process ended during the call, or that it lost its device context. The kernel
	// may have done that, or something outside.
	ErrDied = errors.New("the executor's process ended during the call")
	// ErrHung means that the call did not end in time, and that the process was ended for it.
	ErrHung = errors.New("the call did not end in time")
	// ErrNonsense means that the executor's answer cannot be right.
	ErrNonsense = errors.New("the answer cannot be right")
)

// Kernel is a configuration compiled for a problem, or the routine of a library. Close releases it.
type Kernel interface {
	Resources() Resources
	// Check runs the kernel once on random inputs and compares every element with a reference. Before the run it fills
	// the output with poison and surrounds it with guard regions.
	Check(ctx context.Context) (Numerics, error)
	// Measure runs the kernel and calls sample after each timed run, in order, until sample returns false or the
	// context ends. The executor may be a few runs ahead of the samples that it has passed on. Measure does not check
	// results.
	Measure(ctx context.Context, o MeasureOptions, sample func(Sample) bool) error
	Close() error
}

// Device is one device.
type Device struct {
	// Name is the product name that the driver reports. Arch is the id of the architecture ("sm90").
	Name, Arch string
	// Attributes are hardware parameters that the driver reports, by name (num_sms, clock, l2_bytes, dram_bandwidth,
	// …), in base units (Hz, B, B/s, W).
	Attributes map[string]float64
	// Kernels are the kernel families that can be compiled for the device. Libraries are the vendor's libraries to
	// compare with ("cublas", "cublas-best"). The first one is the default.
	Kernels, Libraries []string
}

// Resources are reported by the compiler and the driver for a kernel. Records have the same keys.
type Resources struct {
	Registers    int        `json:"registers"` // per thread
	SpillBytes   unit.Bytes `json:"spill_bytes"`
	SharedMemory unit.Bytes `json:"shared_bytes"` // per CTA
	CTAsPerSM    int        `json:"ctas_per_sm"`
}

// Numerics is the outcome of Kernel.Check.
type Numerics struct {
	// MaxError is the largest |got − want| / (|want| + √K) over the checked elements, or +Inf if one is not a number.
	// Tolerance is the largest permitted MaxError. √K is the magnitude of an element if A and B are standard normal.
	MaxError, Tolerance float64
	// Checked counts the compared elements, Wrong those beyond the tolerance, OutOfBounds the bytes written outside the
	// output.
	Checked, Wrong, OutOfBounds int64
	// Reference describes the reference of the comparison.
	Reference string
}

// OK reports whether the kernel computes the right result.
func (n Numerics) OK() bool { return n.MaxError <= n.Tolerance && n.Wrong == 0 && n.OutOfBounds == 0 }

// MeasureOptions are the conditions of a measurement.
type MeasureOptions struct {
	// WarmL2 keeps the L2 contents between runs. If false, they are flushed before each run.
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
	Time unit.Seconds `json:"seconds"`
	// Clock is the SM or CU clock during the run, 0 if unknown.
	Clock unit.Hertz `json:"clock_hz,omitempty"`
}

// Environment is the state of the device and its driver, on which a measurement depends. Records have the same keys.
type Environment struct {
	Time            time.Time  `json:"time"`
	Driver          string     `json:"driver,omitempty"`
	Runtime         string     `json:"runtime,omitempty"`
	Clock           unit.Hertz `json:"clock_hz,omitempty"`
	PowerWatts      float64    `json:"power_watts,omitempty"`
	PowerLimitWatts float64    `json:"power_limit_watts,omitempty"`
	TemperatureC    float64    `json:"temperature_celsius,omitempty"`
	ThrottleReasons []string   `json:"throttle_reasons,omitempty"`
}

// Recorded returns the environment as records have it: in UTC, and a sensor's reading that is no finite number as 0.
func (e Environment) Recorded() Environment {
	e.Time, e.Clock = e.Time.UTC(), Finite(e.Clock)
	e.PowerWatts, e.PowerLimitWatts = Finite(e.PowerWatts), Finite(e.PowerLimitWatts)
	e.TemperatureC = Finite(e.TemperatureC)
	return e
}

// Finite returns a sensor's reading, 0 if it is not a finite number.
func Finite[T ~float64](v T) T {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return 0
	}
	return v
}
