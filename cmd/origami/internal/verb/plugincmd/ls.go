package plugincmd

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
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
		Args:    verb.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), f) },
	}
}

// listed is a line of `plugin ls --json`.
type listed struct {
	Name     string   `json:"name"`
	Source   string   `json:"source"`
	Version  string   `json:"version"`
	State    string   `json:"state"`
	Archs    []string `json:"archs"`
	Executor bool     `json:"executor"`
	Path     string   `json:"path,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// Devices are the devices of the architectures, as arch@device. Models and Kernels are those of all architectures.
	Devices     []string `json:"devices"`
	Models      []string `json:"models"`
	Kernels     []string `json:"kernels"`
	APIVersions []string `json:"api_versions"`
	Protocols   []int    `json:"protocols"`
	SHA256      string   `json:"sha256,omitempty"`
}

func list(ctx context.Context, f *session.Factory) error {
	plugins, err := f.Plugins(ctx)
	if err != nil {
		return err
	}
	manifests, err := f.Manifests(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	write := func(l listed) error {
		if f.Format() != table.JSON {
			rows = append(rows, l.row(f.Format()))
			return nil
		}
		for _, list := range []*[]string{&l.Archs, &l.Devices, &l.Models, &l.Kernels, &l.APIVersions} {
			*list = append([]string{}, *list...) // [] rather than null
		}
		l.Protocols = append([]int{}, l.Protocols...)
		return table.JSONLine(f.Streams, l)
	}
	if err := f.LockError(); err != nil {
		// A refused lock file hides plugins, so it is listed like one.
		if err := write(listed{Name: filepath.Base(f.Settings.LockFile), Source: "lock file", State: string(host.Error),
			Path: f.Settings.LockFile, Reason: err.Error()}); err != nil {
			return err
		}
	}
	for _, p := range plugins {
		l := listed{
			Name: p.Name, Source: "external", Version: p.Version, State: string(p.State), Archs: p.Archs,
			Executor: p.Executor,
			Path:     p.Path, Reason: reason(f, &p),
			APIVersions: p.APIVersions, Protocols: p.Protocols, SHA256: p.SHA256,
		}
		if p.Builtin {
			l.Source = "builtin"
		}
		if i := slices.IndexFunc(manifests, func(m arch.Manifest) bool {
			return m.Name == p.Name &&
				p.State == host.OK
		}); i >= 0 {
			l.provide(manifests[i])
		}
		if err := write(l); err != nil {
			return err
		}
	}
	if f.Format() == table.JSON {
		return nil
	}
	return table.WriteRows(f.Streams, f.Format(), header(f.Format()), rows,
		"API", "version", "path", "source")
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

// header names the columns. A table has only those that fit a terminal.
func header(f table.Format) []string {
	if f == table.Table {
		return []string{"name", "source", "version", "API", "state", "provides", "path", "reason"}
	}
	return []string{"name", "source", "version", "state", "archs", "executor", "path", "reason", "devices", "models",
		"kernels", "api_versions", "protocols", "sha256"}
}

func (l *listed) row(f table.Format) []string {
	if f == table.Table {
		path := l.Path
		if l.Source == "builtin" {
			path = ""
		}
		api := ""
		if n := len(l.APIVersions); n > 0 {
			api = l.APIVersions[n-1]
		}
		return []string{l.Name, l.Source, l.Version, api, l.State, l.provides(), path, l.Reason}
	}
	executor := ""
	if l.Executor {
		executor = "yes"
	}
	protocols := make([]string, len(l.Protocols))
	for i, p := range l.Protocols {
		protocols[i] = strconv.Itoa(p)
	}
	words := func(list []string) string { return strings.Join(list, " ") }
	return []string{
		l.Name, l.Source, l.Version, l.State, words(l.Archs), executor, l.Path, l.Reason,
		words(l.Devices), words(l.Models), words(l.Kernels), words(l.APIVersions), words(protocols), l.SHA256,
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
