package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/release"
)

// versions are the versions of the program, of the Go toolchain and of the plugin protocol.
type versions struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Protocol int    `json:"wire_protocol"`
}

// versionsOf returns the versions, and a line with them.
func versionsOf(protocol int) (v versions, line string) {
	build, toolchain := release.Build{Version: release.Version}, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		build, toolchain = release.BuildOf(info), info.GoVersion
	}
	return versions{build.Version, toolchain, build.Revision, build.Modified, protocol},
		fmt.Sprintf("origami %s, %s, wire protocol %d", build, toolchain, protocol)
}

// newVersion returns `origami version`.
func newVersion(f *session.Factory, protocol int) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of origami, Go and the plugin protocol",
		Long: "Print the version of origami with the commit it was built from, and the versions of the Go toolchain " +
			"and of the protocol spoken with plugins.",
		Example: "  origami version\n  origami version --json",
		RunE: func(*cobra.Command, []string) error {
			v, line := versionsOf(protocol)
			if f.Format() == show.JSON {
				return show.JSONLine(f.Streams, v)
			}
			f.Streams.Printf("%s\n", line)
			return nil
		},
	}
}
