package measure

import "github.com/origami-gemm/origami/core/gemm"

// TritonBLASProblems returns the 23 problems that tritonBLAS's NVIDIA port was evaluated on (its report of
// 2026-02-12, table 7.2): squares from 64 to 8192, and the decode, prefill and projection shapes of Llama-sized
// layers. They are fp16 and row-major.
func TritonBLASProblems() []gemm.Problem {
	var problems []gemm.Problem
	for _, s := range [][3]int{
		{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
		{2048, 2048, 2048}, {128, 4096, 4096}, {128, 4096, 14336}, {128, 14336, 4096}, {64, 16384, 4096},
		{128, 8192, 4096}, {8192, 128, 4096}, {16384, 64, 4096}, {128, 8192, 8192}, {128, 8192, 28672},
		{128, 28672, 8192}, {4096, 4096, 4096}, {4096, 4096, 14336}, {4096, 14336, 4096}, {8192, 8192, 8192},
		{8192, 14336, 4096}, {8192, 28672, 8192}, {8192, 53248, 16384},
	} {
		problems = append(problems, gemm.New(s[0], s[1], s[2]))
	}
	return problems
}
