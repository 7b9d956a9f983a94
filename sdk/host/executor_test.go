package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/internal/fake"
)

// executorPrefix begins the modes of plugins that are executors.
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
	e.p.act("Open")
	x, err := e.ExecutorProvider.Open(ctx)
	return &faultyExecutor{x, e.p}, err
}

type faultyExecutor struct {
	exec.Executor
	p provider
}

// faultyStages marks the configuration that faulty kernels are about: others compile, check and measure well.
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

// lose is what a call says that has lost the device context.
func (p provider) lose(call string) error {
	if p.what != "lost" || p.call != call {
		return nil
	}
	return &diag.Error{Kind: diag.Plugin, What: "an illegal memory access", Where: call}
}

// executorsOf returns a host with external plugins that are executors of these modes, without executorPrefix, in that
// order.
func executorsOf(t testing.TB, o host.Options, modes ...string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", shortDir(t))
	o.LockFile = filepath.Join(dir, "lock")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		path := filepath.Join(dir, host.Prefix+executorPrefix+mode)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		if _, err := host.Trust(o.LockFile, path); err != nil {
			t.Fatal(err)
		}
		o.Plugins = append(o.Plugins, path)
	}
	return newHost(t, o)
}

func executorOf(t testing.TB, h *host.Host, mode string) exec.Executor {
	t.Helper()
	x, err := h.Executor(t.Context(), executorPrefix+mode)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

var (
	faultyConfig = gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, GroupM: 8, NumWarps: 4, NumStages: faultyStages, SplitK: 1, Kernel: "one"}
	goodConfig   = gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, GroupM: 8, NumWarps: 4, NumStages: 3, SplitK: 1, Kernel: "one"}
)

// samples measures n runs.
func samples(ctx context.Context, k exec.Kernel, n int) (s []exec.Sample, err error) {
	err = k.Measure(ctx, exec.MeasureOptions{Warmup: 3}, func(sample exec.Sample) bool {
		s = append(s, sample)
		return len(s) < n
	})
	return s, err
}

// works runs all that an executor does.
func works(t *testing.T, x exec.Executor) {
	t.Helper()
	k, err := x.Compile(t.Context(), 0, problem, goodConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if s, err := samples(t.Context(), k, 40); err != nil || len(s) != 40 {
		t.Errorf("%d samples, %v", len(s), err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// An executor behind a plugin gives the same answers as the same one in this process.
func TestExecutorIsEqualToInProcess(t *testing.T) {
	h := executorsOf(t, host.Options{}, "fine")
	local, err := fake.ExecutorProvider{}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remote := executorOf(t, h, "fine")
	want, _ := local.Devices(t.Context())
	got, err := remote.Devices(t.Context())
	sameError(t, "Devices", nil, err)
	equal(t, "Devices", want, got)
	for device := -1; device < 3; device++ {
		want, err := local.Environment(t.Context(), device)
		got, remoteErr := remote.Environment(t.Context(), device)
		if device >= 0 {
			sameError(t, "Environment", err, remoteErr)
		}
		equal(t, "Environment", want, got)
	}
	for i := range 20 {
		p := gemm.New(1+i, 777, 1<<i)
		p.DType = gemm.DTypes()[i%6]
		c := goodConfig
		c.NumStages = 1 + i%4
		build := func(x exec.Executor) (exec.Kernel, error) {
			if i == 19 {
				return x.Library(t.Context(), i%2, p, "blas")
			}
			return x.Compile(t.Context(), i%2, p, c)
		}
		k, err := build(local)
		remoteK, remoteErr := build(remote)
		sameError(t, "Compile", err, remoteErr)
		if err != nil {
			continue
		}
		equal(t, "Resources", k.Resources(), remoteK.Resources())
		n, _ := k.Check(t.Context())
		remoteN, err := remoteK.Check(t.Context())
		sameError(t, "Check", nil, err)
		equal(t, "Check", n, remoteN)
		s, _ := samples(t.Context(), k, 100)
		remoteS, err := samples(t.Context(), remoteK, 100)
		sameError(t, "Measure", nil, err)
		equal(t, "Measure", s, remoteS)
		sameError(t, "Close", nil, remoteK.Close())
		_, err = remoteK.Check(t.Context())
		wantLost(t, err)
	}
}

func wantLost(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, exec.ErrKernelLost) || diag.KindOf(err) != diag.Plugin || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want that the kernel was lost", err)
	}
}

// calls of an executor that has the faulty configuration compiled, where that works.
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

// Kernels end with the process. Closing one of them does not start another, and the next call does.
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
	if n := starts(t, mode) - before; n != 0 {
		t.Error("a call that runs kernels, or closing a kernel that is gone, starts the plugin")
	}
	if _, err = x.Devices(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = other.Check(t.Context())
	wantLost(t, err)
	_, err = samples(t.Context(), other, 3)
	wantLost(t, err)
	works(t, x)
	if n := starts(t, mode) - before; n != 1 {
		t.Errorf("started %d times more, want once", n)
	}
}

func kernelOf(t *testing.T, x exec.Executor) exec.Kernel {
	t.Helper()
	k, err := x.Compile(t.Context(), 0, problem, goodConfig)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A call that loses the device context takes the process with it, with the kernels of others.
func TestExecutorThatLosesItsDevice(t *testing.T) {
	lost := []string{"lost.Compile", "lost.Check", "lost.Measure"}
	h := executorsOf(t, host.Options{}, lost...)
	for _, name := range lost {
		_, call, _ := strings.Cut(name, ".")
		t.Run(call, func(t *testing.T) {
			mode := executorPrefix + name
			x := executorOf(t, h, name)
			old, err := x.Compile(t.Context(), 0, problem, goodConfig)
			if err != nil {
				t.Fatal(err)
			}
			before := starts(t, mode)
			err = executorCalls[call](t.Context(), x)
			if diag.KindOf(err) != diag.Plugin || !strings.Contains(err.Error(), "illegal memory access") || errors.Is(err, exec.ErrKernelLost) {
				t.Errorf("got %v", err)
			}
			noneAlive(t, mode)
			_, err = old.Check(t.Context())
			wantLost(t, err)
			works(t, x)
			if n := starts(t, mode) - before; n != 1 {
				t.Errorf("started %d times more, want once", n)
			}
		})
	}
}

// Who gives up gets the end of his patience back at once, whatever the plugin does. A kernel that hangs is stopped all
// the same, and what waited behind it is told that it may be tried again.
func TestExecutorCallerGivesUp(t *testing.T) {
	h := executorsOf(t, host.Options{RunTimeout: time.Second}, "hang.Check", "hang.Measure", "fine")
	for _, call := range []string{"Check", "Measure"} {
		t.Run(call, func(t *testing.T) {
			mode := executorPrefix + "hang." + call
			x := executorOf(t, h, "hang."+call)
			old, err := x.Compile(t.Context(), 0, problem, goodConfig)
			if err != nil {
				t.Fatal(err)
			}
			before := starts(t, mode)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if err := executorCalls[call](ctx, x); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if d := time.Since(begin); d > 600*time.Millisecond {
				t.Errorf("it took %v to give up", d)
			}
			if call == "Measure" { // it holds the device
				_, err := old.Check(t.Context())
				wantLost(t, err)
				var e *host.PluginError
				if !errors.As(err, &e) || e.Fault != host.FaultInterrupted {
					t.Errorf("got %v", err)
				}
			} else {
				works(t, x) // the hang is outside of what takes turns
				noneAlive(t, mode)
			}
			works(t, x)
			if n := starts(t, mode) - before; n != 1 {
				t.Errorf("started %d times more, want once", n)
			}
		})
	}
	t.Run("fine", func(t *testing.T) {
		x := executorOf(t, h, "fine")
		k, err := x.Compile(t.Context(), 0, problem, goodConfig)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err = k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool {
			if n++; n == 10 {
				cancel()
			}
			return true
		})
		if !errors.Is(err, context.Canceled) || n != 10 {
			t.Errorf("%d samples, %v", n, err)
		}
		if _, err := k.Check(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := k.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhichExecutor(t *testing.T) {
	h := executorsOf(t, host.Options{Builtins: []host.Builtin{builtin("good")}}, "exit", "fine.1", "fine.2", "deviceless")
	h.Plugins() // which asks each to describe itself
	for name, want := range map[string]string{"": "x-fine.1", "x-fine.1": "x-fine.1", "x-fine.2": "x-fine.2"} {
		before := starts(t, want)
		x, err := h.Executor(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		works(t, x)
		if n := starts(t, want) - before; n != 1 {
			t.Errorf("%q: %s was started %d times", name, want, n)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]struct {
		kind diag.Kind
		says string
	}{
		"cuda":   {diag.Input, `no plugin "cuda" runs kernels; use x-fine.1 or x-fine.2 or x-deviceless; plugins that cannot be used: x-exit`},
		"good":   {diag.Input, `no plugin "good" runs kernels; use x-fine.1`},
		"x-exit": {diag.Plugin, "plugin x-exit: describe failed (exit status 3): cannot load libnone.so"},
	} {
		if _, err := h.Executor(t.Context(), name); diag.KindOf(err) != want.kind || !strings.HasPrefix(err.Error(), want.says) {
			t.Errorf("%q: got %v, want %s", name, err, want.says)
		}
	}
	for _, p := range h.Plugins() {
		if p.Executor != (p.Name != "good" && p.Name != "x-exit") || p.Executor && len(p.Archs) > 0 {
			t.Errorf("got %+v", p)
		}
	}
	if m := h.Manifests(); len(m) != 1 || m[0].Name != "good" {
		t.Errorf("got manifests %+v", m)
	}
	// Whether there is a device is found out by the first call that needs one.
	x := executorOf(t, h, "deviceless")
	for call, do := range executorCalls {
		if err := do(t.Context(), x); diag.KindOf(err) != diag.Device || err.Error() != "there is no device; put one in" {
			t.Errorf("%s: got %v", call, err)
		}
	}

	none := newHost(t, host.Options{Builtins: []host.Builtin{builtin("good")}})
	for _, name := range []string{"", "cuda"} {
		_, err := none.Executor(t.Context(), name)
		if diag.KindOf(err) != diag.Device || !strings.HasPrefix(err.Error(), "no plugin that runs kernels is installed; install one") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	_ = none.Close()
	if _, err := none.Executor(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed host: got %v", err)
	}
}

// The process ends with its last executor, and leaves nothing behind.
func TestExecutorClose(t *testing.T) {
	const mode = executorPrefix + "hang.Check"
	h := executorsOf(t, host.Options{}, "hang.Check")
	one, other := executorOf(t, h, "hang.Check"), executorOf(t, h, "hang.Check")
	k, err := one.Compile(t.Context(), 0, problem, goodConfig)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(alive(t, mode)) != 1 {
		t.Error("the process ended with the first of two executors")
	}
	if _, err := k.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the executor is closed") {
		t.Errorf("got %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	works(t, other)
	hanging := make(chan error, 1)
	go func() { hanging <- executorCalls["Check"](t.Context(), other) }()
	time.Sleep(200 * time.Millisecond) // for the call to be there; otherwise the test sees less
	begin := time.Now()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
	if err := <-hanging; err == nil || !strings.Contains(err.Error(), "the executor is closed") {
		t.Errorf("got %v", err)
	}
	noneAlive(t, mode)
	works(t, executorOf(t, h, "hang.Check"))
	_ = h.Close()
	noneAlive(t, mode)
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 1 { // the file of started
		t.Errorf("files left behind: %v", left)
	}
}

// Several goroutines over a crash: nobody gets a wrong answer, and each can go on.
func TestConcurrentExecutorCallsOverCrashes(t *testing.T) {
	h := executorsOf(t, host.Options{}, "panic.Check", "lost.Check")
	for _, name := range []string{"panic.Check", "lost.Check"} {
		x := executorOf(t, h, name)
		local, err := fake.ExecutorProvider{}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				done := 0
				for range 200 {
					p := gemm.New(1+g, 1+done, 64)
					want, _ := local.Compile(t.Context(), 0, p, goodConfig)
					wantN, _ := want.Check(t.Context())
					k, err := x.Compile(t.Context(), 0, p, goodConfig)
					if err == nil {
						var n exec.Numerics
						if n, err = k.Check(t.Context()); err == nil && n != wantN {
							t.Errorf("got %+v, want %+v", n, wantN)
						}
						_ = k.Close()
					}
					if err == nil {
						if done++; done == 20 {
							return
						}
					} else if diag.KindOf(err) != diag.Plugin {
						t.Errorf("got %v", err)
					}
				}
				t.Error("it never got through")
			})
		}
		for range 3 {
			time.Sleep(50 * time.Millisecond)
			if err := executorCalls["Check"](t.Context(), x); diag.KindOf(err) != diag.Plugin {
				t.Errorf("got %v", err)
			}
		}
		wg.Wait()
		works(t, x)
	}
}

// A live device reaches the plugin, makes an architecture of its own, and is kept from a plugin that would overlook it.
func TestLiveDevice(t *testing.T) {
	h := hostOf(t, host.Options{}, "good")
	opened := func(r arch.OpenRequest) string {
		t.Helper()
		return open(t, h, r).Describe().DeviceName
	}
	live := func(clock float64) *arch.LiveDevice {
		return &arch.LiveDevice{Name: "GPU", Attributes: map[string]float64{"clock": clock, "num_sms": 7}}
	}
	for _, test := range []struct {
		r    arch.OpenRequest
		want string
	}{
		{arch.OpenRequest{Arch: "good", Live: live(1e9)}, "GPU live at 1 GHz of "},
		{arch.OpenRequest{Arch: "GOOD", Live: live(2e9)}, "GPU live at 2 GHz of "},
		{arch.OpenRequest{Arch: "good", Device: "large", Live: live(2e9)}, "GPU live at 2 GHz of large"},
		{arch.OpenRequest{Arch: "good-l", Live: live(2e9)}, "GPU live at 2 GHz of large"},
		{arch.OpenRequest{Arch: "good"}, "Fake small"},
	} {
		if got := opened(test.r); got != test.want {
			t.Errorf("%+v opens %q, want %q", test.r, got, test.want)
		}
	}

	dir := t.TempDir()
	t.Setenv("TMPDIR", shortDir(t))
	lock := filepath.Join(dir, "lock")
	trust(t, lock, install(t, dir, "old"))
	h = newHost(t, host.Options{SearchPath: []string{dir}, LockFile: lock})
	open(t, h, arch.OpenRequest{Arch: "old"})
	_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "old", Live: live(1e9)})
	wantFault(t, err, "old", host.FaultVersion, "it speaks API 1.0.0, which knows neither live devices")
}

// BenchmarkExecutor is what the boundary adds to each configuration of a sweep: compile, check, measure 17 runs (two
// calls) and release, of kernels that take no time.
func BenchmarkExecutor(b *testing.B) {
	h := executorsOf(b, host.Options{}, "fine")
	x := executorOf(b, h, "fine")
	var times []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		k, err := x.Compile(b.Context(), 0, gemm.New(64+i%4096, 4096, 4096), goodConfig)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := k.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
		if s, err := samples(b.Context(), k, 17); err != nil || len(s) != 17 {
			b.Fatal(len(s), err)
		}
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	reportMedian(b, times)
}
