package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// writeCounted writes a plugin that counts how often it is asked to describe itself.
func writeCounted(t *testing.T, path, count, version string) {
	t.Helper()
	text := "#!/bin/sh\necho >> " + count + `
echo '{"info":{"name":"counted","version":"` + version + `"},"protocols":[2],
"manifest":{"name":"counted","version":"` + version + `","archs":[
{"id":"counted","vendor":"none","models":["m"],"kernels":["k"],"devices":[{"id":"d","name":"d"}]}]}}'
`
	must.Do(t, os.WriteFile(path, []byte(text), 0o700))
}

// A trusted plugin is started once to describe itself, and not again while its binary is the same.
func TestPluginsAreAskedOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	lock, cache := filepath.Join(dir, "lock"), filepath.Join(dir, "cache", "plugins")
	path := filepath.Join(dir, "origami-plugin-counted")
	count := filepath.Join(dir, "count")
	write := func(version string) { writeCounted(t, path, count, version) }
	look := func(version string, asked int) {
		t.Helper()
		p := info(t, newHost(t, host.Options{Plugins: []string{path}, LockFile: lock, DescribeCache: cache}), "counted")
		must.That(t, p.State == host.OK && p.Version == version && len(p.Archs) == 1, "got %+v", p)
		runs, _ := os.ReadFile(count)
		must.That(t, len(runs) == asked, "asked %d times, want %d", len(runs), asked)
	}
	write("1.0.0")
	trust(t, lock, path)
	look("1.0.0", 1)
	look("1.0.0", 1)

	// A damaged entry of the cache is not used.
	files, err := filepath.Glob(filepath.Join(cache, "*.json"))
	must.Need(t, err == nil && len(files) == 1, "kept: %v, %v", files, err)
	must.Do(t, os.WriteFile(files[0], []byte("{"), 0o600))
	look("1.0.0", 2)

	// The entry is not used for a changed binary, and that binary is not run.
	write("1.0.1")
	if p := info(t, newHost(t, host.Options{Plugins: []string{path}, LockFile: lock, DescribeCache: cache}),
		"counted"); p.State != host.Skipped || !strings.Contains(p.Reason, "SHA-256") {
		t.Errorf("got %+v", p)
	}
	trust(t, lock, path)
	look("1.0.1", 3)
	look("1.0.1", 3)
	files, _ = filepath.Glob(filepath.Join(cache, "*"))
	must.That(t, len(files) == 1, "the answer of the old binary is kept: %v", files)
	// A named plugin is always asked.
	if p := info(t, newHost(t, host.Options{Plugins: []string{path}, TrustNamed: true, DescribeCache: cache}),
		"counted"); p.State != host.OK {
		t.Errorf("got %+v", p)
	}
	if runs, _ := os.ReadFile(count); len(runs) != 4 {
		t.Errorf("asked %d times", len(runs))
	}

	// The file is hashed before it runs: a different file of the same size and time does not run.
	before := must.Get(os.Stat(path))(t)
	write("1.0.2")
	must.Do(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	h := newHost(t, host.Options{Plugins: []string{path}, LockFile: lock, DescribeCache: cache})
	var failure *host.PluginError
	_, err = h.Open(t.Context(), arch.OpenRequest{Arch: "counted"})
	must.That(t, errors.As(err, &failure) &&
		failure.Fault == host.FaultUntrusted, "got %v", err)
	write("1.0.1")

	// A cache that cannot be written is not an error.
	p := info(t, newHost(t, host.Options{Plugins: []string{path}, LockFile: lock,
		DescribeCache: filepath.Join(path, "no", "folder")}), "counted")
	must.That(t, p.State == host.OK, "got %+v", p)
}
