// Package amdref provides AMD's GPUs, from the device files of configs/ in the parameters of package device. It opens
// four models on them: the model of Tensile's kernels (package tensile), of Triton's (package triton), of vendors'
// libraries (plugins/library), and the reference, which reproduces AMD's own model and is never tuned (package
// amdorigami). The plugin has its name, amd-ref, from the reference.
package amdref

import (
	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/release"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami"
	"github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
	"github.com/origami-gemm/origami/plugins/amd-ref/triton"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/checked"
	libraryterms "github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Vendor is the name of AMD in device files.
const Vendor = "AMD"

// Provider returns the plugin, with every AMD device of configs/.
func Provider() (arch.Provider, error) {
	return catalog.New(catalog.Definition{
		Name: "amd-ref", Version: release.Version,
		Files: configs.FS, Vendor: Vendor,
		Archs: map[string][]catalog.Model{
			"gfx900": {overTensile, vendorLibrary.Model()}, "gfx906": {vendorLibrary.Model()},
			"gfx908": {vendorLibrary.Model()}, "gfx90a": {overTensile, amdorigami.Model, vendorLibrary.Model()},
			"gfx942": all, "gfx950": all,
		},
		Specs: device.Specs, Scale: device.Scale,
	})
}

// all are the models of CDNA 3 and 4, the best first.
var all = []catalog.Model{overTensile, overTriton, amdorigami.Model, vendorLibrary.Model()}

// overTriton predicts Triton's kernels.
var overTriton = catalog.Model{
	Name: triton.Name, Class: arch.ClassRefined, Kernels: triton.Kernels, Needs: triton.Needs, Fitted: true,
	Open: func(s catalog.Selection) (arch.Architecture, error) { return triton.New(s.Sheet, s.Params) },
}

// overTensile predicts the kernels of AMD's libraries.
var overTensile = catalog.Model{
	Name: tensile.Name, Class: arch.ClassRefined, Kernels: []string{kernel.Name}, Needs: tensile.Needs, Fitted: true,
	Options: []arch.Option{library.Release},
	Open: func(s catalog.Selection) (arch.Architecture, error) {
		m, err := tensile.New(s.Sheet, s.Params)
		if err != nil {
			return nil, err
		}
		if err := setRelease(m, s); err != nil {
			return nil, err
		}
		d := m.Describe()
		if len(s.Changed) > 0 { // the times of another device were not checked
			d.Uncertainty = nil
		}
		if !d.HasElsewhere(kernel.Name) { // today's release has that of the library
			d.Uncertainty = append(d.Uncertainty, checked.Unchecked(kernel.Name, d.Vendor)...)
		}
		return m, nil
	},
}

// setRelease makes the model predict the asked release. The speeds that it was fitted to are of libraries to October
// 2024: early on gfx942 (MI300) and gfx90a (MI200), and of gfx942 for gfx950. On the others AMD has published none
// since, and they are the current ones.
func setRelease(m *tensile.Model, s catalog.Selection) error {
	early := s.Sheet.Arch == "gfx942" || s.Sheet.Arch == "gfx90a"
	release, err := library.ReleaseOf(s.Options, early, s.Sheet.Name)
	if err != nil {
		return err
	}
	if (early || s.Sheet.Arch == "gfx950") && release != checked.Early {
		today, err := vendorLibrary.On(s, map[string]string{library.Release.Key: release})
		if err != nil {
			return err
		}
		m.Today(today.Fastest, today.Describe())
	}
	m.Describe().Options = []arch.OptionValue{{Key: library.Release.Key, Value: release}}
	return nil
}

// generations of the architectures.
var generations = map[string]libraryterms.Generation{
	"gfx900": libraryterms.GCN5, "gfx906": libraryterms.Vega20, "gfx908": libraryterms.CDNA1,
	"gfx90a": libraryterms.CDNA2, "gfx942": libraryterms.CDNA3, "gfx950": libraryterms.CDNA4,
}

// vendorLibrary models hipBLASLt and rocBLAS.
var vendorLibrary = library.Vendor{
	Units: "num_cus", Levels: device.Levels,
	Needs: []string{"lds_bytes", "registers_per_cu", "registers_per_thread"},
	Machine: func(s catalog.Selection) library.Machine {
		return library.Machine{
			Generation: generations[s.Sheet.Arch], Description: device.Description(s.Sheet, s.Params),
			Memory: device.Memory(s.Params),
		}
	},
}
