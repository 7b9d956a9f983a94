package measure_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// faulty is an executor that fails in chosen calls. fail gets the call and the configuration.
type faulty struct {
	*exectest.Executor
	fail func(op string, c gemm.Config) error
}

func (x faulty) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if err := x.fail("Compile", c); err != nil {
		return nil, err
	}
	k, err := x.Executor.Compile(ctx, device, p, c)
	if err != nil {
		return nil, err
	}
	return faultyKernel{k, x, c}, nil
}

func (x faulty) Environment(ctx context.Context, device int) (exec.Environment, error) {
	if err := x.fail("Environment", gemm.Config{}); err != nil {
		return exec.Environment{}, err
	}
	return x.Executor.Environment(ctx, device)
}

type faultyKernel struct {
	exec.Kernel
	x faulty
	c gemm.Config
}

func (k faultyKernel) Check(ctx context.Context) (exec.Numerics, error) {
	if err := k.x.fail("Check", k.c); err != nil {
		return exec.Numerics{}, err
	}
	return k.Kernel.Check(ctx)
}

func (k faultyKernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if err := k.x.fail("Measure", k.c); err != nil {
		return err
	}
	return k.Kernel.Measure(ctx, o, sample)
}

// fault is an error of a plugin as the host makes it.
func fault(f host.Fault, cause error) error {
	return &diag.Error{Kind: diag.Plugin, Where: "plugin x", What: string(f),
		Err: &host.PluginError{Name: "x", Op: "Check", Fault: f, Err: cause}}
}

// sweepOne sweeps one problem over what the log holds and returns what ended it, and the pauses before retries.
func sweepOne(ctx context.Context, t *testing.T, x exec.Executor, l *log, p gemm.Problem) (
	waited []time.Duration, err error,
) {
	t.Helper()
	s := &measure.Sweep{Arch: wide{}, Executor: x, Ahead: 3, Data: l.read(t), Keep: l.keep, Host: "a test",
		Pause: func(ctx context.Context, d time.Duration) error {
			waited = append(waited, d)
			return ctx.Err()
		}}
	err = s.Run(ctx, p)
	return waited, err
}

// statuses counts the measurements of a sweep by status.
func statuses(t *testing.T, l *log, p gemm.Problem) map[dataset.Status]int {
	t.Helper()
	count := map[dataset.Status]int{}
	data := l.read(t)
	for _, m := range data.Sweep(p) {
		count[m.Status]++
	}
	for _, block := range data.Finals(p) {
		for _, m := range block {
			if m.Status != dataset.OK {
				count[m.Status]++
			}
		}
	}
	return count
}

// stops stands for a sweep that ends with an error and leaves the configuration unmeasured.
const stops = dataset.Status("the sweep stops")

// Of all that can go wrong with an executor, only its report about a kernel, and its death or hang each time that a
// kernel runs alone, fail a configuration. All else leaves the configuration unmeasured, and the next run measures it.
func TestWhoIsBlamed(t *testing.T) {
	for name, c := range map[string]blameCase{
		"start":       {fault(host.FaultStart, nil), stops, true},
		"untrusted":   {fault(host.FaultUntrusted, nil), stops, true},
		"failing":     {fault(host.FaultFailing, nil), stops, true},
		"call":        {fault(host.FaultCall, nil), stops, true},
		"interrupted": {fault(host.FaultInterrupted, exec.ErrKernelLost), stops, true},
		"nonsense":    {fault(host.FaultNonsense, nil), stops, false},
		"died":        {fault(host.FaultDied, nil), dataset.Failed, false},
		"hung":        {fault(host.FaultHung, nil), dataset.Timeout, false},
		"unknown":     {&diag.Error{Kind: diag.Plugin, What: "something else"}, stops, true},
		"internal":    {&diag.Error{What: "a bug"}, stops, false},
		"device":      {&diag.Error{Kind: diag.Device, What: "it is gone"}, stops, false},
		"reported":    {diag.Inputf("too many resources requested for launch"), dataset.Failed, false},
	} {
		for _, op := range []string{"Compile", "Check", "Measure", "Environment"} {
			one := c
			switch {
			case name == "reported" && op == "Compile":
				one.want = dataset.NotBuilt
			case name == "reported" && op == "Environment":
				one.want = dataset.OK // it has no sensors
			case op == "Environment":
				one.want, one.retried = stops, c.retried || c.want != stops
			}
			t.Run(name+"/"+op, func(t *testing.T) { one.test(t, op) })
		}
	}
}

// blameCase is an error, and what becomes of a configuration of which one call always ends with it. retried means that
// the executor is tried again after pauses.
type blameCase struct {
	err     error
	want    dataset.Status
	retried bool
}

// executor returns an executor that fails so many times, for one configuration or from the fifth one on.
func (c *blameCase) executor(op string, times int) exec.Executor {
	var mu sync.Mutex // kernels are compiled in parallel
	seen := 0
	return faulty{&exectest.Executor{Noise: 0.01}, func(at string, config gemm.Config) error {
		if at != op || at != "Environment" && config.BlockM != 80 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; at == "Environment" && seen <= 4 {
			return nil
		}
		if times--; times < 0 {
			return nil
		}
		return c.err
	}}
}

func (c *blameCase) test(t *testing.T, op string) {
	p, l := gemm.New(64, 64, 64), new(log)
	waited, err := sweepOne(t.Context(), t, c.executor(op, 1e6), l, p)
	got := statuses(t, l, p)
	switch {
	case c.want == stops:
		must.That(t, errors.Is(err, c.err) && got[dataset.OK] == 4 && len(got) == 1 && c.retried == (len(waited) > 1),
			"it ended with %v after %v, and recorded %v", err, waited, got)
	case err != nil || len(waited) > 0 || got[dataset.OK] < 13 || got[dataset.OK] < 14 && got[c.want] != 1:
		t.Errorf("it ended with %v after %v, and recorded %v, want one %s", err, waited, got, c.want)
	}
	for i := 1; i < len(waited); i++ {
		must.That(t, waited[i] > waited[i-1], "the pauses %v do not grow", waited)
	}
	for _, m := range l.read(t).Sweep(p) {
		must.That(t, (m.Status == dataset.Failed || m.Status == dataset.Timeout) == (m.Fault == dataset.FaultKernel),
			"%s has the fault %q", m.Status, m.Fault)
	}
	// The next run, with an executor that works, measures what is missing, and repeats nothing.
	must.Get(sweepOne(t.Context(), t, &exectest.Executor{Noise: 0.01}, l, p))(t)
	then := statuses(t, l, p)
	must.That(t, len(l.read(t).Sweep(p)) == 14 && (c.want != stops || then[dataset.OK] == 14), "then %v is recorded", then)
	if !c.retried && c.want == stops || diag.KindOf(c.err) == diag.Input {
		return
	}
	l = new(log) // a failure that passes leaves no trace
	if _, err := sweepOne(t.Context(), t, c.executor(op, 2), l, p); err != nil || statuses(t, l, p)[dataset.OK] != 14 {
		t.Errorf("if it fails twice: %v, %v", err, statuses(t, l, p))
	}
}

// An executor that is killed from outside again and again costs no configuration and no measurement, and the one
// kernel that kills it each time is found in every sweep.
func TestRandomKills(t *testing.T) {
	random := rand.New(rand.NewPCG(20261122, 1))
	p, kills, sweeps, most := gemm.New(64, 64, 64), 0, 0, 0
	for ; kills < 300; sweeps++ {
		l := new(log)
		for attempt := 0; ; attempt++ {
			x := &exectest.Executor{Noise: 0.01, Seed: random.Uint64()}
			x.Fate = func(_ gemm.Problem, c gemm.Config) exectest.Fate {
				if c.BlockM == 64 {
					return exectest.Crash
				}
				return exectest.Fine
			}
			x.Before = func(int) error {
				if random.IntN(100) == 0 { // about one of thirty kernels is hit
					kills++
					return x.Kill()
				}
				return nil
			}
			_, err := sweepOne(t.Context(), t, x, l, p)
			most = max(most, x.Crashes())
			if err == nil {
				break
			}
			must.Need(t, attempt <= 20, "it does not get on: %v", err)
		}
		got := fmt.Sprint(statuses(t, l, p))
		must.Need(t, got == "map[failed:1 ok:13]", "after %d kills in %d sweeps the last has %s", kills, sweeps, got)
		for _, m := range l.read(t).Sweep(p) {
			must.Need(t, m.Status != dataset.Failed || m.Config.BlockM == 64, "%s is failed: %s", m.Config, m.Detail)
		}
	}
	t.Logf("%d kills in %d sweeps; the killer ended the process %d times at most in one of them", kills, sweeps, most)
	must.That(t, most <= 20, "a kernel that kills the executor ended it %d times in one sweep", most)
}

// One death in the finals does not cost the best candidate its place.
func TestDeathInFinals(t *testing.T) {
	x, l, calls := &exectest.Executor{Noise: 0.01}, new(log), 0
	p := gemm.New(64, 64, 64)
	x.Before = func(n int) error { calls = n; return nil }
	must.Get(sweepOne(t.Context(), t, x, l, p))(t)
	for _, early := range []int{1, 20, 40} {
		l, x = new(log), &exectest.Executor{Noise: 0.01}
		x.Before = func(n int) error {
			if n == calls-early {
				return x.Kill()
			}
			return nil
		}
		must.Get(sweepOne(t.Context(), t, x, l, p))(t)
		blocks := l.read(t).Finals(p)
		if got := statuses(t, l, p); len(blocks) != 1 || got[dataset.OK] != 14 || len(got) != 1 {
			t.Errorf("killed %d calls before the end: %d blocks, %v", early, len(blocks), got)
		}
	}
}

// A sweep that waits for its executor ends with its context.
func TestCancelledWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := new(log)
	s := &measure.Sweep{Arch: wide{}, Ahead: 3, Data: l.read(t), Keep: l.keep,
		Executor: faulty{&exectest.Executor{}, func(string, gemm.Config) error { return fault(host.FaultStart, nil) }},
		Pause: func(ctx context.Context, _ time.Duration) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}}
	if err := s.Run(ctx, gemm.New(64, 64, 64)); !errors.Is(err, context.Canceled) || len(*l) != 0 {
		t.Errorf("%v, %s", err, *l)
	}
}
