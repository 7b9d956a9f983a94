package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/wire"
)

// found is a plugin that was found. program is set if it can be used, manifest if it has architectures.
type found struct {
	info     PluginInfo
	manifest arch.Manifest
	program  *program
}

// plugins finds the plugins, once.
func (h *Host) plugins() []*found {
	h.discovery.Do(func() {
		locked, lockErr := readLock(h.options.LockFile)
		if lockErr == nil && locked != nil {
			if lockErr = h.guard(h.options.LockFile); lockErr != nil {
				locked = nil
			}
		}
		for i, path := range h.binaries(locked) {
			h.found = append(h.found, &found{info: PluginInfo{Name: pluginName(path), Path: path,
				Named: i < len(h.options.Plugins)}})
		}
		// Each external plugin is hashed and started to describe itself. That takes time, so all do it at once.
		var wg sync.WaitGroup
		for _, f := range h.found {
			wg.Go(func() { h.examine(f, locked, lockErr) })
		}
		wg.Wait()
		for _, b := range h.options.Builtins {
			h.found = append(h.found, &found{
				info: PluginInfo{Name: b.Manifest.Name, Version: b.Manifest.Version, Builtin: true,
					Path:        h.options.Self,
					APIVersions: wire.APIVersions, Protocols: []int{wire.ProtocolVersion}, State: OK},
				manifest: b.Manifest,
				program: &program{name: b.Manifest.Name, path: h.options.Self, args: b.Args,
					speaks: wire.APIVersions, host: h},
			})
		}
		settlePrecedence(h.found)
	})
	return h.found
}

// settlePrecedence gives every plugin name and every architecture to the first usable plugin that has it. The others
// get it as the reason for what they lose.
func settlePrecedence(plugins []*found) {
	byName, byArch := map[string]*found{}, map[string]*found{}
	for _, f := range plugins {
		if f.info.State != OK {
			continue
		}
		if first := byName[f.info.Name]; first != nil {
			f.info.State, f.info.Reason = Skipped, fmt.Sprintf("%s comes first and has the same name", first.info.Path)
			f.manifest, f.program = arch.Manifest{}, nil
			continue
		}
		byName[f.info.Name] = f
		var archs []arch.ArchEntry
		var taken []string
		for _, a := range f.manifest.Archs {
			if first := byArch[a.ID]; first != nil {
				taken = append(taken, fmt.Sprintf("%s is taken by %s", a.ID, first.info.Name))
				continue
			}
			byArch[a.ID] = f
			archs = append(archs, a)
			f.info.Archs = append(f.info.Archs, a.ID)
		}
		f.manifest.Archs = archs
		f.info.Reason = strings.Join(taken, ", ")
	}
}

// binaries lists the external plugin binaries in order of precedence: those that the user named, those in the search
// path, and those at the path of their lock entry. A binary of the last kind is listed even if it is missing, unless
// a binary with its name is in the search path.
func (h *Host) binaries(locked map[string]lockEntry) []string {
	var paths []string
	for _, path := range h.options.Plugins {
		paths = append(paths, absolute(path))
	}
	for _, dir := range h.options.SearchPath {
		entries, _ := os.ReadDir(dir) // a missing directory has no plugins
		for _, e := range entries {
			path := absolute(filepath.Join(dir, e.Name()))
			if !strings.HasPrefix(e.Name(), Prefix) || slices.Contains(paths, path) {
				continue
			}
			if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() && stat.Mode().Perm()&0o111 != 0 {
				paths = append(paths, path)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		path := locked[name].Path
		if path == "" || slices.Contains(paths, path) {
			continue
		}
		_, err := os.Stat(path)
		moved := errors.Is(err, fs.ErrNotExist) && slices.ContainsFunc(paths,
			func(p string) bool { return pluginName(p) == name })
		if !moved {
			paths = append(paths, path)
		}
	}
	return paths
}

// absolute makes a path independent of the working directory, if the directory is known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func pluginName(path string) string { return strings.TrimPrefix(filepath.Base(path), Prefix) }

// examine fills in the information about an external plugin. It runs nothing before it has checked the hash.
func (h *Host) examine(f *found, locked map[string]lockEntry, lockErr error) {
	skip := func(format string, args ...any) { f.info.State, f.info.Reason = Skipped, fmt.Sprintf(format, args...) }
	fail := func(format string, args ...any) { f.info.State, f.info.Reason = Error, fmt.Sprintf(format, args...) }

	path := f.info.Path
	want, listed := locked[f.info.Name]
	byName := f.info.Named && h.options.TrustNamed // without the lock file
	text, known := h.recall(f.info.Name, path, want.SHA256)
	var file *binary
	if known && !byName {
		f.info.SHA256 = want.SHA256
	} else {
		var err error
		file, err = openBinary(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && want.Path == path && !f.info.Named:
			skip("its file is missing; trust it at its new path, or distrust it")
			f.info.Code = diag.CodeMissingPlugin
			return
		case err != nil:
			fail("it cannot be read: %v", err)
			return
		}
		defer func() { _ = file.Close() }()
		f.info.SHA256 = hex.EncodeToString(file.sum)
		switch {
		case byName:
		case lockErr != nil:
			skip("the lock file cannot be used: %v", lockErr)
			return
		case !listed:
			skip("it is not in the lock file %q", h.options.LockFile)
			f.info.Code = diag.CodeUntrustedPlugin
			return
		case want.SHA256 != f.info.SHA256:
			skip("its SHA-256 is not the one in the lock file %q; trust it again if you changed the plugin",
				h.options.LockFile)
			f.info.Code = diag.CodeUntrustedPlugin
			return
		}
	}
	if err := h.guard(path); err != nil {
		skip("%v", err)
		return
	}
	if file != nil {
		var err error
		if text, err = h.describe(f.info.Name, path, file); err != nil {
			fail("%v", err)
			return
		}
	}

	if failing := f.accept(h, text); f.info.State == OK && file != nil && !byName && !failing {
		h.keep(f.info.Name, file, text, locked)
	}
}

// accept checks the description that a plugin printed and takes it over. failing: the plugin says that it cannot work.
func (f *found) accept(h *Host, text []byte) (failing bool) {
	d, err := wire.ParseDescribe(text)
	f.info.Version, f.info.APIVersions, f.info.Protocols = d.Info.Version, d.Info.APIVersions, d.Protocols
	refuse := func(state State, format string, args ...any) bool {
		f.info.State, f.info.Reason = state, fmt.Sprintf(format, args...)
		return false
	}
	if d.Info.Name == "" && err != nil {
		return refuse(Error, "describe printed nonsense: %v", err)
	}
	if !slices.Contains(d.Protocols, wire.ProtocolVersion) {
		return refuse(Skipped, "it speaks protocol %v, this origami speaks %d; rebuild it", d.Protocols,
			wire.ProtocolVersion)
	}
	if _, err := wire.CommonAPI(wire.APIVersions, d.Info.APIVersions); err != nil {
		return refuse(Skipped, "%v; rebuild it", err)
	}
	if err != nil {
		return refuse(Error, "describe printed nonsense: %v", err)
	}
	f.info.State, f.info.Executor = OK, d.Executor != nil
	if d.Manifest != nil {
		f.manifest = *d.Manifest
	}
	sum, _ := hex.DecodeString(f.info.SHA256) // readLock has checked it
	f.program = &program{name: f.info.Name, path: f.info.Path, checksum: sum, speaks: d.Info.APIVersions, host: h}
	return d.Info.Failing != ""
}

// describe runs a plugin with the argument "describe".
func (h *Host) describe(name, path string, file *binary) ([]byte, error) {
	p, err := start(path, file, []string{"describe"}, hostEnv(), &tail{logger: h.options.Logger.Named(name)})
	if err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", err)
	}
	defer context.AfterFunc(h.ctx, p.kill)()
	timeout := time.AfterFunc(h.options.StartTimeout, p.kill)
	text, err := limit.ReadAll(p.stdout, "what describe prints", limit.Describe, "report it to the plugin's author")
	p.exitedWithin(time.Second) // its output is closed, but the process may not have ended
	inTime := timeout.Stop()
	p.kill()
	p.release()
	if large := limit.Exceeded(err); large != nil {
		return nil, large
	}
	if !inTime {
		return nil, fmt.Errorf("describe did not end within %v", h.options.StartTimeout)
	}
	if !p.cmd.ProcessState.Success() {
		_, last := p.stderr.last()
		return nil, fmt.Errorf("describe failed (%s): %s", p.state, last)
	}
	return text, nil
}

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

// readLock returns the trusted binaries by plugin name. A file that does not exist trusts nothing.
func readLock(path string) (map[string]lockEntry, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := limit.ReadAll(f, path, limit.Text, "restore it, or remove it and trust your plugins again")
	if err != nil {
		return nil, err
	}
	return parseLock(path, text)
}

func parseLock(path string, text []byte) (map[string]lockEntry, error) {
	const form = `write {"plugins":{"NAME":{"sha256":"HEX","path":"/WHERE/IT/IS"}}}`
	var lock lockFile
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&lock)
	if _, extra := dec.Token(); err == nil && !errors.Is(extra, io.EOF) {
		err = errors.New("data follows the first JSON object")
	}
	if err != nil {
		return nil, diag.Inputf("not a lock file: %v", err).At("%s", path).Do(form)
	}
	for name, entry := range lock.Plugins {
		if sum, err := hex.DecodeString(entry.SHA256); err != nil || len(sum) != sha256.Size {
			return nil, diag.Inputf("the sha256 of %s is not 64 hexadecimal digits", name).At("%s", path).Do(form)
		}
		if entry.Path != "" && (!filepath.IsAbs(entry.Path) || pluginName(entry.Path) != name) {
			return nil, diag.Inputf("the path of %s is not absolute, or its file name is not that of the plugin",
				name).At("%s",
				path).Do(form)
		}
		entry.SHA256 = strings.ToLower(entry.SHA256)
		lock.Plugins[name] = entry
	}
	return lock.Plugins, nil
}

// Trust writes the path and the current SHA-256 of a plugin binary into a lock file and returns the plugin's name. It
// creates the lock file if necessary. From then on exactly this binary is found and run. Trust itself does not run
// it.
func Trust(lock, path string) (name string, err error) {
	file, err := openBinary(path)
	if err != nil {
		return "", diag.Inputf("%v", err).Do("name the plugin's binary")
	}
	_ = file.Close()
	if writable, _ := writableByAll(path); writable != "" {
		return "", diag.Inputf("%s", writableFile(writable)).At("%s", path)
	}
	name = pluginName(path)
	return name, editLock(lock, func(plugins map[string]lockEntry) error {
		plugins[name] = lockEntry{SHA256: hex.EncodeToString(file.sum), Path: absolute(path)}
		return nil
	})
}

// Distrust removes a plugin, given by its name or the path of its binary, from a lock file and returns its name.
func Distrust(lock, plugin string) (name string, err error) {
	name = pluginName(plugin)
	return name, editLock(lock, func(plugins map[string]lockEntry) error {
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

func editLock(lock string, edit func(map[string]lockEntry) error) error {
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		return err
	}
	// One edit at a time, where folders can be locked. The file itself is replaced, so its lock would not help.
	if turn := lockOf(filepath.Dir(lock)); turn.Lock() == nil {
		defer func() { _ = turn.Close() }()
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
	return replaceFile(lock, append(text, '\n'))
}

// replaceFile writes a file in one step, so that a reader never sees half of it.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".lock-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
