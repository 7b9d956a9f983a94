package app

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/core/diag"
)

// Subcommand is the Args of a command that only groups others: what follows it must be one of them.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UnknownCommand(cmd, args[0])
}

// NeedSubcommand is the RunE of a command that only groups others.
func NeedSubcommand(cmd *cobra.Command, _ []string) error {
	return diag.Inputf("`%s` needs to be told what to do", cmd.CommandPath()).Do("use one of %s", strings.Join(Names(cmd), ", "))
}

// UnknownCommand says that cmd has no such subcommand, and which ones come near.
func UnknownCommand(cmd *cobra.Command, name string) error {
	err := diag.Inputf("unknown command %q for %q", name, cmd.CommandPath())
	if near := diag.Nearest(name, Names(cmd), 2); len(near) > 0 {
		return err.Do("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Do("use one of %s", strings.Join(Names(cmd), ", "))
}

// Names lists the subcommands that help shows.
func Names(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// One is the Args of a command that takes exactly one argument.
func One(name, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return diag.Inputf("%s is missing", name).At("%s", cmd.CommandPath()).Do("give %s, as in `%s %s`", what, cmd.CommandPath(), name)
		case len(args) > 1:
			return NoMore(cmd, args[1:])
		}
		return nil
	}
}

// NoMore is the Args of a command that takes no arguments.
func NoMore(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return diag.Inputf("unexpected argument %q", args[0]).At("%s", cmd.CommandPath()).Do("`%s --help` shows what it takes", cmd.CommandPath())
}
