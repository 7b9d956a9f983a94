// Package amdref is AMD's Origami GEMM model as it was when tritonBLAS adopted it: three memory levels (L2 per die, MALL,
// HBM), split dies, and the workgroup mapping. It reproduces the original bit for bit and is never tuned.
// docs/model-amd-reference.md gives the equations.
package amdref

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

const (
	pluginName    = "amd-ref"
	pluginVersion = "1.0.0"
	modelName     = "reference"
	kernelFamily  = "triton"
	defaultArch   = "gfx942"
)

// provider opens the devices that the sheets describe.
type provider struct {
	sheets []*hw.Sheet // by architecture, the default device of each first
}

// Provider returns the provider over the device files that origami ships.
func Provider() (arch.Provider, error) { return New(configs.FS) }

// New returns a provider over the files gfx*.yaml at the root of fsys.
func New(fsys fs.FS) (arch.Provider, error) {
	files, err := fs.Glob(fsys, "gfx*.yaml")
	if err != nil {
		return nil, err
	}
	p := &provider{}
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		sheet, err := hw.DecodeSheet(file, data)
		if err != nil {
			return nil, err
		}
		p.sheets = append(p.sheets, sheet)
	}
	if len(p.sheets) == 0 {
		return nil, &diag.Error{What: "no device file gfx*.yaml", Where: pluginName}
	}
	slices.SortStableFunc(p.sheets, func(a, b *hw.Sheet) int {
		if c := strings.Compare(a.Arch, b.Arch); c != 0 || a.Default == b.Default {
			return c
		}
		if a.Default {
			return -1
		}
		return 1
	})
	return p, nil
}

// Manifest implements arch.Provider.
func (p *provider) Manifest() arch.Manifest {
	m := arch.Manifest{Name: pluginName, Version: pluginVersion, Options: slices.Clone(optionList)}
	for _, s := range p.sheets {
		if n := len(m.Archs); n == 0 || m.Archs[n-1].ID != s.Arch {
			m.Archs = append(m.Archs, arch.ArchEntry{ID: s.Arch, Vendor: s.Vendor, Models: []string{modelName}, Kernels: []string{kernelFamily}})
		}
		entry := &m.Archs[len(m.Archs)-1]
		entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: s.Device, Name: s.Name, Aliases: slices.Clone(s.Aliases)})
	}
	return m
}

// Open implements arch.Provider.
func (p *provider) Open(_ context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	sheet, err := p.find(r.Arch, r.Device)
	if err != nil {
		return nil, err
	}
	if r.Model != "" && r.Model != modelName {
		return nil, diag.Inputf("%s has no model %q", sheet.Arch, r.Model).Do("use %s", modelName)
	}
	o, values, err := parseOptions(r.Options, sheet)
	if err != nil {
		return nil, err
	}
	params, err := hw.Resolve(specs, sheet, derive, r.Overrides)
	if err != nil {
		return nil, err
	}
	return newArchitecture(sheet, params, o, values)
}

// find returns the sheet of a device. An empty architecture means the default one, an empty device its first.
func (p *provider) find(archID, device string) (*hw.Sheet, error) {
	if archID == "" {
		archID = defaultArch
	}
	var archs, devices []string
	for _, s := range p.sheets {
		if !slices.Contains(archs, s.Arch) {
			archs = append(archs, s.Arch)
		}
		if s.Arch != archID {
			continue
		}
		if device == "" || device == s.Device || slices.Contains(s.Aliases, device) {
			return s, nil
		}
		devices = append(append(devices, s.Device), s.Aliases...)
	}
	if len(devices) == 0 {
		return nil, diag.Inputf("%s does not model the architecture %q", pluginName, archID).Do("use one of %s", strings.Join(archs, ", "))
	}
	return nil, diag.Inputf("%s has no device %q", archID, device).Do("use one of %s", strings.Join(devices, ", "))
}
