package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// A trusted binary is found at its path in the lock file, without any other option.
func TestTrustedPluginsAreFound(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, searched := t.TempDir(), t.TempDir()
	lock := filepath.Join(dir, "lock")
	path := install(t, dir, "outside")
	t.Chdir(dir)
	// A relative path is stored as an absolute one.
	must.Get(host.Trust(t.Context(), lock, "origami-plugin-outside"))(t)
	t.Chdir(searched)
	options := host.Options{SearchPath: []string{searched}, LockFile: lock}
	if p := info(t, newHost(t, options), "outside"); p.State != host.OK || p.Path != path || p.Named ||
		!slices.Equal(p.Archs, []string{"outside"}) {
		t.Errorf("got %+v", p)
	}

	// The search path comes first; the same binary is not listed twice.
	second := install(t, searched, "outside")
	var got []string
	for _, p := range pluginsOf(t, newHost(t, options)) {
		got = append(got, string(p.State)+" "+p.Path)
	}
	want := []string{"ok " + second, "skipped " + path}
	must.That(t, slices.Equal(got, want), "got %v, want %v", got, want)
	options.Plugins = []string{path}
	all := pluginsOf(t, newHost(t, options))
	must.That(t, len(all) == 2 && all[0].Path == path && all[0].Named &&
		all[0].State == host.OK, "got %+v", all)
	options.Plugins = nil

	// A binary that is moved into the search path stays trusted, and its old path is not reported.
	must.Do(t, os.Remove(path))
	all = pluginsOf(t, newHost(t, options))
	must.That(t, len(all) == 1 && all[0].Path == second && all[0].State == host.OK, "moved: got %+v", all)
	// A missing binary is listed with the fix.
	must.Do(t, os.Remove(second))
	if p := info(t, newHost(t, options), "outside"); p.State != host.Skipped || p.Path != path ||
		!strings.Contains(p.Reason, "its file is missing; trust it at its new path, or distrust it") {
		t.Errorf("gone: got %+v", p)
	}

	name, err := host.Distrust(t.Context(), lock, "other")
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.Contains(err.Error(), "the trusted plugins: outside"), "got %q, %v", name, err)
	name, err = host.Distrust(t.Context(), lock, path)
	must.That(t, name == "outside" && err == nil, "got %q, %v", name, err)
	all = pluginsOf(t, newHost(t, options))
	must.That(t, len(all) == 0, "distrusted: got %+v", all)
	_, err = host.Distrust(t.Context(), lock, "outside")
	must.That(t, diag.KindOf(err) == diag.Input, "got %v", err)
}

// An entry without a path trusts a binary but does not find it.
func TestTrustIsOfContent(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	path := install(t, dir, "outside")
	trust(t, lock, path)
	text := must.Get(os.ReadFile(lock))(t)
	pathless := strings.Replace(string(text), ",\n      \"path\": \""+path+"\"", "", 1)
	must.Need(t, pathless != string(text), "no path in %s", text)
	must.Do(t, os.WriteFile(lock, []byte(pathless), 0o600))
	all := pluginsOf(t, newHost(t, host.Options{LockFile: lock}))
	must.That(t, len(all) == 0, "got %+v", all)
	if p := info(t, newHost(t, host.Options{LockFile: lock, SearchPath: []string{dir}}),
		"outside"); p.State != host.OK {
		t.Errorf("got %+v", p)
	}

	for _, bad := range []string{"origami-plugin-outside", "/somewhere/origami-plugin-inside"} {
		must.Do(t, os.WriteFile(lock, []byte(strings.Replace(string(text), path, bad, 1)), 0o600))
		p := info(t, newHost(t, host.Options{LockFile: lock, SearchPath: []string{dir}}),
			"outside")
		must.That(t, p.State == host.Skipped && strings.Contains(p.Reason, "the path of outside"), "%s: got %+v", bad, p)
	}
}

// Plugins that are trusted concurrently are all trusted.
func TestTrustTakesTurns(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "settings", "lock")
	var wg sync.WaitGroup
	for i := range 16 {
		path := filepath.Join(dir, host.Prefix+"p"+strconv.Itoa(i))
		must.Do(t, os.WriteFile(path, []byte(path), 0o700))
		wg.Go(func() {
			_, err := host.Trust(t.Context(), lock, path)
			must.That(t, err == nil, "%v", err)
		})
	}
	wg.Wait()
	text := must.Get(os.ReadFile(lock))(t)
	n := strings.Count(string(text), "sha256")
	must.That(t, n == 16, "%d of 16 are in the lock file:\n%s", n, text)
}
