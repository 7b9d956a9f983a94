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
	row    = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	toRow  = regexp.MustCompile(`experiments/README\.md#([^()\s]+)`)
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

// Each folder of experiments has a row, and each link to a row leads to one.
func TestExperimentsHaveRows(t *testing.T) {
	text, err := os.ReadFile("../experiments/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = true
	}
	folders, err := os.ReadDir("../experiments")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !rows[f.Name()] && f.Name() != "__pycache__" {
			t.Errorf("experiments/README.md has no row for %s", f.Name())
		}
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range toRow.FindAllStringSubmatch(string(text), -1) {
			if !rows[m[1]] {
				t.Errorf("%s links to the row %s of experiments/README.md, which it does not have", page, m[1])
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
			folder == "docs/decisions" && filepath.Base(page) != "README.md" {
			continue
		}
		if listed[page] != 1 {
			t.Errorf("docs/README.md lists %s %d times", page, listed[page])
		}
	}
}
