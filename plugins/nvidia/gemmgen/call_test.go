package gemmgen

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// TestAlignment: the copy width follows from addresses, leading dimensions, strides and row lengths together.
func TestAlignment(t *testing.T) {
	square, batch := gentest.Problem(64, 64, 64, 1, false, false), gentest.Problem(64, 64, 64, 2, false, false)
	for _, c := range []struct {
		name    string
		problem gemm.Problem
		change  func(*Call)
		out     gemm.DType
		a, b, c int
	}{
		{"multiples of 8", square, nil, gemm.FP16, 16, 16, 16},
		{"m is free if A is k-contiguous", gentest.Problem(7, 64, 64, 1, false, false), nil, gemm.FP16, 16, 16, 16},
		{"m matters to m-contiguous A", gentest.Problem(12, 64, 64, 1, true, false), nil, gemm.FP16, 8, 16, 16},
		{"k matters to k-contiguous B", gentest.Problem(64, 64, 6, 1, true, true), nil, gemm.FP16, 16, 4, 16},
		{"odd n", gentest.Problem(64, 7, 64, 1, false, false), nil, gemm.FP16, 16, 2, 2},
		{"odd n, fp32 out", gentest.Problem(64, 7, 64, 1, false, true), nil, gemm.FP32, 16, 16, 4},
		{"even n, fp32 out", gentest.Problem(64, 6, 64, 1, false, true), nil, gemm.FP32, 16, 16, 8},
		{"padded rows of odd length", gentest.Problem(64, 64, 63, 1, false, true),
			func(c *Call) { c.A.LD, c.B.LD = 64, 64 }, gemm.FP16, 2, 2, 16},
		{"odd leading dimension", square, func(c *Call) { c.A.LD = 65 }, gemm.FP16, 2, 16, 16},
		{"address", square, func(c *Call) { c.B.Address, c.C.Address = 4, 8 }, gemm.FP16, 16, 4, 8},
		{"stride of a batch", batch, func(c *Call) { c.A.Stride = 64*64 + 4 }, gemm.FP16, 8, 16, 16},
		{"stride without a batch", square, func(c *Call) { c.A.Stride = 64*64 + 4 }, gemm.FP16, 16, 16, 16},
	} {
		call := NewCall(c.problem)
		if c.change != nil {
			c.change(&call)
		}
		if vectorA, vectorB, vectorC := call.Vectors(c.out); vectorA < c.a || vectorB < c.b || vectorC < c.c {
			t.Errorf("%s: vectors of %d, %d, %d", c.name, vectorA, vectorB, vectorC)
		}
		alignA, alignB, alignC := call.Alignment(c.out)
		must.That(t, alignA == c.a && alignB == c.b && alignC == c.c,
			"%s: %d, %d, %d, want %d, %d, %d", c.name, alignA, alignB, alignC, c.a, c.b, c.c)
	}
}

// TestNewCall: a call has the leading dimensions, strides and alignments of its problem.
func TestNewCall(t *testing.T) {
	p := gentest.Problem(64, 48, 32, 3, false, true)
	p.LDA, p.LDC, p.AlignB = 40, 50, 4
	c := NewCall(p)
	if c.A.LD != 40 || c.A.Stride != 64*40 || c.B.LD != 32 || c.B.Stride != 48*32 || c.C.LD != 50 || c.C.Stride != 64*50 {
		t.Errorf("%+v", c)
	}
	if a, b, out := c.Alignment(gemm.FP16); a != 16 || b != 4 || out != 4 {
		t.Errorf("aligned to %d, %d and %d bytes", a, b, out)
	}
	// Of padded rows, those that are aligned count for the width of accesses, those that are not end inside of one.
	p.M, p.N, p.K, p.LDA, p.LDB, p.LDC, p.AlignB = 63, 47, 31, 40, 40, 56, 0
	for m, want := range map[gemm.Operand]int{gemm.A: 16, gemm.B: 16, gemm.C: 16} {
		a, b, out := NewCall(p).Vectors(gemm.FP16)
		if got := map[gemm.Operand]int{gemm.A: a, gemm.B: b, gemm.C: out}[m]; got != want || got != p.VectorBytes(m) {
			t.Errorf("%s has vectors of %d bytes, want %d; the problem says %d", m, got, want, p.VectorBytes(m))
		}
	}
	if a, b, out := NewCall(p).Alignment(gemm.FP16); a != 2 || b != 2 || out != 2 {
		t.Errorf("rows are aligned to %d, %d and %d bytes", a, b, out)
	}
	p = gentest.Problem(64, 48, 32, 1, false, true)
	p.DType, p.LDA, p.LDC = gemm.INT8, 33, 50
	if a, b, out := NewCall(p).Alignment(gemm.INT32); a != 1 || b != 16 || out != 8 {
		t.Errorf("int8 is aligned to %d, %d and %d bytes", a, b, out)
	}
}

func TestGroupsAreRefused(t *testing.T) {
	groups := must.Get(gemm.NewGroups(100, 28))(t)
	p := gentest.Problem(1, 64, 64, 1, false, false)
	p.SetGroups(groups)
	_, refused := NewCall(p).Tile(gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, SplitK: 1})
	if refused == nil || !strings.Contains(refused.Error(), "multiply no groups, as 128x64x64 fp16 groups 100,28 has") {
		t.Errorf("got %v", refused)
	}
}

func TestWorkspace(t *testing.T) {
	p := gentest.Problem(200, 264, 1000, 5, true, true)
	partials, counters := Workspace(p, gemm.Config{BlockM: 64, BlockN: 128, SplitK: 4})
	must.That(t, partials == 4*3*5*4*64*128*4 && counters == 4*3*5*4, "workspace of %v and %v B", partials, counters)
	if p, c := Workspace(p, gemm.Config{BlockM: 64, BlockN: 128, SplitK: 1}); p != 0 || c != 0 {
		t.Error("a workspace without splits")
	}
}
