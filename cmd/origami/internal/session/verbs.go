package session

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/score"
)

// Place names a command in an error, without the program: every error line begins with "origami:" anyway.
func Place(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// CheckArguments makes commands without Args refuse arguments, and commands that only group others ask for one.
func CheckArguments(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = NoArguments
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return diag.Inputf("`%s` needs a subcommand", cmd.CommandPath()).Do("use one of %s", strings.Join(names(cmd), ", "))
		}
	}
	for _, sub := range cmd.Commands() {
		CheckArguments(sub)
	}
}

// NoArguments is the Args of a command that takes no arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return UnknownCommand(cmd, args[0])
	}
	err := diag.Inputf("unexpected argument %q", args[0]).At("%s", Place(cmd))
	if cmd.Flags().Lookup("problems") != nil {
		err = err.Do("architectures go behind --arch, sizes behind -m, -n and -k or --problems")
	}
	return err.Also("`%s --help` shows what it takes", cmd.CommandPath())
}

// OneArgument is the Args of a command that takes exactly one argument. name is its name in the usage line, what says
// what it is.
func OneArgument(name, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return diag.Inputf("%s is missing", name).At("%s", Place(cmd)).
				Do("give %s, as in `%s %s`", what, cmd.CommandPath(), name)
		case len(args) > 1:
			return NoArguments(cmd, args[1:])
		}
		return nil
	}
}

// UnknownCommand is the error for a subcommand that cmd does not have. It suggests those that begin with the name or
// are spelled much like it.
func UnknownCommand(cmd *cobra.Command, name string) error {
	err := diag.Inputf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return err.Do("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Do("use one of %s", strings.Join(names(cmd), ", "))
}

// names lists the subcommands that help shows.
func names(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// UntilCancelled returns what compute does, or the context's error as soon as it is cancelled: for arithmetic and
// drawing that take seconds and do not look at a context. After a cancellation the process ends, and compute with it.
func UntilCancelled[T any](ctx context.Context, compute func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := compute()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Subset returns what of the measurements that read returns can be scored, or the context's error as soon as it is
// cancelled.
func Subset(ctx context.Context, read func() (*dataset.Dataset, error)) (*score.Subset, error) {
	return UntilCancelled(ctx, func() (*score.Subset, error) {
		data, err := read()
		if err != nil {
			return nil, err
		}
		return score.SubsetOf(data), nil
	})
}
