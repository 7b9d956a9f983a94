package host_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

// install puts the test binary into a directory as an external plugin of a mode.
func install(t *testing.T, dir, mode string) string {
	t.Helper()
	path := filepath.Join(dir, host.Prefix+mode)
	in := must.Get(os.Open(os.Args[0]))(t)
	defer func() { _ = in.Close() }()
	out := must.Get(os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700))(t)
	must.Get(io.Copy(out, in))(t)
	must.Do(t, out.Close())
	return path
}

func trust(t *testing.T, lock, path string) {
	t.Helper()
	must.Get(host.Trust(t.Context(), lock, path))(t)
}

func tamper(t *testing.T, path string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	must.Get(f.Write([]byte{0}))(t)
	must.Do(t, f.Close())
}

func info(t *testing.T, h *host.Host, name string) host.PluginInfo {
	t.Helper()
	all := pluginsOf(t, h)
	i := slices.IndexFunc(all, func(p host.PluginInfo) bool { return p.Name == name })
	must.Need(t, i >= 0, "no plugin %s among %+v", name, all)
	return all[i]
}

// A binary that is not in the lock file, or has changed, is not run: neither to open an architecture nor to describe
// itself.
func TestOnlyTrustedPluginsAreRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	lock := filepath.Join(dir, "config", "plugins.lock")
	path := install(t, dir, "outside")
	options := host.Options{SearchPath: []string{filepath.Join(dir, "nowhere"), dir}, LockFile: lock}

	refused := func(state host.State, reason string) {
		t.Helper()
		h := newHost(t, options)
		// What the lock file has no entry for is not even hashed.
		p := info(t, h, "outside")
		must.That(t, p.State == state && strings.Contains(p.Reason, reason) && p.Path == path &&
			(p.SHA256 != "") == strings.HasPrefix(reason, "SHA-256"), "got %+v, want %s because of %q", p, state, reason)
		_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "outside"})
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "plugins that cannot be used: outside"),
			"Open: %v", err)
		n := starts(t, "outside")
		must.That(t, n == 0, "the plugin was run %d times", n)
	}
	refused(host.Skipped, "it is not in the lock file")
	for _, lock := range []string{"{", `{"plugins":{"outside":{"sha256":"abc"}}}`, `{"plugin":{}}`} {
		bad := filepath.Join(t.TempDir(), "lock")
		must.Do(t, os.WriteFile(bad, []byte(lock), 0o600))
		options.LockFile = bad
		refused(host.Skipped, "lock file cannot be used")
	}
	options.LockFile = lock

	trust(t, lock, path)
	h := newHost(t, options)
	if p := info(t, h, "outside"); p.State != host.OK || p.Version != "0.3.1" || !slices.Equal(p.Archs,
		[]string{"outside"}) || !slices.Equal(p.Protocols, []int{wire.ProtocolVersion}) {
		t.Errorf("got %+v", p)
	}
	if n := starts(t, "outside"); n != 1 {
		t.Errorf("run %d times to describe itself", n)
	}
	// The file changes between discovery and start.
	tamper(t, path)
	_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "outside"})
	wantFault(t, err, "outside", host.FaultUntrusted, "has changed", "trust the new file")
	must.That(t, starts(t, "outside") == 1, "a changed plugin was run")
	_ = os.Remove(started("outside"))
	refused(host.Skipped, "SHA-256 is not the one in the lock file")

	trust(t, lock, path)
	h = newHost(t, options)
	a := open(t, h, arch.OpenRequest{Arch: "outside-l"})
	local, err := fake.Provider{Name: "outside"}.Open(t.Context(), arch.OpenRequest{Arch: "outside", Device: "large"})
	must.Do(t, err)
	sameAnswers(t, a, local)
}

func TestFilesThatAreNoPlugins(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	missing := newHost(t, host.Options{Plugins: []string{filepath.Join(dir, "origami-plugin-gone")}})
	p := info(t, missing, "gone")
	must.That(t, p.State == host.Error && strings.Contains(p.Reason, "no such file"), "missing: got %+v", p)
	script := filepath.Join(dir, "origami-plugin-plain")
	must.Do(t, os.WriteFile(script, []byte("no program"), 0o600))
	h := newHost(t, host.Options{SearchPath: []string{dir}})
	if len(pluginsOf(t, h)) != 0 {
		t.Errorf("a file that is not executable was found: %+v", pluginsOf(t, h))
	}
	trust(t, lock, script)
	h = newHost(t, host.Options{Plugins: []string{script}, LockFile: lock})
	p = info(t, h, "plain")
	must.That(t, p.State == host.Error && strings.Contains(p.Reason, "permission denied"), "not executable: got %+v", p)
}

func TestPrecedence(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, other := t.TempDir(), t.TempDir()
	lock := filepath.Join(dir, "lock")
	first := install(t, dir, "twin")
	install(t, other, "twin")
	trust(t, lock, first)
	second := builtin("second")
	second.Manifest.Archs = append(second.Manifest.Archs, fake.Provider{Name: "twin"}.Manifest().Archs...)
	h := newHost(t, host.Options{Plugins: []string{first}, SearchPath: []string{dir, other}, LockFile: lock,
		Builtins: []host.Builtin{builtin("twin"), second}})
	var got []string
	for _, p := range pluginsOf(t, h) {
		got = append(got, strings.Join([]string{p.Name, string(p.State), strings.Join(p.Archs, "+"), p.Reason}, "|"))
	}
	want := []string{
		"twin|ok|twin|",
		"twin|skipped||" + first + " comes first and has the same name",
		"second|ok|second|twin is taken by twin",
		"twin|skipped||" + first + " comes first and has the same name",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var archs []string
	manifests := must.Get(h.Manifests(t.Context()))(t)
	for _, m := range manifests {
		for _, a := range m.Archs {
			archs = append(archs, m.Name+":"+a.ID)
		}
	}
	must.That(t, slices.Equal(archs, []string{"twin:twin", "second:second"}), "manifests have %v", archs)
}

// A built-in plugin whose name hides a trusted one is used, and the user is told, once.
func TestBuiltinHidesATrustedPlugin(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	path := install(t, dir, "twin")
	trust(t, lock, path)
	var told []string // by whoever asks; other warnings come from other goroutines
	options := host.Options{LockFile: lock, Builtins: []host.Builtin{builtin("twin"), builtin("good")},
		Warn: func(text string) {
			if strings.Contains(text, "hides") {
				told = append(told, text)
			}
		}}
	h := newHost(t, options)
	open(t, h, arch.OpenRequest{Arch: "good"})
	must.That(t, len(told) <= 0, "told of a plugin that is not used: %q", told)
	open(t, h, arch.OpenRequest{Arch: "twin"})
	_, err := h.Connection(t.Context(), "twin")
	must.That(t, err == nil, "%v", err)
	if len(told) != 1 || !strings.Contains(told[0], "the built-in plugin twin is used and hides the trusted one, "+path) {
		t.Errorf("told: %q", told)
	}
	told, options.Plugins = nil, []string{path}
	if open(t, newHost(t, options), arch.OpenRequest{Arch: "twin"}); len(told) > 0 {
		t.Errorf("told although the trusted plugin is used: %q", told)
	}
}

func TestNames(t *testing.T) {
	h := hostOf(t, host.Options{}, "sm89", "sm90")
	for _, test := range []struct{ arch, device, want, wrong string }{
		{"sm89", "", "sm89@small", ""},
		{"SM89", "Large", "sm89@large", ""},
		{"sm90@large", "", "sm90@large", ""},
		{"sm90", "sm90-122", "sm90@small", ""},
		{"sm90-L", "", "sm90@large", ""},
		{"sm90", "huge", "", `sm90 has no device "huge"; its devices: small, large`},
		{"sm90@large", "small", "", `sm90 has no device "large@small"; its devices: small, large`},
		{"sm91", "", "", "unknown architecture \"sm91\"; did you mean sm90, sm89?"},
		{"", "", "", "the architecture is missing; the architectures are "},
		{"\xff\xfe", "", "", "unknown architecture"},
	} {
		a, err := h.Open(t.Context(), arch.OpenRequest{Arch: test.arch, Device: test.device})
		switch {
		case test.wrong != "":
			must.That(t, err != nil && diag.KindOf(err) == diag.Input && strings.HasPrefix(err.Error(), test.wrong),
				"%s, %s: got %v, want %s", test.arch, test.device, err, test.wrong)
		case err != nil:
			t.Errorf("%s, %s: %v", test.arch, test.device, err)
		case a.Describe().ID() != test.want:
			t.Errorf("%s, %s: got %s, want %s", test.arch, test.device, a.Describe().ID(), test.want)
		}
	}
	// The plugin's error arrives unchanged, and text that is not UTF-8 does not break the connection.
	for _, r := range []arch.OpenRequest{
		{Arch: "sm89", Options: map[string]string{"salt": "3"}},
		{Arch: "sm89", Options: map[string]string{"\xff": "\xfe"}},
	} {
		_, err := h.Open(t.Context(), r)
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "use salt=1 or salt=2"),
			"%v: got %v", r, err)
	}
}

// With TrustNamed a named binary runs without an entry in a lock file, but only if it has not changed since
// discovery. A binary on the search path does not run.
func TestNamedBinariesRunOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	named := install(t, t.TempDir(), "outside")
	install(t, dir, "twin")
	h := newHost(t, host.Options{Plugins: []string{named}, SearchPath: []string{dir}, TrustNamed: true})
	p := info(t, h, "outside")
	must.That(t, p.State == host.OK && p.Named && p.SHA256 != "" && len(p.Protocols) == 1 &&
		p.Protocols[0] == wire.ProtocolVersion, "got %+v", p)
	p = info(t, h, "twin")
	must.That(t, p.State == host.Skipped, "got %+v", p)
	conn, err := h.Connection(t.Context(), "outside")
	must.Do(t, err)
	if who, err := wire.NewClient("outside", conn).Info(t.Context()); err != nil || who.Name != "outside" {
		t.Errorf("got %+v, %v", who, err)
	}
	for name, kind := range map[string]diag.Kind{"twin": diag.Plugin, "nobody": diag.Input} {
		_, err := h.Connection(t.Context(), name)
		must.That(t, err != nil && diag.KindOf(err) == kind, "the connection to %s: %v", name, err)
	}

	_ = h.Close() // a file that is being executed cannot be written
	h = newHost(t, host.Options{Plugins: []string{named}, TrustNamed: true})
	info(t, h, "outside")
	tamper(t, named)
	_, err = h.Open(t.Context(), arch.OpenRequest{Arch: "outside"})
	wantFault(t, err, "outside", host.FaultUntrusted, "has changed")
}

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
