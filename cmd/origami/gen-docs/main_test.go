package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/release"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The committed pages are those that gen-docs writes.
func TestCommittedDocsAreUpToDate(t *testing.T) {
	fresh := t.TempDir()
	must.Do(t, write(fresh))
	const committed = "../../../docs"
	diff := cmp.Diff(read(t, committed), read(t, fresh))
	must.That(t, diff == "", "run `make generate`:\n%s", diff)
}

func read(t *testing.T, docs string) map[string]string {
	t.Helper()
	pages := must.Get(filepath.Glob(filepath.Join(docs, "reference", "*.md")))(t)
	content := map[string]string{}
	for _, page := range append(pages, filepath.Join(docs, "exit-codes.md"), filepath.Join(docs, "conformance.md")) {
		text := must.Get(os.ReadFile(page))(t)
		content[filepath.Base(page)] = string(text)
	}
	return content
}

// Every command of the reference has a manual page, and pages of equal sources are equal.
func TestManPages(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{first, second} {
		must.Do(t, writeManPages(root(), folder, time.Unix(1700000000, 0).UTC()))
	}
	pages, err := os.ReadDir(first)
	if err != nil || len(pages) != len(commands(root())) {
		t.Fatalf("%d pages of %d commands: %v", len(pages), len(commands(root())), err)
	}
	for _, page := range pages {
		text := content(t, first, page.Name())
		if text != content(t, second, page.Name()) {
			t.Errorf("%s is not the same twice", page.Name())
		}
		if !strings.Contains(text, "Nov 2023") || !strings.Contains(text, "origami "+release.Version) {
			t.Errorf("%s has no date or no version:\n%.300s", page.Name(), text)
		}
	}
	for name, want := range map[string]string{
		"origami-select.1": "--problems", "origami-environment.7": "ORIGAMI_ARCH", "origami.1": "--version",
	} {
		// The format marks hyphens as such.
		must.That(t, strings.Contains(strings.ReplaceAll(content(t, first, name), `\-`, "-"), want),
			"%s does not have %s", name, want)
	}
}

// The scripts ask the program for completions, by its hidden command.
func TestCompletions(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, writeCompletions(root(), folder))
	for _, name := range []string{"origami.bash", "_origami", "origami.fish", "origami.ps1"} {
		must.That(t, strings.Contains(content(t, folder, name), "__complete"), "%s does not ask origami", name)
	}
}

func content(t *testing.T, folder, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(folder, name)))(t)
	return string(text)
}
