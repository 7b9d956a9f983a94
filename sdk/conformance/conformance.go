// Package conformance holds plugins to what origami relies on. Each property is a Check; the checks of a kind of
// plugin are run against a connection to one, whether that leads to a provider in a test (Architecture, Executor) or
// to the process of a binary (`origami plugin check`).
//
// In a plugin's own tests it is one call:
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
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Options say how to check. The zero value checks everything.
type Options struct {
	// Short checks the default device of each architecture only, and fewer problems.
	Short bool
	// Untimed leaves out the one check that measures time, which a machine that emulates or instruments the plugin fails.
	Untimed bool
	// Golden names a file of rankings that the plugin must reproduce bit for bit (see the check "golden"). Empty means
	// that there is none.
	Golden string
	// UpdateGolden writes the file instead. The check fails then, so that it is not left on.
	UpdateGolden bool
	// RequireDevice makes the absence of a device a failure of an executor, rather than a reason to skip what needs one.
	RequireDevice bool
}

// Check is a property that a plugin must have.
type Check struct {
	// Name is lower case with hyphens, Doc one sentence that says what is demanded.
	Name, Doc string

	run func(context.Context, *subject) error
}

// Result is the outcome of a check.
type Result struct {
	Check
	// Findings say what is wrong, a line each; empty when the check passes.
	Findings []string
	// Skipped says why the check says nothing, empty when it was made.
	Skipped string
	Took    time.Duration
}

// Failed reports whether something is wrong.
func (r *Result) Failed() bool { return len(r.Findings) > 0 }

// ArchitectureChecks lists what is demanded of a plugin that models architectures.
func ArchitectureChecks() []Check { return architectureChecks }

// ExecutorChecks lists what is demanded of a plugin that runs kernels.
func ExecutorChecks() []Check { return executorChecks }

// Run makes checks, in order, of the plugin of that name behind a connection, and calls report after each. A check may
// take up to ten minutes. When the context ends, the check in progress and those after it fail with its error.
func Run(ctx context.Context, name string, conn grpc.ClientConnInterface, checks []Check, o Options,
	report func(Result)) {
	s := newSubject(name, conn, o)
	for _, check := range checks {
		report(s.make(ctx, check))
	}
}

const checkTimeout = 10 * time.Minute

// make makes one check.
func (s *subject) make(ctx context.Context, check Check) Result {
	r := Result{Check: check}
	begin := time.Now()
	err := ctx.Err()
	if err == nil {
		s.conn.hangs.Store(0)
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err = check.run(ctx, s)
		cancel()
	}
	r.Took = time.Since(begin)
	var skip skipped
	var found *findings
	switch {
	case errors.As(err, &skip):
		r.Skipped = string(skip)
	case errors.As(err, &found):
		r.Findings = found.told()
	case err != nil:
		r.Findings = []string{oneLine(err)}
	}
	return r
}

// skipped is returned by a check that cannot be made, and says why.
type skipped string

func (s skipped) Error() string { return string(s) }

// findings is what a check finds wrong, in the order of finding.
type findings struct{ list []string }

func (f *findings) add(format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = oneLine(err)
		}
	}
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// err returns the findings as an error, nil if there are none.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return f
}

// told returns what is reported: a plugin that errs, errs often.
func (f *findings) told() []string {
	const most = 8
	if len(f.list) <= most {
		return f.list
	}
	return append(f.list[:most:most], fmt.Sprintf("and %d more", len(f.list)-most))
}

func (f *findings) Error() string { return strings.Join(f.list, "\n") }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// subject is the plugin that is checked, and what the checks have in common.
type subject struct {
	Options
	conn   *impatient
	client *wire.Client

	asked    bool // see answered
	cases    []*testcase
	problems []*unanswered
}

func newSubject(name string, conn grpc.ClientConnInterface, o Options) *subject {
	own := &impatient{ClientConnInterface: conn}
	return &subject{Options: o, conn: own, client: wire.NewClient(name, own)}
}

// impatient is a connection that is given up for the rest of a check when calls have hung: each takes the whole
// timeout, and a check may make hundreds.
type impatient struct {
	grpc.ClientConnInterface
	hangs atomic.Int32
}

const hangsBorne = 2

var errGivenUp = &diag.Error{Kind: diag.Plugin, What: fmt.Sprintf("not asked, as %d calls before it have hung",
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

// Refused implements wire.Refuser for a connection that does.
func (c *impatient) Refused(op string, d *diag.Error) error {
	if r, ok := c.ClientConnInterface.(wire.Refuser); ok {
		return r.Refused(op, d)
	}
	return d
}
