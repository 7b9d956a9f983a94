// Package records ships measurements, so that models can be held to real kernels on a machine without a GPU. Each folder
// is a dataset as core/record reads it; README.md says where they come from.
package records

import "embed"

// FS holds the datasets, a folder each.
//
//go:embed h200-triton h200-mma
var FS embed.FS
