package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// interruption is why the context of a command was cancelled.
type interruption struct{ signal os.Signal }

// Error implements error.
func (i interruption) Error() string { return i.signal.String() }

// codeOf returns the exit code for an interrupted command.
func codeOf(ctx context.Context) ExitCode {
	var i interruption
	if errors.As(context.Cause(ctx), &i) {
		if number, ok := i.signal.(syscall.Signal); ok {
			return 128 + ExitCode(number)
		}
	}
	return exitInterrupt
}

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP cancels. The second one has its default
// effect: it kills.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(interruption{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// A command that was interrupted ends by itself in a few milliseconds, unless it waits for something that does not look
// at its context: a plugin that does not end, a disk, a terminal that takes no more output, a long computation. Its
// plugins are then killed, which ends most waits and leaves the command the time to say what it has kept. Then the
// process exits, as soon as its one line is written: on a busy machine that can take a while, and where nobody reads
// stderr it takes for ever.
const (
	untilKill    = 100 * time.Millisecond
	untilExit    = time.Second
	untilWritten = time.Second
)

// guard ends an interrupted process that does not end by itself.
type guard struct {
	ctx    context.Context
	kill   func() // the plugins
	report func(error)
	done   chan struct{} // closed when the command has ended
	// killed: the plugins were killed, so what the command says about them is not to be believed.
	killed atomic.Bool
	// reported: the error of the interrupted command was written, or is being written.
	reported atomic.Bool
}

func newGuard(ctx context.Context, kill func(), report func(error)) *guard {
	g := &guard{ctx: ctx, kill: kill, report: report, done: make(chan struct{})}
	context.AfterFunc(ctx, g.watch)
	return g
}

func (g *guard) watch() {
	interrupted := time.Now()
	if g.endsBefore(interrupted.Add(untilKill)) {
		return
	}
	if g.kill != nil {
		g.killed.Store(true)
		g.kill()
	}
	if g.endsBefore(interrupted.Add(untilExit)) {
		return
	}
	written := g.done // where the command is writing it
	if g.reported.CompareAndSwap(false, true) {
		written = make(chan struct{})
		go func() {
			g.report(interruptedError(g.ctx))
			close(written)
		}()
	}
	select {
	case <-written:
	case <-time.After(untilWritten): // nobody reads stderr
	}
	// Measurements are whole: each is written in one system call, and the next run drops a line that a full disk or the
	// end of the process cut off.
	os.Exit(int(codeOf(g.ctx))) //nolint:forbidigo // main does not get there
}

func (g *guard) endsBefore(end time.Time) bool {
	select {
	case <-g.done:
		return true
	case <-time.After(time.Until(end)):
		return false
	}
}

func interruptedError(ctx context.Context) error {
	return &diag.Error{What: session.ErrInterrupted.Error(), Err: ctx.Err()}
}
