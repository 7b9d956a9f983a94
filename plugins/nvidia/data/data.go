// Package data ships data sets, and what was made of them for the models, so that models can be held to real kernels on
// a machine without a GPU. It holds data and no logic. README.md says where each data set comes from.
package data

import (
	"embed"

	"github.com/origami-gemm/origami/core/gemm"
)

// FS and Large hold the data sets, a folder each, as core/dataset reads them. Those of Large are not in programs that
// have to be small.
var (
	//go:embed h200-triton h200-sgemm h100-sgemm
	FS embed.FS
	//go:embed h200-mma
	Large embed.FS
)

// Compiled holds what compilers report of the kernels of a family, a file per family: registers, spills and shared
// memory by target. Nothing in it was timed.
//
//go:embed compiled/*.csv
var Compiled embed.FS

// Intervals is what `origami eval --intervals --json` wrote, a line per model, rung and kernel family. `make intervals`
// writes it anew.
//
//go:embed intervals.jsonl
var Intervals []byte

// Measured are the devices that Intervals is of, each with other kernel families. The other devices of an architecture
// are their sisters.
var Measured = []struct{ Arch, Device string }{
	{"sm90", "h200"}, {"sm90", "h100"}, {"sm89", "rtx4090"}, {"sm86", "rtx3090"},
}

// AheadOfLibrary are devices with published times of Triton's kernels below the least that a model takes from the time
// of the vendor's library (pipelined/terms.LibraryLead): the data set rtx3090-triton-published.
var AheadOfLibrary = []string{"rtx3090"}

// Set is a data set that numbers of a model may have been fitted to. Problems, which `go test ./plugins/nvidia/data
// -run Problems -update` writes, has those beside this file, those that are not embedded included. They are Go because
// a model of the H200 lists them when it is opened: to read them would take longer than one selection.
type Set struct {
	Name     string
	Problems []gemm.Problem
}

// Kernels is what is known of the kernels of a family on a device by themselves, for no problem in particular.
type Kernels struct {
	Family, Arch, Device string
	// Twins are devices of the same die, with as many SMs at the same clock: what is known of kernels holds for them.
	Twins []string
	// PackedCompiled is what the family's compiler and the driver report of the kernels, as kernel.Table. PackedTimings is
	// a timing pass over the kernels, as kernel.Timings. `go test ./plugins/nvidia -run Packed -update` makes them of the
	// files.
	PackedCompiled, PackedTimings []byte
}

// TritonH200 are the kernels of the data set h200-triton.
var TritonH200 = Kernels{"triton", "sm90", "h200", []string{"h100", "gh200", "h800"}, tritonH200PackedCompiled,
	tritonH200PackedTimings}

// AllKernels lists them.
var AllKernels = []Kernels{TritonH200}

// TritonH200Compiled and TritonH200Timings are the files that TritonH200 is made of: kernels.csv of a data set, and a
// timing pass as plugins/triton/tools/triton_characterize.py writes it. No program has them, only tests.
var (
	//go:embed h200-triton/kernels.csv
	TritonH200Compiled []byte
	//go:embed h200-triton/characterization.csv
	TritonH200Timings []byte
)

// Reports has a compiler's report, as kernel.Table, on the kernels that the references choose among (8 warps, 2 stages)
// for the architectures without times of single kernels.
//
//go:embed packed/triton-sm*.compiled
var Reports embed.FS

//go:embed packed/h200-triton.compiled
var tritonH200PackedCompiled []byte

//go:embed packed/h200-triton.timings
var tritonH200PackedTimings []byte
