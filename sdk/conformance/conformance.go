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
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
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

	run func(*run)
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

// run is one run of a check: its context, the plugin, and what was found so far.
type run struct {
	context.Context
	*subject
	findings
}

// with checks what a plugin has.
func with[T any](get func(*run) (T, error), check func(*run, T)) func(*run) {
	return func(r *run) {
		if has, err := get(r); !r.stop(err) {
			check(r, has)
		}
	}
}

// each checks each of the things that a plugin has.
func each[T any](get func(*run) ([]T, error), check func(*run, T)) func(*run) {
	return with(get, func(r *run, all []T) {
		for _, one := range all {
			if r.err == nil {
				check(r, one)
			}
		}
	})
}

// architectureChecks are in order of dependence: a check comes after those whose properties it needs.
var architectureChecks = []Check{
	{"info", "Info names the plugin and its version, and reports good health.", with((*run).info, checkInfo)},
	{"manifest", "The manifest is the same each time, belongs to the plugin of Info, and gives every architecture, " +
		"device, model, kernel family and option a distinct name.", with((*run).manifest, checkManifest)},
	{"open", "Every device opens under every model of its architecture and describes itself as requested; " +
		"without a device and a model the first of each opens.", with((*run).manifest, checkOpen)},
	{"reopen", "An architecture that is closed and opened again has the same handle, description and memory levels.",
		with((*run).manifest, checkReopen)},
	{"bad-open", "An unknown architecture, device, model, option, parameter, unit or value is an error of kind input.",
		with((*run).manifest, checkBadOpen)},
	{"units", "Parameters have a unit that origami knows, and a source; clock, matrix instructions, memory " +
		"bandwidths, latencies and capacities have a plausible sign and magnitude.",
		each((*run).described, checkUnits)},
	{"schema", "Every term has a distinct name, a unit, a formula and an explanation, every constant has a source, " +
		"and exactly one term is the total.", each((*run).described, checkSchema)},
	{"answers", "Every problem is answered, or declined with an error of kind input; every candidate has either a " +
		"finite positive total or a reason for its rejection; no list has a configuration twice, and the " +
		"positions of rejected configurations ascend.", checkAnswers},
	{"rejected", "A configuration that Candidates rejects has a reason with numbers, and no total from Estimate.",
		with((*run).answered, checkRejected)},
	{"determinism", "The same request gives the same bits, also after the architecture was closed.",
		each((*run).answered, checkDeterminism)},
	{"order", "The estimate of a configuration has the same bits alone, in part of a list, listed twice, and in any " +
		"order.", with((*run).answered, checkOrder)},
	{"monotone-k", "The time of a configuration does not fall when K grows by whole K steps of all its splits, and rows " +
		"stay as well aligned; it falls by 5 % at most when rows become worse aligned.",
		with((*run).answered, checkMonotone(arch.DimK))},
	{"monotone-declared", "The same holds for M and N by whole blocks, if the description declares it.",
		with((*run).answered, checkMonotone(arch.DimM, arch.DimN))},
	{"terms", "Terms are finite, their formulas give their values, the shares add up to the total, and the total has " +
		"the same bits as from Estimate.", each((*run).answered, checkTerms)},
	{"mapping", "A mapping has a group of at least one, no more dies than the device, and is the same each time.",
		each((*run).answered, checkMapping)},
	{"rank", "Rank, if it is served, gives the same bits as Candidates, Estimate, the declared order and Mapping.",
		each((*run).byTarget, checkRank)},
	{"bad-input", "Impossible problems, configurations and spaces are errors of kind input and change nothing.",
		each((*run).byTarget, checkBadInput)},
	{"axes",
		"A space with a value on a named axis has the configurations with that value and no others; an axis or a " +
			"value that the kernel family does not declare is an error of kind input.",
		each((*run).byTarget, checkAxes)},
	{"unused", "A parameter that the description says is unused changes no candidate, no estimate and no launch order.",
		each((*run).byTarget, checkUnused)},
	{"constants", "With the values in use, EstimateWith gives the times of Estimate but for rounding, and each set of " +
		"values gives the same bits alone and among others; the manifest lists the models whose constants have bounds.",
		with((*run).manifest, checkConstants)},
	{"calibration", "Microbenchmarks and their numbers, if the manifest has them, are the same each time; a number " +
		"has a unit, a source and probes of the plan, and there is none without a measurement.",
		with((*run).manifest, checkCalibration)},
	{"ladder", "A ladder, if the manifest has one, is the same each time, and its rungs, costs, claims and device " +
		"belong to the plugin's models.", with((*run).manifest, checkLadder)},
	{"missing", "The answer to an unknown handle or configuration list is status NOT_FOUND with the detail Missing.",
		with((*run).direct, checkMissing)},
	{"fields", "Unknown fields are ignored, unknown enum values are refused.", with((*run).direct, checkFields)},
	{"cancel", "A cancelled call returns promptly with the context's error, and the plugin answers as before.",
		with((*run).firstAnswered, checkCancel)},
	{"large", "100,000 configurations and 1,000 problems get the same answers as few.",
		with((*run).firstAnswered, checkLarge)},
	{"concurrent", "Concurrent calls, which also open and close architectures, give the same bits.",
		with((*run).answered, checkConcurrent)},
	{"speed", "1,000 configurations are estimated in less than 5 ms, in the fastest of 20 tries or of a second.",
		checkSpeed},
	{"golden", "The rankings of the golden file, if any, are reproduced bit for bit.", checkGolden},
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
	result := Result{Check: check}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r := &run{Context: limited, subject: s}
	if !r.stop(ctx.Err()) {
		s.conn.hangs.Store(0)
		check.run(r)
	}
	result.Took = time.Since(begin)
	var skip skipped
	switch {
	case errors.As(r.err, &skip):
		result.Skipped = string(skip)
	case r.err != nil:
		result.Findings = []string{oneLine(r.err)}
	default:
		result.Findings = r.first()
	}
	return result
}

// skipped is the error of a check that cannot run, with the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// findings are what a check finds wrong, in order. Several goroutines may add to them.
type findings struct {
	mu   sync.Mutex
	list []string
	err  error // why the check cannot go on
}

// stop ends a check with an error, if there is one, and reports whether there is.
func (f *findings) stop(err error) bool {
	if err != nil && f.err == nil {
		f.err = err
	}
	return err != nil
}

// skip ends a check that need not run, and reports whether it does.
func (f *findings) skip(needless bool, why string) bool { return needless && f.stop(skipped(why)) }

// when adds a finding if something is wrong, and reports whether it is: with || between them, only the first of several
// faults is a finding.
func (f *findings) when(wrong bool, format string, args ...any) bool {
	if !wrong {
		return false
	}
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = oneLine(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Sprintf(format, args...))
	return true
}

// fails adds a finding if there is an error, and reports whether there is. The text says what fails.
func (f *findings) fails(err error, format string, args ...any) bool {
	return f.when(err != nil, format+": %s", append(args, err)...)
}

// refuses adds a finding unless an error is one of kind input.
func (f *findings) refuses(err error, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	var d *diag.Error
	_ = f.when(err == nil, "%s is accepted; it must be an error of kind input", what) ||
		f.when(!errors.As(err, &d) || d.Kind != diag.Input, "%s: the error is of kind %s, not input: %s", what,
			diag.KindOf(err), err) ||
		f.when(d.What == "", "%s: the error does not say what is wrong", what)
}

// again asks a second time, and adds a finding if the answer is another one.
func again[T any](f *findings, what string, first T, ask func() (T, error)) {
	second, err := ask()
	text := func(answer T) string { return printable.Cut(fmt.Sprintf("%+v", answer), 200) }
	if err != nil || !reflect.DeepEqual(second, first) {
		f.when(true, "%s %s and %s (%v)", what, text(first), text(second), err)
	}
}

// unique adds a finding for each name that equals another, ignoring case, and for each that is not one word.
func (f *findings) unique(what string, names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		f.when(name == "" || strings.ContainsAny(name, " \t\n@,="), "%s %q: a name is one word without @ , and =", what,
			name)
		lower := strings.ToLower(name)
		f.when(seen[lower], "%s %q comes twice", what, name)
		seen[lower] = true
	}
}

// plausibleClock adds a finding for a clock that is none of a processor.
func (f *findings) plausibleClock(what string, hertz float64) {
	f.when(!(hertz >= 1e6 && hertz <= 1e11), "%s: a clock of %v Hz is not between 1 MHz and 100 GHz", what, hertz)
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
	problems []*testcase
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
