package fake

import (
	"context"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
)

// ExecutorProvider opens the executor named Name, or "fake" if Name is empty. It runs nothing. Times and results follow
// from the problem and the configuration.
type ExecutorProvider struct{ Name string }

// Manifest implements exec.Provider.
func (p ExecutorProvider) Manifest() exec.Manifest {
	return exec.Manifest{Name: Provider(p).name(), Version: "0.3.2"}
}

// Open implements exec.Provider.
func (p ExecutorProvider) Open(context.Context) (exec.Executor, error) {
	return &executor{Executor: exectest.Executor{Others: 1, Device: exec.Device{
		Name: "Fake", Arch: "fake", Kernels: []string{"one", "two"}, Libraries: []string{"blas", "blas-best"},
		Attributes: map[string]float64{"num_sms": 108, "clock": 1.755e9, "dram_bandwidth": 0.1 + 0.2},
	}}}, nil
}

type executor struct {
	exectest.Executor
	device sync.Mutex // held while a kernel runs
}

// Environment has every field.
func (x *executor) Environment(ctx context.Context, device int) (exec.Environment, error) {
	e, err := x.Executor.Environment(ctx, device)
	e.Time = time.Date(2026, 11, 20, 12, 0, device, 123456789, time.UTC)
	e.PowerLimitWatts, e.TemperatureC, e.ThrottleReasons = 700, -1.5, []string{"power", "thermal"}
	return e, err
}

func (x *executor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	k, err := x.Executor.Compile(ctx, device, p, c)
	return &kernel{k, x}, err
}

// Run implements exec.Runner. The counters of a reading follow from the program and the number of the run.
func (x *executor) Run(ctx context.Context, device int, p exec.Program, runs int) ([]exec.Reading, error) {
	if _, err := x.Executor.Environment(ctx, device); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	h := mix(uint64(p.Grid), uint64(p.Threads), uint64(p.SharedMemory), uint64(p.Launches), uint64(p.Warmup))
	for _, a := range p.Arguments {
		h = mix(h, uint64(a.Kind), a.Value, uint64(a.Bytes), uint64(a.DType))
	}
	for _, b := range []byte(p.Text + p.Entry) {
		h = mix(h, uint64(b))
	}
	readings := make([]exec.Reading, runs)
	for i := range readings {
		h = mix(h, uint64(i))
		readings[i] = exec.Reading{Sample: exec.Sample{Time: unit.Seconds(positive(h) * 1e-6), Clock: 1.755e9}}
		for j := range p.Counters {
			readings[i].Counters = append(readings[i].Counters, mix(h, uint64(j)))
		}
	}
	return readings, nil
}

// kernel is one of several on a device, of which one runs at a time.
type kernel struct {
	exec.Kernel
	x *executor
}

func (k *kernel) Check(ctx context.Context) (exec.Numerics, error) {
	k.x.device.Lock()
	defer k.x.device.Unlock()
	return k.Kernel.Check(ctx)
}

func (k *kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	k.x.device.Lock()
	defer k.x.device.Unlock()
	return k.Kernel.Measure(ctx, o, sample)
}
