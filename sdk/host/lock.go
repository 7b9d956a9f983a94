package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// lockFile is the JSON of a lock file: {"plugins": {"NAME": {"sha256": "HEX", "path": "PATH"}}}. The name is the file
// name without Prefix. A binary with this name and hash is trusted wherever it is installed. The optional path is one
// more place to find it, besides Options.Plugins and Options.SearchPath.
type lockFile struct {
	Plugins map[string]lockEntry `json:"plugins"`
}

type lockEntry struct {
	SHA256 string `json:"sha256"`
	Path   string `json:"path,omitempty"`
}

// lock returns the trusted binaries by plugin name. It reads the lock file once. If the file is refused, nothing is
// trusted, and a warning says so.
func (h *Host) lock() (map[string]lockEntry, error) {
	h.locking.Do(func() {
		locked, err := readLock(h.options.LockFile)
		if err == nil && locked != nil {
			err = h.guard(h.options.LockFile)
		}
		if err != nil {
			h.warn("the lock file is refused, so no plugin is trusted: " + err.Error())
			locked = nil
		} else {
			locked = h.withBundled(locked)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.locked, h.lockErr = locked, err
	})
	return h.locked, h.lockErr
}

// withBundled adds the binaries that were built with this program.
func (h *Host) withBundled(locked map[string]lockEntry) map[string]lockEntry {
	all := map[string]lockEntry{}
	for name, sum := range h.options.Bundled {
		path := filepath.Join(filepath.Dir(h.options.Self), Prefix+name)
		if _, err := os.Stat(path); err == nil {
			all[name] = lockEntry{SHA256: sum, Path: path}
		}
	}
	maps.Copy(all, locked)
	return all
}

// LockError returns why the lock file is refused. It is nil if the file is fine or missing, and as long as no plugin
// was looked for that needs it.
func (h *Host) LockError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lockErr
}

// readLock returns the trusted binaries by plugin name. A file that does not exist trusts nothing.
func readLock(path string) (map[string]lockEntry, error) {
	const fix = "restore it, or remove it and trust your plugins again"
	if path == "" {
		return nil, nil
	}
	f, info, err := openfile.Regular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", path).Do(fix)
	}
	defer func() { _ = f.Close() }()
	if err := openfile.CheckOwner(path, info); err != nil {
		return nil, diag.Inputf("%v", err).At("%s", path)
	}
	text, err := limit.ReadAll(f, path, limit.Text, fix)
	switch {
	case limit.Exceeded(err) != nil:
		return nil, limit.Exceeded(err)
	case err != nil:
		return nil, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", path).Do(fix)
	}
	return parseLock(path, text)
}

func parseLock(path string, text []byte) (map[string]lockEntry, error) {
	const form = `write {"plugins":{"NAME":{"sha256":"HEX","path":"/WHERE/IT/IS"}}}`
	var lock lockFile
	if err := strictjson.Unmarshal(text, &lock); err != nil {
		return nil, diag.Inputf("not a lock file: %v", err).At("%s", path).Do(form)
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Plugins)) {
		entry := lock.Plugins[name]
		if sum, err := hex.DecodeString(entry.SHA256); err != nil || len(sum) != sha256.Size {
			return nil, diag.Inputf("the sha256 of %s is not 64 hexadecimal digits", name).At("%s", path).Do(form)
		}
		if entry.Path != "" && (!filepath.IsAbs(entry.Path) || pluginName(entry.Path) != name) {
			return nil, diag.Inputf("the path of %s is not absolute, or its file name is not that of the plugin",
				name).At("%s", path).Do(form)
		}
		entry.SHA256 = strings.ToLower(entry.SHA256)
		lock.Plugins[name] = entry
	}
	return lock.Plugins, nil
}

// Trust writes the path and the current SHA-256 of a plugin binary into a lock file and returns the plugin's name. It
// creates the lock file if necessary. From then on exactly this binary is found and run. Trust itself does not run
// it.
func Trust(ctx context.Context, lock, path string) (name string, err error) {
	name = pluginName(path)
	if name == "" {
		return "", diag.Inputf("its file name is %s and nothing more", Prefix).At("%s", path).
			Do("add the plugin's name to it")
	}
	file, err := openBinary(path)
	if err == nil {
		err = file.hash(ctx)
		_ = file.Close()
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case isForOthers(err):
		return "", diag.Inputf("%v", err).At("%s", path)
	case err != nil:
		return "", diag.Inputf("%v", err).Do("name the plugin's binary")
	}
	return name, editLock(ctx, lock, func(plugins map[string]lockEntry) error {
		plugins[name] = lockEntry{SHA256: hex.EncodeToString(file.sum), Path: absolute(path)}
		return nil
	})
}

// Distrust removes a plugin, given by its name or the path of its binary, from a lock file and returns its name.
func Distrust(ctx context.Context, lock, plugin string) (name string, err error) {
	name = pluginName(plugin)
	return name, editLock(ctx, lock, func(plugins map[string]lockEntry) error {
		if _, ok := plugins[name]; !ok {
			err := diag.Inputf("no plugin %q is trusted", name).At("%s", lock)
			if len(plugins) == 0 {
				return err.Do("there is nothing to do")
			}
			return err.Do("the trusted plugins: %s", strings.Join(slices.Sorted(maps.Keys(plugins)), ", "))
		}
		delete(plugins, name)
		return nil
	})
}

// editTurn is how often an edit looks whether it is its turn.
const editTurn = 20 * time.Millisecond

func editLock(ctx context.Context, lock string, edit func(map[string]lockEntry) error) error {
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		return err
	}
	// One edit at a time, where folders can be locked. The file itself is replaced, so its lock would not help.
	turn := lockOf(filepath.Dir(lock))
	if _, err := turn.TryLockContext(ctx, editTurn); err == nil {
		defer func() { _ = turn.Close() }()
	} else if ctx.Err() != nil {
		return ctx.Err()
	}
	plugins, err := readLock(lock)
	if err != nil {
		return err
	}
	if plugins == nil {
		plugins = map[string]lockEntry{}
	}
	if err := edit(plugins); err != nil {
		return err
	}
	text, err := json.MarshalIndent(lockFile{plugins}, "", "  ")
	if err != nil {
		return err
	}
	return durable.Write(lock, 0o600, append(text, '\n'))
}
