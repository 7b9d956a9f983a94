// Package measure measures kernels on an executor. Sweep is the engine: which candidates to measure, how often, in
// which order, and what to do when one of them crashes. ExpectedRegret and WorthMeasuring say beforehand how many
// candidates are worth measuring, Choose says afterwards which one to use.
package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Sweep measures every candidate of a model on an executor's device, problem by problem. It does not repeat
// measurements that Data has, so a sweep that was stopped continues where it stopped.
type Sweep struct {
	Arch     arch.Architecture
	Executor exec.Executor
	// Device is the executor's number of the device. Libraries are the vendor libraries to measure as well.
	Device    int
	Libraries []string
	Space     arch.Space
	WarmL2    bool
	Input     string
	// RetryFailed measures again what has failed or did not end in time.
	RetryFailed bool
	// Ahead is how many kernels are compiled, and held, ahead of the measured kernel; at least 1.
	Ahead int
	// Host is the software that measures, as measurements record it.
	Host string
	// Data holds the measurements so far. A new measurement is added to it after Keep has stored it durably.
	Data *dataset.Dataset
	Keep func(...dataset.Measurement) error
	// Done, if set, is called after each measurement.
	Done func(dataset.Measurement)
	// Pause waits before the executor is tried again, or until the context ends; nil means not to wait. Retry, if set,
	// is called before each pause with the failure, the pause, and which of how many attempts is next.
	Pause func(context.Context, time.Duration) error
	Retry func(err error, pause time.Duration, attempt, of int)

	health
}

// Run measures the candidates of one problem and then its finals.
//
// An error of kind Input means that the model has no candidates for this problem; other problems can be measured.
// Any other error ends the sweep: kind Device or Plugin if the device or the executor failed, the context's error, or
// Keep's. Measurements made before the error have been kept, and what was being measured is not recorded.
func (s *Sweep) Run(ctx context.Context, p gemm.Problem) error {
	ranked, err := selector.RankOne(ctx, s.Arch, p, selector.Request{Space: s.Space})
	if err != nil {
		return err
	}
	candidates := make([]gemm.Config, len(ranked))
	for i, e := range ranked {
		candidates[i] = e.Config
	}
	wanted := entriesOf(p, candidates)
	for _, name := range s.Libraries {
		wanted = append(wanted, dataset.Measurement{Problem: p, Library: name})
	}
	if err := s.Measure(ctx, wanted); err != nil {
		return err
	}
	return s.finals(ctx, p, candidates)
}

// Measure measures some configurations and libraries, in this order, of problems that may differ. It has no finals.
// Afterwards Data has all of them, unless there is an error, which is as Run's.
func (s *Sweep) Measure(ctx context.Context, wanted []dataset.Measurement) error {
	var todo []dataset.Measurement
	best := map[gemm.Problem]unit.Seconds{}
	for _, m := range wanted {
		if _, looked := best[m.Problem]; !looked {
			best[m.Problem] = 0
			for _, recorded := range s.Data.Sweep(m.Problem) {
				best[m.Problem] = faster(best[m.Problem], &recorded)
			}
		}
		switch old, there := s.Data.Like(&m); {
		case !there || s.again(&old):
			todo = append(todo, dataset.Measurement{Problem: m.Problem, Config: m.Config, Library: m.Library})
		case s.good == nil && old.Status == dataset.OK:
			s.good = &dataset.Measurement{Problem: m.Problem, Config: m.Config, Library: m.Library}
		}
	}
	return s.measureAll(ctx, todo, best)
}

// Of returns a sweep on the same device with kernels of a family, and an empty data set.
func (s *Sweep) Of(kernel string) *Sweep {
	one := *s
	one.Space.Kernel = kernel
	conditions := s.Data.Conditions
	conditions.Kernel = kernel
	one.Data = dataset.New("", conditions)
	one.Data.Software, one.Data.Source = s.Data.Software, s.Data.Source
	return &one
}

// again reports whether a measurement is to be repeated.
func (s *Sweep) again(m *dataset.Measurement) bool { return s.RetryFailed && m.Status.Retriable() }

// faster returns the smaller of the best time so far and a candidate's time. Libraries do not count.
func faster(best unit.Seconds, m *dataset.Measurement) unit.Seconds {
	if m.Status == dataset.OK && m.Library == "" && (best == 0 || m.Median < best) {
		return m.Median
	}
	return best
}

// entry is a configuration or a library to measure, and what speaks against it.
type entry struct {
	todo dataset.Measurement
	suspect
}

// measureAll measures configurations and libraries in order while the next ones are being compiled. Each entry of todo
// says what to measure and is still empty otherwise. best are the best times of problems so far.
//
// If the executor's process ends, the next ones are tried alone, as many as may have been compiled at the time. What
// that says about them is judge's to decide.
func (s *Sweep) measureAll(ctx context.Context, todo []dataset.Measurement, best map[gemm.Problem]unit.Seconds) error {
	var ahead *pipeline
	defer func() { ahead.stop() }()
	queue := make([]entry, len(todo))
	for i := range todo {
		queue[i].todo = todo[i]
	}
	alone := 0 // how many are still to be tried alone
	for i := 0; i < len(queue); {
		if ahead == nil && alone == 0 {
			ahead = s.compileAhead(ctx, queue[i:])
		}
		e := &queue[i]
		m, err := s.attempt(ctx, e, ahead, best[e.todo.Problem])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			s.crashes = 0
		default:
			parallel := ahead != nil
			if parallel {
				ahead.stop()
				ahead, alone = nil, s.Ahead+1
			}
			v, end := s.judge(ctx, &e.suspect, !parallel, err)
			switch {
			case end != nil:
				return end
			case v == retry:
				continue
			case v == later:
				queue = append(append(queue[:i:i], queue[i+1:]...), *e)
				continue
			}
			blame(&m, &e.suspect, err)
			s.crashes++
		}
		m.Bound()
		if err := s.keep(m); err != nil {
			return err
		}
		if s.Done != nil {
			s.Done(m)
		}
		s.recorded(&m)
		if s.crashes >= maxCrashes {
			return err
		}
		best[m.Problem] = faster(best[m.Problem], &m)
		alone = max(0, alone-1)
		i++
	}
	return nil
}

// attempt measures an entry. It takes its kernel from the pipeline, or compiles it if there is none.
func (s *Sweep) attempt(ctx context.Context, e *entry, ahead *pipeline, best unit.Seconds) (
	dataset.Measurement, error,
) {
	var b built
	if ahead != nil {
		b = ahead.next()
	} else {
		if err := s.control(ctx, &e.suspect); err != nil {
			return e.todo, err
		}
		b = s.compile(ctx, &e.todo)
	}
	if b.kernel != nil {
		defer func() { _ = b.kernel.Close() }() // if this fails, the next call fails too and says why
	}
	s.attempts++
	m, err := s.measure(ctx, e.todo, b, best)
	if err != nil || m.Status == dataset.NotBuilt || m.Status == dataset.Failed {
		return m, err
	}
	m.Environment, err = s.environment(ctx)
	return m, err
}

// keep stores measurements and adds them to the data.
func (s *Sweep) keep(measurements ...dataset.Measurement) error {
	for i := range measurements {
		measurements[i].Bound()
	}
	if err := s.Keep(measurements...); err != nil {
		return err
	}
	for _, m := range measurements {
		if err := s.Data.Add(m); err != nil {
			return err
		}
	}
	return nil
}

// measure checks and measures a kernel and returns todo, completed. A fault of the kernel is part of the
// measurement. An error is about the executor.
func (s *Sweep) measure(ctx context.Context, todo dataset.Measurement, b built, best unit.Seconds) (
	dataset.Measurement, error,
) {
	m := todo
	m.Phase, m.Status, m.Host = dataset.Sweep, dataset.OK, s.Host
	end := func(status dataset.Status, err error) (dataset.Measurement, error) {
		if diag.KindOf(err) != diag.Input {
			return m, err
		}
		m.Status, m.Detail = status, err.Error()
		if status == dataset.Failed {
			m.Fault = dataset.FaultKernel
		}
		return m, nil
	}
	if b.err != nil {
		return end(dataset.NotBuilt, b.err)
	}
	m.Resources = b.kernel.Resources()
	n, err := b.kernel.Check(ctx)
	if err != nil {
		return end(dataset.Failed, err)
	}
	if setCheck(&m, n); m.Status == dataset.OK {
		var samples []exec.Sample
		err := b.kernel.Measure(ctx, s.options(0), func(sample exec.Sample) bool {
			samples = append(samples, sample)
			return !enough(samples, best)
		})
		if err != nil {
			return end(dataset.Failed, err)
		}
		if err := setSamples(&m, samples); err != nil {
			return m, err
		}
	}
	return m, nil
}

// environment reads the state of the device, nil if the executor cannot. The samples are there, and a new process of
// the executor can read the sensors too.
func (s *Sweep) environment(ctx context.Context) (*exec.Environment, error) {
	for {
		e, err := s.Executor.Environment(ctx, s.Device)
		switch {
		case err == nil:
			return &e, nil
		case diag.KindOf(err) == diag.Input:
			return nil, nil
		case diag.KindOf(err) != diag.Plugin, errors.Is(err, exec.ErrNonsense):
			return nil, &endError{err}
		}
		if end := s.await(ctx, err); end != nil {
			return nil, &endError{end}
		}
	}
}

func (s *Sweep) options(warmup int) exec.MeasureOptions {
	return exec.MeasureOptions{WarmL2: s.WarmL2, Input: s.Input, Warmup: warmup}
}

// setCheck enters the outcome of the result check.
func setCheck(m *dataset.Measurement, n exec.Numerics) {
	m.Numerics = &n
	if !n.OK() {
		m.Status = dataset.Wrong
		m.Detail = fmt.Sprintf(
			"largest error %.3g where %.3g is allowed, %d of %d elements wrong, %d bytes out of bounds, against %s",
			n.MaxError, n.Tolerance, n.Wrong, n.Checked, n.OutOfBounds, n.Reference)
	}
}

// setSamples enters samples. Samples that are no times are the executor's fault.
func setSamples(m *dataset.Measurement, samples []exec.Sample) error {
	for _, sample := range samples {
		if t := float64(sample.Time); !(t > 0) || math.IsInf(t, 0) {
			return nonsense("the executor measured a time of %v s", t)
		}
	}
	if len(samples) == 0 {
		return nonsense("the executor measured nothing")
	}
	m.SetSamples(samples)
	return nil
}

func nonsense(format string, args ...any) error {
	return &diag.Error{Kind: diag.Plugin, What: fmt.Sprintf(format, args...), Err: exec.ErrNonsense}
}

// built is a kernel, or the reason why there is none.
type built struct {
	kernel exec.Kernel
	err    error
}

// compile builds what a measurement is to measure.
func (s *Sweep) compile(ctx context.Context, m *dataset.Measurement) built {
	if m.Library != "" {
		k, err := s.Executor.Library(ctx, s.Device, m.Problem, m.Library)
		return built{k, err}
	}
	k, err := s.Executor.Compile(ctx, s.Device, m.Problem, m.Config)
	return built{k, err}
}

// pipeline compiles kernels in order, a bounded number ahead of the next one needed.
type pipeline struct {
	cancel  context.CancelFunc
	results chan chan built
	// slots bounds the kernels that have been compiled, or are being compiled, and not taken yet.
	slots   chan struct{}
	running sync.WaitGroup
}

func (s *Sweep) compileAhead(ctx context.Context, queue []entry) *pipeline {
	ctx, cancel := context.WithCancel(ctx)
	l := &pipeline{cancel: cancel, results: make(chan chan built, s.Ahead), slots: make(chan struct{}, s.Ahead)}
	l.running.Go(func() {
		defer close(l.results)
		for i := range queue {
			select {
			case l.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			one := make(chan built, 1)
			l.results <- one
			l.running.Go(func() { one <- s.compile(ctx, &queue[i].todo) })
		}
	})
	return l
}

// next waits for the next kernel. If the context ends it returns context.Canceled.
func (l *pipeline) next() built {
	one, ok := <-l.results
	if !ok {
		return built{err: context.Canceled}
	}
	b := <-one
	<-l.slots
	return b
}

// stop ends the compilations and closes the kernels that were not taken.
func (l *pipeline) stop() {
	if l == nil {
		return
	}
	l.cancel()
	l.running.Wait()
	for one := range l.results {
		if b := <-one; b.kernel != nil {
			_ = b.kernel.Close()
		}
	}
}
