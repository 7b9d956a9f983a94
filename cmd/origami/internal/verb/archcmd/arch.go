// Package archcmd is `origami arch`: the list of architectures and devices, and every number of one of them.
package archcmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
)

// New returns the command with its subcommands.
func New(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "arch",
		Short:   "List architectures and show their numbers",
		Long:    "List the architectures and devices that the plugins provide, and show every number of one of them.",
		Example: "  origami arch ls\n  origami arch show sm90@h200",
		Args:    session.OnlySubcommands,
		RunE:    session.MissingSubcommand,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "ls",
		Short: "List architectures and devices",
		Long: "List the architectures and devices that the plugins provide. The first device of an architecture\n" +
			"is its default, and so are the first model and kernel family.",
		Example: "  origami arch ls\n  origami arch ls --json",
		Args:    session.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), f) },
	}, &cobra.Command{
		Use:   "show ID",
		Short: "Show every number of an architecture",
		Long: "Show an architecture on a device: every hardware number with its unit, the tier it came from,\n" +
			"method, source and date, with overrides applied; the matrix instructions, the memory levels, the\n" +
			"model's constants and options. The ID auto is the GPU in this machine.",
		Example: "  origami arch show sm89\n  origami arch show sm90@h200 --json\n" +
			"  origami arch show auto\n  origami " +
			"arch show sm89 --hw-params mine.json",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && len(f.Settings.Arch) == 0:
				return nil // Factory.Targets says what is missing
			case len(args) > 1:
				return diag.Inputf("%d architectures are given, and this command shows one", len(args)).Do("leave one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			device := ""
			if flag := cmd.Flags().Lookup("device"); flag != nil && flag.Changed {
				device = flag.Value.String() // one of the settings belongs to the architecture there
			}
			return show(cmd.Context(), f, args, device)
		},
	})
	return cmd
}

// listed is a device of an architecture in a plugin.
type listed struct {
	*arch.ArchEntry
	device *arch.DeviceEntry
	plugin string
}

var listColumns = table.Columns[listed]{
	table.Col("arch", func(l *listed) string { return l.ID }),
	table.Col("device", func(l *listed) string { return l.device.ID }),
	table.Col("default", func(l *listed) bool { return l.device == &l.Devices[0] }, yes).Same(),
	table.Col("name", func(l *listed) string { return l.device.Name }),
	table.Col("vendor", func(l *listed) string { return l.Vendor }),
	table.Col("aliases", func(l *listed) []string { return append([]string{}, l.device.Aliases...) }),
	table.Col("models", func(l *listed) []string { return l.Models }),
	table.Col("kernels", func(l *listed) []string { return l.Kernels }),
	table.Col("plugin", func(l *listed) string { return l.plugin }),
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return ""
}

func list(ctx context.Context, f *session.Factory) error {
	manifests, err := f.Manifests(ctx)
	if err != nil {
		return err
	}
	var all []listed
	for _, m := range manifests {
		for i := range m.Archs {
			for j := range m.Archs[i].Devices {
				all = append(all, listed{&m.Archs[i], &m.Archs[i].Devices[j], m.Name})
			}
		}
	}
	return listColumns.Write(f.Streams, f.Format(), all, "plugin", "kernels", "vendor", "default", "models", "aliases")
}

func show(ctx context.Context, f *session.Factory, args []string, deviceFlag string) error {
	archs, device := f.Settings.Arch, f.Settings.Device
	if len(args) > 0 {
		archs, device = args, deviceFlag
	}
	targets, err := f.Targets(ctx, archs, device)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		return diag.Inputf("%d architectures are given, and this command shows one", len(targets)).At("--arch").
			Do("leave one")
	}
	t := &targets[0]
	a, err := f.Open(ctx, t)
	if err != nil {
		return err
	}
	f.WarnUnused(t, a.Describe())
	// The options in force are the model's; what they mean is in the manifest.
	docs := map[string]string{}
	for _, o := range t.Manifest.Options {
		docs[o.Key] = o.Doc
		if len(o.Values) > 0 {
			docs[o.Key] = strings.TrimSpace(o.Doc + " (" + strings.Join(o.Values, ", ") + ")")
		}
	}
	d := a.Describe()
	return write(f.Streams, f.Format(), &view{Description: d, Levels: slices.Clone(a.Hierarchy().Levels()),
		OptionDocs: docs, Plugin: t.Manifest.Name})
}
