// Package docs_test holds the documentation to the files that it names.
package docs_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced = regexp.MustCompile("(?s)```.*?```")
	link   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// links returns the files that a page links to, as paths from the repository's root.
func links(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		to, err := url.Parse(m[1])
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if to.Scheme == "" && to.Path != "" {
			files = append(files, filepath.Join(filepath.Dir(page), to.Path))
		}
	}
	return files
}

// pages returns every Markdown file of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != ".." && strings.HasPrefix(d.Name(), ".") || path == "../bin" || path == "../dist"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			all = append(all, strings.TrimPrefix(path, "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLinksLeadToFiles(t *testing.T) {
	for _, page := range pages(t) {
		for _, file := range links(t, page) {
			if _, err := os.Stat(filepath.Join("..", file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, file)
			}
		}
	}
}

// The index has each page once. Decisions have a separate index.
func TestIndexListsEveryPage(t *testing.T) {
	listed := map[string]int{}
	for _, file := range links(t, "docs/README.md") {
		listed[file]++
	}
	for _, page := range pages(t) {
		folder := filepath.Dir(page)
		if !strings.HasPrefix(page, "docs/") || page == "docs/README.md" ||
			folder == "docs/adr" && filepath.Base(page) != "README.md" {
			continue
		}
		if listed[page] != 1 {
			t.Errorf("docs/README.md lists %s %d times", page, listed[page])
		}
	}
}
