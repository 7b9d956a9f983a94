// Command origami-plugin-nvidia serves the nvidia models to origami as a separate binary.
package main

import (
	"fmt"
	"os"

	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() {
	p, err := nvidia.Provider()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(p)
}
