// Package records ships measurements, so that models can be held to real kernels on a machine without a GPU. Each folder
// is a dataset as core/dataset reads it; README.md says where they come from.
package records

import "embed"

// FS holds the datasets, a folder each.
//
//go:embed h200-triton h200-mma
var FS embed.FS

// Compiled holds what compilers report of the kernels of a family, a file per family: registers, spills and shared memory by
// target. Nothing in it was timed.
//
//go:embed compiled/*.csv
var Compiled embed.FS

// TritonH200 is what Triton's compiler and the driver report of the kernels of h200-triton, without any time.
//
//go:embed h200-triton/kernels.csv
var TritonH200 []byte

// TritonH200Timed is a timing pass over the kernels of h200-triton by themselves, independent of the problems recorded there:
// what plugins/triton/tools/triton_characterize.py writes.
//
//go:embed h200-triton/characterization.csv
var TritonH200Timed []byte
