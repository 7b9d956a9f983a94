package durable_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/durable"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

// A file is the old one or the new one, and nothing else is left in its folder.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file.json")
	write := func(text string, after error) func(io.Writer) error {
		return func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			_, err := os.Stat(path)
			must.That(t, err != nil || content(t, path) != text, "the file has its name before it is written")
			return after
		}
	}
	for _, text := range []string{"one", "two"} {
		err := durable.Replace(path, 0o640, write(text, nil))
		must.Need(t, err == nil && content(t, path) == text, "%s: %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// A killed process leaves a file, which is removed, and others are not.
	for _, name := range []string{".file.json-123", ".file.jsonl-123", "file.json-123"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	if err := durable.Sweep(folder, "file.json"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".file.jsonl-123", "file.json-123"} {
		err := os.Remove(filepath.Join(folder, name))
		must.That(t, err == nil, "%v", err)
	}
	full := errors.New("the disk is full")
	if err := durable.Replace(path, 0o640, write("half", full)); !errors.Is(err, full) || content(t, path) != "two" {
		t.Errorf("%v, and the file holds %s", err, content(t, path))
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%v are left, %v", entries, err)
	}
	must.That(t, durable.Replace(filepath.Join(folder, "none", "file"), 0o600, write("x", nil)) != nil,
		"a file was written to a folder that does not exist")
}
