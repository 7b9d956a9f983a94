package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// topics are the help pages that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp()},
		{Use: "environment", Short: "Settings, environment variables and the settings file", Long: config.Help()},
	}
}

// helpCommand is `origami help`. It differs from cobra's in that an unknown name is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND…]",
		Short:   "Explain a command or a topic",
		Long:    "Explain a command or a topic; without a name, list them.",
		Example: "  origami help select\n  origami help exit-codes",
		// Help must work when the settings file does not.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			for _, name := range args {
				next := find(about, name)
				if next == nil {
					return session.UnknownCommand(about, name)
				}
				about = next
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about := cmd.Root()
			for _, name := range args {
				if about = find(about, name); about == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
			var names []string
			for _, c := range about.Commands() {
				if !c.Hidden {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func find(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// helpWidth is the width of a help page in a pipe, as wide as a manual page.
const helpWidth = 80

// writeHelp is the help page of a command, for a screen of a width, 0 if there is none.
func writeHelp(w io.Writer, cmd *cobra.Command, width int) {
	page := cmd.Long
	if page == "" {
		page = cmd.Short
	}
	fmt.Fprintln(w, filled(strings.TrimSpace(page), width))
	if cmd.IsAdditionalHelpTopicCommand() {
		return
	}
	writeUsage(w, cmd, width)
}

func writeUsage(w io.Writer, cmd *cobra.Command, width int) {
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND [flags]"
	}
	if width > leastText {
		usage = strings.ReplaceAll(unpadded(text.WrapSoft(usage, width-6)), "\n", "\n      ")
	}
	fmt.Fprintf(w, "\nUsage:\n  %s\n", usage)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", continued(cmd.Example, width))
	}
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "Commands:"}) {
		writeCommands(w, g.Title, cmd, func(c *cobra.Command) bool {
			return c.IsAvailableCommand() &&
				c.GroupID == g.ID
		})
	}
	writeCommands(w, "Topics (origami help …):", cmd, (*cobra.Command).IsAdditionalHelpTopicCommand)
	writeFlags(w, cmd, width)
	codes := make([]string, 0, len(ExitCodes()))
	for _, c := range ExitCodes() {
		codes = append(codes, fmt.Sprintf("%d %s", c.Code, c.Name))
	}
	status := fmt.Sprintf("Exit status: %s; see `origami help exit-codes`.", strings.Join(codes, ", "))
	fmt.Fprintf(w, "\n%s\n", filled(status, width))
}

// writeFlags lists the flags of a command. Of those that every command inherits, the ones that choose a model are
// explained where a model is asked, and the others are named only.
func writeFlags(w io.Writer, cmd *cobra.Command, width int) {
	if flags := usages(cmd.LocalFlags(), width); flags != "" {
		fmt.Fprintf(w, "\nFlags:\n%s", flags)
	}
	if !cmd.HasParent() {
		return
	}
	model := pflag.NewFlagSet("", pflag.ContinueOnError)
	model.SortFlags = false
	var others []string
	cmd.InheritedFlags().SortFlags = false
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case !config.ChoosesModel(f.Name):
			others = append(others, "--"+f.Name)
		case asksModel(cmd):
			model.AddFlag(f)
		}
	})
	if flags := usages(model, width); flags != "" {
		fmt.Fprintf(w, "\nArchitecture and model:\n%s", flags)
	}
	fmt.Fprintf(w, "\nFlags of every command, see `origami --help`:\n  %s\n", strings.Join(others, " "))
}

// usages is FlagUsagesWrapped for texts that are not ASCII: pflag counts bytes, and its columns would not be straight.
func usages(flags *pflag.FlagSet, width int) string {
	there, back := []string{}, []string{}
	flags.VisitAll(func(f *pflag.Flag) {
		for _, r := range f.Usage {
			if r > unicode.MaxASCII && !slices.Contains(there, string(r)) {
				there = append(there, string(r), string(rune(0x0e+len(there)/2))) // in no text
			}
		}
	})
	for i := 0; i < len(there); i += 2 {
		back = append(back, there[i+1], there[i])
	}
	ascii := strings.NewReplacer(there...)
	narrow := pflag.NewFlagSet("", pflag.ContinueOnError)
	narrow.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) {
		one := *f
		one.Usage = ascii.Replace(f.Usage)
		narrow.AddFlag(&one)
	})
	return strings.NewReplacer(back...).Replace(narrow.FlagUsagesWrapped(width))
}

// filled breaks the lines of paragraphs where a screen is narrower than the text. Tables are indented.
func filled(page string, width int) string {
	if width == 0 {
		return page
	}
	paragraphs := strings.Split(page, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains(p, "\n ") && !strings.HasPrefix(p, " ") {
			paragraphs[i] = unpadded(text.WrapSoft(strings.ReplaceAll(p, "\n", " "), width))
		} else {
			paragraphs[i] = fittedTable(p, width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// leastText is how wide the last column of a table is at least. Below that, it goes below the others.
const leastText = 30

// fittedTable breaks the last column of a table where a screen is narrower.
func fittedTable(table string, width int) string {
	rows := strings.Split(table, "\n")
	if !slices.ContainsFunc(rows, func(row string) bool { return len([]rune(row)) > width }) {
		return table
	}
	var out []string
	for _, row := range rows {
		end := strings.LastIndex(row, "  ") + 2
		head, tail, indent := row[:end], row[end:], len([]rune(row[:end]))
		if strings.TrimSpace(head) == "" || width < leastText {
			out = append(out, row)
			continue
		}
		if width-indent < leastText {
			out = append(out, strings.TrimRight(head, " "))
			head, indent = strings.Repeat(" ", 6), 6
		}
		for i, line := range strings.Split(text.WrapSoft(tail, width-indent), "\n") {
			if i > 0 {
				head = strings.Repeat(" ", indent)
			}
			out = append(out, head+line)
		}
	}
	return unpadded(strings.Join(out, "\n"))
}

// continued breaks the lines of examples before a flag where a screen is narrower, as a shell has it. Text in quotes
// stays whole: a shell takes a break there as a part of the text.
func continued(examples string, width int) string {
	var out []string
	for line := range strings.SplitSeq(examples, "\n") {
		for width > leastText && len(line) > width {
			end := strings.LastIndex(line[:width-1], " -")
			if end < 0 || strings.TrimSpace(line[:end]) == "" || strings.Count(line[:end], "'")%2 == 1 {
				break
			}
			out = append(out, line[:end]+" \\")
			line = strings.Repeat(" ", 6) + line[end+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// unpadded removes the blanks at the ends of lines.
func unpadded(page string) string {
	lines := strings.Split(page, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// asksModel reports whether a command opens a model.
func asksModel(cmd *cobra.Command) bool {
	over := cmd.Parent()
	return cmd.GroupID == groupAsk || over.GroupID == groupAsk || cmd.Name() == "show" && over.Name() == "arch"
}

func writeCommands(w io.Writer, title string, cmd *cobra.Command, show func(*cobra.Command) bool) {
	for _, c := range cmd.Commands() {
		if !show(c) {
			continue
		}
		if title != "" {
			fmt.Fprintf(w, "\n%s\n", title)
			title = ""
		}
		fmt.Fprintf(w, "  %-12s %s\n", c.Name(), c.Short)
	}
}
