// Package plugins knows the built-in plugins and how to reach any plugin: it is the one place of the command line that
// names them.
package plugins

import (
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// Builtin is a plugin that is part of this binary.
type Builtin struct {
	Name string
	// Provider makes it. Reading device files takes time, so nobody calls it before the plugin is needed.
	Provider func() (arch.Provider, error)
}

// Builtins lists them all, in order of precedence. This is the line to add one to.
var Builtins = []Builtin{
	{"nvidia", nvidia.Provider},
	{"amd-ref", amdref.Provider},
}

// find returns the built-in plugin of that name.
func find(name string) (Builtin, error) {
	var names []string
	for _, b := range Builtins {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Builtin{}, diag.Inputf("there is no built-in plugin %q", name).Do("the built-in plugins: %s", strings.Join(names, ", "))
}
