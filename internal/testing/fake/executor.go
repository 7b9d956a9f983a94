package fake

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// ExecutorProvider opens the executor named Name, or "fake" if Name is empty. It runs nothing. Every answer follows
// from the problem, the configuration and the number of runs of the kernel.
type ExecutorProvider struct{ Name string }

// Manifest implements exec.Provider.
func (p ExecutorProvider) Manifest() exec.Manifest {
	return exec.Manifest{Name: Provider(p).name(), Version: "0.3.2"}
}

// Open implements exec.Provider.
func (p ExecutorProvider) Open(context.Context) (exec.Executor, error) { return &executor{}, nil }

type executor struct{ device sync.Mutex } // held while a kernel runs

var devices = []exec.Device{
	{
		Name: "Fake Small", Arch: "fake",
		Attributes: map[string]float64{"num_sms": 108, "clock": 1.755e9, "dram_bandwidth": 0.1 + 0.2},
		Kernels:    []string{"one", "two"}, Libraries: []string{"blas", "blas-best"},
	},
	{Name: "Fake Large", Arch: "fake"},
}

func (x *executor) Devices(context.Context) ([]exec.Device, error) { return devices, nil }

func (x *executor) Environment(_ context.Context, device int) (exec.Environment, error) {
	if err := checkDevice(device); err != nil {
		return exec.Environment{}, err
	}
	return exec.Environment{
		Time:   time.Date(2026, 11, 20, 12, 0, device, 123456789, time.UTC),
		Driver: "1.2", Runtime: "3.4", Clock: 1.755e9,
		PowerWatts: 123.4, PowerLimitWatts: 700, TemperatureC: -1.5, ThrottleReasons: []string{"power", "thermal"},
	}, nil
}

func (x *executor) Close() error { return nil }

func checkDevice(device int) error {
	if device < 0 || device >= len(devices) {
		return diag.Inputf("there is no device %d", device).At("fake").Do("use 0 or 1")
	}
	return nil
}

// Compile rejects BF16 with a long compiler log.
func (x *executor) Compile(_ context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if p.DType == gemm.BF16 {
		return nil, diag.Inputf("ptxas: line 1: no bf16\nptxas: line 2: really not").At("%s of %s", c, p)
	}
	h := mix(uint64(device), uint64(p.M), uint64(p.N), uint64(p.K), uint64(p.Batch),
		uint64(p.AMajor), uint64(p.BMajor), uint64(p.DType),
		uint64(c.BlockM), uint64(c.BlockN), uint64(c.BlockK), uint64(c.GroupM),
		uint64(c.NumWarps), uint64(c.NumStages), uint64(c.SplitK), uint64(len(c.Kernel)))
	h = mixStorage(h, &p)
	for _, b := range []byte(c.Axes.String()) {
		h = mix(h, uint64(b))
	}
	return &kernel{executor: x, hash: h}, nil
}

func (x *executor) Library(_ context.Context, device int, p gemm.Problem, library string) (exec.Kernel, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	h := mix(uint64(device), uint64(p.M), uint64(p.N), uint64(p.K), uint64(p.Batch),
		uint64(p.AMajor), uint64(p.BMajor),
		uint64(p.DType), uint64(len(library)))
	return &kernel{executor: x, hash: mixStorage(h, &p), library: true}, nil
}

// Run implements exec.Runner. The counters of a reading follow from the program and the number of the run.
func (x *executor) Run(ctx context.Context, device int, p exec.Program, runs int) ([]exec.Reading, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	x.device.Lock()
	defer x.device.Unlock()
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
	return readings, ctx.Err()
}

type kernel struct {
	*executor
	hash    uint64
	library bool
	runs    uint64
}

func (k *kernel) Resources() exec.Resources {
	if k.library {
		return exec.Resources{}
	}
	return exec.Resources{
		Registers: int(k.hash % 256), SpillBytes: unit.Bytes(k.hash % 3 * 8),
		SharedMemory: unit.Bytes(k.hash % 200000), CTAsPerSM: int(k.hash % 5),
	}
}

func (k *kernel) Check(context.Context) (exec.Numerics, error) {
	k.device.Lock()
	defer k.device.Unlock()
	n := exec.Numerics{
		MaxError: positive(k.hash) * 1e-6, Tolerance: 0.01, Checked: int64(k.hash >> 2), Reference: "nothing",
	}
	if k.hash%4 == 0 {
		n.MaxError, n.Wrong, n.OutOfBounds = math.Inf(1), n.Checked/2, int64(k.hash%100)
	}
	return n, nil
}

// Measure reports times between 1 µs and 72 ms. They depend on the options and on the number of earlier runs.
func (k *kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	k.device.Lock()
	defer k.device.Unlock()
	k.runs += uint64(o.Warmup)
	warm := uint64(len(o.Input))
	if o.WarmL2 {
		warm += 1 << 32
	}
	for ctx.Err() == nil {
		k.runs++
		h := mix(k.hash, warm, k.runs)
		s := exec.Sample{
			Time:  unit.Seconds(positive(k.hash) * (1 + float64(h%100)/1000) * 1e-6),
			Clock: unit.Hertz(h % 2 * 1.755e9),
		}
		if !sample(s) {
			return nil
		}
	}
	return ctx.Err()
}

func (k *kernel) Close() error { return nil }
