package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Sweep measures every candidate of a model on an executor's device, problem by problem. What is in Data already is not
// measured again, so that a sweep that was stopped goes on where it was.
type Sweep struct {
	Arch     arch.Architecture
	Executor exec.Executor
	// Device is the executor's number of the device. Libraries are the vendor's libraries to measure beside.
	Device    int
	Libraries []string
	Space     arch.Space
	WarmL2    bool
	Input     string
	// Ahead is how many kernels are compiled, and held, beyond the one that is measured; at least 1.
	Ahead int
	// Host is the software that measures, for the records.
	Host string
	// Data has what is known, and gets what is found once Keep, which writes measurements where they survive, has it.
	Data *dataset.Dataset
	Keep func(...dataset.Measurement) error
	// Begin, if set, is told how many candidates and libraries a problem has and how many of them are to be measured, and
	// Done of each that was.
	Begin func(p gemm.Problem, all, todo int)
	Done  func(dataset.Measurement)

	// crashes counts the configurations in a row that took the executor's process along.
	crashes int
}

// Problem sweeps one problem and then measures the finals. An error of kind Input says that the model has no candidates
// for it, and nothing about others. Any other ends the sweep: of kind Device or Plugin, when the device or the executor
// is lost, the context's, or Keep's. What was measured before has been kept.
func (s *Sweep) Problem(ctx context.Context, p gemm.Problem) error {
	ranked, err := selector.RankOne(ctx, s.Arch, p, selector.Request{Space: s.Space})
	if err != nil {
		return err
	}
	candidates := make([]gemm.Config, len(ranked))
	for i, e := range ranked {
		candidates[i] = e.Config
	}
	var todo []gemm.Config
	best := unit.Seconds(0)
	all := slices.Clone(candidates)
	for _, name := range s.Libraries {
		all = append(all, gemm.Config{Kernel: name})
	}
	for _, c := range all {
		if m, there := s.Data.Find(p, c); there {
			best = faster(best, &m)
		} else {
			todo = append(todo, c)
		}
	}
	if s.Begin != nil {
		s.Begin(p, len(all), len(todo))
	}
	if err := s.each(ctx, p, todo, best); err != nil {
		return err
	}
	return s.finals(ctx, p, candidates)
}

// faster returns the better of the best time so far and a candidate's.
func faster(best unit.Seconds, m *dataset.Measurement) unit.Seconds {
	if m.Status == dataset.OK && !m.IsLibrary() && (best == 0 || m.Median < best) {
		return m.Median
	}
	return best
}

// each measures a list of configurations in order while the next ones are being compiled.
//
// A configuration is blamed for the loss of the executor's process only if nothing else was being compiled meanwhile.
// Otherwise it is tried again by itself, and so are those after it that were in flight. The executor may know that it was
// another's fault (exec.ErrKernelLost), and then it is not blamed at all.
func (s *Sweep) each(ctx context.Context, p gemm.Problem, todo []gemm.Config, best unit.Seconds) error {
	var ahead *pipeline
	defer func() { ahead.stop() }()
	alone := 0
	for i := 0; i < len(todo); {
		if ahead == nil && alone == 0 {
			ahead = s.compileAhead(ctx, p, todo[i:])
		}
		b := built{}
		if ahead != nil {
			b = ahead.next()
		} else {
			b = s.compile(ctx, p, todo[i])
		}
		m, err := s.measure(ctx, p, todo[i], b, best)
		if b.kernel != nil {
			_ = b.kernel.Close() // there is nothing to be done about it, and the next call says whether the executor lives
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			s.crashes = 0
		case diag.KindOf(err) != diag.Plugin:
			return err
		case ahead != nil:
			ahead.stop()
			ahead, alone = nil, s.Ahead+1
			continue
		case errors.Is(err, exec.ErrKernelLost):
			if s.crashes++; s.crashes >= maxCrashes {
				return err
			}
			continue
		default:
			alone = 1
			s.crashes++
			blame(&m, err)
		}
		if kept := s.keep(m); kept != nil {
			return kept
		}
		if s.Done != nil {
			s.Done(m)
		}
		if s.crashes >= maxCrashes {
			return err
		}
		best = faster(best, &m)
		alone = max(0, alone-1)
		i++
	}
	return nil
}

func (s *Sweep) keep(m ...dataset.Measurement) error {
	if err := s.Keep(m...); err != nil {
		return err
	}
	for i := range m {
		if err := s.Data.Add(m[i]); err != nil {
			return err
		}
	}
	return nil
}

// blame says that a configuration took the executor's process along, or hung.
func blame(m *dataset.Measurement, err error) {
	m.Status, m.Detail = dataset.Failed, detail(err)
	var hung interface{ Timeout() bool }
	if errors.As(err, &hung) && hung.Timeout() {
		m.Status = dataset.Timeout
	}
}

// detail is the reason to record, at a bearable length.
func detail(err error) string {
	text := err.Error()
	if len(text) > maxDetail {
		text = text[:maxDetail] + " …"
	}
	return strings.ToValidUTF8(text, "?")
}

// measure checks and measures one configuration. What is wrong with the configuration is in the measurement; an error is
// about the executor.
func (s *Sweep) measure(ctx context.Context, p gemm.Problem, c gemm.Config, b built, best unit.Seconds) (dataset.Measurement, error) {
	m := dataset.Measurement{Problem: p, Config: c, Phase: dataset.Sweep, Status: dataset.OK, Host: s.Host}
	unless := func(status dataset.Status, err error) (dataset.Measurement, error) {
		if diag.KindOf(err) != diag.Input {
			return m, err
		}
		m.Status, m.Detail = status, detail(err)
		return m, nil
	}
	if b.err != nil {
		return unless(dataset.NotBuilt, b.err)
	}
	m.Resources = b.kernel.Resources()
	n, err := b.kernel.Check(ctx)
	if err != nil {
		return unless(dataset.Failed, err)
	}
	if enterCheck(&m, n); m.Status == dataset.OK {
		var samples []exec.Sample
		err := b.kernel.Measure(ctx, s.options(0), func(sample exec.Sample) bool {
			samples = append(samples, sample)
			return !enough(samples, best)
		})
		if err != nil {
			return unless(dataset.Failed, err)
		}
		enter(&m, samples)
	}
	m.Environment, err = s.environment(ctx)
	return m, err
}

// environment reads the device's state, nil if the executor cannot.
func (s *Sweep) environment(ctx context.Context) (*exec.Environment, error) {
	e, err := s.Executor.Environment(ctx, s.Device)
	if err == nil {
		return &e, nil
	}
	if diag.KindOf(err) == diag.Input {
		return nil, nil
	}
	return nil, err
}

func (s *Sweep) options(warmup int) exec.MeasureOptions {
	return exec.MeasureOptions{WarmL2: s.WarmL2, Input: s.Input, Warmup: warmup}
}

// enterCheck puts the outcome of the result check into a measurement.
func enterCheck(m *dataset.Measurement, n exec.Numerics) {
	m.Numerics = &n
	if !n.OK() {
		m.Status = dataset.Wrong
		m.Detail = fmt.Sprintf("largest error %.3g where %.3g is allowed, %d of %d elements wrong, %d bytes out of bounds, against %s",
			n.MaxError, n.Tolerance, n.Wrong, n.Checked, n.OutOfBounds, n.Reference)
	}
}

// enter puts samples into a measurement, if they are times.
func enter(m *dataset.Measurement, samples []exec.Sample) {
	for _, sample := range samples {
		if t := float64(sample.Time); !(t > 0) || math.IsInf(t, 0) {
			m.Status, m.Detail = dataset.Failed, fmt.Sprintf("the executor measured a time of %v s", t)
			return
		}
	}
	if len(samples) == 0 {
		m.Status, m.Detail = dataset.Failed, "the executor measured nothing"
		return
	}
	m.SetSamples(samples)
}

// built is a kernel, or why there is none.
type built struct {
	kernel exec.Kernel
	err    error
}

func (s *Sweep) compile(ctx context.Context, p gemm.Problem, c gemm.Config) built {
	k, err := s.Executor.Compile(ctx, s.Device, p, c)
	return built{k, err}
}

// pipeline compiles configurations in order, a bounded number ahead of the one that is wanted.
type pipeline struct {
	cancel  context.CancelFunc
	results chan chan built
	// slots bounds the kernels that are compiled, or being compiled, and not taken yet.
	slots   chan struct{}
	running sync.WaitGroup
}

func (s *Sweep) compileAhead(ctx context.Context, p gemm.Problem, configs []gemm.Config) *pipeline {
	ctx, cancel := context.WithCancel(ctx)
	l := &pipeline{cancel: cancel, results: make(chan chan built, s.Ahead), slots: make(chan struct{}, s.Ahead)}
	l.running.Go(func() {
		defer close(l.results)
		for _, c := range configs {
			select {
			case l.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			one := make(chan built, 1)
			l.results <- one
			l.running.Go(func() { one <- s.compile(ctx, p, c) })
		}
	})
	return l
}

// next waits for the next kernel. Past a context that is done there is none.
func (l *pipeline) next() built {
	one, ok := <-l.results
	if !ok {
		return built{err: context.Canceled}
	}
	b := <-one
	<-l.slots
	return b
}

// stop ends the compilations and frees the kernels that nobody took.
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

// arm is one entry of the finals.
type arm struct {
	m       dataset.Measurement
	kernel  exec.Kernel
	samples []exec.Sample
	// unchecked says that nobody has looked at its result yet.
	unchecked bool
}

// out says that an arm has failed.
func (a *arm) out() bool { return a.m.Status != dataset.OK }

// finals measures the model's pick, the fastest of the sweep and the libraries again, in turns, so that whatever drifts
// meets all of them alike. The pick runs twice: what its two entries differ by is the noise floor. Nothing is measured
// if a whole block of the same arms is there.
func (s *Sweep) finals(ctx context.Context, p gemm.Problem, candidates []gemm.Config) error {
	arms := s.entrants(p, candidates)
	if len(arms) == 0 || s.measuredFinals(p, arms) {
		return nil
	}
	block, err := s.turns(ctx, p, arms)
	if err != nil {
		return err
	}
	return s.keep(block...)
}

// Turns measures some configurations in turns, as finals are, after a check of their results. The first one runs twice; its
// second entry, the null arm, is the last of what comes back. Nothing is kept. What is wrong with a configuration is in its
// measurement; an error is about the executor.
func (s *Sweep) Turns(ctx context.Context, p gemm.Problem, configs []gemm.Config) ([]dataset.Measurement, error) {
	arms := s.arms(p, configs)
	for i := range configs {
		arms[i].unchecked = true
	}
	return s.turns(ctx, p, arms)
}

// turns takes samples of the arms in turns until there are enough.
func (s *Sweep) turns(ctx context.Context, p gemm.Problem, arms []arm) ([]dataset.Measurement, error) {
	defer func() {
		for i := range arms {
			arms[i].close()
		}
	}()
	var used unit.Seconds
	for round := 0; round < minRounds || round < maxRounds && used < finalBudget; round++ {
		for i := range arms {
			a := &arms[i]
			if round%2 == 1 { // there and back, so that nobody always follows the same one
				a = &arms[len(arms)-1-i]
			}
			if a.out() {
				continue
			}
			before := len(a.samples)
			err := s.turn(ctx, p, a)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err == nil:
				if len(a.samples) > before {
					used += a.samples[before].Time
					s.crashes = 0
				}
			case diag.KindOf(err) != diag.Plugin:
				return nil, err
			default:
				if !errors.Is(err, exec.ErrKernelLost) {
					blame(&a.m, err)
				}
				for j := range arms {
					arms[j].close() // they went with the process
				}
				if s.crashes++; s.crashes >= maxCrashes {
					return nil, err
				}
			}
		}
	}
	environment, err := s.environment(ctx)
	for err != nil { // the samples are there, and a fresh process can read sensors too
		if s.crashes++; diag.KindOf(err) != diag.Plugin || s.crashes >= maxCrashes {
			return nil, err
		}
		environment, err = s.environment(ctx)
	}
	block := make([]dataset.Measurement, len(arms))
	for i := range arms {
		a := &arms[i]
		if !a.out() {
			enter(&a.m, a.samples)
		}
		a.m.Environment = environment
		block[i] = a.m
	}
	return block, nil
}

// turn takes one sample of an arm, compiling its kernel if need be. What is wrong with the configuration is in the arm.
func (s *Sweep) turn(ctx context.Context, p gemm.Problem, a *arm) error {
	var err error
	if a.kernel == nil {
		if a.kernel, err = s.Executor.Compile(ctx, s.Device, p, a.m.Config); err == nil {
			a.m.Resources = a.kernel.Resources()
		}
	}
	if err == nil && a.unchecked {
		var n exec.Numerics
		if n, err = a.kernel.Check(ctx); err == nil {
			a.unchecked = false
			if enterCheck(&a.m, n); a.out() {
				return nil
			}
		}
	}
	if err == nil {
		taken := false
		err = a.kernel.Measure(ctx, s.options(finalWarmup), func(sample exec.Sample) bool {
			if !taken {
				a.samples, taken = append(a.samples, sample), true
			}
			return false
		})
	}
	if diag.KindOf(err) == diag.Input && err != nil {
		a.m.Status, a.m.Detail = dataset.Failed, detail(err)
		return nil
	}
	return err
}

func (a *arm) close() {
	if a.kernel != nil {
		_ = a.kernel.Close()
		a.kernel = nil
	}
}

// entrants lists who takes part in the finals: the pick, the fastest candidates, the libraries, and the pick again.
func (s *Sweep) entrants(p gemm.Problem, candidates []gemm.Config) []arm {
	var found []dataset.Measurement // in predicted order
	for _, c := range candidates {
		if m, ok := s.Data.Find(p, c); ok && m.Status == dataset.OK {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	configs := []gemm.Config{found[0].Config}
	fastest := slices.Clone(found)
	slices.SortStableFunc(fastest, func(a, b dataset.Measurement) int {
		switch {
		case a.Median < b.Median:
			return -1
		case a.Median > b.Median:
			return 1
		default:
			return 0
		}
	})
	for _, m := range fastest[:min(finalists, len(fastest))] {
		if m.Config != configs[0] {
			configs = append(configs, m.Config)
		}
	}
	for _, name := range s.Libraries {
		if m, ok := s.Data.Find(p, gemm.Config{Kernel: name}); ok && m.Status == dataset.OK {
			configs = append(configs, m.Config)
		}
	}
	return s.arms(p, configs)
}

// arms makes an arm of each configuration and a second one of the first.
func (s *Sweep) arms(p gemm.Problem, configs []gemm.Config) []arm {
	arms := make([]arm, len(configs)+1)
	for i := range arms {
		a := &arms[i].m
		*a = dataset.Measurement{Problem: p, Phase: dataset.Final, Block: s.Data.NextBlock(p), Arms: len(arms), Status: dataset.OK, Host: s.Host}
		if a.Null = i == len(configs); a.Null {
			a.Config = configs[0]
		} else {
			a.Config = configs[i]
		}
	}
	return arms
}

// measuredFinals reports whether a whole block has exactly these arms.
func (s *Sweep) measuredFinals(p gemm.Problem, arms []arm) bool {
	for _, block := range s.Data.Finals(p) {
		same := len(block) == len(arms)
		for i := range arms {
			same = same && slices.ContainsFunc(block, func(m dataset.Measurement) bool {
				return m.Config == arms[i].m.Config && m.Null == arms[i].m.Null
			})
		}
		if same {
			return true
		}
	}
	return false
}
