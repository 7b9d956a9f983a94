package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// asked is a folder of trusted scripts that note when they are asked to describe themselves.
type asked struct {
	testing.TB
	dir    string
	mu     sync.Mutex
	warned []string
}

// add makes a plugin with the architecture ID-arch, or an executor, that takes its time to describe itself.
func (a *asked) add(name string, takes time.Duration, executor bool) (path string) {
	a.Helper()
	what := fmt.Sprintf(`"manifest":{"name":%q,"archs":[{"id":"%s-arch","vendor":"none","models":["m"],"kernels":["k"],
"devices":[{"id":"d","name":"d"}]}]}`, name, name)
	if executor {
		what = fmt.Sprintf(`"executor":{"name":%q}`, name)
	}
	path = filepath.Join(a.dir, host.Prefix+name)
	text := fmt.Sprintf(`#!/bin/sh
echo >> %s.asked
sleep %f
echo '{"info":{"name":%q,"version":"1"},"protocols":[2],%s}'
`, path, takes.Seconds(), name, what)
	must.Do(a, os.WriteFile(path, []byte(text), 0o700))
	must.Get(host.Trust(a.Context(), a.lock(), path))(a)
	return path
}

func (a *asked) lock() string { return filepath.Join(a.dir, "lock") }

// host returns a host that waits for plugins that may not matter for a limited time.
func (a *asked) host(limit time.Duration, plugins ...string) *host.Host {
	return newHost(a, host.Options{Plugins: plugins, LockFile: a.lock(), Builtins: []host.Builtin{builtin("good")},
		StartTimeout: 2 * time.Minute, DescribeTimeout: limit, Warn: func(text string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.warned = append(a.warned, text)
		}})
}

// warnings returns what the user was told.
func (a *asked) warnings() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.warned, "\n")
}

func (a *asked) wasAsked(name string) bool {
	_, err := os.Stat(filepath.Join(a.dir, host.Prefix+name+".asked"))
	return err == nil
}

func find(name string) func(context.Context, *host.Host) error {
	return func(ctx context.Context, h *host.Host) error { _, err := h.Find(ctx, name); return err }
}

func connect(name string) func(context.Context, *host.Host) error {
	return func(ctx context.Context, h *host.Host) error { _, err := h.Connection(ctx, name); return err }
}

// A plugin is asked only when its answer may matter. One that does not answer does not keep the others from it.
func TestWhoIsAsked(t *testing.T) {
	const limit = 5 * time.Second // enough for a quick script on a busy machine
	for name, test := range map[string]struct {
		do    func(context.Context, *host.Host) error
		asked string // which of the two plugins
		fails string
	}{
		"a built-in's architecture": {do: find("good")},
		"a built-in's device":       {do: find("good@large")},
		"a plugin's architecture":   {do: find("quick-arch"), asked: "both"},
		"an unknown architecture":   {do: find("nosuch"), asked: "both", fails: `unknown architecture "nosuch"`},
		"the connection to one":     {do: connect("quick"), asked: "quick"},
		"the list": {asked: "both", do: func(ctx context.Context, h *host.Host) error {
			all, err := h.Plugins(ctx)
			for _, p := range all {
				if late := p.Name == "hangs"; late != (p.State == host.Error) || late != (p.Code == diag.CodeSlowPlugin) {
					return fmt.Errorf("got %+v", p)
				}
			}
			return err
		}},
		"what is known": {do: func(_ context.Context, h *host.Host) error {
			if all := h.Known(); len(all) != 1 || all[0].Name != "good" {
				return fmt.Errorf("got %+v", all)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &asked{TB: t, dir: t.TempDir()}
			a.add("quick", 0, false)
			a.add("hangs", time.Hour, false)
			h := a.host(limit)
			begin := time.Now()
			err := test.do(t.Context(), h)
			must.That(t, (err == nil) == (test.fails == "") && (err == nil || strings.Contains(err.Error(), test.fails)),
				"got %v", err)
			err = h.Close()
			must.That(t, err == nil, "%v", err)
			took := time.Since(begin)
			must.That(t, took <= time.Minute, "it took %v", took)
			if a.wasAsked("quick") != (test.asked != "") || a.wasAsked("hangs") != (test.asked == "both") {
				t.Errorf("asked: quick %v, hangs %v", a.wasAsked("quick"), a.wasAsked("hangs"))
			}
			want := ""
			if test.asked == "both" {
				want = "plugin hangs is left out: describe did not end within 5s"
			}
			must.Equal(t, a.warnings(), want, "warned")
		})
	}
}

// A plugin that is meant is waited for longer than the others, and the user is told.
func TestPluginsThatAreMeantAreAwaited(t *testing.T) {
	const limit, takes = 200 * time.Millisecond, 2500 * time.Millisecond
	for name, test := range map[string]struct {
		do    func(context.Context, *host.Host) error
		named bool
		fails string
	}{
		"named by the user":                      {do: find("slow-arch"), named: true},
		"its connection":                         {do: connect("slow")},
		"an architecture called like the plugin": {do: find("SLOW@d"), fails: "slow-arch"}, // which it has instead
		"any executor":                           {do: executor(""), fails: "plugin runs: it ended before it was ready"},
		"the executor":                           {do: executor("runs"), fails: "plugin runs: it ended before it was ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &asked{TB: t, dir: t.TempDir()}
			path, awaited, plugins := a.add("slow", takes, false), "slow", []string(nil)
			if test.named {
				plugins = []string{path}
			}
			if strings.HasSuffix(name, "executor") {
				a.add("hangs", time.Hour, true)
				a.add("runs", takes, true)
				awaited = "runs"
			}
			err := test.do(t.Context(), a.host(limit, plugins...))
			must.That(t, (err == nil) == (test.fails == "") && (err == nil || strings.Contains(err.Error(), test.fails)),
				"got %v", err)
			want := "waiting for plugin " + awaited + " to describe itself, for up to 2m0s"
			warned := a.warnings()
			must.That(t, strings.Contains(warned, want), "warned: %q, want %q", warned, want)
		})
	}
	// Others are not: their architecture is unknown.
	a := &asked{TB: t, dir: t.TempDir()}
	a.add("slow", takes, false)
	h := a.host(limit)
	if err := find("slow-arch")(t.Context(), h); err == nil || !strings.Contains(err.Error(), "unknown architecture") {
		t.Errorf("got %v", err)
	}
	// It has described itself in the meantime, but one host gives one answer.
	time.Sleep(takes)
	must.That(t, find("slow-arch")(t.Context(), h) != nil, "a plugin that was left out is used")
}

func executor(name string) func(context.Context, *host.Host) error {
	return func(ctx context.Context, h *host.Host) error { _, err := h.Executor(ctx, name); return err }
}

// Whoever waits for plugins returns with its context, and closing the host ends them.
func TestAskingEndsWithItsContext(t *testing.T) {
	a := &asked{TB: t, dir: t.TempDir()}
	path := a.add("hangs", time.Hour, false)
	for name, do := range map[string]func(context.Context, *host.Host) error{
		"Plugins":   func(ctx context.Context, h *host.Host) error { _, err := h.Plugins(ctx); return err },
		"Manifests": func(ctx context.Context, h *host.Host) error { _, err := h.Manifests(ctx); return err },
		"Find":      find("hangs"), "Connection": connect("hangs"),
		"Executor": executor("hangs"), "any Executor": executor(""),
		"Open": func(ctx context.Context, h *host.Host) error {
			_, err := h.Open(ctx, arch.OpenRequest{Arch: "hangs"})
			return err
		},
	} {
		h := a.host(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begin := time.Now()
		err := do(ctx, h)
		must.That(t, errors.Is(err, context.DeadlineExceeded), "%s: got %v", name, err)
		cancel()
		err = h.Close()
		must.That(t, err == nil, "%v", err)
		took := time.Since(begin)
		must.That(t, took <= 10*time.Second, "%s took %v", name, took)
		err = do(t.Context(), h)
		must.That(t, err != nil && strings.Contains(err.Error(), "closed"), "%s of a closed host: %v", name, err)
	}
	must.Do(t, os.Remove(path))
}

// An edit of the lock file that waits for its turn can be given up.
func TestTrustGivesUpItsTurn(t *testing.T) {
	a := &asked{TB: t, dir: t.TempDir()}
	path := a.add("quick", 0, false)
	turn := flock.New(a.dir, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))
	if held, err := turn.TryLock(); !held || err != nil {
		t.Skip("folders cannot be locked here")
	}
	defer func() { _ = turn.Close() }()
	for name, edit := range map[string]func(context.Context, string, string) (string, error){
		"trust": host.Trust, "distrust": host.Distrust,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := edit(ctx, a.lock(), path)
		must.That(t, errors.Is(err, context.DeadlineExceeded), "%s: got %v", name, err)
		cancel()
	}
}
