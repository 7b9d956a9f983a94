package gemmgen

import (
	"encoding/binary"
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Verification is the check of one result on the device. It compares rows 0, RowStep, 2·RowStep, … of each C, Rows of
// them, with A·B: a Reference computes the right values, a Comparison counts the elements that differ.
type Verification struct {
	// Call is the multiplication to check. Alpha must be 1 and Beta 0.
	Call Call
	// Rows and RowStep choose the rows. RowStep 1 and M rows choose all.
	Rows, RowStep int
	// Want is the device address of WantBytes bytes, which the reference writes and the comparison reads: the chosen
	// rows without gaps, one matrix of the batch after the other.
	Want uint64
	// Verdict is the device address of VerdictBytes bytes. They hold NewVerdict before the comparison is launched.
	Verdict uint64
	// Tolerance is the largest error allowed. The error of an element is |got − want| / (|want| + Scale), in fp32.
	// Scale is positive: the magnitude of a typical element, such as √K if A and B are standard normal.
	Tolerance, Scale float32
}

// WantBytes is the size of the output of the reference.
func (v Verification) WantBytes() unit.Bytes {
	return unit.Bytes(4 * v.Rows * v.Call.Problem.N * v.Call.Problem.Batch)
}

// Verdict is the result of a comparison.
type Verdict struct {
	// MaxError is the largest error, +Inf if an element is not a number.
	MaxError float32
	// Wrong counts the elements that exceed the tolerance or are not a number. First is the index of the first of
	// them in the output of the reference. It means nothing if no element is wrong.
	Wrong, First uint64
}

// The layout of a verdict in device memory, little-endian: MaxError at 0, Wrong at 8, First at 16.
const (
	VerdictBytes         = 24
	wrongAt, firstAt int = 8, 16
)

// NewVerdict returns the bytes of a verdict before a comparison.
func NewVerdict() []byte {
	b := make([]byte, VerdictBytes)
	binary.LittleEndian.PutUint64(b[firstAt:], math.MaxUint64)
	return b
}

// ParseVerdict reads the bytes of a verdict after a comparison.
func ParseVerdict(b []byte) (Verdict, error) {
	if len(b) != VerdictBytes {
		return Verdict{}, diag.Inputf("%d bytes", len(b)).At("a verdict").Do("read %d bytes", VerdictBytes)
	}
	return Verdict{MaxError: math.Float32frombits(binary.LittleEndian.Uint32(b)),
		Wrong: binary.LittleEndian.Uint64(b[wrongAt:]), First: binary.LittleEndian.Uint64(b[firstAt:])}, nil
}

// verifyThreads is the CTA size of both kernels.
const verifyThreads = 256

// check refuses calls that the kernels would not verify correctly.
func (v Verification) check(kernel string) error {
	where := func(err *diag.Error) error { return err.At("launch of %s", kernel) }
	p := v.Call.Problem
	if err := p.Validate(); err != nil {
		return err
	}
	if err := v.Call.check(); err != nil {
		return where(err)
	}
	switch {
	case p.Nest != (gemm.Nest{}):
		return where(diag.Inputf("the problem has a nest, and only matrices are verified").
			Do("compare with contract.Shape.Reference"))
	case p.Epilogue != (gemm.Epilogue{}):
		return where(diag.Inputf("the problem has the epilogue %s, and only A·B itself is verified", p.Epilogue).
			Do("compare with HostReference"))
	case v.Call.Alpha != 1 || v.Call.Beta != 0:
		return where(diag.Inputf("alpha is %g and beta %g: only A·B itself is verified", v.Call.Alpha, v.Call.Beta).
			Do("run the call with alpha 1 and beta 0"))
	case v.Rows < 1 || v.RowStep < 1 || v.RowStep > p.M || (v.Rows-1)*v.RowStep >= p.M:
		return where(diag.Inputf("%d rows, %d apart, of the %d of C", v.Rows, v.RowStep,
			p.M).Do("choose rows that C has"))
	case p.Batch > target.GridYZ:
		return where(diag.Inputf("a batch of %d exceeds the grid of %d", p.Batch, target.GridYZ).Do("split the batch"))
	}
	return nil
}
