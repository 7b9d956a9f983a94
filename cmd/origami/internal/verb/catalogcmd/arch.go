// Package catalogcmd is `origami arch` and `origami trust`: the architectures and devices that the plugins provide,
// every number of one of them, and what predictions were held against.
package catalogcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/diag"
)

// NewArch returns the command with its subcommands.
func NewArch(f *session.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "arch",
		Short:   "List architectures and show their numbers",
		Long:    "List the architectures and devices that the plugins provide, and show every number of one of them.",
		Example: "  origami arch ls\n  origami arch show sm90@h200",
	}
	cmd.AddCommand(newList(f), &cobra.Command{
		Use:   "show ID",
		Short: "Show every number of an architecture",
		Long: "Show an architecture on a device: every hardware number with its unit, the tier it came from,\n" +
			"method, source and date, with overrides applied; the matrix instructions, the memory levels, the\n" +
			"model's constants and options. The ID auto is the GPU in this machine.",
		Example: "  origami arch show sm89\n  origami arch show sm90@h200 --json\n" +
			"  origami arch show auto\n  origami " +
			"arch show sm89 --hw-params mine.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return tooMany(len(args))
			}
			return nil // Factory.Targets says what is missing
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			device := ""
			if flag := cmd.Flags().Lookup("device"); flag != nil && flag.Changed {
				device = flag.Value.String() // one of the settings belongs to the architecture there
			}
			return archShow(cmd.Context(), f, args, device)
		},
	})
	return cmd
}

func tooMany(archs int) *diag.Error {
	return diag.Inputf("%d architectures are given, and this command shows one", archs).Do("leave one")
}

// Served is the question to a server.
var Served = server.Endpoint{Name: "archs", List: []string{""}, Command: newList}

func newList(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List architectures and devices",
		Long: "List the architectures and devices that the plugins provide. The first device of an architecture\n" +
			"is its default, and so are the first model and kernel family.",
		Example: "  origami arch ls\n  origami arch ls --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return archList(cmd.Context(), f) },
	}
}

func archList(ctx context.Context, f *session.Factory) error {
	manifests, err := f.Manifests(ctx)
	if err != nil {
		return err
	}
	isDefault := func(a *ask.Arch) string {
		if a.Default {
			return "yes"
		}
		return ""
	}
	key := show.Key[ask.Arch]
	return show.NewRows(f.Streams, f.Format(), key("arch"), key("device"), show.Text("default", isDefault), key("name"),
		key("vendor"), key("aliases"), key("models"), key("kernels"), key("plugin")).
		Least("plugin", "kernels", "vendor", "default", "models", "aliases").All(ask.Archs(manifests))
}

func archShow(ctx context.Context, f *session.Factory, args []string, deviceFlag string) error {
	archs, device := f.Settings.Arch, f.Settings.Device
	if len(args) > 0 {
		archs, device = args, deviceFlag
	}
	targets, err := f.Targets(ctx, archs, device)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		return tooMany(len(targets)).At("--arch")
	}
	t := &targets[0]
	a, err := f.Open(ctx, t)
	if err != nil {
		return err
	}
	d := a.Describe()
	f.WarnUnused(t, d)
	// The options in force are the model's; what they mean is in the manifest.
	docs := map[string]string{}
	for _, o := range t.Manifest.Options {
		docs[o.Key] = o.Doc
		if len(o.Values) > 0 {
			docs[o.Key] = strings.TrimSpace(o.Doc + " (" + strings.Join(o.Values, ", ") + ")")
		}
	}
	v := newShown(d, a.Hierarchy().Levels(), docs)
	v.Plugin = t.Manifest.Name
	return v.write(f.Streams, f.Format(), d)
}
