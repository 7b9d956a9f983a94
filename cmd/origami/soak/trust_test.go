//go:build linux

package soak

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// makeVariants makes two programs that are the same plugin with different hashes.
func (w *world) makeVariants() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	for _, v := range []string{"a", "b"} {
		if err := os.WriteFile(w.path("bin", v), append(text, v...), 0o700); err != nil {
			return err
		}
	}
	return w.install("a")
}

// install puts a variant in the plugin's place, in one step.
func (w *world) install(variant string) error {
	next := w.path("bin", "next")
	return errors.Join(os.Link(w.path("bin", variant), next), os.Rename(next, w.plugin()))
}

// isTrusted reads the lock file, which must be whole, and reports whether it has the present content of a plugin.
func (w *world) isTrusted(plugin, path string) (bool, error) {
	text, err := os.ReadFile(w.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var lock struct {
		Plugins map[string]struct{ SHA256, Path string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return false, fmt.Errorf("the lock file is not whole: %w: %q", err, text)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(content)
	entry := lock.Plugins[plugin]
	return entry.SHA256 == hex.EncodeToString(sum[:]) && entry.Path == path, nil
}

// trustAndDistrust enters a small plugin in the lock file and takes it out again, until the context ends. Some of the
// commands are killed. Nobody else changes the entry, so whatever a command said must be true until the next one.
func (w *world) trustAndDistrust(ctx context.Context, place string, plugin string, random *rand.Rand) {
	path := w.path("bin", "origami-plugin-"+plugin)
	for n := 0; ctx.Err() == nil; n++ {
		trusted, err := w.isTrusted(plugin, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.tally.violate("%s: lock file: %v", place, err)
			return
		}
		args := []string{"plugin", "distrust", plugin}
		if !trusted {
			script := fmt.Sprintf("#!/bin/sh\n# %d\nexit 1\n", random.Uint64())
			if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
				w.tally.violate("%s: %v", place, err)
				return
			}
			args = []string{"plugin", "trust", path}
		}
		c := w.command(context.WithoutCancel(ctx), args...)
		if err := c.start(); err != nil {
			w.tally.violate("%s: %v", place, err)
			return
		}
		if random.IntN(3) == 0 {
			w.killSoon(c, "trust", 60*time.Millisecond, random)
		}
		r := c.result()
		w.checkEnd(place, args[0]+" "+args[1], c.past, r)
		now, err := w.isTrusted(plugin, path)
		if err != nil || r.code == 0 && now == trusted {
			w.tally.violate("%s: lock file: after %v (%v) it is trusted: %v, %v", place, args, r, now, err)
		}
		pause(ctx, time.Duration(random.Int64N(int64(800*time.Millisecond))))
	}
}

// killSoon sends a command a signal at a random moment, unless it ends earlier.
func (w *world) killSoon(c *command, what string, within time.Duration, random *rand.Rand) {
	s := fatal[random.IntN(len(fatal))]
	select {
	case <-c.ended:
	case <-time.After(time.Duration(random.Int64N(int64(within)))):
		c.signal(s)
		w.tally.count("kill: " + what + " " + signalName(s))
	}
}

// fatal are the signals that end a process. Under nohup, SIGHUP ends none.
var fatal = slices.DeleteFunc([]syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP},
	func(s syscall.Signal) bool { return signal.Ignored(s) })

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
