package host

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// If a plugin's file is replaced between the check of its hash and its start, the checked file runs.
func TestWhatWasHashedIsWhatRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a program is started by its path")
	}
	path := filepath.Join(t.TempDir(), Prefix+"good") // the test binary is a plugin under this name
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := openBinary(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.hash(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()

	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho replaced\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	p, err := start(path, file, []string{"describe"}, os.Environ(), &tail{logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(p.stdout)
	p.release()
	if !strings.Contains(string(text), `"good"`) {
		t.Errorf("it printed %q", text)
	}
}
