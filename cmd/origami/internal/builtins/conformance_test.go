package builtins

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	shipped "github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/sdk/conformance"
)

var update = flag.Bool("update", false, "rewrite the rankings in testdata")

// Every built-in plugin is what a plugin must be, and ranks as it did. The devices of an architecture differ in numbers
// alone: the rankings are of all, the other checks of one each, and of all with ORIGAMI_TEST_ALL=1.
func TestConformance(t *testing.T) {
	for _, b := range shipped.Plugins {
		t.Run(b.Name, func(t *testing.T) {
			p := must.Get(b.Provider())(t)
			conformance.Architecture(t, p, conformance.Options{Golden: filepath.Join("testdata", b.Name+".jsonl"),
				UpdateGolden: *update,
				Short:        !*update && os.Getenv("ORIGAMI_TEST_ALL") != "1"})
		})
	}
}
