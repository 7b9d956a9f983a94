package nvidia

import (
	"slices"

	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// cuBLAS is modelled on an SM.
func cuBLAS(sm *gpu.SM) catalog.Model {
	v := vendor(sm)
	return v.Model()
}

// cuBLASBeside returns the model of cuBLAS on the device of a selection. It is nil where times of kernels are known:
// of the architecture, or from the user.
func cuBLASBeside(sm *gpu.SM, s catalog.Selection) (*library.Model, error) {
	ofArch := func(k data.Kernels) bool { return k.Arch == sm.ID }
	timed := slices.Contains(data.AheadOfLibrary, s.Sheet.Device) || s.Characterization != nil || s.Sheet.Fitted != nil
	if timed || slices.ContainsFunc(data.AllKernels, ofArch) {
		return nil, nil
	}
	v := vendor(sm)
	// Without what times near a problem correct: the constants of the families were chosen beside the terms alone, and
	// devices of one die have times of their own or none.
	return v.On(s, map[string]string{residual.Nearby: residual.None})
}

func vendor(sm *gpu.SM) library.Vendor {
	return library.Vendor{
		Units: "num_sms", Levels: gpu.Levels, Narrow: true,
		Needs: gpu.Limits,
		Machine: func(s catalog.Selection) library.Machine {
			on := gpu.NewDevice(sm, s.Sheet, s.Params)
			d := on.Description()
			d.Atoms = nil // of mma.sync
			return library.Machine{Generation: terms.Generation(sm.Generation), Description: d, Memory: on.Memory}
		},
	}
}
