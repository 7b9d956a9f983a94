// Command executor is an executor plugin of the revision that it is built in. Its measurements are made up.
package main

import (
	"github.com/origami-gemm/origami/sdk/internal/fake"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() { serve.MainExecutor(fake.ExecutorProvider{}) }
