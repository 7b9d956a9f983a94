//go:build cuda

// Command origami-plugin-cuda is the executor plugin for NVIDIA GPUs: it compiles, checks and measures kernels for
// origami.
package main

import (
	"github.com/origami-gemm/origami/plugins/nvidia/cuda"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() { serve.MainExecutor(cuda.Provider{}) }
