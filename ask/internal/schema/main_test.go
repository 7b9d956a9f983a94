package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/ask"
)

// What describes the answers is what the structs say.
func TestDescriptionsFollowTheStructs(t *testing.T) {
	const root = "../../.."
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if name == "ask/schemas.json.gz" {
			got = ask.Schemas()
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the structs of package ask: run `go generate ./ask` (%v)", name, err)
		}
	}
}
