// Package session stands between the verbs and the plugins: it finds the architecture that a name means, reads hardware
// overrides, hands each plugin the options that it declares, and opens models. It knows no vendor; all it has is what
// manifests say.
package session

import (
	"context"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
)

// Host reaches plugins. sdk/host implements it over processes, InProcess over providers in this one. Both give
// bit-equal answers.
type Host interface {
	// Plugins lists every plugin that was found, the skipped and the failed ones included.
	Plugins() []PluginInfo
	// Manifests returns what the working plugins provide, in order of precedence.
	Manifests() []arch.Manifest
	// Open opens an architecture in the plugin that provides it. It may be called from several goroutines.
	Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error)
	// Close ends the plugins.
	Close() error
}

// PluginInfo is one line of `origami plugin ls`.
type PluginInfo struct {
	Name string
	// Builtin says that the plugin is part of this binary; Path is the file of one that is not.
	Builtin bool
	Path    string
	Version string
	Archs   []string
	State   PluginState
	// Reason says why a plugin is skipped or failed.
	Reason string
}

// PluginState says whether a plugin can be used.
type PluginState string

// The states.
const (
	PluginOK      PluginState = "ok"
	PluginSkipped PluginState = "skipped"
	PluginError   PluginState = "error"
)

// InProcess is a Host over providers in this process, for --in-process and for tests.
type InProcess []arch.Provider

// Plugins implements Host.
func (h InProcess) Plugins() []PluginInfo {
	infos := make([]PluginInfo, len(h))
	for i, p := range h {
		m := p.Manifest()
		infos[i] = PluginInfo{Name: m.Name, Builtin: true, Version: m.Version, State: PluginOK}
		for _, a := range m.Archs {
			infos[i].Archs = append(infos[i].Archs, a.ID)
		}
	}
	return infos
}

// Manifests implements Host.
func (h InProcess) Manifests() []arch.Manifest {
	manifests := make([]arch.Manifest, len(h))
	for i, p := range h {
		manifests[i] = p.Manifest()
	}
	return manifests
}

// Open implements Host.
func (h InProcess) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	for _, p := range h {
		for _, a := range p.Manifest().Archs {
			if a.ID == r.Arch {
				return p.Open(ctx, r)
			}
		}
	}
	return nil, diag.Inputf("unknown architecture %q", r.Arch).Do("`origami arch ls` lists them")
}

// Close implements Host.
func (h InProcess) Close() error { return nil }
