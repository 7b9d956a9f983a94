package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// hints say what a user of the command line can do about a failure. The errors of core, sdk and plugins are worded for
// every front end and name no flag and no command. {} stands for the subject of the error.
var hints = map[diag.Code]string{
	diag.CodeUnknownDevice: "`origami arch ls` lists the devices; another GPU is one of them with other numbers," +
		" as in --arch h200:num_sms=66, or a --device-file",
	diag.CodeUnknownParameter: "`origami arch show {}` lists all",
	diag.CodeMissingParameter: "--hw-params FILE gives overrides",
	diag.CodeNothingFits:      "`origami rank --all --include-rejected` lists each with its reason",
	diag.CodeOtherLayout:      "--trans-b says that B is along k, --trans-a that A is along m",
	diag.CodeUnknownPlugin:    "`origami plugin ls` lists them",
	diag.CodeUnusablePlugins:  "`origami plugin ls` says why",
	diag.CodeUntrustedPlugin:  "`origami plugin trust {}` trusts it",
	diag.CodeMissingPlugin:    "`origami plugin distrust {}` forgets it",
	diag.CodeSlowPlugin:       "`origami plugin trust {}` waits longer, and keeps the answer",
	diag.CodePluginDied:       "--log-level=debug shows the log",
	diag.CodeNoMeasurements:   "{} FOLDER takes others",
	diag.CodeNoExecutor: "the Python wheel has them, `make cuda` and `make triton` build them, " +
		"`origami plugin trust PATH` trusts one",
}

// withHint adds the hint for an error's code to its advice.
func withHint(err error) error {
	var d *diag.Error
	if !errors.As(err, &d) {
		return err
	}
	hint, ok := hints[d.Code]
	if !ok {
		return err
	}
	hint = strings.ReplaceAll(hint, "{}", cmp.Or(d.Subject, "PATH"))
	if err.Error() != d.Error() { // it says more than the diagnosis in it
		d = &diag.Error{Kind: d.Kind, What: err.Error(), Err: err}
	}
	return d.Also("%s", hint)
}
