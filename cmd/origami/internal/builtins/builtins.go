// Package builtins knows the plugins that are part of this binary, and how to reach these and all others. It is the one
// place of the command line that names plugins.
package builtins

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// Plugin is a plugin that is part of this binary.
type Plugin struct {
	Name string
	// Provider makes it, which lists its devices and does not read their numbers.
	Provider func() (arch.Provider, error)
}

// Plugins lists them all, in order of precedence: a new one is a line here.
var Plugins = []Plugin{
	{"nvidia", nvidia.Provider},
	{"amd-ref", amdref.Provider},
}

// find returns the built-in plugin of that name.
func find(name string) (Plugin, error) {
	var names []string
	for _, b := range Plugins {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Plugin{}, diag.Inputf("there is no built-in plugin %q", name).
		Do("the built-in plugins: %s", strings.Join(names, ", "))
}
