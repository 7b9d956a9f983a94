package pluginverb

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
)

func newList(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List plugins, the skipped and failed ones included",
		Long:    "List every plugin that was found: its state is ok, skipped or error, and the last two say why.",
		Example: "  origami plugin ls\n  origami plugin ls --json",
		Args:    app.NoMore,
		RunE:    func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), a) },
	}
}

// listed is a line of `plugin ls --json`.
type listed struct {
	Name     string   `json:"name"`
	Source   string   `json:"source"`
	Version  string   `json:"version"`
	State    string   `json:"state"`
	Archs    []string `json:"archs"`
	Executor bool     `json:"executor"`
	Path     string   `json:"path,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

func list(ctx context.Context, a *app.App) error {
	s, err := a.Session(ctx)
	if err != nil {
		return err
	}
	header := []string{"name", "source", "version", "state", "archs", "executor", "path", "reason"}
	var rows [][]string
	for _, p := range s.Plugins() {
		l := listed{p.Name, "external", p.Version, string(p.State), append([]string{}, p.Archs...), p.Executor, p.Path, p.Reason}
		if p.Builtin {
			l.Source = "builtin"
		}
		if a.Format() == render.JSON {
			if err := render.JSONLine(a.Streams, l); err != nil {
				return err
			}
			continue
		}
		executor := ""
		if l.Executor {
			executor = "yes"
		}
		rows = append(rows, []string{l.Name, l.Source, l.Version, l.State, strings.Join(l.Archs, " "), executor, l.Path, l.Reason})
	}
	if a.Format() == render.JSON {
		return nil
	}
	return render.Rows(a.Streams, a.Format(), header, rows)
}
