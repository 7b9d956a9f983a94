// Package builtins reaches the plugins that are part of this binary, and all others.
package builtins

import (
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	shipped "github.com/origami-gemm/origami/plugins/builtins"
)

// find returns the built-in plugin of that name.
func find(name string) (shipped.Plugin, error) {
	var names []string
	for _, b := range shipped.Plugins {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return shipped.Plugin{}, diag.Inputf("there is no built-in plugin %q", name).
		Do("the built-in plugins: %s", strings.Join(names, ", "))
}
