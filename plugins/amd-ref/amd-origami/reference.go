// Package amdorigami reproduces AMD's Origami GEMM model as it was when tritonBLAS adopted it: three memory levels (L2
// per die, MALL, HBM), several dies, and the workgroup mapping. It matches the original bit for bit and is never tuned.
// docs/model-amd-origami.md gives the equations.
package amdorigami

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Model opens the model on a device.
var Model = catalog.Model{
	Name: Name, Class: arch.ClassReference, Kernels: []string{Family}, Options: optionList,
	Open: func(s catalog.Selection) (arch.Architecture, error) {
		o, values, err := parseOptions(s.Options, s.Sheet)
		if err != nil {
			return nil, err
		}
		return newArchitecture(s.Sheet, s.Params, o, values)
	},
}
