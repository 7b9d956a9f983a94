package gemmgen

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

func problem(m, n, k, batch int, transA, transB bool) gemm.Problem {
	p := gemm.New(m, n, k)
	p.Batch = batch
	p.SetTrans(transA, transB)
	return p
}

// TestAlignment: the copy width follows from addresses, leading dimensions, strides and row lengths together.
func TestAlignment(t *testing.T) {
	for _, c := range []struct {
		name    string
		call    func() Call
		out     gemm.DType
		a, b, c int
	}{
		{"multiples of 8", func() Call { return Packed(problem(64, 64, 64, 1, false, false)) }, gemm.FP16, 16, 16, 16},
		{"m does not matter to k-contiguous A and row-major C", func() Call { return Packed(problem(7, 64, 64, 1, false, false)) }, gemm.FP16, 16, 16, 16},
		{"m matters to m-contiguous A", func() Call { return Packed(problem(12, 64, 64, 1, true, false)) }, gemm.FP16, 8, 16, 16},
		{"k matters to k-contiguous B", func() Call { return Packed(problem(64, 64, 6, 1, true, true)) }, gemm.FP16, 16, 4, 16},
		{"odd n", func() Call { return Packed(problem(64, 7, 64, 1, false, false)) }, gemm.FP16, 16, 2, 2},
		{"odd n, fp32 out", func() Call { return Packed(problem(64, 7, 64, 1, false, true)) }, gemm.FP32, 16, 16, 4},
		{"even n, fp32 out", func() Call { return Packed(problem(64, 6, 64, 1, false, true)) }, gemm.FP32, 16, 16, 8},
		{"padded rows of odd length", func() Call { c := Packed(problem(64, 64, 63, 1, false, true)); c.A.LD, c.B.LD = 64, 64; return c }, gemm.FP16, 2, 2, 16},
		{"odd leading dimension", func() Call { c := Packed(problem(64, 64, 64, 1, false, false)); c.A.LD = 65; return c }, gemm.FP16, 2, 16, 16},
		{"address", func() Call {
			c := Packed(problem(64, 64, 64, 1, false, false))
			c.B.Address, c.C.Address = 4, 8
			return c
		}, gemm.FP16, 16, 4, 8},
		{"stride of a batch", func() Call { c := Packed(problem(64, 64, 64, 2, false, false)); c.A.Stride = 64*64 + 4; return c }, gemm.FP16, 8, 16, 16},
		{"stride without a batch", func() Call { c := Packed(problem(64, 64, 64, 1, false, false)); c.A.Stride = 64*64 + 4; return c }, gemm.FP16, 16, 16, 16},
	} {
		alignA, alignB, alignC := c.call().Alignment(c.out)
		if alignA != c.a || alignB != c.b || alignC != c.c {
			t.Errorf("%s: %d, %d, %d, want %d, %d, %d", c.name, alignA, alignB, alignC, c.a, c.b, c.c)
		}
	}
}

func TestWorkspace(t *testing.T) {
	p := problem(200, 264, 1000, 5, true, true)
	partials, counters := Workspace(p, gemm.Config{BlockM: 64, BlockN: 128, SplitK: 4})
	if partials != 4*3*5*4*64*128*4 || counters != 4*3*5*4 {
		t.Errorf("workspace of %v and %v B", partials, counters)
	}
	if p, c := Workspace(p, gemm.Config{BlockM: 64, BlockN: 128, SplitK: 1}); p != 0 || c != 0 {
		t.Error("a workspace without splits")
	}
}
