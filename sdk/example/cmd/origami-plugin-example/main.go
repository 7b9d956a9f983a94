// Command origami-plugin-example is the example plugin as a program.
package main

import (
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() { serve.Main(example.Provider{}) }
