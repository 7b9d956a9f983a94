package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// What describes the answers is what the structs say.
func TestDescriptionsFollowTheStructs(t *testing.T) {
	const root = "../../.."
	files := must.Get(Files(root))(t)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if name == "ask/schemas.json.gz" {
			got = ask.Schemas()
		}
		must.That(t, err == nil && bytes.Equal(got, want),
			"%s differs from the structs of package ask: run `go generate ./ask` (%v)", name, err)
	}
}
