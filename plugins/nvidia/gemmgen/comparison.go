package gemmgen

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Comparison is a kernel that compares C with the output of a Reference. It reads both once, at the speed of memory.
type Comparison struct {
	*ptx.Kernel
	out gemm.DType
}

// comparedPerTurn is how many elements of C a thread has in flight. comparedCTAs bounds the grid: a few times the
// CTAs that the largest devices hold at once.
const (
	comparedPerTurn = 4
	comparedCTAs    = 4096
)

// EmitComparison generates the comparison for a C of one type, for devices that cover the target.
func EmitComparison(out gemm.DType, t target.Target) (*Comparison, error) {
	if out != gemm.FP16 && out != gemm.BF16 && out != gemm.FP32 && out != gemm.INT32 {
		return nil, diag.Inputf("the comparison reads fp16, bf16, fp32 or int32, not %s", out).Do("choose one of them")
	}
	e := &comparisonEmitter{Builder: asm.New("compare_" + out.String()), out: out}
	e.Header("largest error, number and first index of wrong elements of C: %s", out)
	e.Begin(verifyThreads, 1)
	e.Emit(e.params, e.clearVerdict, e.place, e.compareAll, e.reduce)
	k, err := e.Build(t)
	if err != nil {
		return nil, err
	}
	return &Comparison{Kernel: k, out: out}, nil
}

// comparisonEmitter emits the kernel. Its fields are the values that more than one part of the kernel needs.
type comparisonEmitter struct {
	asm.Builder
	out gemm.DType

	tid, isThread0             ptx.Operand
	shared                     ptx.Operand // address of the CTA's verdict
	none, never                ptx.Operand // what a verdict starts from: 0, and the largest index
	rows, n                    ptx.Operand // of the chosen part of C
	row, column                ptx.Operand // of the thread's next element
	got, want, index           ptx.Operand // its addresses, and its place in the output of the reference
	rowStep, columnStep        ptx.Operand // from one element of the thread to its next
	gotStep, wantStep, step    ptx.Operand
	gotWrap                    ptx.Operand // added to got when the columns pass the end of a row
	base                       ptx.Operand // address of a parameter in global memory
	maximum, wrong, firstWrong ptx.Operand // the thread's verdict
	tolerance, scale           ptx.Operand
}

func (e *comparisonEmitter) params() {
	e.Params(ptx.U64, "got", "want", "verdict", "ldc", "stride_c")
	e.Params(ptx.U32, "rows", "row_step", "n")
	e.Params(ptx.F32, "tolerance", "scale")
}

// clearVerdict makes the CTA's verdict in shared memory a new one.
func (e *comparisonEmitter) clearVerdict() {
	e.Comment("the CTA's verdict")
	e.tid = e.Special(ptx.TidX)
	e.shared = e.MovU32(e.B32(), e.SharedVar("verdict_of_cta", VerdictBytes, 8))
	e.none = e.MovB32(e.B32(), ptx.Int(0))
	e.never = e.MovB64(e.B64(), ptx.Int(-1))
	e.isThread0 = e.SetpEqS32(e.Pred(), e.tid, ptx.Int(0))
	e.If(e.isThread0).StSharedB32(ptx.Shared(e.shared, 0), e.none)
	e.If(e.isThread0).StSharedB32(ptx.Shared(e.shared, wrongAt), e.none)
	e.If(e.isThread0).StSharedB64(ptx.Shared(e.shared, firstAt), e.never)
	e.BarSync(ptx.Int(0))
}

// place finds the thread's first element, and the way to its next. The threads of the grid walk the chosen rows of a
// matrix side by side. A step forward is a number of rows and columns that never changes, with one more row when the
// columns pass the end.
func (e *comparisonEmitter) place() {
	e.Comment("the thread's first element, and the way to its next")
	e.rows, e.n = e.Param32("rows"), e.Param32("n")
	at := e.Mad(e.Special(ptx.CtaidX), verifyThreads, e.tid)
	threads := e.Shl(e.Special(ptx.NctaidX), asm.Log2(verifyThreads))
	e.row, e.column = e.divide(at)
	e.rowStep, e.columnStep = e.divide(threads)

	size := e.out.Bytes()
	// Elements of C from one chosen row to the next.
	pitch := e.MulLoS64(e.B64(), e.Wide(e.Param32("row_step")), e.Param64("ldc"))
	batch := e.Wide(e.Special(ptx.CtaidZ))
	e.got = e.MulLoS64(e.B64(), batch, e.Param64("stride_c"))
	e.MadLoS64(e.got, e.Unsigned(e.row), pitch, e.got)
	e.AddS64(e.got, e.got, e.Unsigned(e.column))
	e.MulLoS64(e.got, e.got, ptx.Int(size))
	e.base = e.Pointer("got")
	e.AddS64(e.got, e.got, e.base)
	e.gotStep = e.MadLoS64(e.B64(), e.Unsigned(e.rowStep), pitch, e.Unsigned(e.columnStep))
	e.MulLoS64(e.gotStep, e.gotStep, ptx.Int(size))
	e.gotWrap = e.MulLoS64(e.B64(), e.Unsigned(e.n), ptx.Int(-1))
	e.AddS64(e.gotWrap, e.gotWrap, pitch)
	e.MulLoS64(e.gotWrap, e.gotWrap, ptx.Int(size))
	e.index = e.MulLoS64(e.B64(), batch, e.Unsigned(e.rows))
	e.MadLoS64(e.index, e.index, e.Unsigned(e.n), e.Unsigned(at))
	e.want = e.Pointer("want")
	e.MadLoS64(e.want, e.index, ptx.Int(4), e.want)
	e.wantStep = e.MulWideU32(e.B64(), threads, ptx.Int(4))
	e.step = e.Unsigned(threads)
}

// divide returns the row and the column of an element in the chosen rows.
func (e *comparisonEmitter) divide(index ptx.Operand) (row, column ptx.Operand) {
	row = e.DivU32(e.B32(), index, e.n)
	column = e.MulLoS32(e.B32(), row, e.n)
	e.SubS32(column, index, column)
	return row, column
}

// compareAll is the loop over the thread's elements.
func (e *comparisonEmitter) compareAll() {
	e.tolerance, e.scale = e.ParamF32("tolerance"), e.ParamF32("scale")
	e.maximum, e.wrong = e.MovB32(e.B32(), e.none), e.MovB32(e.B32(), e.none)
	e.firstWrong = e.MovB64(e.B64(), e.never)

	loop, compared := e.Label("loop"), e.Label("compared")
	e.Place(loop)
	e.If(e.SetpGeU32(e.Pred(), e.row, e.rows)).Bra(compared)
	// All loads of a turn come before the first use.
	var got, want [comparedPerTurn]ptx.Operand
	for i := range got {
		got[i], want[i] = e.load()
	}
	for i := range got {
		e.compare(got[i], want[i])
	}
	e.Bra(loop)
	e.Place(compared)
}

// load reads the thread's next element of C and of the reference, and moves on. Beyond the last row both are zero,
// which is no error.
func (e *comparisonEmitter) load() (got, want ptx.Operand) {
	inside := e.SetpLtU32(e.Pred(), e.row, e.rows)
	switch e.out {
	case gemm.FP32:
		got, want = e.Element(ptx.Global(e.got, 0), gemm.FP32, inside), e.Element(ptx.Global(e.want, 0), gemm.FP32, inside)
	case gemm.INT32:
		got, want = e.loadInteger(e.got, inside), e.loadInteger(e.want, inside)
	default:
		got = e.MovB16(e.B16(), ptx.Int(0))
		e.If(inside).LdGlobalB16(got, ptx.Global(e.got, 0))
		want = e.Element(ptx.Global(e.want, 0), gemm.FP32, inside)
	}
	e.AddS32(e.row, e.row, e.rowStep)
	e.AddS32(e.column, e.column, e.columnStep)
	e.AddS64(e.got, e.got, e.gotStep)
	e.AddS64(e.want, e.want, e.wantStep)
	wrap := e.SetpGeU32(e.Pred(), e.column, e.n)
	e.If(wrap).SubS32(e.column, e.column, e.n)
	e.If(wrap).AddS32(e.row, e.row, ptx.Int(1))
	e.If(wrap).AddS64(e.got, e.got, e.gotWrap)
	return got, want
}

// loadInteger reads an int32, zero outside.
func (e *comparisonEmitter) loadInteger(from, inside ptx.Operand) ptx.Operand {
	d := e.MovB32(e.B32(), ptx.Int(0))
	return e.If(inside).LdGlobalB32(d, ptx.Global(from, 0))
}

// difference returns got − want and want as floats. The difference of integers is exact before it is rounded, so that
// it is zero only for equal ones.
func (e *comparisonEmitter) difference(got, want ptx.Operand) (diff, size ptx.Operand) {
	switch e.out {
	case gemm.INT32:
		return e.CvtF32S32(e.F32(), e.Sub(got, want)), e.CvtF32S32(e.F32(), want)
	case gemm.FP32:
	default:
		got = e.ToFloat(got, e.out)
	}
	return e.SubF32(e.F32(), got, want), e.MovF32(e.F32(), want)
}

// compare adds one element to the thread's verdict.
func (e *comparisonEmitter) compare(got, want ptx.Operand) {
	diff, size := e.difference(got, want)
	e.AbsF32(diff, diff)
	e.AbsF32(size, size)
	e.AddF32(size, size, e.scale)
	e.DivFullF32(diff, diff, size)
	// The bits of floats that are not negative have the same order as the floats, with NaN above all.
	word := e.MovB32Bits(e.B32(), diff)
	e.AndB32(word, word, ptx.Int(math.MaxInt32))
	e.MaxU32(e.maximum, e.maximum, word)
	isWrong := e.SetpGtuF32(e.Pred(), diff, e.tolerance)
	e.If(isWrong).AddS32(e.wrong, e.wrong, ptx.Int(1))
	e.If(isWrong).MinU64(e.firstWrong, e.firstWrong, e.index)
	e.AddS64(e.index, e.index, e.step)
}

// reduce combines the verdicts of the threads in shared memory, and of the CTAs in global memory.
func (e *comparisonEmitter) reduce() {
	e.Comment("one verdict per CTA, then one of all")
	some := e.SetpNeS32(e.Pred(), e.wrong, ptx.Int(0))
	e.RedSharedMaxU32(ptx.Shared(e.shared, 0), e.maximum)
	e.If(some).RedSharedAddU32(ptx.Shared(e.shared, wrongAt), e.wrong)
	e.If(some).RedSharedMinU64(ptx.Shared(e.shared, firstAt), e.firstWrong)
	e.BarSync(ptx.Int(0))
	e.LdSharedB32(e.maximum, ptx.Shared(e.shared, 0))
	e.LdSharedB32(e.wrong, ptx.Shared(e.shared, wrongAt))
	e.LdSharedB64(e.firstWrong, ptx.Shared(e.shared, firstAt))
	infinity := e.MovB32(e.B32(), ptx.Int(math.Float32bits(float32(math.Inf(1)))))
	e.MinU32(e.maximum, e.maximum, infinity)
	total := e.CvtU64U32(e.B64(), e.wrong)
	e.CvtaToGlobalU64(e.base, e.Param64("verdict"))
	e.If(e.isThread0).RedGlobalMaxU32(ptx.Global(e.base, 0), e.maximum)
	e.SetpNeS32(some, e.wrong, ptx.Int(0))
	e.AndPred(some, some, e.isThread0)
	e.If(some).RedGlobalAddU64(ptx.Global(e.base, wrongAt), total)
	e.If(some).RedGlobalMinU64(ptx.Global(e.base, firstAt), e.firstWrong)
}

// Launch returns how to start the comparison. The type of C is the kernel's.
func (c *Comparison) Launch(v Verification) (Launch, error) {
	p := v.Call.Problem
	if err := v.check(c.Name); err != nil {
		return Launch{}, err
	}
	if !(v.Scale > 0) || !(v.Tolerance >= 0) {
		return Launch{}, diag.Inputf("scale %g and tolerance %g", v.Scale, v.Tolerance).At("launch of %s", c.Name).
			Do("give a positive scale and a tolerance that is not negative")
	}
	values := v.Call.Params(Tiling{})
	values["got"], values["want"], values["verdict"] = v.Call.C.Address, v.Want, v.Verdict
	values["rows"], values["row_step"] = uint64(v.Rows), uint64(v.RowStep)
	values["tolerance"], values["scale"] = uint64(math.Float32bits(v.Tolerance)), uint64(math.Float32bits(v.Scale))
	return Launch{
		GridX: min(ceilDiv(v.Rows*p.N, verifyThreads*comparedPerTurn), max(1, comparedCTAs/p.Batch)), GridY: 1,
		GridZ: p.Batch, Threads: verifyThreads, Params: Pack(c.Kernel, values),
	}, nil
}
