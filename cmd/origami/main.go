// Command origami picks GEMM kernel configurations from analytical models, says why, and compares architectures.
package main

import (
	"os"

	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/plugins"
)

func main() { os.Exit(run()) }

func run() int {
	return cli.Main(cli.System{Args: os.Args[1:], Streams: iostreams.System(), Getenv: os.Getenv, Connect: plugins.Connect})
}
