package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// What describes the answers is what the structs say.
func TestDescriptionsFollowTheStructs(t *testing.T) {
	const root = "../../.."
	want, got := must.Get(Page(root))(t), must.Get(os.ReadFile(root+"/docs/json.md"))(t)
	must.That(t, bytes.Equal(got, want), "docs/json.md differs from the structs: run `go generate ./ask`")
}
