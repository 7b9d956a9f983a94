// Package plugincmd is `origami plugin`: it lists, writes, checks and trusts plugins, and has the hidden command with
// which this binary serves its built-in plugins.
package plugincmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/host"
)

// Actions are the operations on plugins that this command needs.
type Actions struct {
	// Serve serves the built-in plugin of this name and does not return while the host lives.
	Serve func(name string) error
	// Trust enters the binary at path, with its hash, in the lock file, and asks it to describe itself. Distrust removes
	// a plugin, by name or path, from the lock file. Both return the plugin's name.
	Trust    func(ctx context.Context, s config.Settings, path string, warn func(string)) (string, error)
	Distrust func(ctx context.Context, s config.Settings, plugin string) (string, error)
	// Connect reaches only the plugin binary at path, trusted or not.
	Connect func(s config.Settings, path string, warn func(string)) *host.Host
}

// New returns the command with its subcommands.
func New(f *session.Factory, actions Actions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "List, write, check and trust plugins",
		Long: "Plugins provide the architectures, and the executors that run kernels: processes that answer over\n" +
			"gRPC. This binary starts itself to serve the built-in ones. Others are binaries named\n" +
			"origami-plugin-…, which run only after `origami plugin trust` has entered them in the lock file.\n" +
			"Only a plugin that --plugin or the setting plugins names replaces what a built-in plugin provides.",
		Example: "  origami plugin ls\n  origami plugin check ./origami-plugin-mine\n  origami plugin trust " +
			"./origami-plugin-mine",
	}
	cmd.AddCommand(newList(f), newCommand(f), newCheck(f, actions.Connect), &cobra.Command{
		Use:   "trust PATH",
		Short: "Trust a plugin binary",
		Long: "Enter a plugin binary in the lock file, with its hash, so that it is found where it is and may\n" +
			"run. It then runs once, to describe itself. A binary that changes must be trusted again.",
		Example: "  origami plugin trust ./origami-plugin-mine",
		Args:    session.OneArgument("PATH", "the plugin binary"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := hasLockFile(f); err != nil {
				return err
			}
			name, err := actions.Trust(cmd.Context(), f.Settings, args[0], f.Streams.Warn)
			if err != nil {
				return err
			}
			return report(f, name, args[0], "trusted; its hash is in")
		},
	}, &cobra.Command{
		Use:     "distrust NAME",
		Short:   "Forget a trusted plugin",
		Long:    "Remove a plugin, by name or path, from the lock file. It does not run any more. Its binary stays.",
		Example: "  origami plugin distrust mine",
		Args:    session.OneArgument("NAME", "the plugin's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := hasLockFile(f); err != nil {
				return err
			}
			name, err := actions.Distrust(cmd.Context(), f.Settings, args[0])
			if err != nil {
				return err
			}
			return report(f, name, "", "not trusted any more; it is no longer in")
		},
	}, &cobra.Command{
		Use:    "serve NAME",
		Short:  "Serve a built-in plugin",
		Long:   "Serve a built-in plugin to the process that started this one. origami calls this command itself.",
		Hidden: true,
		// The process that started this one has the settings.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		Args:              session.OneArgument("NAME", "the built-in plugin"),
		RunE:              func(_ *cobra.Command, args []string) error { return actions.Serve(args[0]) },
	})
	return cmd
}

// hasLockFile fails if no lock file is set and the user has no configuration folder for one.
func hasLockFile(f *session.Factory) error {
	if f.Settings.LockFile == "" {
		return diag.Inputf("there is no place for a lock file").
			Do("set HOME to an absolute path, or ORIGAMI_LOCK_FILE to a file")
	}
	return nil
}

// report writes the change of the lock file.
func report(f *session.Factory, name, path, what string) error {
	if f.Format() == show.JSON {
		return show.JSONLine(f.Streams, struct {
			Name     string `json:"name"`
			Path     string `json:"path,omitempty"`
			LockFile string `json:"lock_file"`
		}{name, path, f.Settings.LockFile})
	}
	if path != "" {
		name += " (" + path + ")"
	}
	f.Streams.Printf("plugin %s is %s %s\n", name, what, f.Settings.LockFile)
	return nil
}
