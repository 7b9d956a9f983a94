// Package gemm is the vocabulary of a matrix multiplication: the problem, the element type, and the kernel
// configuration that computes it. Every other package speaks in these types.
package gemm

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// DType is the element type of A and B. The accumulator and the output follow from it (see Output).
type DType uint8

// The element types. FP8 stands for either 8-bit format (e4m3, e5m2): they cost the same everywhere that origami knows.
const (
	FP16 DType = iota + 1
	BF16
	FP32
	TF32
	FP8
	INT8
)

var dtypeNames = [...]string{FP16: "fp16", BF16: "bf16", FP32: "fp32", TF32: "tf32", FP8: "fp8", INT8: "int8"}

// DTypes lists all element types.
func DTypes() []DType { return []DType{FP16, BF16, FP32, TF32, FP8, INT8} }

// String returns the name used on the command line and in every file.
func (d DType) String() string {
	if d >= FP16 && int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, error) {
	for _, d := range DTypes() {
		if s == d.String() {
			return d, nil
		}
	}
	return 0, diag.Inputf("unknown dtype %q", s).Do("use one of %s", strings.Join(dtypeNames[FP16:], ", "))
}

// Bits returns the size of one element of A or B in memory. TF32 is stored as 32 bits.
func (d DType) Bits() int {
	switch d {
	case FP8, INT8:
		return 8
	case FP32, TF32:
		return 32
	default:
		return 16
	}
}

// Bytes returns the size of one element of A or B in memory.
func (d DType) Bytes() int { return d.Bits() / 8 }

// OutputBits returns the size of one element of C: the input type for 16-bit types, 32 bits for FP32 and TF32, FP16 for
// FP8 and INT32 for INT8, which is what the vendor libraries write by default.
func (d DType) OutputBits() int {
	switch d {
	case FP32, TF32, INT8:
		return 32
	default:
		return 16
	}
}

// Major names the dimension along which a matrix is contiguous in memory.
type Major uint8

// The dimensions that a matrix can be contiguous along: A along K or M, B along K or N.
const (
	MajorK Major = 'k'
	MajorM Major = 'm'
	MajorN Major = 'n'
)

// Problem is one GEMM, or Batch of them at a fixed stride: C[M×N] = A[M×K] · B[K×N].
//
// AMajor and BMajor store which dimension is contiguous, so that nothing depends on a library's letters. The command
// line's --trans-a means AMajor M, --trans-b means BMajor K; row-major storage without transposes is AMajor K, BMajor
// N.
type Problem struct {
	M, N, K, Batch int
	AMajor, BMajor Major
	DType          DType
}

// New returns an FP16 problem with row-major A and B and a batch of one.
func New(m, n, k int) Problem {
	return Problem{M: m, N: n, K: k, Batch: 1, AMajor: MajorK, BMajor: MajorN, DType: FP16}
}

// TransA reports whether A is stored M-contiguous.
func (p Problem) TransA() bool { return p.AMajor == MajorM }

// TransB reports whether B is stored K-contiguous.
func (p Problem) TransB() bool { return p.BMajor == MajorK }

// SetTrans sets the storage orders from the command line's two flags.
func (p *Problem) SetTrans(a, b bool) {
	p.AMajor, p.BMajor = MajorK, MajorN
	if a {
		p.AMajor = MajorM
	}
	if b {
		p.BMajor = MajorK
	}
}

// Flops returns 2·M·N·K·Batch as a float64.
func (p Problem) Flops() float64 {
	return 2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(p.Batch)
}

// String formats as "2048x2048x2048 fp16", with " tn", " batch 4" and the like only where they are not the default.
func (p Problem) String() string {
	s := fmt.Sprintf("%dx%dx%d %s", p.M, p.N, p.K, p.DType)
	if p.Batch != 1 {
		s += fmt.Sprintf(" batch %d", p.Batch)
	}
	if p.TransA() {
		s += " trans-a"
	}
	if p.TransB() {
		s += " trans-b"
	}
	return s
}

// Validate reports the first thing that makes the problem impossible to model: a dimension that is missing, zero or
// negative, an unknown type or order, or sizes whose padded element counts overflow 64-bit integers. Models rely on it:
// on a valid problem no product of padded dimensions, strides and element sizes wraps.
func (p Problem) Validate() error {
	for _, d := range []struct {
		flag  string
		value int
	}{{"m", p.M}, {"n", p.N}, {"k", p.K}, {"batch", p.Batch}} {
		if d.value == 0 {
			return diag.Inputf("%s is missing or zero", d.flag).Do("give a whole number of at least 1")
		}
		if d.value < 0 {
			return diag.Inputf("%s is negative (%d)", d.flag, d.value).Do("give a whole number of at least 1")
		}
	}
	if p.DType < FP16 || p.DType > INT8 {
		return diag.Inputf("dtype is missing").Do("use one of %s", strings.Join(dtypeNames[FP16:], ", "))
	}
	if p.AMajor != MajorK && p.AMajor != MajorM {
		return diag.Inputf("a_major is missing").Do("A is contiguous along k or m")
	}
	if p.BMajor != MajorK && p.BMajor != MajorN {
		return diag.Inputf("b_major is missing").Do("B is contiguous along k or n")
	}
	// Models form M·N·K, the tile-padded form of it, and byte counts of padded operands times the batch. The largest of
	// these is bounded by the volume padded to the largest block that a Config may have, times the batch, times the
	// widest element (8 bytes).
	product, ok := uint64(8), true
	for _, v := range []int{pad(p.M, MaxConfigNumber), pad(p.N, MaxConfigNumber), pad(p.K, MaxConfigNumber), p.Batch} {
		if v <= 0 { // padding itself wrapped
			ok = false
			break
		}
		hi, lo := bits.Mul64(product, uint64(v))
		product, ok = lo, ok && hi == 0 && lo>>63 == 0
		if !ok {
			break
		}
	}
	if !ok {
		return diag.Inputf("m·n·k·batch of %dx%dx%d batch %d overflows 64-bit arithmetic once padded to whole tiles", p.M,
			p.N, p.K, p.Batch).
			Do("split the problem: padded m·n·k·batch must stay below 2^60")
	}
	return nil
}

func pad(v, block int) int { return (v + block - 1) / block * block }
