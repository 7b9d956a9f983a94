package cli

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/origami-gemm/origami/core/diag"
)

// ExitCode is an exit code. A code that is not listed here must be treated as a failure.
type ExitCode int

// The exit codes.
const (
	exitOK     ExitCode = 0
	exitOther  ExitCode = 1
	exitInput  ExitCode = 2
	exitPlugin ExitCode = 3
	exitDevice ExitCode = 4
	// The codes of commands that a signal ended are 128 and its number, as shells report them.
	exitHangup     ExitCode = 128 + ExitCode(syscall.SIGHUP)
	exitInterrupt  ExitCode = 128 + ExitCode(syscall.SIGINT)
	exitTerminated ExitCode = 128 + ExitCode(syscall.SIGTERM)
)

// Explained is a code with its name and meaning.
type Explained struct {
	Code          ExitCode
	Name, Meaning string
}

// ExitCodes lists the codes with their meaning, in numeric order.
func ExitCodes() []Explained {
	return []Explained{
		{exitOK, "ok", "everything that was asked was answered; also when the reader of a pipe went away"},
		{exitOther, "other", "a failure that no input causes: a bug, an unwritable output"},
		{exitInput, "input",
			"bad usage or input: a flag, a file, a shape, an architecture, an option; other problems of the " +
				"file were answered"},
		{exitPlugin, "plugin", "a plugin is missing, died, hung, speaks another version or answered nonsense; compare " +
			"answered for the others"},
		{exitDevice, "device", "there is no GPU or driver, or it was lost; what was measured before is kept"},
		{exitHangup, "hangup", "SIGHUP ended it: its terminal was closed"},
		{exitInterrupt, "interrupt", "SIGINT ended it: Ctrl-C"},
		{exitTerminated, "terminated", "SIGTERM ended it"},
	}
}

// exitCodesHelp is the text of `origami help exit-codes`.
func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("The exit code says whose problem a failure is. Treat a code that is not listed as a failure.\n\n")
	for _, c := range ExitCodes() {
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

// codeOfError returns the code for an error.
func codeOfError(err error) ExitCode {
	if err == nil {
		return exitOK
	}
	switch diag.KindOf(err) {
	case diag.Input:
		return exitInput
	case diag.Plugin:
		return exitPlugin
	case diag.Device:
		return exitDevice
	default:
		return exitOther
	}
}
