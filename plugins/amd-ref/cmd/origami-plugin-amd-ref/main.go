// Command origami-plugin-amd-ref serves the amd-ref models to origami from a separate binary.
package main

import (
	"fmt"
	"os"

	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() {
	p, err := amdref.Provider()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(p)
}
