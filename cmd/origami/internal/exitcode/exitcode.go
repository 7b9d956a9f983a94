// Package exitcode is the registry of the process's exit codes and the one place that turns an error into one of them.
// docs/exit-codes.md and `origami help exit-codes` are written from it.
package exitcode

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/origami-gemm/origami/core/diag"
)

// Code is an exit code. A code that is not listed here must be treated as a failure.
type Code int

// The exit codes.
const (
	OK     Code = 0
	Other  Code = 1
	Input  Code = 2
	Plugin Code = 3
	Device Code = 4
	// The codes of commands that a signal ended are 128 and its number, as shells report them.
	Hangup     Code = 128 + Code(syscall.SIGHUP)
	Interrupt  Code = 128 + Code(syscall.SIGINT)
	Terminated Code = 128 + Code(syscall.SIGTERM)
)

// OfSignal returns the code of a command that a signal ended.
func OfSignal(s os.Signal) Code {
	switch s {
	case syscall.SIGHUP:
		return Hangup
	case syscall.SIGTERM:
		return Terminated
	default:
		return Interrupt
	}
}

// All lists the codes with their meaning, in numeric order.
func All() []struct {
	Code    Code
	Name    string
	Meaning string
} {
	return []struct {
		Code    Code
		Name    string
		Meaning string
	}{
		{OK, "ok", "everything that was asked was answered; also when the reader of a pipe went away"},
		{Other, "other", "a failure that no input causes: a bug, an unwritable output"},
		{Input, "input",
			"bad usage or input: a flag, a file, a shape, an architecture, an option; other problems of the " +
				"file were answered"},
		{Plugin, "plugin", "a plugin is missing, died, hung, speaks another version or answered nonsense; compare " +
			"answered for the others"},
		{Device, "device", "there is no GPU or driver, or it was lost; what was measured before is kept"},
		{Hangup, "hangup", "SIGHUP ended it: its terminal was closed"},
		{Interrupt, "interrupt", "SIGINT ended it: Ctrl-C"},
		{Terminated, "terminated", "SIGTERM ended it"},
	}
}

// Help is the text of `origami help exit-codes`.
func Help() string {
	var b strings.Builder
	b.WriteString("The exit code says whose problem a failure is. Treat a code that is not listed as a failure.\n\n")
	for _, c := range All() {
		fmt.Fprintf(&b, "  %3d  %-10s %s\n", c.Code, c.Name, c.Meaning)
	}
	b.WriteString("\n" + HelpOnErrors + "\n")
	return b.String()
}

// HelpOnErrors says how an error looks.
const HelpOnErrors = `An error is one line on stderr that says what was wrong, where, and what to do:
"origami: where: what; fix". With --json it is one JSON object, {"error":{"kind":…,"what":…,"where":…,"fix":…}}. Its
kind is input, plugin, device, or internal for every other code. where and fix may be missing. count, if it is there,
is how many faults the error stands for.

SIGINT, SIGTERM and SIGHUP end a command within 0.2 s, whatever it waits for, and with it its plugins. What it had
answered and measured until then is kept, and stderr has the one line "origami: interrupted". A second signal kills it.
Other signals have their usual effect.`

// Reported is an error that was already written to stderr. It only carries the exit code.
type Reported struct{ Err error }

// Error implements error.
func (r *Reported) Error() string { return r.Err.Error() }

// Unwrap returns the error that was reported.
func (r *Reported) Unwrap() error { return r.Err }

// Of returns the code for an error.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	switch diag.KindOf(err) {
	case diag.Input:
		return Input
	case diag.Plugin:
		return Plugin
	case diag.Device:
		return Device
	default:
		return Other
	}
}

// IsReported reports whether an error was already written to stderr.
func IsReported(err error) bool {
	var r *Reported
	return errors.As(err, &r)
}
