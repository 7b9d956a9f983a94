package gemmgen

import (
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
)

// EpilogueSuffix is an epilogue in the name of a kernel, empty for none.
func EpilogueSuffix(e gemm.Epilogue) string {
	if e == (gemm.Epilogue{}) {
		return ""
	}
	return "_" + strings.ReplaceAll(e.String(), "+", "_")
}

// Formula is what a kernel with an epilogue computes, as its header says it.
func Formula(e gemm.Epilogue) string {
	sum := "alpha * A * B"
	if e.Scales {
		sum = "alpha * scale_a * scale_b * A * B"
	}
	if !e.Residual {
		sum += " + beta * C"
	}
	if e.Bias {
		sum += " + bias"
	}
	if e.Activation != gemm.Identity {
		sum = gemm.Epilogue{Activation: e.Activation}.String() + "(" + sum + ")"
	}
	if e.Residual {
		sum += " + R"
	}
	return "C = " + sum
}
