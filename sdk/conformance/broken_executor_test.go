package conformance

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

// runner provides a simulated executor, with a function for each answer that a test changes.
type runner struct {
	version     string
	fate        func(gemm.Problem, gemm.Config) exectest.Fate
	libraryFate func(gemm.Problem, string) exectest.Fate
	device      func(*exec.Device)
	open        func() error
	compile     func(ctx context.Context, p gemm.Problem, c *gemm.Config, device *int) error
	measure     func(ctx context.Context)
	environment func(device int, e *exec.Environment, err error) error
}

func (r *runner) Manifest() exec.Manifest {
	if r.version == "" {
		r.version = "1.2.3"
	}
	return exec.Manifest{Name: "made-up", Version: strings.TrimSpace(r.version)}
}

func (r *runner) Open(context.Context) (exec.Executor, error) {
	if r.open != nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	x := &exectest.Executor{Noise: 0.01, Fate: r.fate, LibraryFate: r.libraryFate, Device: exec.Device{Name: "Made Up",
		Arch: "none1", Kernels: []string{"one", "two"}, Libraries: []string{"blas"},
		Attributes: map[string]float64{"clock": 1.5e9, "num_sms": 8}}}
	return &running{x, r}, nil
}

type running struct {
	*exectest.Executor
	runner *runner
}

func (x *running) Devices(ctx context.Context) ([]exec.Device, error) {
	devices, err := x.Executor.Devices(ctx)
	if err == nil && x.runner.device != nil {
		x.runner.device(&devices[0])
	}
	return devices, err
}

func (x *running) Environment(ctx context.Context, device int) (exec.Environment, error) {
	e, err := x.Executor.Environment(ctx, device)
	if x.runner.environment != nil {
		err = x.runner.environment(device, &e, err)
	}
	return e, err
}

func (x *running) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if x.runner.compile != nil {
		if err := x.runner.compile(ctx, p, &c, &device); err != nil {
			return nil, err
		}
	}
	k, err := x.Executor.Compile(ctx, device, p, c)
	if err != nil {
		return nil, err
	}
	return &runningKernel{k, x.runner}, nil
}

type runningKernel struct {
	exec.Kernel
	runner *runner
}

func (k *runningKernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if k.runner.measure != nil {
		k.runner.measure(ctx)
	}
	return k.Kernel.Measure(ctx, o, sample)
}

// fateOf gives a fate to the kernels that match.
func fateOf(match func(gemm.Problem, gemm.Config) bool,
	fate exectest.Fate) func(gemm.Problem, gemm.Config) exectest.Fate {
	return func(p gemm.Problem, c gemm.Config) exectest.Fate {
		if match(p, c) {
			return fate
		}
		return exectest.Fine
	}
}

// brokenExecutor is a fault of an executor and the check that must find it.
type brokenExecutor struct {
	check, what string
	broken      runner
	forge       grpc.UnaryServerInterceptor
	finding     string
}

// brokenKernels are faults of the manifest, the devices and single kernels.
func brokenKernels() []*brokenExecutor {
	var manifests, calls atomic.Int64
	return []*brokenExecutor{
		{check: "info", what: "no version", broken: runner{version: " "}, finding: "no version"},
		{check: "manifest", what: "another one each time", finding: "asked twice it is",
			forge: forge(func(method string, _, resp proto.Message, err error) error {
				if r, ok := resp.(*pb.Json); ok && method == "Manifest" && manifests.Add(1) > 1 {
					r.Json = bytes.Replace(r.Json, []byte(`"version":"`), []byte(`"version":"2`), 1)
				}
				return err
			})},
		{check: "devices", what: "others each time", finding: "asked twice they are",
			broken: runner{device: func(d *exec.Device) { d.Name += string(rune('a' + calls.Add(1)%20)) }}},
		{check: "devices", what: "a clock in MHz", finding: "a clock of 1500 Hz",
			broken: runner{device: func(d *exec.Device) { d.Attributes = map[string]float64{"clock": 1500} }}},
		{check: "devices", what: "numbers below zero",
			finding: "a is -1\ndevice 0 (Made Up): b is -1\ndevice 0 (Made Up): c is -1\ndevice 0 (Made Up): d is -1",
			broken: runner{device: func(d *exec.Device) {
				d.Attributes = map[string]float64{"d": -1, "c": -1, "b": -1, "a": -1}
			}}},
		{check: "compile", what: "a family that does not build", finding: "the kernel family two can be compiled",
			broken: runner{
				fate: fateOf(func(_ gemm.Problem, c gemm.Config) bool { return c.Kernel == "two" },
					exectest.NotBuilt)}},
		{check: "numerics", what: "wrong at the edge", finding: "the result is wrong: error 0.5 of 0.001 allowed, 7 of",
			broken: runner{
				fate: fateOf(func(p gemm.Problem, _ gemm.Config) bool { return p.M == 129 }, exectest.Wrong)}},
		{check: "samples", what: "one too few", finding: "6 answers for 7 runs", forge: ofSeven(func(text string) string {
			return "[" + text[strings.Index(text, "},")+2:]
		})},
		{check: "samples", what: "no time", finding: `seconds: it is "0"`, forge: ofSeven(func(text string) string {
			return `[{"seconds":0` + text[strings.IndexByte(text, ','):]
		})},
		{check: "lifecycle", what: "another status", finding: "it answers Internal",
			forge: forge(func(method string, _, _ proto.Message, err error) error {
				if method == "Measure" && status.Code(err) == codes.NotFound {
					return status.Error(codes.Internal, "which kernel?")
				}
				return err
			})},
		{check: "lifecycle", what: "release once", finding: "releasing a kernel that is released",
			forge: forge(func(method string, req, _ proto.Message, err error) error {
				if method == "Release" {
					kernel := string(req.(*pb.Json).Json)
					if released.Swap(kernel) == kernel {
						return status.Error(codes.NotFound, "again?")
					}
				}
				return err
			})},
	}
}

// brokenExecutors are faults of libraries, of bad requests, and of the executor over time.
func brokenExecutors() []*brokenExecutor {
	var inside, measuring atomic.Int64
	var cancelled atomic.Bool
	return []*brokenExecutor{
		{check: "libraries", what: "it is not there", finding: "blas: ", broken: runner{
			libraryFate: func(gemm.Problem, string) exectest.Fate { return exectest.NotBuilt }}},
		{check: "bad-config", what: "anything goes", finding: "a block of 0 is accepted",
			broken: runner{compile: func(_ context.Context, _ gemm.Problem, c *gemm.Config, _ *int) error {
				if c.BlockM == 0 && c.BlockN != 0 {
					c.BlockM = 64
				}
				return nil
			}}},
		{check: "bad-device", what: "any device", finding: "compiling for device 1 is accepted",
			broken: runner{compile: func(_ context.Context, _ gemm.Problem, _ *gemm.Config, device *int) error {
				*device = 0
				return nil
			}}},
		{check: "bad-device", what: "an environment of nothing", finding: "the environment of device 1 is accepted",
			broken: runner{environment: func(int, *exec.Environment, error) error { return nil }}},
		{check: "cancel", what: "it does not recover", finding: "afterwards: ", broken: runner{
			measure: func(ctx context.Context) {
				measuring.Add(1)
				defer measuring.Add(-1)
				select {
				case <-ctx.Done():
					cancelled.Store(true)
				case <-time.After(200 * time.Millisecond): // longer than a loaded machine takes to cancel
				}
			},
			compile: func(context.Context, gemm.Problem, *gemm.Config, *int) error {
				for measuring.Load() > 0 { // a cancelled measurement ends a moment later
					time.Sleep(time.Millisecond)
				}
				if cancelled.CompareAndSwap(true, false) {
					return &diag.Error{Kind: diag.Device, What: "the device was lost"}
				}
				return nil
			},
		}},
		{check: "concurrent", what: "one at a time", finding: "busy", broken: runner{compile: func(context.Context,
			gemm.Problem, *gemm.Config, *int) error {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				return &diag.Error{Kind: diag.Plugin, What: "busy"}
			}
			time.Sleep(5 * time.Millisecond)
			return nil
		}}},
		{check: "environment", what: "in Kelvin", finding: "a temperature of 313 °C",
			broken: runner{environment: func(_ int, e *exec.Environment, err error) error {
				e.TemperatureC = 313
				return err
			}}},
	}
}

// Whatever an executor does wrong, the check for it fails, and no other.
func TestBrokenExecutors(t *testing.T) {
	for _, test := range slices.Concat(brokenKernels(), brokenExecutors()) {
		t.Run(test.check+"/"+strings.ReplaceAll(test.what, " ", "-"), func(t *testing.T) {
			var forges []grpc.UnaryServerInterceptor
			if test.forge != nil {
				forges = append(forges, test.forge)
			}
			names, text, _ := failing(t, wire.ExecutorService(&test.broken), ExecutorChecks(), Options{}, forges...)
			must.That(t, slices.Equal(names, []string{test.check}) && strings.Contains(text, test.finding),
				"the checks %v fail, want %s with %q:\n%s", names, test.check, test.finding, text)
		})
	}
}

// released is the kernel that was released last.
var released atomic.Value

// ofSeven changes the answer to a Measure of seven runs.
func ofSeven(change func(text string) string) grpc.UnaryServerInterceptor {
	return forge(func(method string, req, resp proto.Message, err error) error {
		if method == "Measure" && err == nil && bytes.Contains(req.(*pb.Json).Json, []byte(`"runs":7`)) {
			r := resp.(*pb.Json)
			r.Json = []byte(change(string(r.Json)))
		}
		return err
	})
}

func TestSoundExecutor(t *testing.T) {
	names, text, skipped := failing(t, wire.ExecutorService(&runner{}), ExecutorChecks(),
		Options{})
	must.That(t, len(names)+len(skipped) <= 0, "the checks %v fail, %v are skipped: %s", names, skipped, text)
}

// Without a device the checks that need one are skipped, or fail if a device is required.
func TestNoDevice(t *testing.T) {
	for what, none := range map[string]*runner{
		"no driver": {open: func() error {
			return &diag.Error{Kind: diag.Device,
				What: "there is no driver"}
		}},
		"no kernel families": {device: func(d *exec.Device) { d.Kernels = nil }},
	} {
		names, text, skipped := failing(t, wire.ExecutorService(none), ExecutorChecks(), Options{})
		must.That(t, len(names) <= 0 && len(skipped) == len(ExecutorChecks())-2,
			"%s: the checks %v fail, %v are skipped: %s", what, names, skipped, text)
		names, _, skipped = failing(t, wire.ExecutorService(none), ExecutorChecks(), Options{RequireDevice: true})
		must.That(t, len(names) == len(ExecutorChecks())-2 && len(skipped) <= 0,
			"%s, with a device required: the checks %v fail, %v are skipped", what, names, skipped)
	}
}
