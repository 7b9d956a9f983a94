package host_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

var update = flag.Bool("update", false, "write the lists of docs/fault-matrix.md")

// matrixFile has the outcome of every fault in every call.
const matrixFile = "../../docs/fault-matrix.md"

// column is a call in which a forger can make a fault.
type column struct {
	call     string
	executor bool
	// fresh: the call is part of a start.
	fresh bool
	// once: the call is never repeated.
	once bool
	do   func(context.Context, *bench) (any, error)
}

var columns = []column{
	{call: "Info", fresh: true, do: func(ctx context.Context, b *bench) (any, error) { return nil, b.open(ctx) }},
	{call: "Manifest", do: func(ctx context.Context, b *bench) (any, error) {
		return b.host.Client(forger).Manifest(ctx)
	}},
	{call: "Open", do: func(ctx context.Context, b *bench) (any, error) {
		a, err := b.host.Open(ctx, arch.OpenRequest{Arch: forger, Device: "large"})
		if err != nil {
			return nil, err
		}
		return []any{*a.Describe(), a.Hierarchy().Levels()}, nil
	}},
	{call: "Close", once: true, do: func(ctx context.Context, b *bench) (any, error) {
		// Close needs a process.
		if _, err := b.architecture.Mapping(ctx, problem, configs[0]); err != nil {
			return nil, err
		}
		return nil, b.architecture.(interface{ Close(context.Context) error }).Close(ctx)
	}},
	{call: "Candidates", do: func(ctx context.Context, b *bench) (any, error) {
		return b.architecture.Candidates(ctx, problem, arch.Space{})
	}},
	{call: "Estimate", do: func(ctx context.Context, b *bench) (any, error) {
		est := make([]arch.Estimate, len(configs))
		return est, b.architecture.Estimate(ctx, est, problem, configs)
	}},
	{call: "Terms", do: func(ctx context.Context, b *bench) (any, error) {
		terms := make([]float64, len(configs)*len(b.architecture.Describe().Terms))
		err := b.architecture.Terms(ctx, terms, problem, configs)
		return floatBits(terms), err
	}},
	{call: "Mapping", do: func(ctx context.Context, b *bench) (any, error) {
		return b.architecture.Mapping(ctx, problem, configs[0])
	}},
	{call: "Rank", do: func(ctx context.Context, b *bench) (any, error) {
		// A new architecture, because the client does not ask again after the plugin had no Rank.
		a, err := b.host.Open(ctx, arch.OpenRequest{Arch: forger})
		if err != nil {
			return nil, err
		}
		return selector.Rank(ctx, a, selector.Request{Problems: []gemm.Problem{problem}, Top: 3})
	}},
	{call: "EstimateWith", do: func(ctx context.Context, b *bench) (any, error) {
		return b.architecture.(fit.Tunable).EstimateWith(ctx, make([]map[string]float64, 2),
			[]fit.Kernels{{Problem: problem, Configs: configs}})
	}},

	{executor: true, call: "Manifest", do: func(ctx context.Context, b *bench) (any, error) {
		return b.device.(interface {
			Manifest(context.Context) (exec.Manifest, error)
		}).Manifest(ctx)
	}},
	{executor: true, call: "Devices", do: func(ctx context.Context, b *bench) (any, error) {
		return b.device.Devices(ctx)
	}},
	{executor: true, call: "Environment", do: func(ctx context.Context, b *bench) (any, error) {
		return b.device.Environment(ctx, 0)
	}},
	{executor: true, call: "Compile", once: true, do: func(ctx context.Context, b *bench) (any, error) {
		k, err := b.device.Compile(ctx, 0, problem, goodConfig)
		if err != nil {
			return nil, err
		}
		return k.Resources(), nil
	}},
	{executor: true, call: "Check", once: true, do: withKernel(func(ctx context.Context, k exec.Kernel) (any, error) {
		return k.Check(ctx)
	})},
	{executor: true, call: "Measure", once: true, do: withKernel(func(ctx context.Context, k exec.Kernel) (any, error) {
		return samples(ctx, k, 5)
	})},
	{executor: true, call: "Release", once: true, do: withKernel(func(_ context.Context, k exec.Kernel) (any, error) {
		return nil, k.Close()
	})},
}

func withKernel(do func(context.Context, exec.Kernel) (any, error)) func(context.Context, *bench) (any, error) {
	return func(ctx context.Context, b *bench) (any, error) {
		k, err := b.device.Compile(ctx, 0, problem, goodConfig)
		if err != nil {
			return nil, err
		}
		return do(ctx, k)
	}
}

// TestFaultsInCalls makes every fault in every call. It checks the answer, the process, and whether the next call is
// right. Each call gets a third of the faults; ORIGAMI_TEST_ALL=1 is all, and compares the page of outcomes.
func TestFaultsInCalls(t *testing.T) {
	leavesNothing(t)
	outcomes := map[*column][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range columns {
		c := &columns[i]
		wg.Go(func() {
			t.Run(c.name(), func(t *testing.T) {
				o := c.outcomes(t)
				mu.Lock()
				defer mu.Unlock()
				outcomes[c] = o
			})
		})
	}
	wg.Wait()
	for i := range columns {
		if o := outcomes[&columns[i]]; len(o) == 0 || slices.Contains(o, "") {
			return // the test failed, or only a part of it runs
		}
	}
	for _, executor := range []bool{false, true} {
		var shown []*column
		var names []string
		for i := range columns {
			if c := &columns[i]; c.executor == executor {
				shown, names = append(shown, c), append(names, c.call)
			}
		}
		var rows []string
		for _, f := range callForgeries {
			rows = append(rows, f.name)
		}
		heading := "Calls of an architecture"
		if executor {
			heading = "Calls of an executor"
		}
		verifyList(t, heading, names, rows, func(row, column int) string { return outcomes[shown[column]][row] })
	}
}

func (c *column) name() string {
	if c.executor {
		return "Executor" + c.call
	}
	return c.call
}

func (c *column) leavesOut(fault int) bool {
	return (fault+len(c.name()))%3 != 0 && !*update && os.Getenv("ORIGAMI_TEST_ALL") != "1"
}

// plugin is the forger that has the call. Only an external plugin can be an executor.
func (c *column) plugin() string {
	if c.executor {
		return forgerExecutor
	}
	return forger
}

func (c *column) outcomes(t *testing.T) []string {
	outcomes := make([]string, len(callForgeries))
	if c.fresh { // each has a separate host, so several run at once
		var wg sync.WaitGroup
		few := make(chan struct{}, 4)
		for i, f := range callForgeries {
			wg.Go(func() {
				few <- struct{}{}
				defer func() { <-few }()
				if c.leavesOut(i) {
					return
				}
				t.Run(f.name, func(t *testing.T) { outcomes[i] = c.freshOutcome(t, f) })
			})
		}
		wg.Wait()
		return outcomes
	}
	var want any
	var benches [2]*bench
	for i, f := range callForgeries {
		if c.leavesOut(i) {
			continue
		}
		which, o := 0, host.Options{}
		if f.hangs {
			which, o = 1, host.Options{CallTimeout: patience, RunTimeout: patience}
		}
		b := benches[which]
		if b == nil {
			b = newBench(t, c.plugin(), o)
			benches[which] = b
			must.Do(t, b.open(t.Context()))
			var err error
			if want, err = c.do(t.Context(), b); err != nil { // another test checks this answer
				t.Fatal(err)
			}
		}
		t.Run(f.name, func(t *testing.T) { outcomes[i] = c.outcome(t, b, f, want) })
	}
	for _, b := range benches {
		if b != nil {
			b.close(t)
		}
	}
	return outcomes
}

// freshOutcome is one cell of a call that is part of a start.
func (c *column) freshOutcome(t *testing.T, f forgery) string {
	var o host.Options
	if f.hangs {
		o.StartTimeout = 2 * patience
	}
	b := newBench(t, c.plugin(), o)
	defer b.close(t)
	return c.outcome(t, b, f, nil)
}

// outcome is one cell.
func (c *column) outcome(t *testing.T, b *bench, f forgery, want any) string {
	must.Do(t, b.arm(c.call, f.name))
	before := b.lines(startsFile)
	begin := time.Now()
	got, err := c.do(t.Context(), b)
	took := time.Since(begin)
	after := b.lines(startsFile)
	if limit := 20 * time.Second; took > limit { // far longer than any cell, far below the host's default of 30 s
		t.Errorf("it took %v", took)
	}
	restarts := len(after) - len(before)
	if c.fresh {
		restarts--
	}
	running := len(after) > 0 && lives(after[len(after)-1])
	_, statErr := os.Stat(b.file(unchangedFile))
	unchanged := statErr == nil
	_ = b.arm("", "")

	// No call is repeated more than once, and some are never repeated.
	must.That(t, restarts <= 1 && (restarts <= 0 || !c.once), "started %d times more", restarts)
	outcome := ""
	var plugin *host.PluginError
	var diagnostic *diag.Error
	switch {
	case err == nil && unchanged:
		outcome = "–"
	case err == nil && reflect.DeepEqual(got, want):
		outcome = "answer"
	case err == nil && (f.forge != nil || f.other):
		outcome = "taken"
	case err == nil:
		t.Errorf("got %+v, want %+v", got, want)
	case errors.As(err, &plugin) && diag.KindOf(err) == diag.Plugin:
		outcome = string(plugin.Fault)
		must.That(t, !strings.Contains(err.Error(), "\n") && strings.HasPrefix(err.Error(), "plugin "+plugin.Name+": "),
			"%q is not a line about the plugin", err)
		must.That(t, c.fresh || strings.Contains(err.Error(), f.says), "%q does not say %q", err, f.says)
	case errors.Is(err, exec.ErrKernelLost):
		outcome = "lost"
	case errors.As(err, &diagnostic) && strings.HasPrefix(f.name, "answers a diagnostic"):
		outcome = "as reported"
	default:
		t.Errorf("got %v", err)
	}
	if restarts == 1 {
		outcome += ", restarted"
	}
	switch {
	case !running && plugin != nil && (plugin.Fault == host.FaultHung || plugin.Fault == host.FaultStart) || !running &&
		outcome == "as reported":
		outcome += ", ended"
	case running && plugin != nil && plugin.Fault == host.FaultHung:
		t.Error("a plugin that hangs was not ended")
	}
	t.Log(outcome, took.Round(time.Millisecond), err)

	// The next call is right.
	if c.fresh && f.hangs { // with the default time limits
		b.close(t)
		b = b.bench(t, c.plugin(), host.Options{})
		defer b.close(t)
	}
	again, err := c.do(t.Context(), b)
	must.That(t, err == nil && reflect.DeepEqual(again, want), "afterwards: got %v", err)
	return outcome
}
