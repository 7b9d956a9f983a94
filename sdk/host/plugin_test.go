package host_test

import (
	"os"

	"github.com/origami-gemm/origami/sdk/internal/fake"
	"github.com/origami-gemm/origami/sdk/serve"
)

func runPlugin(mode string) {
	p := fake.Provider{Name: mode}
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		serve.Serve(p)
		os.Exit(0)
	}
	serve.Main(p)
}
