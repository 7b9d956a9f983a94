package plugincmd

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/sdk/host"
)

func newList(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List plugins, the skipped and failed ones included",
		Long: "List every plugin that was found, built-in or not: its version and that of the API it speaks, what\n" +
			"it provides, and its state, which is ok, skipped or error; the last two say why. A plugin has a\n" +
			"second to describe itself. Files that are not in the lock file are not read. A lock file that\n" +
			"cannot be used is listed first, as an error.",
		Example: "  origami plugin ls\n  origami plugin ls --json",
		Args:    session.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return pluginList(cmd.Context(), f) },
	}
}

// listed is a plugin in the list.
type listed struct {
	host.PluginInfo
	source, reason string
	// devices are the devices of the architectures, as arch@device. models and kernels are of all architectures.
	devices, models, kernels []string
}

// columns are the columns of the list. A table has only those that fit a terminal.
var columns = table.Columns[listed]{
	table.Col("name", func(l *listed) string { return l.Name }),
	table.Col("source", func(l *listed) string { return l.source }),
	table.Col("version", func(l *listed) string { return l.Version }),
	table.Col("state", func(l *listed) host.State { return l.State }),
	table.Col("archs||-", func(l *listed) []string { return append([]string{}, l.Archs...) }),
	table.Col("executor||-", func(l *listed) bool { return l.Executor }).CSV(func(l *listed) string {
		if l.Executor {
			return "yes"
		}
		return ""
	}),
	table.Text("provides", (*listed).provides),
	table.Col("path||-", func(l *listed) string { return l.Path }).Omit(),
	table.Text("path", func(l *listed) string {
		if l.source == builtin {
			return ""
		}
		return l.Path
	}),
	table.Col("reason", func(l *listed) string { return l.reason }).Omit(),
	table.Col("devices||-", func(l *listed) []string { return append([]string{}, l.devices...) }),
	table.Col("models||-", func(l *listed) []string { return append([]string{}, l.models...) }),
	table.Col("kernels||-", func(l *listed) []string { return append([]string{}, l.kernels...) }),
	table.Col("protocols||-", func(l *listed) []int { return append([]int{}, l.Protocols...) }),
	table.Col("sha256||-", func(l *listed) string { return l.SHA256 }).Omit(),
}

const builtin = "builtin" // a source

func pluginList(ctx context.Context, f *session.Factory) error {
	plugins, err := f.Plugins(ctx)
	if err != nil {
		return err
	}
	manifests, err := f.Manifests(ctx)
	if err != nil {
		return err
	}
	var all []listed
	if err := f.LockError(); err != nil {
		// A refused lock file hides plugins, so it is listed like one.
		all = append(all, listed{PluginInfo: host.PluginInfo{Name: filepath.Base(f.Settings.LockFile), State: host.Error,
			Path: f.Settings.LockFile}, source: "lock file", reason: err.Error()})
	}
	for _, p := range plugins {
		l := listed{PluginInfo: p, source: "external", reason: reason(f, &p)}
		if p.Builtin {
			l.source = builtin
		}
		if i := slices.IndexFunc(manifests, func(m arch.Manifest) bool { return m.Name == p.Name }); i >= 0 &&
			p.State == host.OK {
			l.provide(manifests[i])
		}
		all = append(all, l)
	}
	return columns.Write(f.Streams, f.Format(), all, "API", "version", "path", "source")
}

// reason says why a plugin cannot be used, or what another plugin provides instead.
func reason(f *session.Factory, p *host.PluginInfo) string {
	if err := p.Err(); err != nil {
		return f.Streams.Hinted(err.At("")).Error()
	}
	return p.Reason
}

// provide fills in what a manifest lists.
func (l *listed) provide(m arch.Manifest) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	for _, entry := range m.Archs {
		for _, d := range entry.Devices {
			add(&l.devices, entry.ID+"@"+d.ID)
		}
		add(&l.models, entry.Models...)
		add(&l.kernels, entry.Kernels...)
	}
}

// provides summarizes a plugin: the devices per architecture, or that it runs kernels.
func (l *listed) provides() string {
	if l.Executor {
		return "an executor"
	}
	var archs []string
	for _, id := range l.Archs {
		var devices []string
		for _, d := range l.devices {
			if device, ok := strings.CutPrefix(d, id+"@"); ok {
				devices = append(devices, device)
			}
		}
		archs = append(archs, id+" ("+strings.Join(devices, " ")+")")
	}
	return strings.Join(archs, ", ")
}
