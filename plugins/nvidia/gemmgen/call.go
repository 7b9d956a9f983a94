package gemmgen

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Matrix is a matrix in device memory: the address of its first element, the elements from one row (of the stored,
// contiguous rows) to the next, and the elements from one matrix of a batch to the next.
type Matrix struct {
	Address    uint64
	LD, Stride int
}

// Scales are the factors of rows or columns in device memory, of fp32: the address of the first, and the step from one
// to the next, 1, or 0 if there is one for all.
type Scales struct {
	Address uint64
	Step    int
}

// Call is one multiplication: C = Alpha·A·B + Beta·C for each matrix of the batch, and the problem's epilogue of
// that. C is not read when Beta is zero.
type Call struct {
	Problem     gemm.Problem
	A, B, C     Matrix
	Alpha, Beta float32
	// Bias is the device address of the bias of the problem's epilogue, aligned to an element.
	Bias uint64
	// ScaleA and ScaleB are the scales of the problem's epilogue.
	ScaleA, ScaleB Scales
	// R is the device address of what the epilogue adds last, as aligned as C. If Beta is not zero it is that of C.
	R uint64
	// Offsets is the device address of the tables that Offsets returns, for problems with a nest.
	Offsets uint64
	// Partials and Counters are the device addresses of the workspace that Workspace asks for. Counters must hold zeros
	// before the first launch; every launch leaves them at zero. Launches that may overlap need separate workspaces.
	Partials, Counters uint64
	// Scratch is the device address of the memory that a Scratcher asks for.
	Scratch uint64
}

// NewCall returns A·B for matrices as a problem describes them. Their addresses are not known yet: they are numbers
// that are only as aligned as the problem promises.
func NewCall(p gemm.Problem) Call {
	matrix := func(o gemm.Operand) Matrix {
		return Matrix{Address: uint64(p.Align(o) % gemm.MaxVector), LD: p.LD(o), Stride: p.Stride(o)}
	}
	alpha, beta := p.Scalars()
	return Call{Problem: p, Alpha: alpha, Beta: beta, A: matrix(gemm.A), B: matrix(gemm.B), C: matrix(gemm.C)}
}

// Alignment returns how many bytes (16, 8, 4, 2 or 1) divide the address and the length of every contiguous row of A, B
// and C. The elements of C have the type out.
func (c Call) Alignment(out gemm.DType) (alignA, alignB, alignC int) {
	p := c.Problem
	rowA, rowB := c.rows()
	return c.A.align(rowA, p.DType, p.Batch), c.B.align(rowB, p.DType, p.Batch), c.C.align(p.Columns(), out, p.Batch)
}

// Vectors returns how many bytes (16, 8, 4, 2 or 1) divide the address and the distance of contiguous rows of A, B and
// C. Rows may end inside of an access of that width, if there is a gap behind them.
func (c Call) Vectors(out gemm.DType) (vectorA, vectorB, vectorC int) {
	p := c.Problem
	return c.A.align(0, p.DType, p.Batch), c.B.align(0, p.DType, p.Batch), c.C.align(0, out, p.Batch)
}

// align returns the largest of 16, 8, 4, 2 and 1 that divides the address and the length of every row.
func (m Matrix) align(row int, d gemm.DType, batch int) int {
	offsets := m.Address | uint64((row|m.LD)*d.Bytes()) | 16
	if batch > 1 {
		offsets |= uint64(m.Stride * d.Bytes())
	}
	return int(offsets & -offsets)
}

// rows returns the elements of the contiguous rows of A and B.
func (c Call) rows() (a, b int) {
	a, b = c.Problem.K, c.Problem.N
	if c.Problem.TransA() {
		a = c.Problem.M
	}
	if c.Problem.TransB() {
		b = c.Problem.K
	}
	return a, b
}

// maxExtent keeps indices of a tile's last row within 32 bits.
const maxExtent = math.MaxInt32 - 1024

// check refuses groups, matrices that overlap themselves or whose indices do not fit into 32 bits.
func (c Call) check() *diag.Error {
	p := c.Problem
	if p.Groups != (gemm.Groups{}) {
		return diag.Inputf("the generated kernels multiply no groups, as %s has", p).Do("use the executor triton")
	}
	rowA, rowB := c.rows()
	for _, m := range []struct {
		name    string
		ld, row int
	}{{"A", c.A.LD, rowA}, {"B", c.B.LD, rowB}, {"C", c.C.LD, p.Columns()}} {
		if m.ld < m.row {
			return diag.Inputf("leading dimension of %s is %d, its rows have %d elements", m.name, m.ld, m.row).
				Do("give at least %d", m.row)
		}
	}
	if max(p.M, p.N, p.K, c.A.LD, c.B.LD) > maxExtent {
		return diag.Inputf("a side or leading dimension of %s is above %d", p, maxExtent).Do("split the problem")
	}
	return nil
}
