package amdref

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/library"
	libraryterms "github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// generations of the architectures.
var generations = map[string]libraryterms.Generation{
	"gfx900": libraryterms.GCN5, "gfx906": libraryterms.GCN5, "gfx908": libraryterms.CDNA1,
	"gfx90a": libraryterms.CDNA2, "gfx942": libraryterms.CDNA3, "gfx950": libraryterms.CDNA4,
}

// vendorLibrary models hipBLASLt and rocBLAS.
var vendorLibrary = library.Vendor{
	Numbers: map[string]string{
		"units":      "num_cus",
		"l2_count":   "num_xcds",
		"clock":      "clock",
		"tdp":        "tdp",
		"l2_size":    "l2_bytes * num_xcds",
		"mall_size":  "mall_bytes",
		"dram_speed": "dram_bandwidth",
	},
	Needs: []string{"num_xcds", "lds_bytes", "registers_per_cu", "registers_per_thread"},
	Machine: func(s catalog.Selection) library.Machine {
		p := s.Params
		d := arch.Description{
			Arch: s.Sheet.Arch, Vendor: s.Sheet.Vendor,
			Device: s.Sheet.Device, DeviceName: s.Sheet.Name, Aliases: s.Sheet.Aliases,
			UnitName: "CU", Units: p.Int("num_cus"), Partitions: p.Int("num_xcds"),
			Clock: unit.Hertz(p.Get("clock")), SharedMemory: unit.Bytes(p.Get("lds_bytes")),
			RegisterFile: p.Int("registers_per_cu"), RegistersPerThread: p.Int("registers_per_thread"),
			Params: p, Peak: arch.PeakRates(p),
		}
		return library.Machine{Generation: generations[s.Sheet.Arch], Description: d}
	},
}
