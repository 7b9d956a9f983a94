// Command origami picks GEMM kernel configurations from analytical models, says why, and compares architectures.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/origami-gemm/origami/cmd/origami/internal/builtins"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/plugincmd"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

func main() {
	relax()
	if name, ok := builtins.Started(os.Args[1:]); ok { // the command line would take longer to build than the plugin
		if err := builtins.Serve(name); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run())
}

// relax lets the heap grow to 32 MiB before it is collected. Most commands and plugins need less and end within a tenth
// of a second, of which a third went into collections. Larger heaps are collected as ever, and more often near
// host.Memory.
func relax() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(host.Memory)
	}
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(800) // of the least heap, 4 MiB
	type collected struct{ _ *int }
	runtime.AddCleanup(new(collected), func(percent int) { debug.SetGCPercent(percent) }, 100)
}

func run() int { return cli.Main(system()) }

func system() cli.System {
	return cli.System{
		Args: os.Args[1:], Streams: iostreams.System(), Getenv: os.Getenv, Connect: builtins.Connect,
		Plugins: plugincmd.Actions{
			Serve: builtins.Serve, Trust: builtins.Trust, Distrust: builtins.Distrust, Connect: builtins.ConnectTo,
		},
		Export:      builtins.Export,
		KillPlugins: host.KillAll,
		Protocol:    wire.ProtocolVersion,
	}
}
