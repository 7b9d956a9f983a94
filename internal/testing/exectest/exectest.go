// Package exectest is an executor for tests. Its fake device reports fake kernel times with reproducible noise, and it
// fails in every way in which a real device can.
package exectest

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Fate is the outcome of a configuration or a library on a problem.
type Fate int

// The fates.
const (
	Fine         Fate = iota
	NotBuilt          // the compiler rejects it
	OutOfMemory       // it compiles, but does not run
	Wrong             // its results are wrong
	Crash             // running it ends the process
	CrashCompile      // compiling it ends the process
	Hang              // it does not end in time
	ClockMoves        // the clock drops while it runs
)

// Executor is a fake executor. Set its fields before the first call.
type Executor struct {
	Device exec.Device
	// Others is the number of further devices like it.
	Others int
	// Noise is the relative standard deviation of the time of a run. Seed is the seed of the noise.
	Noise float64
	Seed  uint64
	// Time, if set, replaces the fake time of a configuration, unless it is 0, and LibraryTime the time of a library.
	Time        func(gemm.Problem, gemm.Config) unit.Seconds
	LibraryTime func(gemm.Problem) unit.Seconds
	// Fate and LibraryFate, if set, choose the outcome. Otherwise every outcome is Fine.
	Fate        func(gemm.Problem, gemm.Config) Fate
	LibraryFate func(gemm.Problem, string) Fate
	// Takes, if set, is told how long each run takes, and each check of a result with its compilation.
	Takes func(unit.Seconds)
	// Before, if set, runs at the start of every call, one at a time, with the number of the call from 1. Its error
	// ends the call.
	Before func(call int) error

	mu    sync.Mutex
	calls int
	// process counts processes. A crash ends a process and its kernels.
	process             int
	held, most, crashes int
	// compiled counts the kernels, so that each has different noise.
	compiled uint64
}

var _ exec.Executor = (*Executor)(nil)

// Held returns the number of open kernels, now and at most so far.
func (x *Executor) Held() (now, most int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held, x.most
}

// Crashes returns how often a kernel ended the process or hung.
func (x *Executor) Crashes() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.crashes
}

func (x *Executor) begin(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls++
	if x.Before != nil {
		if err := x.Before(x.calls); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Devices implements exec.Executor.
func (x *Executor) Devices(ctx context.Context) ([]exec.Device, error) {
	return slices.Repeat([]exec.Device{x.Device}, 1+x.Others), x.begin(ctx)
}

// Environment implements exec.Executor.
func (x *Executor) Environment(ctx context.Context, device int) (exec.Environment, error) {
	if device > x.Others {
		return exec.Environment{}, noDevice(device)
	}
	env := exec.Environment{Driver: "1.2.3", Runtime: "4.5", Clock: 1.5e9, PowerWatts: 250, TemperatureC: 40}
	return env, x.begin(ctx)
}

func noDevice(device int) error {
	return diag.Inputf("there is no device %d", device).Do("use device 0")
}

// Close implements exec.Executor.
func (x *Executor) Close() error { return nil }

// crash ends the process.
func (x *Executor) crash(hangs bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.process++
	x.crashes++
	if hangs {
		return failure("the executor hung", exec.ErrHung)
	}
	return failure("the executor died", exec.ErrDied)
}

// Kill ends the process from outside and returns the error of the call in progress. Only Before may call it.
func (x *Executor) Kill() error {
	x.process++
	return failure("the executor died", exec.ErrDied)
}

func failure(what string, cause error) error {
	return &diag.Error{Kind: diag.Plugin, Where: "executor", What: what, Err: cause}
}

// lost is the error of a kernel whose process has ended.
func lost() error { return failure(exec.ErrKernelLost.Error(), exec.ErrKernelLost) }

// Compile implements exec.Executor.
func (x *Executor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if device > x.Others {
		return nil, noDevice(device)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if x.Device.Kernels != nil && !slices.Contains(x.Device.Kernels, c.Kernel) {
		return nil, diag.Inputf("there is no kernel family %q", c.Kernel).
			Do("use %s", strings.Join(x.Device.Kernels, " or "))
	}
	k, err := x.build(ctx, p, c, c.String()+c.Kernel, func() Fate {
		if x.Fate == nil {
			return Fine
		}
		return x.Fate(p, c)
	})
	if err != nil {
		return nil, err
	}
	if x.Time != nil {
		k.time = cmp.Or(x.Time(p, c), k.time)
	}
	return k, nil
}

// Library implements exec.Executor.
func (x *Executor) Library(ctx context.Context, device int, p gemm.Problem, library string) (exec.Kernel, error) {
	if device > x.Others {
		return nil, noDevice(device)
	}
	if !slices.Contains(x.Device.Libraries, library) {
		return nil, diag.Inputf("there is no library %q", library).
			Do("use %s", strings.Join(x.Device.Libraries, " or "))
	}
	k, err := x.build(ctx, p, gemm.Config{}, library+library, func() Fate {
		if x.LibraryFate == nil {
			return Fine
		}
		return x.LibraryFate(p, library)
	})
	if err != nil {
		return nil, err
	}
	if x.LibraryTime != nil {
		k.time = x.LibraryTime(p)
	}
	return k, nil
}

// build makes a kernel with a fake time that follows from the problem and a name. fateOf runs after Before.
func (x *Executor) build(ctx context.Context, p gemm.Problem, c gemm.Config, name string, fateOf func() Fate) (
	*kernel, error,
) {
	x.mu.Lock()
	process := x.process
	x.mu.Unlock()
	if err := x.begin(ctx); err != nil {
		return nil, err
	}
	fate := fateOf()
	if fate == NotBuilt {
		return nil, diag.Inputf("ptxas: too many registers").Do("use another configuration")
	}
	if fate == CrashCompile {
		return nil, x.crash(false)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if process != x.process {
		return nil, lost()
	}
	x.held++
	x.most = max(x.most, x.held)
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String() + p.Groups.String() + name))
	x.compiled++
	noise := rand.New(rand.NewPCG(x.Seed+x.compiled, h.Sum64()))
	k := &kernel{x: x, p: p, c: c, fate: fate, process: process, noise: noise}
	k.time = unit.Seconds(2e-6 + float64(p.Flops()/100e12*(1+float64(4*float64(h.Sum64()%1000)/1000))))
	return k, nil
}

type kernel struct {
	x       *Executor
	p       gemm.Problem
	c       gemm.Config
	fate    Fate
	process int
	time    unit.Seconds
	noise   *rand.Rand
	closed  bool
}

func (k *kernel) begin(ctx context.Context) error {
	if err := k.x.begin(ctx); err != nil {
		return err
	}
	k.x.mu.Lock()
	defer k.x.mu.Unlock()
	if k.process != k.x.process {
		return lost()
	}
	return nil
}

func (k *kernel) Resources() exec.Resources {
	return exec.Resources{
		Registers:    32 + k.c.BlockM/2,
		SpillBytes:   unit.Bytes(k.c.BlockM / 256 * 8),
		SharedMemory: unit.Bytes(k.c.BlockM * 64),
		CTAsPerSM:    2,
	}
}

func (k *kernel) Check(ctx context.Context) (exec.Numerics, error) {
	if k.x.Takes != nil {
		k.x.Takes(checking)
	}
	n := exec.Numerics{
		MaxError: 1e-4, Tolerance: 1e-3,
		Checked: int64(k.p.M) * int64(k.p.N), Reference: "a made-up reference",
	}
	if err := k.begin(ctx); err != nil {
		return n, err
	}
	if k.fate == OutOfMemory {
		return n, diag.Inputf("out of memory")
	}
	if k.fate == Wrong {
		n.MaxError, n.Wrong = 0.5, 7
	}
	return n, nil
}

func (k *kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if err := k.begin(ctx); err != nil {
		return err
	}
	if o.Input != "" && o.Input != exec.InputNormal {
		return diag.Inputf("there is no input distribution %q", o.Input).Do("use %s", exec.InputNormal)
	}
	if k.fate == Crash || k.fate == Hang {
		return k.x.crash(k.fate == Hang)
	}
	for i := 0; ctx.Err() == nil; i++ {
		s := exec.Sample{Time: k.time * unit.Seconds(1+k.x.Noise*k.noise.NormFloat64()), Clock: 1.5e9}
		if k.fate == ClockMoves && i > 0 {
			s.Clock = 1.2e9
		}
		if k.x.Takes != nil {
			k.x.Takes(s.Time)
		}
		if !sample(s) {
			return nil
		}
	}
	return ctx.Err()
}

// checking is about how long compiling a kernel and checking its result take on a GPU.
const checking = unit.Seconds(22e-3)

func (k *kernel) Close() error {
	k.x.mu.Lock()
	defer k.x.mu.Unlock()
	if !k.closed {
		k.closed = true
		k.x.held--
	}
	return nil
}
