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
	// Support is what the plugin has for every architecture.
	Support
	// Archs, if it is set, has that for each architecture by id instead. A device file of another architecture is an
	// error.
	Archs map[string]Support
	// Options are the settings that only this plugin knows.
	Options []arch.Option
	// Specs are the hardware numbers of a device. Derive, which may be nil, computes those that follow from others of the
	// same device (see hw.Resolve).
	Specs  []hw.Spec
	Derive func(name string, known hw.Set) (hw.Number, bool)
	// Scale computes what no driver tells of a GPU that has no device file, from what is known of it and from the default
	// device of its architecture. The number's source is the formula. Without Scale such a GPU cannot be opened.
	Scale func(name string, known, like hw.Set) (hw.Number, bool)
	// Open opens a model. What it gets has been checked: the sheet and the model exist, every option is declared, and the
	// hardware numbers are resolved.
	Open func(Selection) (arch.Architecture, error)
}

// Support is what a plugin has for an architecture.
type Support struct {
	// Models are best first. Kernels are the kernel families that they predict, default first.
	Models, Kernels []string
}

// of returns what the plugin has for an architecture.
func (d *Definition) of(arch string) (Support, bool) {
	if d.Archs == nil {
		return d.Support, true
	}
	s, ok := d.Archs[arch]
	return s, ok
}

// Selection is a request with every name looked up: Model and the names of the device are never empty, and every option
// is declared. At RungSpec, Params have nothing of a microbenchmark.
type Selection struct {
	arch.OpenRequest
	Sheet  *hw.Sheet
	Params hw.Set
}

// Catalog is a Provider over a Definition.
type Catalog struct {
	def      Definition
	devices  []hw.Header // by architecture, the default device of each first
	manifest arch.Manifest
}

// New reads which devices there are, and checks that their names are unambiguous and that every architecture has
// exactly one default device. The numbers of a device are read when it is opened.
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
		if len(a.Arch) != len(b.Arch) {
			return len(a.Arch) < len(b.Arch) // sm90 before sm100
		}
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
			s, ok := def.of(d.Arch)
			if !ok {
				return nil, fmt.Errorf("%s: plugin %s has no model for the architecture %s; add it to the plugin's list",
					d.File, def.Name, d.Arch)
			}
			entry := arch.ArchEntry{ID: d.Arch, Vendor: d.Vendor, Models: s.Models, Kernels: s.Kernels}
			c.manifest.Archs = append(archs, entry)
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
	m, err := c.find(r)
	if err != nil {
		return nil, err
	}
	model := r.Model
	if model == "" {
		model = m.Arch.Models[0]
	}
	if !slices.Contains(m.Arch.Models, model) {
		return nil, diag.Inputf("%s has no model %q", m.Arch.ID, model).Do("use one of %s", list(m.Arch.Models))
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
	s := Selection{OpenRequest: r}
	s.Arch, s.Device, s.Model = m.Arch.ID, m.Device.ID, model
	derived := sources{}
	if m.Device.ID == arch.LiveID {
		s.Sheet, s.Params, err = c.unknown(m, r, derived)
	} else {
		s.Sheet, s.Params, err = c.known(m, r, derived)
	}
	if err != nil {
		return nil, err
	}
	opened, err := c.def.Open(s)
	if err != nil {
		return nil, err
	}
	if d := opened.Describe(); len(d.Unused) > 0 {
		d.Unused = derived.unused(s.Params, d.Unused)
	}
	return opened, nil
}

// sources are the parameters that the value of a derived one was computed from, by its name.
type sources map[string][]string

// record returns derive, which may be nil, so that it records what it looks up.
func (s sources) record(derive func(string, hw.Set) (hw.Number, bool)) func(string, hw.Set) (hw.Number, bool) {
	if derive == nil {
		return nil
	}
	return func(name string, known hw.Set) (n hw.Number, ok bool) {
		reads := known.Reads(func(known hw.Set) { n, ok = derive(name, known) })
		if ok {
			s[name] = reads
		}
		return n, ok
	}
}

// unused returns those of a model's unused parameters that no used one is derived from.
func (s sources) unused(params hw.Set, byModel []string) []string {
	used := map[string]bool{}
	for i := len(params) - 1; i >= 0; i-- { // a derived parameter comes after its sources
		name := params[i].Name
		used[name] = used[name] || !slices.Contains(byModel, name)
		for _, source := range s[name] {
			used[source] = used[source] || used[name]
		}
	}
	return slices.DeleteFunc(slices.Clone(byModel), func(name string) bool { return used[name] })
}

// find returns the device that a request means.
func (c *Catalog) find(r arch.OpenRequest) (arch.Match, error) {
	if r.Live != nil && r.Device == "" {
		return arch.FindLive([]arch.Manifest{c.manifest}, r.Arch, r.Live)
	}
	name := r.Arch
	if r.Device != "" {
		name += "@" + r.Device
	}
	m, err := arch.Find([]arch.Manifest{c.manifest}, name)
	m.Live = r.Live
	return m, err
}

// known reads a device's file. What the driver of this machine tells replaces the lowest tier.
func (c *Catalog) known(m arch.Match, r arch.OpenRequest, derived sources) (*hw.Sheet, hw.Set, error) {
	i := slices.IndexFunc(c.devices, func(d hw.Header) bool { return d.Device == m.Device.ID }) // names are unambiguous
	file := c.devices[i].File
	data, err := fs.ReadFile(c.def.Files, file)
	if err != nil {
		return nil, nil, err
	}
	sheet, err := hw.DecodeSheet(file, data)
	if err != nil {
		return nil, nil, err
	}
	if r.Rung == arch.RungSpec {
		sheet.Calibrated = nil
	}
	if m.Live != nil {
		sheet = sheet.WithLive(c.def.Specs, m.Live.Attributes)
	}
	params, err := hw.Resolve(c.def.Specs, sheet, derived.record(c.def.Derive), r.Overrides)
	return sheet, params, err
}

// unknown makes the numbers of a GPU that has no file: what its driver tells, and the rest scaled from the default
// device of the architecture. All are of the lowest tier.
func (c *Catalog) unknown(m arch.Match, r arch.OpenRequest, derived sources) (*hw.Sheet, hw.Set, error) {
	if c.def.Scale == nil {
		return nil, nil, diag.Inputf("%s has no device file, and plugin %s cannot derive its numbers", m.Live.Name,
			c.def.Name).
			Do("name the device that comes nearest").Coded(diag.CodeUnknownDevice, "")
	}
	nearest := arch.Match{Manifest: m.Manifest, Arch: m.Arch, Device: &m.Arch.Devices[0]}
	_, like, err := c.known(nearest, arch.OpenRequest{Rung: r.Rung}, sources{})
	if err != nil {
		return nil, nil, err
	}
	sheet := &hw.Sheet{Header: hw.Header{File: m.Live.Name, Arch: m.Arch.ID, Device: m.Device.ID, Name: m.Live.Name,
		Vendor: m.Arch.Vendor}}
	sheet = sheet.WithLive(c.def.Specs, m.Live.Attributes)
	scale := func(name string, known hw.Set) (hw.Number, bool) {
		n, ok := c.def.Scale(name, known, like)
		if from, has := like.Lookup(name); has {
			n.Date = from.Date
		}
		return n.Scaled(nearest.ID()), ok
	}
	params, err := hw.Resolve(c.def.Specs, sheet, derived.record(scale), r.Overrides)
	return sheet, params, err
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
