// Command origami-plugin-example-simulator serves the simulator of the plugin example. origami starts it when needed.
package main

import (
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() { serve.MainExecutor(example.Simulator{}) }
