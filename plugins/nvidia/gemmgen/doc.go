// Package gemmgen generates GEMM kernels.
package gemmgen
