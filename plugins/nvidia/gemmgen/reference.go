package gemmgen

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Reference is a kernel that computes rows of A·B as exactly as fp32 can hold them: sums in float64, in the order of K,
// rounded once. For int8 operands it writes int32 instead. One thread computes one element, whatever the layout and
// alignment of the matrices.
type Reference struct {
	*ptx.Kernel
	dtype          gemm.DType
	aMajor, bMajor gemm.Major
}

// Checked lists the types of operands that the reference multiplies.
func Checked() []gemm.DType { return slices.Clone(asm.Elements) }

// EmitReference generates the reference for operands of one type and layout, for devices that cover the target.
func EmitReference(d gemm.DType, aMajor, bMajor gemm.Major, t target.Target) (*Reference, error) {
	if !slices.Contains(Checked(), d) {
		return nil, diag.Inputf("the reference multiplies no operands of type %s", d).
			Do("use one of %s", gemm.TypeNames(Checked()))
	}
	e := &referenceEmitter{
		Builder: asm.New(fmt.Sprintf("reference_%s_%c%c", d, aMajor, bMajor)), dtype: d,
		aAlongK: aMajor == gemm.MajorK, bAlongK: bMajor == gemm.MajorK,
	}
	e.Header("rows of A * B, summed in float64: %s, A %c-contiguous, B %c-contiguous", d, aMajor, bMajor)
	e.Begin(verifyThreads, 1)
	e.kernel()
	k, err := e.Build(t)
	if err != nil {
		return nil, err
	}
	return &Reference{Kernel: k, dtype: d, aMajor: aMajor, bMajor: bMajor}, nil
}

// referenceEmitter emits the kernel.
type referenceEmitter struct {
	asm.Builder
	dtype            gemm.DType
	aAlongK, bAlongK bool
	batch            ptx.Operand // the matrix of the batch
	left             ptx.Operand // indices along K that are not summed yet
	done             ptx.Operand
	sum              ptx.Operand
	x, y             ptx.Operand // the operands of a product
}

func (e *referenceEmitter) kernel() {
	e.Params(ptx.U64, "a", "b", "want", "lda", "ldb", "stride_a", "stride_b")
	e.Params(ptx.U32, "rows", "row_step", "n", "k")

	end, nextRow := e.Label("end"), e.Label("next_row")
	row, rows, n := e.Special(ptx.CtaidY), e.Param32("rows"), e.Param32("n")
	column := e.Mad(e.Special(ptx.CtaidX), verifyThreads, e.Special(ptx.TidX))
	e.done = e.SetpGeU32(e.Pred(), column, n)
	e.If(e.done).Bra(end)

	e.Comment("the first elements of the row of A and the column of B, and the bytes to the next along K")
	e.batch = e.Wide(e.Special(ptx.CtaidZ))
	firstB, stepB := e.first("b", e.bAlongK, e.Wide(column))
	e.x, e.y = e.F64(), e.F64()
	zero := e.MovF32(e.F32(), ptx.Float(0))

	e.Place(nextRow)
	fromA, stepA := e.first("a", e.aAlongK, e.MulWideU32(e.B64(), row, e.Param32("row_step")))
	e.left = e.Param32("k")
	fromB := e.MovB64(e.B64(), firstB)
	e.sum = e.CvtF64F32(e.F64(), zero)
	// Several elements along K at a time keep as many loads in flight. The rest is summed one by one.
	e.sumProducts(8, fromA, stepA, fromB, stepB)
	e.sumProducts(1, fromA, stepA, fromB, stepB)

	e.Comment("want[batch][row][column]")
	at := e.MadLoS64(e.B64(), e.batch, e.Wide(rows), e.Wide(row))
	e.MadLoS64(at, at, e.Wide(n), e.Wide(column))
	e.ShlB64(at, at, ptx.Int(2))
	to := e.Pointer("want")
	e.AddS64(to, to, at)
	if e.dtype.Integer() {
		e.StGlobalB32(ptx.Global(to, 0), e.CvtS32F64(e.B32(), e.sum))
	} else {
		e.StGlobalF32(ptx.Global(to, 0), e.CvtF32F64(e.F32(), e.sum))
	}
	e.AddS32(row, row, e.Special(ptx.NctaidY))
	e.SetpLtU32(e.done, row, rows)
	e.If(e.done).Bra(nextRow)
	e.Place(end)
	e.Ret()
}

// first returns the address of an operand's first element along K in a row of A or a column of B, and the bytes from
// there to the next element along K. alongK says that the operand is contiguous along K.
func (e *referenceEmitter) first(name string, alongK bool, index ptx.Operand) (address, step ptx.Operand) {
	address = e.MulLoS64(e.B64(), e.batch, e.Param64("stride_"+name))
	if alongK {
		step = e.MovB64(e.B64(), ptx.Int(e.dtype.Bytes()))
		e.MadLoS64(address, index, e.Param64("ld"+name), address)
	} else {
		step = e.ShlB64(e.B64(), e.Param64("ld"+name), ptx.Int(asm.Log2(e.dtype.Bytes())))
		e.AddS64(address, address, index)
	}
	e.ShlB64(address, address, ptx.Int(asm.Log2(e.dtype.Bytes())))
	return e.AddS64(address, address, e.Pointer(name)), step
}

// sumProducts adds products to the sum, unroll of them per turn, while as many are left.
func (e *referenceEmitter) sumProducts(unroll int, fromA, stepA, fromB, stepB ptx.Operand) {
	again, enough := e.Label(fmt.Sprintf("sum_%d", unroll)), e.Label(fmt.Sprintf("summed_%d", unroll))
	e.Place(again)
	e.SetpLtU32(e.done, e.left, ptx.Int(unroll))
	e.If(e.done).Bra(enough)
	var loaded [][2]ptx.Operand
	for range unroll {
		loaded = append(loaded, [2]ptx.Operand{
			e.LoadElement(ptx.Global(fromA, 0), e.dtype), e.LoadElement(ptx.Global(fromB, 0), e.dtype),
		})
		e.AddS64(fromA, fromA, stepA)
		e.AddS64(fromB, fromB, stepB)
	}
	for _, pair := range loaded {
		e.ToDouble(e.x, pair[0], e.dtype)
		e.ToDouble(e.y, pair[1], e.dtype)
		e.FmaF64(e.sum, e.x, e.y, e.sum)
	}
	e.AddS32(e.left, e.left, ptx.Int(-unroll))
	e.Bra(again)
	e.Place(enough)
}

// Launch returns how to start the reference.
func (r *Reference) Launch(v Verification) (Launch, error) {
	p := v.Call.Problem
	if err := v.check(r.Name); err != nil {
		return Launch{}, err
	}
	if p.DType != r.dtype || p.AMajor != r.aMajor || p.BMajor != r.bMajor {
		return Launch{}, diag.Inputf("the kernel is not for %s", p).At("launch of %s", r.Name).
			Do("emit the reference for its type and layout")
	}
	values := v.Call.Params(Tiling{})
	values["want"], values["rows"], values["row_step"] = v.Want, uint64(v.Rows), uint64(v.RowStep)
	return Launch{
		GridX: ceilDiv(p.N, verifyThreads), GridY: min(v.Rows, target.GridYZ), GridZ: p.Batch,
		Threads: verifyThreads, Params: Pack(r.Kernel, values),
	}, nil
}
