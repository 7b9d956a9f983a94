package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
)

// reference is the page of all commands. A flag of several commands stands once, before them.
func reference(root *cobra.Command) string {
	all := commands(root)
	same := sharedFlags(all)
	var b strings.Builder
	b.WriteString(mark + "# Command-line reference\n\n" + strings.TrimSpace(root.Long) + "\n\n")
	b.WriteString("`origami help COMMAND` has all examples. See [exit codes](../exit-codes.md) and [JSON and CSV]" +
		"(../json.md).\n\n## Flags of every command\n\n```\n")
	b.WriteString(usages(root, func(*pflag.Flag) bool { return true }) + "```\n\n## Settings\n\n" + settings())
	b.WriteString("\n## Flags of several commands\n\nCommands name theirs after \"Also\".\n\n```\n" + list(same) + "```\n")
	for _, cmd := range all {
		if cmd.HasParent() && !cmd.IsAdditionalHelpTopicCommand() {
			b.WriteString(section(cmd, same))
		}
	}
	return b.String()
}

// section is a command's part of the page.
func section(cmd *cobra.Command, same []*pflag.Flag) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s %s\n\n%s\n", strings.Repeat("#", 1+strings.Count(cmd.CommandPath(), " ")), cmd.CommandPath(),
		strings.TrimSpace(cmd.Long))
	if cmd.HasAvailableSubCommands() {
		return b.String() // its subcommands follow
	}
	var names []string
	own := usages(cmd, func(f *pflag.Flag) bool {
		if !slices.ContainsFunc(same, func(other *pflag.Flag) bool { return equal(f, other) }) {
			return true
		}
		names = append(names, "`--"+f.Name+"`")
		return false
	})
	// Most commands of a problem have all of the flags that the list begins with.
	all := slices.IndexFunc(same, func(f *pflag.Flag) bool { return f.Name == "align" })
	if i := slices.Index(names, "`--align`"); i == all {
		names = slices.Replace(names, 0, i+1, "`--m` to `--align`")
	}
	usage := ""
	if line := cmd.UseLine(); line != cmd.CommandPath()+" [flags]" {
		usage = "# " + line + "\n"
	}
	examples := strings.Split(unindent(cmd.Example), "\n")
	fmt.Fprintf(&b, "\n```sh\n%s%s\n```\n", usage, examples[0])
	if own != "" {
		fmt.Fprintf(&b, "\n```\n%s```\n", own)
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "\nAlso %s.\n", strings.Join(names, ", "))
	}
	return b.String()
}

// sharedFlags are the flags that several commands have with the same meaning, in the order of the commands. Of a name
// with several such meanings it is the most frequent.
func sharedFlags(all []*cobra.Command) (same []*pflag.Flag) {
	var seen []*pflag.Flag
	for _, cmd := range all {
		flags(cmd).VisitAll(func(f *pflag.Flag) { seen = append(seen, f) })
	}
	uses := func(f *pflag.Flag) (n int) {
		for _, other := range seen {
			if equal(f, other) {
				n++
			}
		}
		return n
	}
	for _, f := range seen {
		at := slices.IndexFunc(same, func(other *pflag.Flag) bool { return f.Name == other.Name })
		switch n := uses(f); {
		case at < 0 && n > 1:
			same = append(same, f)
		case at >= 0 && n > uses(same[at]):
			same[at] = f
		}
	}
	return same
}

func equal(f, other *pflag.Flag) bool {
	return f.Name == other.Name && f.Usage == other.Usage && f.DefValue == other.DefValue
}

// usages lists the flags of a command that are to be kept.
func usages(cmd *cobra.Command, keep func(*pflag.Flag) bool) string {
	var kept []*pflag.Flag
	flags(cmd).VisitAll(func(f *pflag.Flag) {
		if keep(f) {
			kept = append(kept, f)
		}
	})
	return list(kept)
}

// flags are the visible flags that a command has and its parents lack, without --help.
func flags(cmd *cobra.Command) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			set.AddFlag(f)
		}
	})
	return set
}

func list(flags []*pflag.Flag) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, f := range flags {
		set.AddFlag(f)
	}
	return set.FlagUsages()
}

// settings says which flags are settings too, and lists the settings that no flag has.
func settings() string {
	var flags, others []string
	for _, s := range new(config.Settings).All() {
		key, variable := "`"+s.Key+"`", strings.Join(s.Env(), "`, `")
		switch {
		case s.Key == "log_level": // the example
		case s.Flag == "":
			others = append(others, fmt.Sprintf("- %s, `%s`: %s\n", key, variable, s.Doc))
		case strings.ReplaceAll(s.Flag, "-", "_") != s.Key || len(s.Env()) > 1:
			flags = append(flags, fmt.Sprintf("%s (`%s`, `%s`)", key, s.Dashed(), variable))
		default:
			flags = append(flags, key)
		}
	}
	return config.Precedence + "\n\nThe key `log_level` is the flag `--log-level` and the variable " +
		"`ORIGAMI_LOG_LEVEL`, and so are " + strings.Join(flags, ", ") + ". Settings without a flag:\n\n" +
		strings.Join(others, "") + "\n" +
		config.Terminal + "\n"
}
