// Package builtins lists the plugins that are part of the command line and of the C library.
package builtins

import (
	"github.com/origami-gemm/origami/core/arch"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// Plugin is a plugin that is part of the program.
type Plugin struct {
	Name string
	// Provider makes the provider, which lists its devices and does not read their numbers.
	Provider func() (arch.Provider, error)
}

// Plugins lists them in order of precedence. A new one is a line here.
var Plugins = []Plugin{
	{"nvidia", nvidia.Provider},
	{"amd-ref", amdref.Provider},
}

// Providers makes the provider of each plugin, in order of precedence.
func Providers() ([]arch.Provider, error) {
	all := make([]arch.Provider, len(Plugins))
	for i, plugin := range Plugins {
		var err error
		if all[i], err = plugin.Provider(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
