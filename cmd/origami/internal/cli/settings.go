package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
)

// setting is a line of `config`.
type setting struct {
	Key    string   `json:"key"`
	Value  string   `json:"value"`
	Source string   `json:"source"`
	Flag   string   `json:"flag,omitempty"`
	Env    []string `json:"env"`
}

// newConfig returns `origami config`: the settings in force, and where each comes from.
func newConfig(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force, and where each comes from",
		Long: "Show the settings in force. Each comes from a flag, an environment variable, a line of the settings\n" +
			"file, or is the default. `origami help environment` says what they mean.",
		Example: "  origami config\n  origami config --arch h200 --json",
		Args:    session.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return printSettings(f) },
	}
}

// printSettings lists the settings.
func printSettings(f *session.Factory) error {
	var rows []setting
	for _, s := range config.All() {
		row := setting{s.Key, f.Settings.Value(s.Key), cmp.Or(f.Settings.Sources[s.Key], "default"), "", s.Env}
		if s.Flag != "" {
			row.Flag = "--" + s.Flag
		}
		rows = append(rows, row)
	}
	key := show.Key[setting]
	return show.NewRows(f.Streams, f.Format(), key("key"), key("value"), key("source"), key("flag"), key("env")).
		Least("env", "flag").All(rows)
}
