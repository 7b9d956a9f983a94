//go:build !js

package session

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/core/diag"
)

// Configure loads the settings for a command.
func (f *Factory) Configure(cmd *cobra.Command) error {
	settings, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	if slices.Contains(config.PasteFormats, settings.Format) && cmd.Annotations[config.PastesKey] == "" {
		return diag.Inputf("the format %s is for select and rank", settings.Format).
			At("%s", settings.Source("format")).Do("use one of %s", strings.Join(config.Formats, ", "))
	}
	settings.Kernel = models.Family(settings.Kernel)
	f.Settings = settings
	if f.PluginOptions, err = cmd.Flags().GetStringArray("option"); err != nil {
		f.PluginOptions = nil // the command does not have the flag
	}
	f.Streams.JSONErrors, f.Streams.Wide = settings.Format == config.JSON, settings.Wide
	for _, text := range settings.Warnings {
		f.Streams.Warn(text)
	}
	return nil
}
