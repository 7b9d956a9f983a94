// Command origami-plugin-example serves the plugin example. origami starts it when needed.
package main

import (
	"fmt"
	"os"

	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() {
	provider, err := example.Provider()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(provider)
}
