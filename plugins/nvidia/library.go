package nvidia

import (
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// libraryOf models cuBLAS on an SM.
func libraryOf(sm *gpu.SM) catalog.Model {
	v := library.Vendor{
		Numbers: map[string]string{
			"units":      "num_sms",
			"l2_count":   "1", // the halves of the L2 of two dies are one cache
			"clock":      "clock",
			"tdp":        "tdp",
			"l2_size":    "l2_bytes",
			"mall_size":  "0",
			"dram_speed": "dram_bandwidth",
		},
		Needs: gpu.Limits,
		Machine: func(s catalog.Selection) library.Machine {
			d := gpu.NewDevice(sm, s.Sheet, s.Params).Description()
			d.Atoms = nil // of mma.sync
			return library.Machine{Generation: terms.Generation(sm.Generation), Description: d}
		},
	}
	return v.Model()
}
