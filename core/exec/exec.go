// Package exec defines the Executor: what runs kernels, or answers from measurements recorded earlier, behind one
// interface. It knows no vendor and no clock; sampling policy belongs to the caller.
package exec

import (
	"context"
	"time"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Executor compiles kernel configurations for a device, checks their results and measures them. Handles that it returns
// belong to it and end with Close. Errors are *diag.Error values: kind Device when there is no device or driver, Plugin
// when a remote executor died, Input when a configuration cannot be built.
type Executor interface {
	// Devices lists the devices found, in the executor's numbering.
	Devices(ctx context.Context) ([]Device, error)
	// Compile builds the kernel of one configuration for one problem. A compiler's log is part of the error.
	Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (Kernel, error)
	// Environment reads the device's state now.
	Environment(ctx context.Context, device int) (Environment, error)
	// Close frees everything.
	Close() error
}

// Kernel is a compiled configuration.
type Kernel interface {
	Resources() Resources
	// Check runs the kernel once on random inputs and compares with a reference.
	Check(ctx context.Context) (Numerics, error)
	// Measure runs the kernel and calls sample after each timed run, in order, until sample returns false or the
	// context ends.
	Measure(ctx context.Context, o MeasureOptions, sample func(Sample) bool) error
	Close() error
}

// Device is one device with the attributes that a hardware description can be derived from, by parameter name in base
// units (num_sms, l2_bytes, clock_hz, …).
type Device struct {
	Name       string
	Arch       string
	Attributes map[string]float64
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
	// MaxError is the largest |got − want| / (|want| + 1) over the checked elements; Tolerance is what was allowed.
	MaxError, Tolerance float64
	// OutOfBounds counts guard elements that the kernel overwrote.
	OutOfBounds int
	Reference   string
}

// OK reports whether the kernel computes the right result.
func (n Numerics) OK() bool { return n.MaxError <= n.Tolerance && n.OutOfBounds == 0 }

// MeasureOptions says under which conditions to measure.
type MeasureOptions struct {
	WarmL2 bool // keep the L2 contents between runs; false flushes them before each
	Input  string
	Warmup int
}

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
