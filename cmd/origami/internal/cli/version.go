package cli

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/release"
)

// Protocol are the versions that host and plugin agree on.
type Protocol struct {
	// Wire is the wire protocol, API the versions of the plugin interface that this binary understands.
	Wire int
	API  []string
}

type versionObject struct {
	Version  string   `json:"version"`
	Go       string   `json:"go"`
	Revision string   `json:"revision,omitempty"`
	Modified bool     `json:"modified,omitempty"`
	Wire     int      `json:"wire_protocol"`
	API      []string `json:"plugin_api"`
}

// newVersion returns `origami version`.
func newVersion(f *session.Factory, p Protocol) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of origami, Go and the plugin protocol",
		Long: "Print the version of origami with the commit it was built from, and the versions of the Go toolchain " +
			"and of the protocol spoken with plugins.",
		Example: "  origami version\n  origami version --json",
		Args:    session.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return printVersion(f, p) },
	}
}

// printVersion prints the versions.
func printVersion(f *session.Factory, p Protocol) error {
	build, toolchain := release.Build{Version: release.Version}, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		build, toolchain = release.BuildOf(info), info.GoVersion
	}
	if f.Format() == table.JSON {
		return table.JSONLine(f.Streams, versionObject{
			Version: build.Version, Go: toolchain, Revision: build.Revision, Modified: build.Modified,
			Wire: p.Wire, API: p.API,
		})
	}
	f.Streams.Printf("origami %s, %s, wire protocol %d, plugin API %s\n", build, toolchain, p.Wire,
		strings.Join(p.API, ", "))
	return nil
}
