package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// asksForJSON looks for --json or --format json before the arguments are parsed, so that a mistake in them is reported
// in JSON too.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--json", arg == "--json=true", arg == "--format=json":
			return true
		case arg == "--format" && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}

// flagError turns pflag's errors into ours. A command that is not known is said before its flags are.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	if cmd.HasAvailableSubCommands() && cmd.Flags().NArg() > 0 {
		return session.UnknownCommand(cmd, cmd.Flags().Arg(0))
	}
	what, advice := diag.Inputf("%v", err), "lists the flags"
	switch {
	case errors.As(err, &unknown):
		var near []string
		if what = diag.Inputf("unknown flag -%s", unknown.GetSpecifiedName()); unknown.GetSpecifiedShortnames() == "" {
			what = diag.Inputf("unknown flag --%s", unknown.GetSpecifiedName())
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					near = append(near, f.Name)
				}
			})
		}
		if near = diag.Nearest(unknown.GetSpecifiedName(), near, 1); len(near) > 0 {
			what = what.Do("did you mean --%s?", near[0])
		}
	case errors.As(err, &empty):
		what, advice = diag.Inputf("%s needs a value", spelled(empty.GetFlag())), "says which"
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		wrong, ok := values[f.Value.Type()]
		if !ok {
			wrong = [2]string{errors.Unwrap(invalid).Error(), "see `" + cmd.CommandPath() + " --help`"}
		}
		return diag.Inputf("%q %s", invalid.GetValue(), cmp.Or(wrong[0], errors.Unwrap(invalid).Error())).
			At("%s", spelled(f)).Do("%s", wrong[1])
	}
	return what.At("%s", session.Place(cmd)).Also("`%s --help` %s", cmd.CommandPath(), advice)
}

// values say what is wrong with a value of a flag, where the flag's own error does not, and what the flag takes, by the
// type of its value.
var values = map[string][2]string{
	"SIZE":        {"", "give a whole number of at least 1"},
	"SIZES":       {"", "write a list of sizes and ranges, as in 64,128:1024 or 16:16:16:5632"},
	"BYTES":       {"", "give 1, 2, 4, 8 or 16, or one of these for each of A,B,C"},
	"ROWS":        {"", "write the rows of each group, as in 120,33,0,512"},
	"ARCH=NUMBER": {"", "write positive numbers, as in h200=2.5,mi300x=2"},
	"int":         {"is not a whole number", "give a whole number of at least 1"},
	"bool":        {"is neither true nor false", "write the flag alone, or =true or =false behind it"},
	"float64":     {"is not a number", "give one such as 0.5"},
	"duration":    {"is not a duration", "write one such as 500ms or 30s"},
}

// spelled is how a flag is written: -m, --arch.
func spelled(f *pflag.Flag) string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}
