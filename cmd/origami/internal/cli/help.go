package cli

import (
	"fmt"
	"slices"
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
	usageTemplate = `{{$width := %d}}{{$all := %t}}{{$cmd := .}}{{$flags := flags .}}Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND [flags]{{else}}{{hang .UseLine 6 $width}}{{end}}
{{if .HasExample}}
Examples:
{{continued .Example $width}}
{{end}}{{range groups .}}
{{.Title}}
{{$id := .ID}}{{range $cmd.Commands}}{{if and (eq .GroupID $id) .IsAvailableCommand}}` + row + `{{end}}{{end}}{{end}}` +
		`{{if .HasHelpSubCommands}}
Topics (origami help …):
{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}` + row + `{{end}}{{end}}{{end}}` +
		`{{range $flags}}{{if or $all (not .Rare)}}
{{.Title}}:
{{.FlagUsagesWrapped $width}}{{end}}{{end}}{{if .HasParent}}
Every command has --format, --json and others: see ` + "`origami --help`" + `.
{{end}}
{{fill exitStatus $width}}
{{range $flags}}{{if and .Rare (not $all)}}` +
		"{{fill (printf \"Rarely needed flags: %%d more, see `%%s --help --all`.\" .Count $cmd.CommandPath) $width}}" + `
{{end}}{{end}}`
	row = `  {{rpad .Name 12}} {{hang .Short 15 $width}}
`
)

func init() {
	cobra.AddTemplateFuncs(map[string]any{"fill": fill, "hang": hang, "continued": continued, "groups": groups,
		"flags": flagGroups, "exitStatus": exitStatus})
}

// useTemplates sets the width of help pages, and whether they list the flags that few people need.
func useTemplates(root *cobra.Command, width int, all bool) {
	root.SetHelpTemplate(fmt.Sprintf(helpTemplate, width))
	root.SetUsageTemplate(fmt.Sprintf(usageTemplate, width, all))
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
	Count int
	Rare  bool
}

// flagGroups sorts the flags of a command: its own flags, the flags that choose a model, and, from both, the flags that
// few people need (question.Field.Rare).
func flagGroups(cmd *cobra.Command) []flagGroup {
	groups := []flagGroup{{Title: "Flags"}, {Title: "Architecture and model"}, {Title: "Rarely needed", Rare: true}}
	for i := range groups {
		groups[i].FlagSet = pflag.NewFlagSet("", pflag.ContinueOnError)
		groups[i].SortFlags = false
	}
	add := func(f *pflag.Flag, to *flagGroup) {
		if session.IsRare(f) {
			to = &groups[2]
		}
		if !f.Hidden {
			to.AddFlag(f)
			to.Count++
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { add(f, &groups[0]) })
	inherited := cmd.InheritedFlags()
	inherited.SortFlags = false
	inherited.VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[config.ModelKey]; ok && asksModel(cmd) {
			add(f, &groups[1])
		}
	})
	return slices.DeleteFunc(groups, func(g flagGroup) bool { return g.Count == 0 })
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
