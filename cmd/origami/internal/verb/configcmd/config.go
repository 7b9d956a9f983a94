// Package configcmd is `origami config`: the settings in force, and where each comes from.
package configcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
)

// setting is a line of `config --json`.
type setting struct {
	Key    string   `json:"key"`
	Value  string   `json:"value"`
	Source string   `json:"source"`
	Flag   string   `json:"flag,omitempty"`
	Env    []string `json:"env"`
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force, and where each comes from",
		Long: "Show the settings in force. Each comes from a flag, an environment variable, a line of the settings\n" +
			"file, or is the default. `origami help environment` says what they mean.",
		Example: "  origami config\n  origami config --arch h200 --json",
		Args:    verb.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return Run(f) },
	}
}

// Run lists the settings.
func Run(f *session.Factory) error {
	format := f.Format()
	var rows [][]string
	for _, s := range config.All() {
		one := setting{Key: s.Key, Value: f.Settings.Value(s.Key), Source: f.Settings.Sources[s.Key], Env: s.Env}
		if one.Source == "" {
			one.Source = "default"
		}
		if s.Flag != "" {
			one.Flag = "--" + s.Flag
		}
		if format == table.JSON {
			if err := table.JSONLine(f.Streams, one); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{one.Key, one.Value, one.Source, one.Flag, strings.Join(one.Env, " ")})
	}
	if format == table.JSON {
		return nil
	}
	return table.WriteRows(f.Streams, format, []string{"key", "value", "source", "flag", "env"}, rows, "env", "flag")
}
