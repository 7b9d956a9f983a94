package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
)

// settingColumns are the columns of the settings.
func settingColumns(f *session.Factory) table.Columns[config.Setting] {
	type setting = config.Setting
	return table.Columns[setting]{
		table.Col("key", func(s *setting) string { return s.Key }),
		table.Col("value", func(s *setting) string { return f.Settings.Value(s.Key) }),
		table.Col("source", func(s *setting) string { return cmp.Or(f.Settings.Sources[s.Key], "default") }),
		table.Col("flag", func(s *setting) string {
			if s.Flag == "" {
				return ""
			}
			return "--" + s.Flag
		}).Omit(),
		table.Col("env", func(s *setting) []string { return s.Env }),
	}
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
	return settingColumns(f).Write(f.Streams, f.Format(), config.All(), "env", "flag")
}
