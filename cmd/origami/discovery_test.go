//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A plugin has the name of its file. It cannot pass as another one, and an honest one may be renamed.
func TestPluginsAreNamedByTheirFiles(t *testing.T) {
	u := newUser(t)
	u.enter(u.plugin("imposter", describing("nvidia", "fake90")))
	u.enter(u.plugin("renamed", describing("example", "abstract")))
	for name, device := range map[string]string{
		"nvidia": "sm89@rtx4090", "imposter": "fake90@fake90-device", "renamed": "abstract@abstract-device",
	} {
		if p := u.listed(name); p.State != "ok" || !slices.Contains(p.Devices, device) {
			t.Errorf("%s has %+v, want the device %s", name, p, device)
		}
	}
	if p := u.listed("nvidia"); slices.Contains(p.Devices, "fake90@fake90-device") {
		t.Errorf("nvidia has %+v", p)
	}
	for archID, plugin := range map[string]string{"sm89": "nvidia", "fake90": "imposter", "abstract": "renamed"} {
		if got := u.provider(archID); got != plugin {
			t.Errorf("%s is from %q, want %s", archID, got, plugin)
		}
	}
}

// provider is the plugin that arch ls shows for an architecture.
func (u *user) provider(archID string, args ...string) string {
	u.Helper()
	stdout, stderr, code := u.run(append([]string{"arch", "ls", "--json"}, args...)...)
	if code != 0 {
		u.Fatalf("exit code %d, %s", code, stderr)
	}
	for line := range strings.Lines(stdout) {
		var l struct{ Arch, Plugin string }
		must.Do(u, json.Unmarshal([]byte(line), &l))
		if l.Arch == archID {
			return l.Plugin
		}
	}
	return ""
}

// Only a plugin that the user names on the command line or in the settings replaces a built-in architecture.
func TestBuiltinsComeBeforePluginsThatAreFound(t *testing.T) {
	u := newUser(t)
	path := u.plugin("mine", describing("mine", "sm89"))
	u.enter(path)
	if got := u.provider("sm89"); got != "nvidia" {
		t.Errorf("sm89 is from %s", got)
	}
	if p := u.listed("mine"); p.State != "ok" || p.Reason != "sm89 is taken by nvidia" {
		t.Errorf("got %+v", p)
	}
	if got := u.provider("sm89", "--plugin", path); got != "mine" {
		t.Errorf("with --plugin, sm89 is from %s", got)
	}
}

// A named pipe in the place of a file does not block.
func TestPipesInThePlaceOfFiles(t *testing.T) {
	u := newUser(t)
	cache := filepath.Join(u.home, ".cache", "origami", "plugins")
	u.enter(u.plugin("mine", describing("mine", "mine")))
	if p := u.listed("mine"); p.State != "ok" {
		t.Fatalf("got %+v", p)
	}
	descriptions, err := filepath.Glob(filepath.Join(cache, "mine-*.json"))
	if err != nil || len(descriptions) != 1 {
		t.Fatalf("cached: %v, %v", descriptions, err)
	}
	pipe := func(path string, _ os.FileMode) error { return syscall.Mkfifo(path, 0o600) }
	must.Do(t, remake(descriptions[0], pipe))
	if p := u.listed("mine"); p.State != "ok" {
		t.Errorf("a pipe in the cache: got %+v", p)
	}
	settings := filepath.Join(u.home, ".config", "origami", "settings.yaml")
	must.Do(t, pipe(settings, 0))
	if _, stderr, code := u.run(builtinSelect...); code != 2 || !strings.Contains(stderr, settings) ||
		!strings.Contains(stderr, "not a regular file") {
		t.Errorf("settings: exit code %d, %q", code, stderr)
	}
	if _, stderr, code := u.run(append([]string{"--settings", os.DevNull}, builtinSelect...)...); code != 0 {
		t.Errorf("no settings: exit code %d, %q", code, stderr)
	}
}

// Distrusting a plugin removes its cached description, and those of no other plugin.
func TestDistrustForgetsTheDescription(t *testing.T) {
	u := newUser(t)
	for _, name := range []string{"mine", "mine-too"} {
		if _, stderr, code := u.run("plugin", "trust", u.plugin(name, describing(name, name))); code != 0 {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		u.listed(name)
	}
	if _, stderr, code := u.run("plugin", "distrust", "mine"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	left, err := filepath.Glob(filepath.Join(u.home, ".cache", "origami", "plugins", "*"))
	if err != nil || len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), "mine-too-") {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Trusting a plugin that is slow to describe itself waits for it. Afterwards it is as quick as the others.
func TestTrustWaitsForTheDescription(t *testing.T) {
	u := newUser(t)
	slow := "[ $1 = describe ] && sleep 2\n"
	if _, stderr, code := u.run("plugin", "trust", u.plugin("slow", slow+describing("slow", "slow90"))); code != 0 ||
		!strings.Contains(stderr, "waiting for plugin slow to describe itself") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if got := u.provider("slow90"); got != "slow" {
		t.Errorf("slow90 is from %q", got)
	}
	if stdout, stderr, code := u.run("plugin", "trust", u.plugin("bad", "echo no GPU here >&2; exit 3\n")); code != 0 ||
		!strings.Contains(stdout, "bad") || !strings.Contains(stderr, "no GPU here") {
		t.Errorf("a plugin that fails: exit code %d, %q, %q", code, stdout, stderr)
	}
}

// A relative path of the user's folder would make the working directory decide about settings and trust.
func TestRelativeHomeIsIgnored(t *testing.T) {
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME"} {
		u := newUser(t)
		ran := filepath.Join(u.home, "ran")
		u.enter(u.plugin("mine", "touch "+ran+"\n"+describing("mine", "mine")))
		u.write(filepath.Join(u.home, ".config", "origami", "settings.yaml"), "arch: [mine]\n")
		u.write(filepath.Join(u.home, "origami", "settings.yaml"), "arch: [mine]\n")
		u.env = []string{"HOME=.", "ORIGAMI_DTYPE=fp16"}
		if variable != "HOME" {
			u.env = []string{"HOME=" + t.TempDir(), variable + "=."}
		}
		_, stderr, code := u.run("select", "-m", "64", "-n", "64", "-k", "64")
		if code != 2 || !strings.Contains(stderr, "no architecture is given") ||
			!strings.Contains(stderr, variable+` is the relative path "."`) {
			t.Errorf("%s: exit code %d, %q", variable, code, stderr)
		}
		if stdout, _, _ := u.run("arch", "ls"); strings.Contains(stdout, "mine") {
			t.Errorf("%s: the plugin is trusted: %s", variable, stdout)
		}
		if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the plugin ran", variable)
		}
		if variable != "HOME" {
			continue
		}
		if _, stderr, code := u.run("plugin", "trust", "origami-plugin-mine"); code != 2 ||
			!strings.Contains(stderr, "there is no place for a lock file") {
			t.Errorf("trust: exit code %d, %q", code, stderr)
		}
	}
}
