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
	// Sheets are the devices.
	Sheets []*hw.Sheet
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

// ReadSheets decodes the device files at the root of a file system that belong to a vendor.
func ReadSheets(files fs.FS, vendor string) ([]*hw.Sheet, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var sheets []*hw.Sheet
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sheet, err := hw.DecodeSheet(name, data)
		if err != nil {
			return nil, err
		}
		if sheet.Vendor == vendor {
			sheets = append(sheets, sheet)
		}
	}
	return sheets, nil
}

// Catalog is a Provider over a Definition.
type Catalog struct {
	def      Definition
	manifest arch.Manifest
}

// New checks that device names are unambiguous and that every architecture has exactly one default device.
func New(def Definition) (*Catalog, error) {
	c := &Catalog{def: def, manifest: arch.Manifest{Name: def.Name, Version: def.Version, Options: def.Options}}
	sheets := slices.Clone(def.Sheets)
	sort.SliceStable(sheets, func(i, j int) bool {
		if sheets[i].Arch != sheets[j].Arch {
			return sheets[i].Arch < sheets[j].Arch
		}
		return sheets[i].Default && !sheets[j].Default
	})
	c.def.Sheets = sheets
	taken := map[string]string{}
	for _, s := range sheets {
		archs := c.manifest.Archs
		if len(archs) == 0 || archs[len(archs)-1].ID != s.Arch {
			if !s.Default {
				return nil, fmt.Errorf("%s: architecture %s has no default device", s.File, s.Arch)
			}
			c.manifest.Archs = append(archs, arch.ArchEntry{ID: s.Arch, Vendor: s.Vendor, Models: def.Models, Kernels: def.Kernels})
		} else if s.Default {
			return nil, fmt.Errorf("%s: architecture %s has a second default device", s.File, s.Arch)
		}
		for _, name := range append([]string{s.Device}, s.Aliases...) {
			if other, ok := taken[name]; ok {
				return nil, fmt.Errorf("%s: device name %s is taken by %s", s.File, name, other)
			}
			taken[name] = s.File
		}
		entry := &c.manifest.Archs[len(c.manifest.Archs)-1]
		entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: s.Device, Name: s.Name, Aliases: s.Aliases})
	}
	return c, nil
}

// Manifest implements arch.Provider.
func (c *Catalog) Manifest() arch.Manifest { return c.manifest }

// Open implements arch.Provider. The architecture may also be given by the name of one of its devices.
func (c *Catalog) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	sheet, err := c.find(r.Arch, r.Device)
	if err != nil {
		return nil, err
	}
	model := r.Model
	if model == "" {
		model = c.def.Models[0]
	}
	if !slices.Contains(c.def.Models, model) {
		return nil, diag.Inputf("%s has no model %q", sheet.Arch, model).Do("use one of %s", strings.Join(c.def.Models, ", "))
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
	return c.def.Open(Selection{Sheet: sheet, Model: model, Options: r.Options, Overrides: r.Overrides})
}

func (c *Catalog) find(archName, device string) (*hw.Sheet, error) {
	var ids, devices []string
	for _, s := range c.def.Sheets {
		names := append([]string{s.Device}, s.Aliases...)
		switch {
		case s.Arch == archName:
			if device == "" || slices.Contains(names, device) {
				return s, nil // defaults come first
			}
			devices = append(devices, s.Device)
		case slices.Contains(names, archName) && (device == "" || slices.Contains(names, device)):
			return s, nil
		}
		ids = append(ids, s.Arch)
	}
	if devices != nil {
		return nil, diag.Inputf("%s has no device %q", archName, device).Do("use one of %s", strings.Join(devices, ", "))
	}
	return nil, diag.Inputf("plugin %s has no architecture %q", c.def.Name, archName).Do("it has %s", list(slices.Compact(ids)))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
