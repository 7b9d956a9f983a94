package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
)

// help adds the help of cobra, at a width. It lists the flags that few people need (question.Field.Rare) if all are
// asked for. `origami help` works when the settings do not, and an unknown name is an error.
func help(root *cobra.Command, width int, all bool) {
	root.InitDefaultHelpCmd()
	cmd, _, _ := root.Find([]string{"help"}) // it was added
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if cmd, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return session.UnknownCommand(cmd, append(rest, args...)[0])
		}
		return nil
	}
	cobra.AddTemplateFunc("fill", func(page string) string { return fill(page, width) })
	root.SetHelpTemplate(strings.ReplaceAll(root.HelpTemplate(), "trimTrailingWhitespaces}}", "fill}}"))
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d", width)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", wrapped))
	page := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		rare := 0
		cmd.InheritedFlags().SortFlags = false
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if session.IsRare(f) && !all && !f.Hidden {
					f.Hidden = true
					rare++
				}
			})
		}
		page(cmd, args)
		if rare > 0 && cmd.Runnable() {
			fmt.Fprintf(cmd.OutOrStdout(), "\n%d more flags are rarely needed: see `%s --help --all`.\n", rare,
				cmd.CommandPath())
		}
	})
}

// fill breaks the lines of paragraphs at a width. A paragraph with indented lines is a table: what goes on stands below
// the last column.
func fill(page string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(page), "\n\n")
	for i, p := range paragraphs {
		rows := []string{strings.ReplaceAll(p, "\n", " ")}
		if strings.Contains("\n"+p, "\n ") {
			rows = strings.Split(p, "\n")
		}
		for j, row := range rows {
			head := row[:strings.LastIndex("  "+row, "  ")]
			rows[j] = show.Hang(row, utf8.RuneCountInString(head), width)
		}
		paragraphs[i] = strings.Join(rows, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}
