package nvidia

import (
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// libraryOf models cuBLAS on an SM.
func libraryOf(sm *gpu.SM) catalog.Model {
	v := library.Vendor{
		Numbers: map[string]string{
			"units":      "num_sms",
			"clock":      "clock",
			"l2_size":    "l2_bytes",
			"mall_size":  "0",
			"dram_speed": "dram_bandwidth",
		},
		Needs: gpu.Limits,
		Machine: func(s catalog.Selection) library.Machine {
			d := gpu.NewDevice(sm, s.Sheet, s.Params).Description()
			d.Atoms = nil // of mma.sync
			return library.Machine{Generation: sm.Generation, Description: d}
		},
	}
	return v.Model()
}
