// Package conformance checks that plugins have the properties that origami relies on. Each property is a Check. The
// checks of a kind of plugin run over a connection, either to a provider in a test (Architecture, Executor) or to the
// process of a binary (`origami plugin check`).
//
// In the tests of a plugin it is one call:
//
//	func TestConformance(t *testing.T) {
//		conformance.Architecture(t, myProvider{}, conformance.Options{})
//	}
package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Options select the checks. The zero value checks everything.
type Options struct {
	// Short checks the default device of each architecture only, and fewer problems.
	Short bool
	// Untimed leaves out the one check that measures time, for machines that emulate or instrument the plugin.
	Untimed bool
	// Golden names a file of rankings that the plugin must reproduce bit for bit (see the check "golden"). Empty: no
	// file.
	Golden string
	// UpdateGolden writes the file instead. The check then fails, so that the option is not left on.
	UpdateGolden bool
	// RequireDevice: the checks of an executor that need a device fail without one, instead of being skipped.
	RequireDevice bool
}

// Check is a property that a plugin must have.
type Check struct {
	// Name is lower case with hyphens. Doc is the requirement in one sentence.
	Name, Doc string

	run procedure
}

// Result is the outcome of a check.
type Result struct {
	Check
	// Findings are what is wrong, one line each. Empty if the check passes.
	Findings []string
	// Skipped is the reason why the check was skipped. Empty if it ran.
	Skipped string
	Took    time.Duration
}

// procedure runs a check. An error says that the check cannot go on.
type procedure func(context.Context, *subject, *findings) error

// with runs a check of what a subject has.
func with[T any](
	get func(*subject, context.Context) (T, error), check func(context.Context, *subject, *findings, T) error,
) procedure {
	return func(ctx context.Context, s *subject, found *findings) error {
		has, err := get(s, ctx)
		if err != nil {
			return err
		}
		return check(ctx, s, found, has)
	}
}

// each runs a check of each of the things that a subject has.
func each[T any](
	get func(*subject, context.Context) ([]T, error), check func(context.Context, *subject, *findings, T),
) procedure {
	return with(get, func(ctx context.Context, s *subject, found *findings, all []T) error {
		for _, one := range all {
			check(ctx, s, found, one)
		}
		return nil
	})
}

// Failed reports whether the check found something wrong.
func (r *Result) Failed() bool { return len(r.Findings) > 0 }

// ArchitectureChecks lists the checks of a plugin that models architectures.
func ArchitectureChecks() []Check { return architectureChecks }

// ExecutorChecks lists the checks of a plugin that runs kernels.
func ExecutorChecks() []Check { return executorChecks }

// Run runs checks in order against the plugin of this name behind a connection, and calls report after each. A check
// may take up to ten minutes. If the context ends, the current check and those after it fail with its error.
func Run(ctx context.Context, name string, conn grpc.ClientConnInterface, checks []Check, o Options,
	report func(Result)) {
	s := newSubject(name, conn, o)
	for _, check := range checks {
		report(s.run(ctx, check))
	}
}

const checkTimeout = 10 * time.Minute

// run runs one check.
func (s *subject) run(ctx context.Context, check Check) Result {
	r := Result{Check: check}
	begin := time.Now()
	err, found := ctx.Err(), &findings{}
	if err == nil {
		s.conn.hangs.Store(0)
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err = check.run(ctx, s, found)
		cancel()
	}
	r.Took = time.Since(begin)
	var skip skipped
	switch {
	case errors.As(err, &skip):
		r.Skipped = string(skip)
	case err != nil:
		r.Findings = []string{oneLine(err)}
	default:
		r.Findings = found.first()
	}
	return r
}

// skipped is the error of a check that cannot run, with the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// findings are what a check finds wrong, in order. Several goroutines may add to them.
type findings struct {
	mu   sync.Mutex
	list []string
}

func (f *findings) add(format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = oneLine(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// first returns the findings to report: not all, because one mistake of a plugin often has many.
func (f *findings) first() []string {
	const most = 8
	if len(f.list) <= most {
		return f.list
	}
	return append(f.list[:most:most], fmt.Sprintf("and %d more", len(f.list)-most))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// subject is the checked plugin, with the state that the checks share.
type subject struct {
	Options
	conn   *impatient
	client *wire.Client

	asked    bool // see answered
	cases    []*testcase
	problems []*unanswered
}

func newSubject(name string, conn grpc.ClientConnInterface, o Options) *subject {
	limited := &impatient{ClientConnInterface: conn}
	return &subject{Options: o, conn: limited, client: wire.NewClient(name, limited)}
}

// impatient is a connection that refuses all calls for the rest of a check after some have hung. Each hung call takes
// the whole timeout, and a check may make hundreds.
type impatient struct {
	grpc.ClientConnInterface
	hangs atomic.Int32
}

const hangsBorne = 2

var errGivenUp = &diag.Error{Kind: diag.Plugin, What: fmt.Sprintf("not called, because %d calls before it have hung",
	hangsBorne)}

// Invoke implements grpc.ClientConnInterface.
func (c *impatient) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if c.hangs.Load() >= hangsBorne {
		return errGivenUp
	}
	err := c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	var hung interface{ Timeout() bool }
	if errors.As(err, &hung) && hung.Timeout() || status.Code(err) == codes.DeadlineExceeded {
		c.hangs.Add(1)
	}
	return err
}

// Refused implements wire.Refuser if the connection does.
func (c *impatient) Refused(op string, d *diag.Error) error {
	if r, ok := c.ClientConnInterface.(wire.Refuser); ok {
		return r.Refused(op, d)
	}
	return d
}
