// Package amdref reproduces AMD's Origami GEMM model as it was when tritonBLAS adopted it: three memory levels (L2 per
// die, MALL, HBM), several dies, and the workgroup mapping. It matches the original bit for bit and is never tuned.
// docs/model-amd-reference.md gives the equations.
package amdref

import (
	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/release"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Vendor is the name of AMD in device files.
const Vendor = "AMD"

const (
	modelName    = "reference"
	kernelFamily = "triton"
)

// Provider returns the plugin, with every AMD device of configs/.
func Provider() (arch.Provider, error) {
	return catalog.New(catalog.Definition{
		Name: "amd-ref", Version: release.Version,
		Files: configs.FS, Vendor: Vendor,
		Archs: map[string][]catalog.Model{
			"gfx900": {overTensile, vendorLibrary.Model()}, "gfx906": {vendorLibrary.Model()},
			"gfx908": {vendorLibrary.Model()}, "gfx90a": all, "gfx942": all, "gfx950": all,
		},
		Specs: specs, Derive: derive, Scale: scale,
	})
}

// all are the models of an architecture, the best first.
var all = []catalog.Model{overTensile, reference, vendorLibrary.Model()}

// overTensile predicts the kernels of AMD's libraries.
var overTensile = catalog.Model{
	Name: refined.Name, Kernels: []string{tensile.Name}, Needs: refined.Needs,
	Open: func(s catalog.Selection) (arch.Architecture, error) {
		m := refined.New(s.Sheet, s.Params)
		if len(s.Changed) > 0 { // the times of another device were not checked
			m.Describe().Uncertainty = nil
		}
		return m, nil
	},
}

// reference is the model that reproduces AMD's.
var reference = catalog.Model{
	Name: modelName, Kernels: []string{kernelFamily}, Options: optionList,
	Open: func(s catalog.Selection) (arch.Architecture, error) {
		o, values, err := parseOptions(s.Options, s.Sheet)
		if err != nil {
			return nil, err
		}
		return newArchitecture(s.Sheet, s.Params, o, values)
	},
}
