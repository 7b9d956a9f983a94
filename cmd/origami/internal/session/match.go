package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/host"
)

// match finds what --arch and --device mean. An --arch is an architecture ("sm90"), an architecture on a device
// ("sm90@h200"), or a device ("h200"); --device belongs to the one --arch that names no device itself. The device
// "auto" is a GPU of this machine.
func (f *Factory) match(ctx context.Context, archs []string, device string) ([]arch.Match, error) {
	if len(archs) == 0 {
		return nil, diag.Inputf("no architecture is given").
			Do("add --arch, as in --arch %s; `origami arch ls` lists them", f.exampleArch())
	}
	if device != "" {
		var bare []int
		for i, a := range archs {
			if !strings.Contains(a, "@") {
				bare = append(bare, i)
			}
		}
		if len(bare) != 1 {
			first, _, _ := strings.Cut(archs[0], "@")
			return nil, diag.Inputf("it is not clear which --arch the device %q belongs to", device).At("--device").
				Do("write it behind its architecture, as in --arch %s@%s", first, device)
		}
		archs = slices.Clone(archs)
		archs[bare[0]] += "@" + device
	}
	matches := make([]arch.Match, len(archs))
	for i, name := range archs {
		var err error
		if archID, number, live := cutLive(name); live {
			matches[i], err = f.findLive(ctx, name, archID, number)
		} else {
			matches[i], err = f.find(ctx, name)
		}
		if err != nil {
			return nil, err
		}
	}
	return matches, nil
}

// find looks up what an --arch means. The device of --device-file comes before those of the plugins.
func (f *Factory) find(ctx context.Context, name string) (arch.Match, error) {
	if f.file.is(name) {
		return f.fromFile(ctx, nil)
	}
	m, err := f.host.Find(ctx, name)
	var d *diag.Error
	if !errors.As(err, &d) {
		return m, err
	}
	if failed := failedPlugins(f.host.Known()); len(failed) > 0 {
		d = d.Also("%s cannot be used", strings.Join(failed, ", ")).Coded(diag.CodeUnusablePlugins, "")
	}
	return m, d.At("--arch %s", name)
}

// failedPlugins names the plugins that cannot be used. One of them might have the name that was not found.
func failedPlugins(plugins []host.PluginInfo) []string {
	var names []string
	for _, p := range plugins {
		if p.State == host.Skipped || p.State == host.Error {
			names = append(names, "plugin "+p.Name)
		}
	}
	return names
}

// exampleArch is an architecture to show in a hint.
func (f *Factory) exampleArch() string {
	for _, p := range f.host.Known() {
		for _, id := range p.Archs {
			return id
		}
	}
	return "sm89"
}
