package ask

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Rooflines are kernels under the roofs of devices. [Roofline](roofline.md) defines the numbers. Rejected kernels are
// left out, and all kernels where there is no problem or the model predicts no times.
type Rooflines struct {
	// the devices, one for each type of operands
	Devices []RooflineDevice `json:"devices"`
	// the kernels
	Kernels []RooflineKernel `json:"kernels"`
}

// RooflineDevice is a device with its ceilings.
type RooflineDevice struct {
	// the device, as `arch@device`
	ID string `json:"device"`
	// the name of the product
	Name string `json:"name"`
	// as in `select`
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	// the type of the operands
	DType string `json:"dtype"`
	// the ceilings
	Ceilings []Ceiling `json:"ceilings"`
}

// Ceiling is a number that no kernel exceeds.
type Ceiling struct {
	// what it is of
	Name string `json:"name"`
	// where it applies
	Level string `json:"level" enum:"compute,shared memory,requested,L2,MALL,DRAM"`
	// what nothing exceeds, by the data sheet or the width of the unit; `null` if unknown
	Limit Number `json:"limit"`
	// what a microbenchmark reached; `null` if unknown
	Reached Number `json:"reached"`
	// the unit of both
	Unit string `json:"unit" enum:"FLOP/s,B/s"`
	// of a memory: the peak of the data sheet ÷ its limit, or ÷ what was reached where no limit is known; `null` otherwise
	Ridge Number `json:"ridge_flop_per_byte"`
	// where the numbers come from
	Source string `json:"source"`
}

// RooflineKernel is a kernel under the roofs.
type RooflineKernel struct {
	// the device, as `arch@device`
	Device string `json:"device"`
	// as in `select`
	Problem gemm.Record `json:"problem"`
	Labels  Fields      `json:"labels,omitempty"`
	// `pick`, `config`, `fastest` or a library
	Name string `json:"name"`
	// its configuration; `null` of a library
	Config *gemm.Config `json:"config"`
	// whether the time is measured
	Measured bool `json:"measured"`
	// its time, and its rate
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"flop_per_second"`
	// the rate that the lowest of the roofs allows, and what share of it the rate is
	Attainable float64 `json:"attainable_flop_per_second"`
	Share      float64 `json:"of_attainable"`
	// the level of the lowest roof
	Bound string `json:"bound" enum:"compute,shared memory,requested,L2,MALL,DRAM"`
	// the number of the instructions that it is above, so that one of both is wrong; absent otherwise
	Above string `json:"above,omitempty" enum:"limit,reached"`
	// the kernel at each memory
	Levels []RooflineLevel `json:"levels"`
}

// RooflineLevel is a kernel at one memory.
type RooflineLevel struct {
	// the memory
	Level string `json:"level" enum:"compute,shared memory,requested,L2,MALL,DRAM"`
	// the bytes that pass it
	Bytes float64 `json:"bytes"`
	// whether the model counted the bytes
	Counted bool `json:"counted_by_model"`
	// operations by byte, and bytes by second
	Intensity float64 `json:"flop_per_byte"`
	Bandwidth float64 `json:"bytes_per_second"`
	// the bandwidth ÷ its roof; `null` if unknown
	Share Number `json:"of_roof"`
	// the number that the bandwidth is above, so that one of both is wrong; absent otherwise
	Above string `json:"above,omitempty" enum:"limit,reached"`
}
