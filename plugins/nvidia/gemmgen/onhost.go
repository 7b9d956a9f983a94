package gemmgen

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
)

// HostReference has the right values of one problem, computed on the host: for tensors that are no matrices, and for
// other scalars than 1 and 0, which the kernels that verify results do not know.
type HostReference struct {
	problem gemm.Problem
	nest    gemm.Nest
	before  []byte
	bias    []float32
	// want are the right values of every step-th element.
	want  []float64
	step  int64
	scale float64
}

// HostVerdict is the result of a comparison with it.
type HostVerdict struct {
	// MaxError is the largest |got − want| / (|want| + |alpha|·√K + |beta| + |bias|), +Inf if an element is not a number.
	MaxError float64
	// Checked counts the compared elements of all Elements, Wrong those beyond the tolerance and those that were not
	// written. OutOfBounds counts the bytes that changed and belong to no element.
	Checked, Wrong, OutOfBounds, Elements int64
}

// NewHostReference computes the right values in float64. The slices are what the device's memory holds, from the first
// element of a tensor to its last; before is C before the launch, bias the bias of the epilogue, if it has one. If
// there are more than most products, it computes a sample of C that is spread evenly.
func NewHostReference(p gemm.Problem, inA, inB, before, bias []byte, most int) *HostReference {
	alpha, beta := p.Scalars()
	r := &HostReference{problem: p, nest: p.Nest, before: before,
		scale: math.Abs(float64(alpha))*math.Sqrt(float64(p.K)) + math.Abs(float64(beta))}
	if p.Epilogue.Bias {
		r.bias = numbers(p.Output(), bias)
		r.scale++ // the bias is standard normal too
	}
	if r.nest == (gemm.Nest{}) {
		r.nest = matrices(p)
	}
	r.step = sampleStep(r.elements(), int64(max(1, most/p.K)))
	a, b := numbers(p.DType, inA), numbers(p.DType, inB)
	ofK := [2][]int{r.nest.Offsets(gemm.DimK, gemm.A), r.nest.Offsets(gemm.DimK, gemm.B)}
	ofA := [2][]int{r.nest.Offsets(gemm.DimM, gemm.A), r.nest.Offsets(gemm.DimBatch, gemm.A)}
	ofB := [2][]int{r.nest.Offsets(gemm.DimN, gemm.B), r.nest.Offsets(gemm.DimBatch, gemm.B)}
	r.each(func(e element) {
		if e.number%r.step != 0 {
			return
		}
		sum := 0.0
		fromA, fromB := a[ofA[0][e.m]+ofA[1][e.batch]:], b[ofB[0][e.n]+ofB[1][e.batch]:]
		for k, at := range ofK[0] {
			sum += float64(fromA[at]) * float64(fromB[ofK[1][k]])
		}
		want := float64(alpha) * sum
		if beta != 0 {
			want += float64(beta) * numberAt(p.Output(), before[e.at:])
		}
		if r.bias != nil {
			want += float64(r.bias[e.n])
		}
		r.want = append(r.want, p.Epilogue.Activation.Of(want))
	})
	return r
}

// element is an element of C: where it is, and the place of its bytes.
type element struct {
	batch, m, n, at int
	number          int64
}

func (r *HostReference) elements() int64 {
	return int64(r.problem.Batch) * int64(r.problem.M) * int64(r.problem.N)
}

// each visits the elements of C.
func (r *HostReference) each(visit func(element)) {
	size := r.problem.Output().Bytes()
	rows, columns := r.nest.Offsets(gemm.DimM, gemm.C), r.nest.Offsets(gemm.DimN, gemm.C)
	number := int64(0)
	for z, batch := range r.nest.Offsets(gemm.DimBatch, gemm.C) {
		for i, row := range rows {
			for j, column := range columns {
				visit(element{z, i, j, (batch + row + column) * size, number})
				number++
			}
		}
	}
}

// Compare compares C after the launch.
func (r *HostReference) Compare(after []byte, tolerance float64) HostVerdict {
	v, out := HostVerdict{Elements: r.elements()}, r.problem.Output()
	rest := slices.Clone(after) // what is not an element of C
	r.each(func(e element) {
		copy(rest[e.at:e.at+out.Bytes()], r.before[e.at:])
		got := numberAt(out, after[e.at:])
		if e.number%r.step == 0 {
			v.add(got, r.want[e.number/r.step], r.scale, tolerance)
		} else if math.IsNaN(got) { // it was not written
			v.Wrong++
			v.MaxError = math.Inf(1)
		}
	})
	for i := range rest {
		if rest[i] != r.before[i] {
			v.OutOfBounds++
		}
	}
	return v
}

func (v *HostVerdict) add(got, want, scale, tolerance float64) {
	v.Checked++
	e := math.Abs(got-want) / (math.Abs(want) + scale)
	if math.IsNaN(e) {
		e = math.Inf(1)
	}
	v.MaxError = max(v.MaxError, e)
	if e > tolerance {
		v.Wrong++
	}
}

// sampleStep returns an odd distance of the elements to compare, so that they have all places in a tile.
func sampleStep(elements, most int64) int64 {
	if elements <= most {
		return 1
	}
	return (elements+most-1)/most | 1
}

// matrices returns where the elements of matrices are.
func matrices(p gemm.Problem) gemm.Nest {
	index := func(d gemm.Dimension, size int, strides [3]int) gemm.NestIndex {
		return gemm.NestIndex{Dim: d, Size: size, Strides: strides}
	}
	inA, inB := [2]int{p.LD(gemm.A), 1}, [2]int{p.LD(gemm.B), 1}
	if p.TransA() {
		inA = [2]int{1, p.LD(gemm.A)}
	}
	if p.TransB() {
		inB = [2]int{1, p.LD(gemm.B)}
	}
	n, err := gemm.NewNest(
		index(gemm.DimM, p.M, [3]int{gemm.A: inA[0], gemm.C: p.LD(gemm.C)}),
		index(gemm.DimN, p.N, [3]int{gemm.B: inB[1], gemm.C: 1}),
		index(gemm.DimK, p.K, [3]int{gemm.A: inA[1], gemm.B: inB[0]}),
		index(gemm.DimBatch, p.Batch, [3]int{p.Stride(gemm.A), p.Stride(gemm.B), p.Stride(gemm.C)}))
	if err != nil {
		panic(err) // a valid problem has such indices
	}
	return n
}

// numbers reads elements, and rounds those of tf32 as the kernels do. float32 has the numbers of all types.
func numbers(d gemm.DType, b []byte) []float32 {
	size := d.Bytes()
	out := make([]float32, len(b)/size)
	if size > 2 {
		for i := range out {
			out[i] = float32(Number(d, Bits(d, numberAt(d, b[i*size:]))))
		}
		return out
	}
	all := make([]float32, 1<<(8*size)) // computed once, not for each element
	for bits := range all {
		all[bits] = float32(Number(d, uint32(bits)))
	}
	for i := range out {
		out[i] = all[elementBits(d, b[i*size:])]
	}
	return out
}

// elementBits are the bits of the first element of some bytes.
func elementBits(d gemm.DType, b []byte) (bits uint32) {
	for i := range d.Bytes() {
		bits |= uint32(b[i]) << (8 * i)
	}
	return bits
}

// numberAt is the first element of some bytes.
func numberAt(d gemm.DType, b []byte) float64 { return Number(d, elementBits(d, b)) }
