// Package catalog makes an arch.Provider out of device sheets: it finds the architecture and device that a request
// names, checks model and options, and leaves opening the model to one function.
package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// Definition is what a plugin is made of.
type Definition struct {
	// Name and Version identify the plugin.
	Name, Version string
	// Files holds the device files, *.yaml at its root; those of other vendors than Vendor are passed over.
	Files  fs.FS
	Vendor string
	// Models are the models that every architecture of the plugin has, best first; Kernels the kernel families they
	// predict, default first.
	Models, Kernels []string
	// Options are the settings that only this plugin knows.
	Options []arch.Option
	// Open opens a model. What it gets has been checked: the sheet and the model exist, and every option is declared.
	Open func(Selection) (arch.Architecture, error)
}

// Selection is a request with every name looked up.
type Selection struct {
	Sheet *hw.Sheet
	Model string
	// Options holds the options that the request set, by key.
	Options   map[string]string
	Overrides map[string]hw.OverrideValue
}

// Catalog is a Provider over a Definition.
type Catalog struct {
	def      Definition
	devices  []hw.Header // by architecture, the default device of each first
	manifest arch.Manifest
}

// New reads which devices there are, and checks that their names are unambiguous and that every architecture has exactly
// one default device. The numbers of a device are read when it is opened.
func New(def Definition) (*Catalog, error) {
	c := &Catalog{def: def, manifest: arch.Manifest{Name: def.Name, Version: def.Version, Options: def.Options}}
	files, err := fs.Glob(def.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := fs.ReadFile(def.Files, file)
		if err != nil {
			return nil, err
		}
		header, err := hw.DecodeHeader(file, data)
		if err != nil {
			return nil, err
		}
		if header.Vendor == def.Vendor {
			c.devices = append(c.devices, header)
		}
	}
	sort.SliceStable(c.devices, func(i, j int) bool {
		a, b := &c.devices[i], &c.devices[j]
		if a.Arch != b.Arch {
			return a.Arch < b.Arch
		}
		return a.Default && !b.Default
	})
	taken := map[string]string{}
	for _, d := range c.devices {
		archs := c.manifest.Archs
		if len(archs) == 0 || archs[len(archs)-1].ID != d.Arch {
			if !d.Default {
				return nil, fmt.Errorf("%s: architecture %s has no default device", d.File, d.Arch)
			}
			c.manifest.Archs = append(archs, arch.ArchEntry{ID: d.Arch, Vendor: d.Vendor, Models: def.Models, Kernels: def.Kernels})
		} else if d.Default {
			return nil, fmt.Errorf("%s: architecture %s has a second default device", d.File, d.Arch)
		}
		for _, name := range append([]string{d.Device}, d.Aliases...) {
			if other, ok := taken[name]; ok {
				return nil, fmt.Errorf("%s: device name %s is taken by %s", d.File, name, other)
			}
			taken[name] = d.File
		}
		entry := &c.manifest.Archs[len(c.manifest.Archs)-1]
		entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: d.Device, Name: d.Name, Aliases: d.Aliases})
	}
	return c, nil
}

// Manifest implements arch.Provider.
func (c *Catalog) Manifest() arch.Manifest { return c.manifest }

// Open implements arch.Provider.
func (c *Catalog) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	device, err := c.find(r.Arch, r.Device)
	if err != nil {
		return nil, err
	}
	model := r.Model
	if model == "" {
		model = c.def.Models[0]
	}
	if !slices.Contains(c.def.Models, model) {
		return nil, diag.Inputf("%s has no model %q", device.Arch, model).Do("use one of %s", list(c.def.Models))
	}
	keys := make([]string, len(c.def.Options))
	for i, o := range c.def.Options {
		keys[i] = o.Key
	}
	for key := range r.Options {
		if !slices.Contains(keys, key) {
			return nil, diag.Inputf("plugin %s has no option %q", c.def.Name, key).Do("its options: %s", list(keys))
		}
	}
	data, err := fs.ReadFile(c.def.Files, device.File)
	if err != nil {
		return nil, err
	}
	sheet, err := hw.DecodeSheet(device.File, data)
	if err != nil {
		return nil, err
	}
	return c.def.Open(Selection{Sheet: sheet, Model: model, Options: r.Options, Overrides: r.Overrides})
}

// find returns the device that a request names.
func (c *Catalog) find(archID, device string) (*hw.Header, error) {
	name := archID
	if device != "" {
		name += "@" + device
	}
	m, err := arch.Find([]arch.Manifest{c.manifest}, name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.devices, func(d hw.Header) bool { return d.Device == m.Device.ID }) // names are unambiguous
	return &c.devices[i], nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
