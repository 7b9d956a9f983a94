package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// unknownCommand turns cobra's error for an unknown command into ours. Only its text has the name.
func unknownCommand(root *cobra.Command, err error) error {
	var name string
	if _, scanErr := fmt.Sscanf(err.Error(), "unknown command %q", &name); scanErr != nil {
		return diag.Inputf("%v", err).Do("`origami help` lists the commands")
	}
	return session.UnknownCommand(root, name)
}

// flagError turns pflag's errors into ours.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		return diag.Inputf("%s needs a value", spelled(empty.GetFlag())).At("%s", session.Place(cmd)).
			Do("`%s --help` says which", cmd.CommandPath())
	case errors.As(err, &invalid):
		return invalidValue(cmd, invalid)
	case errors.As(err, &syntax):
		return diag.Inputf("%q is not a flag", syntax.GetSpecifiedFlag()).At("%s", session.Place(cmd)).
			Do("`%s --help` lists the flags", cmd.CommandPath())
	default:
		return diag.Inputf("%v", err).At("%s", session.Place(cmd)).Do("`%s --help` lists the flags", cmd.CommandPath())
	}
}

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	err := diag.Inputf("unknown flag -%s", e.GetSpecifiedName())
	if e.GetSpecifiedShortnames() == "" {
		err = diag.Inputf("unknown flag --%s", e.GetSpecifiedName())
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := diag.Nearest(e.GetSpecifiedName(), known, 1); len(near) > 0 {
			return err.At("%s", session.Place(cmd)).Do("did you mean --%s? `%s --help` lists the flags", near[0],
				cmd.CommandPath())
		}
	}
	if takes := takers(cmd, e.GetSpecifiedName()); len(takes) > 0 {
		return err.At("%s", session.Place(cmd)).Do("put it behind one of %s", strings.Join(takes, ", "))
	}
	return err.At("%s", session.Place(cmd)).Do("`%s --help` lists the flags", cmd.CommandPath())
}

// takers lists the subcommands of cmd that have the flag: the user may have put it before the verb.
func takers(cmd *cobra.Command, name string) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		f := sub.Flags().Lookup(name)
		if f == nil && len(name) == 1 {
			f = sub.Flags().ShorthandLookup(name)
		}
		if f != nil && sub.IsAvailableCommand() && name != "h" && name != "help" {
			names = append(names, sub.Name())
		}
	}
	slices.Sort(names)
	return names
}

func invalidValue(cmd *cobra.Command, e *pflag.InvalidValueError) error {
	f := e.GetFlag()
	why, fix := "is not what it takes", "`"+cmd.CommandPath()+" --help` says what it takes"
	switch f.Value.Type() {
	case "SIZE":
		why, fix = errors.Unwrap(e).Error(), "give a whole number of at least 1"
	case "SIZES":
		why, fix = errors.Unwrap(e).Error(), "write a list of sizes and ranges, as in 64,128:1024 or 16:16:16:5632"
	case "BYTES":
		why, fix = errors.Unwrap(e).Error(), "give 1, 2, 4, 8 or 16, or one of these for each of A,B,C"
	case "ROWS":
		why, fix = errors.Unwrap(e).Error(), "write the rows of each group, as in 120,33,0,512"
	case "ARCH=NUMBER":
		why, fix = errors.Unwrap(e).Error(), "write positive numbers, as in h200=2.5,mi300x=2"
	case "int":
		why, fix = "is not a whole number", "give a whole number of at least 1"
	case "bool":
		why, fix = "is neither true nor false", "write "+spelled(f)+" alone, or =true or =false behind it"
	case "duration":
		why, fix = "is not a duration", "write one such as 500ms or 30s"
	}
	return diag.Inputf("%q %s", e.GetValue(), why).At("%s", spelled(f)).Do("%s", fix)
}

// spelled is how a flag is written: -m, --arch.
func spelled(f *pflag.Flag) string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}
