package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
)

// pauses are the times before the executor is tried again after a failure that no kernel can have caused. An executor
// that is being rebuilt, or a machine without memory, may need a moment.
var pauses = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
}

// How often a configuration must end the executor's process before it is failed (docs/decisions/measuring.md).
const (
	// wrongBlame is the accepted probability that all these deaths had another cause.
	wrongBlame = 1e-6
	// priorDeaths of priorAttempts is the frequency of deaths by other causes that is assumed before any were seen.
	priorDeaths, priorAttempts = 2.5, 50
	minDeaths, maxDeaths       = 3, 10
	// hangDeaths is how many deaths a hang counts for. It costs a whole time limit, and hardly anything outside causes
	// one.
	hangDeaths = 2
)

// health is what a sweep knows about the executor's process.
type health struct {
	// good is a kernel that was measured, the smallest of them. It shows whether the executor works.
	good *dataset.Measurement
	// worked means that a kernel was measured since the process was last lost.
	worked bool
	// attempts counts how often a kernel was compiled and run, deaths how often the process ended meanwhile, except for
	// kernels that were failed for it.
	attempts, deaths int
	// retries counts the failures of the executor since the last measurement.
	retries int
	// unproven counts the deaths before any kernel worked.
	unproven int
	// crashes counts the configurations in a row that were failed because they ended the process.
	crashes int
}

// suspect is what speaks against a configuration or a library.
type suspect struct {
	// times counts the deaths in a row in which it ran alone in a process that had run another kernel. weight is the
	// same with hangs at their weight.
	times, weight int
	// total counts all deaths while it was compiled or run.
	total int
}

// verdict says what becomes of a configuration whose attempt failed because the executor did.
type verdict uint8

const (
	retry  verdict = iota // it is tried again, alone
	later                 // no kernel has worked yet, so others are tried first
	guilty                // it is failed
)

// judge weighs the failure of the executor during an attempt. It waits before the next attempt if no kernel can have
// caused the failure. alone means that no other kernel was being compiled. An error ends the sweep.
func (s *Sweep) judge(ctx context.Context, e *suspect, alone bool, err error) (verdict, error) {
	if ctx.Err() != nil {
		return retry, ctx.Err()
	}
	worked := s.worked
	s.worked = false
	control, end := (*controlError)(nil), (*endError)(nil)
	switch {
	case errors.As(err, &end):
		return retry, end.error
	case diag.KindOf(err) != diag.Plugin, errors.Is(err, exec.ErrNonsense):
		return retry, err
	case errors.As(err, &control):
		e.times, e.weight = 0, 0 // the process also ends without it
		if died(err) {
			s.deaths++
		}
		return retry, s.await(ctx, control.error)
	case errors.Is(err, exec.ErrKernelLost), !died(err):
		return retry, s.await(ctx, err)
	}
	s.deaths++
	e.total++
	switch {
	case !alone, !worked && s.good != nil:
		return retry, nil
	case !worked:
		if s.unproven++; s.unproven >= maxCrashes {
			return later, err
		}
		return later, nil
	}
	e.times++
	e.weight++
	if errors.Is(err, exec.ErrHung) {
		e.weight += hangDeaths - 1
	}
	if e.weight < s.deathsToBlame(e) {
		return retry, nil
	}
	s.deaths -= e.total
	return guilty, nil
}

// died reports whether a kernel may have caused an error.
func died(err error) bool { return errors.Is(err, exec.ErrDied) || errors.Is(err, exec.ErrHung) }

// deathsToBlame returns how many deaths in a row it takes to fail a configuration. If the process also ends for other
// reasons, as often as it did so far, then so many in a row have the probability wrongBlame.
func (s *Sweep) deathsToBlame(e *suspect) int {
	p := (float64(s.deaths-e.total) + priorDeaths) / (float64(s.attempts) + priorAttempts)
	return min(max(int(math.Ceil(math.Log(wrongBlame)/math.Log(p))), minDeaths), maxDeaths)
}

// await waits before the executor is tried again. It returns err if that was tried often enough.
func (s *Sweep) await(ctx context.Context, err error) error {
	s.worked = false
	if s.retries >= len(pauses) {
		return err
	}
	pause := pauses[s.retries]
	s.retries++
	if s.Retry != nil {
		s.Retry(err, pause, s.retries, len(pauses))
	}
	if s.Pause == nil {
		return ctx.Err()
	}
	return s.Pause(ctx, pause)
}

// recorded notes that something was measured. The next failure of the executor is a new one.
func (s *Sweep) recorded(m *dataset.Measurement) {
	s.retries = 0
	if m.Status == dataset.OK {
		s.vouch(m)
	}
}

// vouch notes that a kernel works, and so does the executor.
func (s *Sweep) vouch(m *dataset.Measurement) {
	s.worked, s.unproven = true, 0
	if s.good == nil || m.Problem.Flops() < s.good.Problem.Flops() {
		s.good = &dataset.Measurement{Problem: m.Problem, Config: m.Config, Library: m.Library}
	}
}

// controlError is a failure of the executor with a kernel that worked before.
type controlError struct{ error }

func (e *controlError) Unwrap() error { return e.error }

// endError is a failure of the executor that was retried in vain.
type endError struct{ error }

func (e *endError) Unwrap() error { return e.error }

// control runs a kernel that worked before if the last process was lost, so that the next death is known to happen in
// a process that works. Only a suspect needs that.
func (s *Sweep) control(ctx context.Context, e *suspect) error {
	if e.total == 0 || s.worked || s.good == nil {
		return nil
	}
	s.attempts++
	b := s.compile(ctx, s.good)
	err := b.err
	if err == nil {
		var n exec.Numerics
		if n, err = b.kernel.Check(ctx); err == nil && !n.OK() {
			err = diag.Inputf("its result is wrong")
		}
		if err == nil {
			err = b.kernel.Measure(ctx, s.options(0), func(exec.Sample) bool { return false })
		}
		_ = b.kernel.Close() // if this fails, the next call fails too and says why
	}
	switch {
	case err == nil:
		s.worked = true
		return nil
	case diag.KindOf(err) == diag.Input:
		err = &diag.Error{Kind: diag.Plugin, Where: "executor", Err: err,
			What: fmt.Sprintf("%s of %s, which was measured before, does not run any more: %v", s.good.Label(),
				s.good.Problem, err)}
	}
	return &controlError{err}
}

// blame records that a configuration ended the executor's process, or hung.
func blame(m *dataset.Measurement, e *suspect, err error) {
	m.Status, m.Fault = dataset.Failed, dataset.FaultKernel
	if errors.Is(err, exec.ErrHung) {
		m.Status = dataset.Timeout
	}
	m.Detail = fmt.Sprintf("%d times in a row, each alone in a process that had run another kernel: %v", e.times, err)
}
