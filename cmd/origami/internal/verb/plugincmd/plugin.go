// Package plugincmd is `origami plugin`: which plugins there are, a new one's source, whether one is what it must be, which
// are trusted, and the hidden command with which the binary serves its built-in ones.
package plugincmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
	"github.com/origami-gemm/origami/sdk/host"
)

// Actions are what the plugin machinery does for this command.
type Actions struct {
	// Serve serves the built-in plugin of that name and does not return while the host lives.
	Serve func(name string) error
	// Trust enters the binary at path, with its hash, in the lock file; Distrust takes a plugin, named or by its path, out of
	// it. Both return the plugin's name.
	Trust, Distrust func(lockFile, path string) (string, error)
	// Connect reaches the plugin binary at path and no other, whether or not it is trusted.
	Connect func(s config.Settings, path string) *host.Host
}

// New returns the command with its subcommands.
func New(f *session.Factory, actions Actions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "List, write, check and trust plugins",
		Long: "Architectures come from plugins, and so do executors, which run kernels. Plugins are processes that\n" +
			"answer over gRPC. The built-in ones are part of this binary, which starts itself to serve them. Others\n" +
			"are binaries named origami-plugin-…, which run only once `origami plugin trust` has entered them in the\n" +
			"lock file. From then on they are found where they are. --plugin and the folders of plugin_path come\n" +
			"before that.",
		Example: "  origami plugin ls\n  origami plugin check ./origami-plugin-mine\n  origami plugin trust " +
			"./origami-plugin-mine",
		Args: verb.OnlySubcommands,
		RunE: verb.MissingSubcommand,
	}
	cmd.AddCommand(newList(f), newCommand(f), newCheck(f, actions.Connect), &cobra.Command{
		Use:   "trust PATH",
		Short: "Trust a plugin binary",
		Long: "Enter a plugin binary in the lock file, with its hash, so that it is found where it is and may run. A\n" +
			"binary that changes must be trusted again.",
		Example: "  origami plugin trust ./origami-plugin-mine",
		Args:    verb.OneArgument("PATH", "the plugin binary"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := actions.Trust(f.Settings.LockFile, args[0])
			if err != nil {
				return err
			}
			return report(f, name, args[0], "trusted; its hash is in")
		},
	}, &cobra.Command{
		Use:     "distrust NAME",
		Short:   "Forget a trusted plugin",
		Long:    "Take a plugin, named or by its path, out of the lock file. It does not run any more. Its binary stays.",
		Example: "  origami plugin distrust mine",
		Args:    verb.OneArgument("NAME", "the plugin's name"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := actions.Distrust(f.Settings.LockFile, args[0])
			if err != nil {
				return err
			}
			return report(f, name, "", "not trusted any more; it is no longer in")
		},
	}, &cobra.Command{
		Use:   "serve NAME",
		Short: "Serve a built-in plugin",
		Long: "Serve a built-in plugin to the process that started this one. origami does so itself; there is no use " +
			"for it by hand.",
		Hidden: true,
		// The settings are those of the process that started this one.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		Args:              verb.OneArgument("NAME", "the built-in plugin"),
		RunE:              func(_ *cobra.Command, args []string) error { return actions.Serve(args[0]) },
	})
	return cmd
}

// report says what has become of a plugin in the lock file.
func report(f *session.Factory, name, path, what string) error {
	if render.FormatOf(f) == render.JSON {
		return render.JSONLine(f.Streams, struct {
			Name     string `json:"name"`
			Path     string `json:"path,omitempty"`
			LockFile string `json:"lock_file"`
		}{name, path, f.Settings.LockFile})
	}
	if path != "" {
		name += " (" + path + ")"
	}
	_, err := fmt.Fprintf(f.Streams.Out, "plugin %s is %s %s\n", name, what, f.Settings.LockFile)
	return err
}
