package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/wire"
)

// found is what is known about a plugin. program is set if it can be used, manifest if it has architectures.
type found struct {
	info     PluginInfo
	manifest arch.Manifest
	program  *program
}

// comeFirst lists the plugins that come first: those that the user named, and the built-ins. Nothing is read for this.
func (h *Host) comeFirst() (first []*inquiry) {
	for _, path := range h.options.Plugins {
		path = absolute(path)
		first = append(first, newInquiry(PluginInfo{Name: pluginName(path), Path: path, Named: true}))
	}
	for _, b := range h.options.Builtins {
		first = append(first, answered(&found{
			info: PluginInfo{Name: b.Manifest.Name, Version: b.Manifest.Version, Builtin: true,
				Path: h.options.Self, Protocols: []int{wire.ProtocolVersion}, State: OK},
			manifest: b.Manifest,
			program:  &program{name: b.Manifest.Name, path: h.options.Self, args: b.Args, host: h},
		}))
	}
	return first
}

// all returns all plugins in order of precedence. The first call reads the lock file and the search path.
func (h *Host) all() []*inquiry {
	h.searching.Do(func() {
		var others []*inquiry
		for _, path := range h.search() {
			others = append(others, newInquiry(PluginInfo{Name: pluginName(path), Path: path}))
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.others = others
	})
	return h.listed()
}

// listed returns the plugins that were listed so far.
func (h *Host) listed() []*inquiry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.first, h.others)
}

// search lists the plugin binaries that the user did not name: those in the search path, and those at the path of
// their lock entry. A binary of the last kind is listed even if it is missing, unless a binary with its name is in the
// search path.
func (h *Host) search() []string {
	var known []string
	for _, path := range h.options.Plugins {
		known = append(known, absolute(path))
	}
	named := len(known)
	for _, dir := range h.options.SearchPath {
		entries, _ := os.ReadDir(dir) // a missing directory has no plugins
		for _, e := range entries {
			path := absolute(filepath.Join(dir, e.Name()))
			if !strings.HasPrefix(e.Name(), Prefix) || e.Name() == Prefix || slices.Contains(known, path) {
				continue
			}
			if stat, err := os.Stat(path); err == nil && stat.Mode().IsRegular() && stat.Mode().Perm()&0o111 != 0 {
				known = append(known, path)
			}
		}
	}
	locked, _ := h.lock()
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		path := locked[name].Path
		if path == "" || slices.Contains(known, path) {
			continue
		}
		_, err := os.Stat(path)
		moved := errors.Is(err, fs.ErrNotExist) && slices.ContainsFunc(known,
			func(p string) bool { return pluginName(p) == name })
		if !moved {
			known = append(known, path)
		}
	}
	return known[named:]
}

// absolute makes a path independent of the working directory, if the directory is known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func pluginName(path string) string { return strings.TrimPrefix(filepath.Base(path), Prefix) }

// known returns what is known of the plugins that were listed, in order of precedence.
func (h *Host) known() []*found {
	listed := h.listed()
	plugins := make([]*found, len(listed))
	for i, q := range listed {
		plugins[i] = q.known()
	}
	settlePrecedence(plugins)
	return plugins
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
			which := first.info.Path
			if first.info.Builtin {
				which = "the built-in"
			}
			f.info.State, f.info.Reason = Skipped, which+" comes first and has the same name"
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

func manifestsOf(plugins []*found) []arch.Manifest {
	var manifests []arch.Manifest
	for _, f := range plugins {
		if f.info.State == OK && f.manifest.Name != "" {
			manifests = append(manifests, f.manifest)
		}
	}
	return manifests
}

// Plugins asks every plugin and lists them, usable or not, in order of precedence. A plugin that does not answer within
// Options.DescribeTimeout is listed as an error, unless the user named it. The error is ctx.Err().
func (h *Host) Plugins(ctx context.Context) ([]PluginInfo, error) {
	if err := h.askAll(ctx, ""); err != nil {
		return nil, err
	}
	return h.Known(), nil
}

// Known lists the plugins that were looked for so far, in order of precedence. It asks none.
func (h *Host) Known() []PluginInfo {
	plugins := h.known()
	infos := make([]PluginInfo, len(plugins))
	for i, f := range plugins {
		infos[i] = f.info
	}
	return infos
}

// Manifests asks every plugin, as Plugins does, and returns the manifests of the usable ones with architectures, in
// order of precedence. An architecture is only in the first that provides it. The name of a manifest is that of the
// plugin, whatever the plugin calls itself.
func (h *Host) Manifests(ctx context.Context) ([]arch.Manifest, error) {
	if err := h.askAll(ctx, ""); err != nil {
		return nil, err
	}
	return manifestsOf(h.known()), nil
}

// Find looks up an architecture or device as arch.Find does. It asks no more plugins than it needs: those that the user
// named, and only if neither they nor the built-ins have the name, all others.
func (h *Host) Find(ctx context.Context, name string) (arch.Match, error) {
	return h.find(ctx, name, func(m []arch.Manifest) (arch.Match, error) { return arch.Find(m, name) })
}

// FindLive looks up a GPU that a driver describes as arch.FindLive does. It asks the same plugins as Find.
func (h *Host) FindLive(ctx context.Context, archID string, live *arch.LiveDevice) (arch.Match, error) {
	return h.find(ctx, archID, func(m []arch.Manifest) (arch.Match, error) { return arch.FindLive(m, archID, live) })
}

func (h *Host) find(ctx context.Context, name string, look func([]arch.Manifest) (arch.Match, error)) (arch.Match,
	error) {
	if err := h.ask(ctx, h.first, nil); err != nil {
		return arch.Match{}, err
	}
	if m, err := look(manifestsOf(h.known())); err == nil {
		return m, nil
	}
	name, _, _ = strings.Cut(name, "@") // a plugin is usually called like its architecture
	if err := h.askAll(ctx, name); err != nil {
		return arch.Match{}, err
	}
	return look(manifestsOf(h.known()))
}

// called asks the plugins of a name and returns the first usable one. One that the user named counts in any case.
// Without either it is the first unusable one, or nil.
func (h *Host) called(ctx context.Context, name string) (*found, error) {
	same := slices.DeleteFunc(h.all(), func(q *inquiry) bool { return q.info.Name != name })
	if err := h.ask(ctx, same, nil); err != nil {
		return nil, err
	}
	var unusable *found
	for _, f := range h.known() {
		switch {
		case f.info.Name != name:
		case f.info.State == OK || f.info.Named:
			h.noticeHidden(f)
			return f, nil
		case unusable == nil:
			unusable = f
		}
	}
	return unusable, nil
}

// resolve finds the plugin for a request and replaces aliases by ids.
func (h *Host) resolve(ctx context.Context, r arch.OpenRequest) (*found, arch.OpenRequest, error) {
	name := r.Arch
	if r.Device != "" {
		name += "@" + r.Device
	}
	m, err := h.Find(ctx, name)
	if err != nil {
		return nil, r, h.mentionUnusable(err)
	}
	// A live device of an architecture that was named without a device has none, and neither has that of a device file.
	described := r.Live != nil || r.DeviceFile != nil
	if !described || r.Device != "" || !strings.EqualFold(r.Arch, m.Arch.ID) {
		r.Device = m.Device.ID
	}
	r.Arch = m.Arch.ID
	for _, f := range h.known() {
		if f.info.State == OK && slices.Contains(f.info.Archs, r.Arch) {
			h.noticeHidden(f)
			return f, r, nil
		}
	}
	return nil, r, fmt.Errorf("architecture %s was found and lost", r.Arch) // each is one plugin's
}

// noticeHidden tells the user of a trusted plugin that the name of a built-in one hides.
func (h *Host) noticeHidden(f *found) {
	if !f.info.Builtin {
		return
	}
	locked, _ := readLock(h.options.LockFile) // whoever needs it says what is wrong with it
	if hidden, ok := locked[f.info.Name]; ok {
		h.warn(fmt.Sprintf("the built-in plugin %s is used and hides the trusted one, %s; name its path to use it, "+
			"or distrust it", f.info.Name, hidden.Path))
	}
}

// mentionUnusable adds the plugins that cannot be used to an error about an unknown name: one of them might have it.
func (h *Host) mentionUnusable(err error) error {
	var unusable []string
	for _, f := range h.known() {
		if f.info.State == Skipped || f.info.State == Error {
			unusable = append(unusable, f.info.Name)
		}
	}
	var d *diag.Error
	if len(unusable) == 0 || !errors.As(err, &d) {
		return err
	}
	return d.Also("plugins that cannot be used: %s", strings.Join(unusable, ", ")).Coded(diag.CodeUnusablePlugins, "")
}
