// Package gemm is the vocabulary of a matrix multiplication: the problem, the element types, and the kernel
// configuration that computes it. Every other package speaks in these types.
package gemm

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/origami-gemm/origami/core/diag"
)

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
// With Groups, the rows of A and C come in groups, one after another, and each group has a B of its own, at a fixed
// stride. M is the rows of all.
//
// AMajor and BMajor store which dimension is contiguous, so that nothing depends on a library's letters. The command
// line's --trans-a means AMajor M, --trans-b means BMajor K; row-major storage without transposes is AMajor K, BMajor
// N. C is contiguous along N.
//
// The zero of Out, of a leading dimension and of an alignment means the default. Canonical gives equal problems equal
// values.
type Problem struct {
	M, N, K, Batch int
	AMajor, BMajor Major
	// DType is the element type of A and B. Out is the element type of C; its default is DType.Output().
	DType, Out DType
	// LDA, LDB and LDC are leading dimensions: the elements from the start of one contiguous row to the start of the
	// next. By default the rows are dense.
	LDA, LDB, LDC int
	// AlignA, AlignB and AlignC are powers of two that divide the addresses of the first elements, in bytes. The default
	// is MaxVector: more than that changes nothing.
	AlignA, AlignB, AlignC uint8
	Groups                 Groups
	// Nest says where the elements are if A, B and C are no matrices in memory.
	Nest Nest
	// Alpha and Beta are the scalars of C = Alpha·A·B + Beta·C. The zero of Alpha is the default, 1. C is not read if
	// Beta is zero.
	Alpha, Beta float32
	// Epilogue is what is done to C before it is stored.
	Epilogue Epilogue
}

// MaxVector is the width in bytes of the widest access of a thread to memory.
const MaxVector = 16

// Operand is one of the three matrices.
type Operand uint8

// The matrices of a problem.
const (
	A Operand = iota
	B
	C
)

// String returns the matrix's letter.
func (o Operand) String() string { return string('A' + rune(o)) }

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

// Output returns the element type of C.
func (p Problem) Output() DType {
	if p.Out == 0 {
		return p.DType.Output()
	}
	return p.Out
}

// Types returns the type of A and B, and the type of C.
func (p Problem) Types() Types { return Types{p.DType, p.Output()} }

// Type returns the element type of a matrix.
func (p Problem) Type(o Operand) DType {
	if o == C {
		return p.Output()
	}
	return p.DType
}

// Rows returns how many contiguous rows a matrix has, and how many elements each.
func (p Problem) Rows(o Operand) (rows, elements int) {
	switch {
	case o == A && p.TransA():
		return p.K, p.M
	case o == A:
		return p.M, p.K
	case o == B && p.TransB():
		return p.N, p.K
	case o == B:
		return p.K, p.N
	default:
		return p.M, p.Columns()
	}
}

// LD returns the leading dimension of a matrix in elements.
func (p Problem) LD(o Operand) int {
	if ld := *p.ld(o); ld != 0 {
		return ld
	}
	_, elements := p.Rows(o)
	return elements
}

// SetLD sets the leading dimension of a matrix in elements.
func (p *Problem) SetLD(o Operand, elements int) { *p.ld(o) = elements }

func (p *Problem) ld(o Operand) *int { return [...]*int{&p.LDA, &p.LDB, &p.LDC}[o] }

// Stride returns the elements from one matrix of the batch to the next, or from one group's B to the next group's:
// they follow each other without a gap, except what a leading dimension leaves.
func (p Problem) Stride(o Operand) int {
	rows, _ := p.Rows(o)
	return rows * p.LD(o)
}

// Align returns the bytes that divide the address of a matrix, at most MaxVector.
func (p Problem) Align(o Operand) int {
	if align := *p.align(o); align != 0 {
		return min(int(align), MaxVector)
	}
	return MaxVector
}

func (p *Problem) align(o Operand) *uint8 { return [...]*uint8{&p.AlignA, &p.AlignB, &p.AlignC}[o] }

// SetAlign sets the alignment of a matrix in bytes. Any power of two is possible.
func (p *Problem) SetAlign(o Operand, bytes int) error {
	if bytes < 1 || bytes&(bytes-1) != 0 {
		return diag.Inputf("an alignment of %d bytes is no power of two", bytes).Do("give 1, 2, 4, 8 or 16")
	}
	*p.align(o) = uint8(min(bytes, MaxVector))
	return nil
}

// VectorBytes returns the width in bytes of the widest access that is aligned at the start of every contiguous row of a
// matrix: the largest power of two, up to MaxVector, that divides its address and its leading dimension. The stride of
// a batch is a multiple of the leading dimension. The last access of a row may reach beyond the row.
func (p Problem) VectorBytes(o Operand) int {
	offsets := uint(p.Align(o)) | uint(p.Type(o).Size(p.LD(o))) | MaxVector
	return int(offsets & -offsets)
}

// Divisor returns the largest power of two, up to MaxVector, that divides the addresses of all matrices in bytes, and
// their leading dimensions and the lengths of their contiguous rows in elements. Kernels have their fastest loads and
// stores if it is MaxVector, whatever the types are.
func (p *Problem) Divisor() int {
	all := MaxVector | p.N | p.LDA | p.LDB | p.LDC | int(p.AlignA|p.AlignB|p.AlignC) // the defaults are zeros
	if p.TransA() {
		all |= p.M
	}
	if !p.TransA() || p.TransB() {
		all |= p.K
	}
	return all & -all
}

// Canonical returns the problem with the defaults as zeros. Equal problems are then equal values, as keys of a map must
// be. Whatever reads a problem returns it in this form. It makes no invalid problem valid.
func (p Problem) Canonical() Problem {
	if p.Out == p.DType.Output() {
		p.Out = 0
	}
	for o := A; o <= C; o++ {
		if _, dense := p.Rows(o); *p.ld(o) == dense {
			*p.ld(o) = 0
		}
		if *p.align(o) == MaxVector {
			*p.align(o) = 0
		}
	}
	if p.Groups.Len() == 1 && p.Groups.Rows() == p.M {
		p.Groups = Groups{}
	}
	if p.Alpha == 1 {
		p.Alpha = 0
	}
	if p.Epilogue.BiasType == p.Output() {
		p.Epilogue.BiasType = 0
	}
	return p
}

// Scalars returns alpha and beta.
func (p Problem) Scalars() (alpha, beta float32) {
	if p.Alpha == 0 {
		return 1, p.Beta
	}
	return p.Alpha, p.Beta
}

// Plain reports whether there are no groups and no nest, and the type of C, the leading dimensions, the alignments,
// the scalars and the epilogue are the defaults.
func (p Problem) Plain() bool {
	p = p.Canonical()
	return p.Out == 0 && p.Groups == (Groups{}) && p.Nest == (Nest{}) && p.LDA|p.LDB|p.LDC == 0 &&
		p.AlignA|p.AlignB|p.AlignC == 0 && p.Alpha == 0 && p.Beta == 0 && p.Epilogue == (Epilogue{})
}

// BeyondProduct reports whether there is more to do than A·B of matrices: nested indices, a C to add to, or an
// epilogue. Models know Flat.
func (p *Problem) BeyondProduct() bool {
	return p.Nest != (Nest{}) || p.Beta != 0 || p.Epilogue != (Epilogue{})
}

// Flops returns 2·M·N·K·Batch as a float64.
func (p Problem) Flops() float64 {
	return 2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(p.Batch)
}

// String formats as "2048x2048x2048 fp16", with " out fp32", " batch 4", " groups 120,33", " trans-a", " lda 4096",
// " align 2" and the like only where they are not the default. Many groups are only counted.
func (p Problem) String() string {
	p = p.Canonical()
	s := fmt.Sprintf("%dx%dx%d %s", p.M, p.N, p.K, p.DType)
	if p.Out != 0 {
		s += " out " + p.Out.String()
	}
	if p.Batch != 1 {
		s += fmt.Sprintf(" batch %d", p.Batch)
	}
	if n := p.Groups.Len(); n > mostListed {
		s += fmt.Sprintf(" in %d groups", n)
	} else if n > 0 {
		s += " groups " + p.Groups.String()
	}
	if p.TransA() {
		s += " trans-a"
	}
	if p.TransB() {
		s += " trans-b"
	}
	for i, name := range [...]string{A: " lda ", B: " ldb ", C: " ldc "} {
		if ld := *p.ld(Operand(i)); ld != 0 {
			s += name + strconv.Itoa(ld)
		}
	}
	switch a, b, c := p.Align(A), p.Align(B), p.Align(C); {
	case a == b && b == c && a == MaxVector:
	case a == b && b == c:
		s += fmt.Sprintf(" align %d", a)
	default:
		s += fmt.Sprintf(" align %d,%d,%d", a, b, c)
	}
	if p.Nest != (Nest{}) {
		s += " nest " + p.Nest.String()
	}
	return s + p.scalarText()
}

func (p *Problem) scalarText() (s string) {
	if p.Alpha != 0 {
		s = fmt.Sprintf(" alpha %g", p.Alpha)
	}
	if p.Beta != 0 {
		s += fmt.Sprintf(" beta %g", p.Beta)
	}
	if p.Epilogue != (Epilogue{}) {
		s += " epilogue " + p.Epilogue.String()
	}
	return s
}

// Validate reports the first thing that makes the problem impossible to model: a dimension that is missing, zero or
// negative, an unknown type or order, types that no hardware combines, groups that do not make up M, rows that overlap,
// or sizes whose padded element counts overflow 64-bit integers. Models rely on it: on a valid problem no product of
// padded dimensions, strides and element sizes wraps.
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
	if err := p.validTypes(); err != nil {
		return err
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
	if !fits(pad(p.M), pad(p.N), pad(p.K), p.Batch) {
		return diag.Inputf("m·n·k·batch of %dx%dx%d batch %d overflows 64-bit arithmetic once padded to whole tiles", p.M,
			p.N, p.K, p.Batch).
			Do("split the problem: padded m·n·k·batch must stay below 2^60")
	}
	if p.Groups != (Groups{}) {
		if err := p.validGroups(); err != nil {
			return err
		}
	}
	if p.Nest != (Nest{}) {
		if err := p.validNest(); err != nil {
			return err
		}
	}
	for _, v := range []float32{p.Alpha, p.Beta} {
		if v-v != 0 {
			return diag.Inputf("alpha is %g and beta %g", p.Alpha, p.Beta).Do("give finite numbers")
		}
	}
	if err := p.validEpilogue(); err != nil {
		return err
	}
	if p.LDA|p.LDB|p.LDC == 0 && p.AlignA|p.AlignB|p.AlignC == 0 {
		return nil
	}
	return p.validStorage()
}

func (p *Problem) validTypes() error {
	if !p.DType.Known() {
		return diag.Inputf("dtype is missing").Do("use one of %s", TypeNames(operands))
	}
	if !p.DType.Operand() {
		return diag.Inputf("dtype %s is a type of results only", p.DType).Do("use one of %s", TypeNames(operands))
	}
	if p.Out != 0 && !p.Types().Valid() {
		return diag.Inputf("no hardware multiplies %s operands into %s results", p.DType, p.Out).
			Do("use an output type of %s", TypeNames(outputs[p.DType]))
	}
	for o := A; o <= B; o++ {
		if ld := p.LD(o); ld*p.DType.Bits()%8 != 0 {
			return diag.Inputf("a row of %s has %d elements of %s, which are no whole number of bytes", o, ld, p.DType).
				Do("use rows of a multiple of %d elements", p.DType.rowElements())
		}
	}
	return nil
}

// validStorage checks leading dimensions and alignments.
func (p *Problem) validStorage() error {
	for o := A; o <= C; o++ {
		rows, elements := p.Rows(o)
		ld, align, bytes := *p.ld(o), *p.align(o), p.Type(o).Bytes()
		letter := string('a' + rune(o))
		switch {
		case ld != 0 && ld < elements:
			return diag.Inputf("ld%s is %d, and a row of %s has %d elements", letter, ld, o, elements).
				Do("give at least %d, or leave it out for dense rows", elements)
		case ld != 0 && !fits(pad(rows), ld, p.Batch, 1):
			return diag.Inputf("%s with ld%s %d overflows 64-bit arithmetic", o, letter, ld).
				Do("give a leading dimension near the %d elements of a row", elements)
		case align&(align-1) != 0 || align > MaxVector:
			return diag.Inputf("align_%s is %d", letter, align).Do("give 1, 2, 4, 8 or 16 bytes")
		case align != 0 && int(align) < bytes:
			return diag.Inputf("align_%s is %d, and an element of %s has %d bytes", letter, align, o, bytes).
				Do("give at least the size of an element")
		}
	}
	return nil
}

// fits reports whether 8 times the product of four positive numbers fits into a signed 64-bit integer.
func fits(factors ...int) bool {
	product := uint64(8)
	for _, v := range factors {
		if v <= 0 { // padding itself wrapped
			return false
		}
		hi, lo := bits.Mul64(product, uint64(v))
		if product = lo; hi != 0 || lo>>63 != 0 {
			return false
		}
	}
	return true
}

// pad rounds up to a multiple of the largest block.
func pad(v int) int { return (v + MaxConfigNumber - 1) / MaxConfigNumber * MaxConfigNumber }
