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
		p := u.listed(name)
		must.That(t, p.State == "ok" && slices.Contains(p.Devices, device), "%s has %+v, want the device %s", name, p, device)
	}
	if p := u.listed("nvidia"); slices.Contains(p.Devices, "fake90@fake90-device") {
		t.Errorf("nvidia has %+v", p)
	}
	for archID, plugin := range map[string]string{"sm89": "nvidia", "fake90": "imposter", "abstract": "renamed"} {
		must.Equal(t, u.provider(archID), plugin, archID, "is from")
	}
}

// provider is the plugin that arch ls shows for an architecture.
func (u *user) provider(archID string, args ...string) string {
	u.Helper()
	stdout, stderr, code := u.run(append([]string{"arch", "ls", "--json"}, args...)...)
	must.Need(u, code == 0, "exit code %d, %s", code, stderr)
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
	got := u.provider("sm89")
	must.That(t, got == "nvidia", "sm89 is from %s", got)
	p := u.listed("mine")
	must.That(t, p.State == "ok" && p.Reason == "sm89 is taken by nvidia", "got %+v", p)
	got = u.provider("sm89", "--plugin", path)
	must.That(t, got == "mine", "with --plugin, sm89 is from %s", got)
}

// A named pipe in the place of a file does not block.
func TestPipesInThePlaceOfFiles(t *testing.T) {
	u := newUser(t)
	cache := filepath.Join(u.home, ".cache", "origami", "plugins")
	u.enter(u.plugin("mine", describing("mine", "mine")))
	p := u.listed("mine")
	must.Need(t, p.State == "ok", "got %+v", p)
	descriptions, err := filepath.Glob(filepath.Join(cache, "mine-*.json"))
	must.Need(t, err == nil && len(descriptions) == 1, "cached: %v, %v", descriptions, err)
	pipe := func(path string, _ os.FileMode) error { return syscall.Mkfifo(path, 0o600) }
	must.Do(t, remake(descriptions[0], pipe))
	p = u.listed("mine")
	must.That(t, p.State == "ok", "a pipe in the cache: got %+v", p)
	settings := filepath.Join(u.home, ".config", "origami", "settings.yaml")
	must.Do(t, pipe(settings, 0))
	_, stderr, code := u.run(builtinSelect...)
	must.That(t, code == 2 && strings.Contains(stderr, settings) &&
		strings.Contains(stderr, "not a regular file"), "settings: exit code %d, %q", code, stderr)
	_, stderr, code = u.run(append([]string{"--settings", os.DevNull}, builtinSelect...)...)
	must.That(t, code == 0, "no settings: exit code %d, %q", code, stderr)
}

// Distrusting a plugin removes its cached description, and those of no other plugin.
func TestDistrustForgetsTheDescription(t *testing.T) {
	u := newUser(t)
	for _, name := range []string{"mine", "mine-too"} {
		_, stderr, code := u.run("plugin", "trust", u.plugin(name, describing(name, name)))
		must.Need(t, code == 0, "exit code %d, %s", code, stderr)
		u.listed(name)
	}
	if _, stderr, code := u.run("plugin", "distrust", "mine"); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	left, err := filepath.Glob(filepath.Join(u.home, ".cache", "origami", "plugins", "*"))
	must.That(t, err == nil && len(left) == 1 && strings.HasPrefix(filepath.Base(left[0]), "mine-too-"),
		"left: %v, %v", left, err)
}

// Trusting a plugin that is slow to describe itself waits for it. Afterwards it is as quick as the others.
func TestTrustWaitsForTheDescription(t *testing.T) {
	u := newUser(t)
	slow := "[ $1 = describe ] && sleep 2\n"
	_, stderr, code := u.run("plugin", "trust", u.plugin("slow", slow+describing("slow", "slow90")))
	must.That(t, code == 0 &&
		strings.Contains(stderr, "waiting for plugin slow to describe itself"), "exit code %d, %q", code, stderr)
	got := u.provider("slow90")
	must.That(t, got == "slow", "slow90 is from %q", got)
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
		must.That(t, code == 2 && strings.Contains(stderr, "no architecture is given") &&
			strings.Contains(stderr, variable+` is the relative path "."`), "%s: exit code %d, %q", variable, code, stderr)
		stdout, _, _ := u.run("arch", "ls")
		must.That(t, !strings.Contains(stdout, "mine"), "%s: the plugin is trusted: %s", variable, stdout)
		_, err := os.Stat(ran)
		must.That(t, errors.Is(err, os.ErrNotExist), "%s: the plugin ran", variable)
		if variable != "HOME" {
			continue
		}
		_, stderr, code = u.run("plugin", "trust", "origami-plugin-mine")
		must.That(t, code == 2 &&
			strings.Contains(stderr, "there is no place for a lock file"), "trust: exit code %d, %q", code, stderr)
	}
}
