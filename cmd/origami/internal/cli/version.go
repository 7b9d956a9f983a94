package cli

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/release"
)

type versionObject struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Protocol int    `json:"wire_protocol"`
}

// newVersion returns `origami version`. protocol is the version of the plugin protocol.
func newVersion(f *session.Factory, protocol int) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of origami, Go and the plugin protocol",
		Long: "Print the version of origami with the commit it was built from, and the versions of the Go toolchain " +
			"and of the protocol spoken with plugins.",
		Example: "  origami version\n  origami version --json",
		Args:    session.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return printVersion(f, protocol) },
	}
}

// printVersion prints the versions.
func printVersion(f *session.Factory, protocol int) error {
	build, toolchain := release.Build{Version: release.Version}, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		build, toolchain = release.BuildOf(info), info.GoVersion
	}
	if f.Format() == show.JSON {
		return show.JSONLine(f.Streams, versionObject{
			Version: build.Version, Go: toolchain, Revision: build.Revision, Modified: build.Modified,
			Protocol: protocol,
		})
	}
	f.Streams.Printf("origami %s, %s, wire protocol %d\n", build, toolchain, protocol)
	return nil
}
