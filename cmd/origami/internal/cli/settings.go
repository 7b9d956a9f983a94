package cli

import (
	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
)

// settingRow is a setting in force.
type settingRow struct {
	Key    string   `json:"key"`
	Value  string   `json:"value"`
	Source string   `json:"source"`
	Flag   string   `json:"flag"`
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
		RunE:    func(*cobra.Command, []string) error { return printSettings(f) },
	}
}

// printSettings lists the settings.
func printSettings(f *session.Factory) error {
	type row = settingRow
	var rows []row
	for _, s := range f.Settings.All() {
		rows = append(rows, row{s.Key, s.Value(), f.Settings.Source(s.Key), s.Dashed(), s.Env()})
	}
	return show.NewRows(f.Streams, f.Format(), show.Key[row]("key"), show.Key[row]("value"), show.Key[row]("source"),
		show.Key[row]("env")).Least("env").All(rows)
}
