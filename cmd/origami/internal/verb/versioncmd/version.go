// Package version is `origami version`.
package version

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/app"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
)

// Protocol are the versions that host and plugin agree on.
type Protocol struct {
	// Wire is the wire protocol, API the versions of the plugin interface that this binary understands.
	Wire int
	API  []string
}

type object struct {
	Version  string   `json:"version"`
	Go       string   `json:"go"`
	Revision string   `json:"revision,omitempty"`
	Modified bool     `json:"modified,omitempty"`
	Wire     int      `json:"wire_protocol"`
	API      []string `json:"plugin_api"`
}

// New returns the command.
func New(a *app.App, p Protocol) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of origami, Go and the plugin protocol",
		Long:    "Print the versions of the module, of the Go toolchain it was built with, and of the protocol spoken with plugins.",
		Example: "  origami version\n  origami version --json",
		Args:    app.NoMore,
		RunE:    func(*cobra.Command, []string) error { return run(a, p) },
	}
}

func run(a *app.App, p Protocol) error {
	o := object{Version: "unknown", Go: "unknown", Wire: p.Wire, API: p.API}
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version, o.Go = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				o.Revision = s.Value
			case "vcs.modified":
				o.Modified = s.Value == "true"
			}
		}
	}
	if a.Format() == render.JSON {
		return render.JSONLine(a.Streams, o)
	}
	_, err := fmt.Fprintf(a.Streams.Out, "origami %s, %s, wire protocol %d, plugin API %s\n", o.Version, o.Go, o.Wire, strings.Join(o.API, ", "))
	return err
}
