package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// executorPrefix is the prefix of the modes of plugins that are executors.
const executorPrefix = "x-"

// executorProvider is an executor that misbehaves as p says.
type executorProvider struct {
	fake.ExecutorProvider
	p provider
}

func (e executorProvider) Open(ctx context.Context) (exec.Executor, error) {
	if e.p.what == "deviceless" {
		return nil, &diag.Error{Kind: diag.Device, What: "there is no device", Fix: "put one in"}
	}
	x, err := e.ExecutorProvider.Open(ctx)
	return &faultyExecutor{x, e.p}, err
}

type faultyExecutor struct {
	exec.Executor
	p provider
}

// faultyStages marks the configuration of faulty kernels. All others compile, check and measure without a fault.
const faultyStages = 5

func (f *faultyExecutor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	faulty := f.p
	if c.NumStages != faultyStages {
		faulty = provider{}
	}
	if err := faulty.lose("Compile"); err != nil {
		return nil, err
	}
	faulty.act("Compile")
	k, err := f.Executor.Compile(ctx, device, p, c)
	if err != nil {
		return nil, err
	}
	return &faultyKernel{k, faulty}, nil
}

type faultyKernel struct {
	exec.Kernel
	p provider
}

func (f *faultyKernel) Check(ctx context.Context) (exec.Numerics, error) {
	if err := f.p.lose("Check"); err != nil {
		return exec.Numerics{}, err
	}
	f.p.act("Check")
	return f.Kernel.Check(ctx)
}

func (f *faultyKernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if err := f.p.lose("Measure"); err != nil {
		return err
	}
	return f.Kernel.Measure(ctx, o, func(s exec.Sample) bool {
		if o.Warmup == 0 { // not in the first chunk
			f.p.act("Measure")
		}
		return sample(s)
	})
}

// lose is the error of a call that has lost the device context.
func (p provider) lose(call string) error {
	if p.what != "lost" || p.call != call {
		return nil
	}
	return &diag.Error{Kind: diag.Plugin, What: "an illegal memory access", Where: call}
}

// executorsOf returns a host with external executor plugins of these modes, given without executorPrefix, in this
// order.
func executorsOf(t testing.TB, o host.Options, modes ...string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", shortDir(t))
	o.LockFile = filepath.Join(dir, "lock")
	self := must.Get(os.Executable())(t)
	for _, mode := range modes {
		path := filepath.Join(dir, host.Prefix+executorPrefix+mode)
		must.Do(t, os.Symlink(self, path))
		must.Get(host.Trust(t.Context(), o.LockFile, path))(t)
		o.Plugins = append(o.Plugins, path)
	}
	return newHost(t, o)
}

func executorOf(t testing.TB, h *host.Host, mode string) exec.Executor {
	t.Helper()
	x := must.Get(h.Executor(t.Context(), executorPrefix+mode))(t)
	return x
}

var (
	faultyConfig = gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, GroupM: 8, NumWarps: 4, NumStages: faultyStages,
		SplitK: 1, Kernel: "one"}
	goodConfig = gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, GroupM: 8, NumWarps: 4, NumStages: 3, SplitK: 1,
		Kernel: "one"}
)

// samples measures n runs.
func samples(ctx context.Context, k exec.Kernel, n int) (s []exec.Sample, err error) {
	err = k.Measure(ctx, exec.MeasureOptions{Warmup: 3}, func(sample exec.Sample) bool {
		s = append(s, sample)
		return len(s) < n
	})
	return s, err
}

// works makes every call of an executor.
func works(t *testing.T, x exec.Executor) {
	t.Helper()
	k := must.Get(x.Compile(t.Context(), 0, problem, goodConfig))(t)
	_, err := k.Check(t.Context())
	must.That(t, err == nil, "%v", err)
	s, err := samples(t.Context(), k, 40)
	must.That(t, err == nil && len(s) == 40, "%d samples, %v", len(s), err)
	err = k.Close()
	must.That(t, err == nil, "%v", err)
}

func wantLost(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, exec.ErrKernelLost) || diag.KindOf(err) != diag.Plugin || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want that the kernel was lost", err)
	}
}

// executorCalls makes each call with the faulty configuration, after compiling it if necessary.
var executorCalls = map[string]func(context.Context, exec.Executor) error{
	"Devices": func(ctx context.Context, x exec.Executor) error {
		_, err := x.Devices(ctx)
		return err
	},
	"Environment": func(ctx context.Context, x exec.Executor) error {
		_, err := x.Environment(ctx, 0)
		return err
	},
	"Compile": func(ctx context.Context, x exec.Executor) error {
		_, err := x.Compile(ctx, 0, problem, faultyConfig)
		return err
	},
	"Check": func(ctx context.Context, x exec.Executor) error {
		k, err := x.Compile(ctx, 0, problem, faultyConfig)
		if err == nil {
			_, err = k.Check(ctx)
		}
		return err
	},
	"Measure": func(ctx context.Context, x exec.Executor) error {
		k, err := x.Compile(ctx, 0, problem, faultyConfig)
		if err == nil {
			_, err = samples(ctx, k, 10)
		}
		return err
	},
	"Release": func(ctx context.Context, x exec.Executor) error {
		k, err := x.Compile(ctx, 0, problem, faultyConfig)
		if err == nil {
			err = k.Close()
		}
		return err
	},
}

// Kernels end with the process. Closing a kernel does not start a new process; the next call does.
func TestKernelsEndWithTheProcess(t *testing.T) {
	const mode = executorPrefix + "fine"
	h := executorsOf(t, host.Options{}, "fine")
	x := executorOf(t, h, "fine")
	one, other := kernelOf(t, x), kernelOf(t, x)
	before := starts(t, mode)
	killAll(t, mode)
	_, err := one.Check(t.Context())
	wantFault(t, err, mode, host.FaultDied, "died during Check (signal: killed)")
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	must.That(t, starts(t, mode)-before == 0,
		"a call that runs kernels, or closing a kernel that is gone, starts the plugin")
	if _, err = x.Devices(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = other.Check(t.Context())
	wantLost(t, err)
	_, err = samples(t.Context(), other, 3)
	wantLost(t, err)
	works(t, x)
	n := starts(t, mode) - before
	must.That(t, n == 1, "started %d times more, want once", n)
}

func kernelOf(t *testing.T, x exec.Executor) exec.Kernel {
	t.Helper()
	k := must.Get(x.Compile(t.Context(), 0, problem, goodConfig))(t)
	return k
}

// A cancelled call returns at once, whatever the plugin does. A kernel that hangs is stopped anyway, and the calls
// that waited for it fail with an error that allows a retry.
func TestExecutorCallerGivesUp(t *testing.T) {
	h := executorsOf(t, host.Options{RunTimeout: 3 * time.Second}, "hang.Check", "hang.Measure", "fine")
	for _, call := range []string{"Check", "Measure"} {
		t.Run(call, func(t *testing.T) {
			mode := executorPrefix + "hang." + call
			x := executorOf(t, h, "hang."+call)
			old := must.Get(x.Compile(t.Context(), 0, problem, goodConfig))(t)
			before := starts(t, mode)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if err := executorCalls[call](ctx, x); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			d := time.Since(begin)
			must.That(t, d <= 2500*time.Millisecond, "it took %v to give up", d)
			if call == "Measure" { // it holds the device
				_, err := old.Check(t.Context())
				wantLost(t, err)
				var e *host.PluginError
				must.That(t, errors.As(err, &e) && e.Fault == host.FaultInterrupted, "got %v", err)
			} else {
				works(t, x) // the call hangs before it waits for the device
				noneAlive(t, mode)
			}
			works(t, x)
			n := starts(t, mode) - before
			must.That(t, n == 1, "started %d times more, want once", n)
		})
	}
	t.Run("fine", func(t *testing.T) {
		x := executorOf(t, h, "fine")
		k, err := x.Compile(t.Context(), 0, problem, goodConfig)
		must.Do(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err = k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool {
			if n++; n == 10 {
				cancel()
			}
			return true
		})
		must.That(t, errors.Is(err, context.Canceled) && n == 10, "%d samples, %v", n, err)
		_, err = k.Check(ctx)
		must.That(t, errors.Is(err, context.Canceled), "got %v", err)
		_, err = k.Check(t.Context())
		must.That(t, err == nil, "%v", err)
	})
}
