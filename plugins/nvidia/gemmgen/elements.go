package gemmgen

import "github.com/origami-gemm/origami/core/gemm"

// TEMPORARY: until core/gemm names these types.
const (
	E5M2  = gemm.INT8 + 1
	INT32 = gemm.INT8 + 2
)
