package plugincmd

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/sdk/host"
)

func newList(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List plugins, the skipped and failed ones included",
		Long: "List every plugin that was found, built-in or not: its version and protocol, what it provides, and\n" +
			"its state: ok, skipped or error, with the reason. A plugin has a second to describe itself. Files\n" +
			"that are not in the lock file are not read. A lock file that cannot be used is listed first, as an\n" +
			"error.",
		Example: "  origami plugin ls\n  origami plugin ls --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return pluginList(cmd.Context(), f) },
	}
}

// listed is a plugin in the list.
type listed struct {
	Name     string     `json:"name"`             // its name
	Source   string     `json:"source"`           // `builtin`, `external` or `lock file`
	Version  string     `json:"version"`          // its version
	State    host.State `json:"state"`            // `ok`, `skipped` or `error`
	Archs    []string   `json:"archs"`            // the architectures that it provides
	Executor bool       `json:"executor"`         // whether it runs kernels
	Path     string     `json:"path,omitempty"`   // its file
	Reason   string     `json:"reason,omitempty"` // why it is skipped or fails
	Devices  []string   `json:"devices"`          // as `arch@device`, and the models and kernel families of all
	Models   []string   `json:"models"`
	Kernels  []string   `json:"kernels"`
	Protocol []int      `json:"protocols"`        // the versions of the protocol that it speaks
	SHA256   string     `json:"sha256,omitempty"` // the hash of an external plugin
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
		all = append(all, listed{Name: filepath.Base(f.Settings.LockFile), State: host.Error, Path: f.Settings.LockFile,
			Source: "lock file", Reason: err.Error()}.complete())
	}
	for _, p := range plugins {
		l := listed{Name: p.Name, Source: "external", Version: p.Version, State: p.State, Archs: p.Archs,
			Executor: p.Executor,
			Path:     p.Path, Reason: reason(f, &p), Protocol: p.Protocols, SHA256: p.SHA256}
		if p.Builtin {
			l.Source = builtin
		}
		if i := slices.IndexFunc(manifests, func(m arch.Manifest) bool { return m.Name == p.Name }); i >= 0 &&
			p.State == host.OK {
			l.provide(manifests[i])
		}
		all = append(all, l.complete())
	}
	key, text := show.Key[listed], show.Text[listed]
	return show.NewRows(f.Streams, f.Format(), key("name"), key("source"), key("version"), key("state"),
		text("provides", (*listed).provides), text("path", func(l *listed) string {
			if l.Source == builtin {
				return ""
			}
			return l.Path
		}), key("reason")).Least("version", "path", "source").All(all)
}

// complete makes missing lists empty ones.
func (l listed) complete() listed {
	for _, list := range []*[]string{&l.Archs, &l.Devices, &l.Models, &l.Kernels} {
		*list = append([]string{}, *list...)
	}
	l.Protocol = append([]int{}, l.Protocol...)
	return l
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
			add(&l.Devices, entry.ID+"@"+d.ID)
		}
		add(&l.Models, entry.Models...)
		add(&l.Kernels, entry.Kernels...)
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
		for _, d := range l.Devices {
			if device, ok := strings.CutPrefix(d, id+"@"); ok {
				devices = append(devices, device)
			}
		}
		archs = append(archs, id+" ("+strings.Join(devices, " ")+")")
	}
	return strings.Join(archs, ", ")
}
