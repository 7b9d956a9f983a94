package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
)

// PluginError says how a plugin failed. It comes wrapped in a *diag.Error of kind diag.Plugin; errors.As finds it.
type PluginError struct {
	// Name is the plugin's name. Op is the operation that failed ("start", "Rank", …).
	Name, Op string
	Fault    Fault
	// ExitState says how the process ended ("exit status 2", "signal: killed"). It is empty if the process did not
	// end by itself.
	ExitState string
	// LastStderr are the last lines that the plugin wrote to its standard error, oldest first.
	LastStderr []string
	// Err is the cause, if there is one apart from the process itself.
	Err error

	what string
}

// Fault classifies a PluginError.
type Fault string

// The faults.
const (
	FaultStart     Fault = "start"     // it did not start, or not as an origami plugin
	FaultUntrusted Fault = "untrusted" // its file is not the one in the lock file
	FaultFailing   Fault = "failing"   // it started and says that it cannot work
	FaultDied      Fault = "died"      // its process ended during a call
	FaultHung      Fault = "hung"      // it did not answer in time and was killed
	FaultCall      Fault = "call"      // the call failed and the process lives
	FaultNonsense  Fault = "nonsense"  // its answer cannot be right and was refused
	// FaultInterrupted: another call ended the process while this one was in progress.
	FaultInterrupted Fault = "interrupted"
)

// Error describes the failure without the plugin's name.
func (e *PluginError) Error() string { return e.what }

// Unwrap returns the cause.
func (e *PluginError) Unwrap() error { return e.Err }

// Is tells package exec's callers what the fault is evidence of. Faults of a start are none about a kernel.
func (e *PluginError) Is(target error) bool {
	switch target {
	case exec.ErrDied:
		return e.Fault == FaultDied
	case exec.ErrHung:
		return e.Fault == FaultHung
	case exec.ErrNonsense:
		return e.Fault == FaultNonsense
	default:
		return false
	}
}

// Timeout reports whether the plugin did not answer in time, in the manner of net.Error.
func (e *PluginError) Timeout() bool { return e.Fault == FaultHung }

var fixes = map[Fault]string{
	FaultStart:     "run it in a shell with the argument describe to see whether it works, or rebuild it",
	FaultUntrusted: "trust the new file if you changed the plugin",
	FaultFailing:   "",
	FaultDied:      "report it to the plugin's author, with its log at level debug",
	FaultHung:      "it was stopped; report it to the plugin's author",
	FaultCall:      "report it to the plugin's author",

	FaultInterrupted: "this call may be fine: try again",
}

// faultCodes are the faults that a front end may have a hint for.
var faultCodes = map[Fault]diag.Code{FaultUntrusted: diag.CodeUntrustedPlugin, FaultDied: diag.CodePluginDied}

// advised returns a fault with other advice.
func advised(fix string, fault error) error {
	var e *diag.Error
	errors.As(fault, &e) // faults are such errors
	return e.Do("%s", fix)
}

// Refused implements wire.Refuser.
func (p *program) Refused(op string, d *diag.Error) error {
	refused := *d
	refused.Err = &PluginError{Name: p.name, Op: op, Fault: FaultNonsense, Err: d.Err, what: d.What}
	return &refused
}

// fault makes the error for a failure of a plugin. p is nil if no process was started.
func fault(name, op string, f Fault, p *process, cause error, format string, args ...any) error {
	e := &PluginError{Name: name, Op: op, Fault: f, Err: cause, what: fmt.Sprintf(format, args...)}
	if p != nil {
		var last string
		e.LastStderr, last = p.log.last()
		p.mu.Lock()
		if p.ended && !p.killed {
			e.ExitState = p.state
			e.what += " (" + e.ExitState + ")"
		}
		p.mu.Unlock()
		if last != "" {
			e.what += ": " + strings.TrimSuffix(last, ".")
		}
	}
	return &diag.Error{Kind: diag.Plugin, Where: "plugin " + name, What: e.what, Fix: fixes[f], Code: faultCodes[f],
		Err: e}
}
