package measure_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var conditions = dataset.Conditions{Arch: "toy", Device: "one", Kernel: "k", Input: exec.InputNormal,
	Executor: "fake", ExecutorVersion: "1"}

// log is a dataset as bytes, which survive whatever ends a sweep.
type log []byte

func (l *log) keep(ms ...dataset.Measurement) error {
	for i := range ms {
		var err error
		if *l, err = dataset.AppendLine(*l, conditions, &ms[i]); err != nil {
			return err
		}
	}
	return nil
}

// read returns what the log holds, dropping a truncated last line from it.
func (l *log) read(t testing.TB) *dataset.Dataset {
	t.Helper()
	d := dataset.New("here", conditions)
	d.Source = "a test"
	description := must.Get(dataset.AppendDescription(nil, d))(t)
	data, truncated := must.Two(dataset.Recover("here", fstest.MapFS{dataset.DescriptionFile: {Data: description},
		dataset.Log: {Data: *l}}))(t)
	if truncated != nil {
		*l = (*l)[:truncated.Keep]
	}
	return data
}

// wide is a model with more candidates than are compiled ahead. It predicts a cycle per element of block_m, at 1 Hz.
type wide struct{ arch.Architecture }

func (wide) Describe() *arch.Description { return &arch.Description{Clock: 1} }

func (wide) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, configs []gemm.Config) error {
	for i, c := range configs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(c.BlockM)}
	}
	return nil
}

func (wide) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: 3}, nil
}

func (wide) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	list := &arch.Candidates{}
	for m := 16; m <= 16*14; m += 16 {
		list.Configs = append(list.Configs, gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2,
			SplitK: 1, Kernel: "k"})
	}
	return list, nil
}

// fates fail one configuration in every way, far enough apart.
func fates(p gemm.Problem, c gemm.Config) exectest.Fate {
	if p.M == 999 {
		return exectest.OutOfMemory
	}
	return map[int]exectest.Fate{
		32: exectest.NotBuilt, 48: exectest.Wrong, 64: exectest.Crash, 96: exectest.Hang, 112: exectest.OutOfMemory,
		128: exectest.ClockMoves, 160: exectest.CrashCompile,
	}[c.BlockM]
}

func device() *exectest.Executor {
	return &exectest.Executor{
		Noise: 0.01, Seed: 1, Fate: fates,
		LibraryFate: func(p gemm.Problem, _ string) exectest.Fate { return fates(p, gemm.Config{}) },
		Device: exec.Device{Name: "One", Arch: "toy", Kernels: []string{"k"},
			Libraries: []string{"blas", "blas-best"}},
	}
}

var sizes = []gemm.Problem{gemm.New(64, 64, 64), gemm.New(999, 64, 64), gemm.New(2048, 512, 128)}

// run sweeps all sizes over what the log holds, and returns what ended it.
func run(ctx context.Context, t testing.TB, x *exectest.Executor, l *log) error {
	s := &measure.Sweep{Arch: wide{}, Executor: x, Libraries: x.Device.Libraries, Ahead: 3, Data: l.read(t),
		Keep: l.keep, Host: "a test"}
	for _, p := range sizes {
		if err := s.Run(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what a log says of each configuration, times aside.
func outcome(t testing.TB, l *log) map[string]int {
	t.Helper()
	data := l.read(t)
	got := map[string]int{}
	for _, p := range sizes {
		for _, c := range candidates(t, p) {
			if m, ok := data.Find(p, c); ok {
				got[fmt.Sprintf("%s %s %s", p, c, m.Status)]++
			}
		}
		for _, library := range []string{"blas", "blas-best"} {
			if m, ok := data.FindLibrary(p, library); ok {
				got[fmt.Sprintf("%s %s %s", p, library, m.Status)]++
			}
		}
		for _, block := range data.Finals(p) {
			var names []string
			for _, m := range block {
				names = append(names, fmt.Sprintf("%s %v %s", m.Label(), m.Null, m.Status))
			}
			slices.Sort(names)
			got[fmt.Sprintf("%s finals %s", p, strings.Join(names, ", "))]++
		}
	}
	return got
}

func candidates(t testing.TB, p gemm.Problem) []gemm.Config {
	t.Helper()
	list := must.Get(wide{}.Candidates(t.Context(), p, arch.Space{}))(t)
	for i := range list.Configs {
		list.Configs[i].GroupM = 3
	}
	return list.Configs
}

func TestSweep(t *testing.T) {
	x, l := device(), new(log)
	must.Do(t, run(t.Context(), t, x, l))
	now, most := x.Held()
	must.That(t, now == 0 && most <= 7, "%d kernels are open, %d were", now, most)
	// Each of the three that crash or hang does so beside others, then a few times alone, and is left.
	n := x.Crashes()
	must.That(t, n >= 2*(3+3+2) && n <= 2*(6+6+4), "%d crashes", n)
	data := l.read(t)
	for _, p := range []gemm.Problem{sizes[0], sizes[2]} {
		for m, want := range map[int]dataset.Status{
			16: dataset.OK, 32: dataset.NotBuilt, 48: dataset.Wrong, 64: dataset.Failed, 80: dataset.OK,
			96: dataset.Timeout, 112: dataset.Failed, 128: dataset.OK, 160: dataset.Failed, 224: dataset.OK,
		} {
			got, ok := data.Find(p, candidates(t, p)[m/16-1])
			must.That(t, ok && got.Status == want && (want == dataset.OK) == (got.Median > 0) &&
				(want == dataset.OK) != (got.Detail != ""), "%d of %s: %v %+v", m, p, ok, got)
			unread := m == 32 || m == 64 || m == 96 || m == 112 || m == 160
			must.That(t, got.ClockMoved() == (m == 128) && (got.Environment == nil) == unread, "%d of %s: %+v", m, p, got)
		}
		finals := data.Finals(p)
		must.That(t, len(finals) == 1 && len(finals[0]) >= 6 && len(finals[0][0].Samples) >= 10,
			"finals of %s: %+v", p, finals)
		row, err := score.Compare(t.Context(), wide{}, data, p)
		must.That(t, err == nil && row.Phase == dataset.Final && row.Wrong == 1 && row.Failed == 4 && row.NotBuilt == 1 &&
			row.Missing == 0 && row.Measured == 8 && row.Noise >= 0 &&
			row.Efficiency() <= 1 && len(row.Libraries) == 2 && row.Libraries[0] > 0 && len(row.Excluded) == 5,
			"%+v, %v", row, err)
	}
	// A problem for which nothing runs has no finals and no answer.
	must.Refuse(t, must.Err(score.Compare(t.Context(), wide{}, data, sizes[1])), "(14 failed)")
	// Nothing is left to do.
	before, again := len(*l), device()
	again.Before = func(int) error { return errors.New("called") }
	if err := run(t.Context(), t, again, l); err != nil || len(*l) != before {
		t.Errorf("a second run: %v, %d more bytes", err, len(*l)-before)
	}
}

// Whatever ends a sweep, at any call, and wherever that cut the last line, the next one ends with the same records.
func TestResume(t *testing.T) {
	whole := new(log)
	count := 0
	x := device()
	x.Before = func(n int) error { count = max(count, n); return nil }
	must.Do(t, run(t.Context(), t, x, whole))
	want := outcome(t, whole)
	for stop := 1; stop < count; stop += 1 + stop/10 {
		l := new(log)
		ctx, cancel := context.WithCancel(t.Context())
		x := device()
		x.Before = func(n int) error {
			switch {
			case n < stop:
				return nil
			case stop%2 == 0:
				cancel()
				return ctx.Err()
			default:
				return &diag.Error{Kind: diag.Device, What: "the device is lost"}
			}
		}
		err := run(ctx, t, x, l)
		cancel()
		if err == nil { // how many calls there are is a matter of luck, since crashes meet what is being compiled
			break
		}
		must.Need(t, errors.Is(err, context.Canceled) || diag.KindOf(err) == diag.Device, "stopped at call %d: %v", stop, err)
		now, _ := x.Held()
		must.That(t, now == 0, "stopped at call %d: %d kernels are open", stop, now)
		if cut := (stop * 7) % 900; cut < len(*l) {
			*l = (*l)[:len(*l)-cut]
		}
		must.Do(t, run(t.Context(), t, device(), l))
		// Near-ties of the noisy sweep may send others into the finals.
		diff := cmp.Diff(comparable(want), comparable(outcome(t, l)))
		must.Need(t, diff == "", "stopped at call %d of %d: %s", stop, count, diff)
	}
}

// comparable leaves out who the finalists are beside the pick, which is a matter of times.
func comparable(outcome map[string]int) map[string]int {
	out := maps.Clone(outcome)
	for k := range outcome {
		if p, _, ok := strings.Cut(k, " finals "); ok {
			delete(out, k)
			out[p+" finals"]++
		}
	}
	return out
}

// An executor that keeps dying is not blamed on every configuration.
func TestBrokenExecutor(t *testing.T) {
	x, l := device(), new(log)
	x.Fate = func(_ gemm.Problem, c gemm.Config) exectest.Fate {
		if c.BlockM >= 64 {
			return exectest.Crash
		}
		return exectest.Fine
	}
	err := run(t.Context(), t, x, l)
	must.Need(t, diag.KindOf(err) == diag.Plugin, "%v", err)
	data := l.read(t)
	must.Equal(t, data.Len(), 6)
	for i, c := range candidates(t, sizes[0])[:6] {
		m, ok := data.Find(sizes[0], c)
		must.That(t, ok && (m.Status == dataset.OK) == (i < 3), "%+v", m)
	}
}

// What an executor lost for another's sake is compiled again, and one that loses everything ends the sweep unblamed.
func TestLostKernels(t *testing.T) {
	lost := &diag.Error{Kind: diag.Plugin, What: "lost", Err: exec.ErrKernelLost}
	x, l := device(), new(log)
	x.Fate, x.LibraryFate = nil, nil
	x.Before = func(n int) error {
		if n%30 == 0 {
			return lost
		}
		return nil
	}
	must.Do(t, run(t.Context(), t, x, l))
	data := l.read(t)
	for _, p := range sizes {
		row, err := score.Compare(t.Context(), wide{}, data, p)
		must.That(t, err == nil && row.Measured == 14 && row.Failed == 0 && row.Phase == dataset.Final && row.Noise >= 0,
			"%+v, %v", row, err)
	}
	x, l = device(), new(log)
	x.Fate, x.LibraryFate = nil, nil
	x.Before = func(n int) error {
		if n > 20 {
			return lost
		}
		return nil
	}
	if err := run(t.Context(), t, x, l); !errors.Is(err, exec.ErrKernelLost) {
		t.Fatal(err)
	}
	data = l.read(t)
	for _, c := range candidates(t, sizes[0]) {
		m, ok := data.Find(sizes[0], c)
		must.That(t, !ok || m.Status == dataset.OK, "%+v", m)
	}
}
