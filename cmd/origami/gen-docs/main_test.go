package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The committed pages are those that gen-docs writes.
func TestCommittedDocsAreUpToDate(t *testing.T) {
	fresh := t.TempDir()
	if err := write(fresh); err != nil {
		t.Fatal(err)
	}
	const committed = "../../../docs"
	if diff := cmp.Diff(read(t, committed), read(t, fresh)); diff != "" {
		t.Errorf("run `make generate`:\n%s", diff)
	}
}

func read(t *testing.T, docs string) map[string]string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(docs, "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, page := range append(pages, filepath.Join(docs, "exit-codes.md"), filepath.Join(docs, "conformance.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		content[filepath.Base(page)] = string(text)
	}
	return content
}
