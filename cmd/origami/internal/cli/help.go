package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

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

// addHelpCommand adds cobra's `origami help`, which works when the settings do not. Here, an unknown name is an error.
func addHelpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it was added
	help.Use, help.Short = "help [COMMAND…]", "Explain a command or a topic"
	help.Long = "Explain a command or a topic; without a name, list them. With --all it lists every flag."
	help.Example = "  origami help select\n  origami help exit-codes"
	help.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	help.Args = func(_ *cobra.Command, args []string) error {
		if cmd, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return session.UnknownCommand(cmd, append(rest, args...)[0])
		}
		return nil
	}
}

// Templates of cobra, for a help page of a width, with all flags or those that most people need.
const (
	helpTemplate = `{{fill (or .Long .Short) %d}}
{{if or .Runnable .HasSubCommands}}
{{.UsageString}}{{end}}`
	usageTemplate = `{{$width := %d}}{{$all := %t}}{{$cmd := .}}Usage:
  {{usage . $width}}
{{if .HasExample}}
Examples:
{{continued .Example $width}}
{{end}}{{range groups .}}
{{.Title}}
{{$id := .ID}}{{range $cmd.Commands}}{{if and (eq .GroupID $id) .IsAvailableCommand}}  {{rpad .Name 12}} {{hang .Short 15 $width}}
{{end}}{{end}}{{end}}{{if .HasHelpSubCommands}}
Topics (origami help …):
{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}  {{rpad .Name 12}} {{hang .Short 15 $width}}
{{end}}{{end}}{{end}}{{range flags . $all}}
{{.Title}}:
{{.FlagUsagesWrapped $width}}{{end}}{{if .HasParent}}
Flags of every command, see ` + "`origami --help`" + `:
  {{common .}}
{{end}}
{{fill exitStatus $width}}
{{with more . $all}}{{fill . $width}}
{{end}}`
)

func init() {
	cobra.AddTemplateFuncs(map[string]any{
		"fill": fill, "hang": hang, "usage": usage, "continued": continued, "groups": groups, "flags": flagGroups, "common": commonFlags,
		"exitStatus": exitStatus, "more": moreFlags,
	})
}

func useTemplates(root *cobra.Command, width int, all bool) {
	root.SetHelpTemplate(fmt.Sprintf(helpTemplate, width))
	root.SetUsageTemplate(fmt.Sprintf(usageTemplate, width, all))
}

func usage(cmd *cobra.Command, width int) string {
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND [flags]"
	}
	return hang(line, 6, width)
}

// groups are the groups of the commands below cmd.
func groups(cmd *cobra.Command) []*cobra.Group {
	if cmd.HasAvailableSubCommands() && len(cmd.Groups()) == 0 {
		return []*cobra.Group{{Title: "Commands:"}}
	}
	return cmd.Groups()
}

type flagGroup struct {
	Title string
	*pflag.FlagSet
}

// flagGroups are the flags of a command. Of those that every command has, the ones that choose a model stand where a
// model is asked. The rare ones (session.Rare) stand in a group of their own, and only if all are asked for.
func flagGroups(cmd *cobra.Command, all bool) (some []flagGroup) {
	own, model, rare := pflag.NewFlagSet("", 0), pflag.NewFlagSet("", 0), pflag.NewFlagSet("", 0)
	add := func(f *pflag.Flag, to *pflag.FlagSet) {
		if session.IsRare(f) {
			to = rare
		}
		if !f.Hidden {
			to.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { add(f, own) })
	inherited := cmd.InheritedFlags()
	inherited.SortFlags = false
	inherited.VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[config.ModelKey]; ok && asksModel(cmd) {
			add(f, model)
		}
	})
	for _, g := range []flagGroup{{"Flags", own}, {"Architecture and model", model}, {rarely, rare}} {
		g.SortFlags = false
		if g.HasFlags() && (all || g.Title != rarely) {
			some = append(some, g)
		}
	}
	return some
}

const rarely = "Rarely needed"

// moreFlags says how many flags of a command are left out, and how to see them.
func moreFlags(cmd *cobra.Command, all bool) string {
	groups, count := flagGroups(cmd, true), 0
	if last := groups[len(groups)-1]; !all && last.Title == rarely {
		last.VisitAll(func(*pflag.Flag) { count++ })
		return fmt.Sprintf("%d more flags are rarely needed: `%s --help --all` lists them.", count, cmd.CommandPath())
	}
	return ""
}

// commonFlags are the flags of every command that choose no model.
func commonFlags(cmd *cobra.Command) string {
	var names []string
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[config.ModelKey]; !ok && !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return strings.Join(names, " ")
}

// asksModel reports whether a command opens a model.
func asksModel(cmd *cobra.Command) bool {
	over := cmd.Parent()
	return cmd.GroupID == groupAsk || over.GroupID == groupAsk || cmd.Name() == "show" && over.Name() == "arch"
}

// hang breaks a line that begins at a column, as do the lines that go on.
func hang(line string, column, width int) string {
	lines := strings.Split(text.WrapSoft(line, max(width-column, 30)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", column))
}

// fill breaks the lines of paragraphs at a width. A paragraph with indented lines is a table: what goes on stands below
// the last column.
func fill(page string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(page), "\n\n")
	for i, p := range paragraphs {
		rows := strings.Split(p, "\n")
		if !strings.Contains("\n"+p, "\n ") {
			rows = []string{strings.Join(rows, " ")}
		}
		for j, row := range rows {
			if column := strings.LastIndex(row, "  ") + 2; column > 1 {
				rows[j] = row[:column] + hang(row[column:], utf8.RuneCountInString(row[:column]), width)
			} else {
				rows[j] = hang(row, 0, width)
			}
		}
		paragraphs[i] = strings.Join(rows, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// continued breaks the lines of examples before a flag where a screen is narrower, as a shell has it. Text in quotes
// stays whole: a shell takes a break there as a part of the text.
func continued(examples string, width int) string {
	var out []string
	for line := range strings.SplitSeq(examples, "\n") {
		for width > 30 && len(line) > width {
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
