package gemmgen

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func floats(v []float64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

// The reference of nests agrees with the reference of contractions, which walks the indices one by one.
func TestHostReferenceAgreesWithContractions(t *testing.T) {
	for _, x := range []struct{ text, sizes string }{
		{"Cijkl_Aonijml_Bonjmkl", "i=5,j=3,k=4,l=2,m=3,n=2,o=2"}, {"Cijk_Ainlkm_Bmjlkn", "i=3,j=4,k=2,l=3,m=2,n=5"},
		{"bik,bkj->bij", "b=2,i=3,j=5,k=4"}, {"ik,jk->ji", "i=3,j=4,k=5"}, {"ab,ab->", "a=3,b=4"},
	} {
		c := must.Get(contract.Parse(x.text))(t)
		sizes := must.Get(contract.ParseSizes(x.sizes))(t)
		s := must.Get(c.Shape(sizes, nil, nil, nil))(t)
		plan := must.Get(s.Nested(gemm.Types{In: gemm.FP32, Out: gemm.FP32}))(t)
		var v [3][]float64
		for o := range v {
			for i := range s.Len(gemm.Operand(o)) {
				v[o] = append(v[o], float64((i*7+o)%11-5))
			}
		}
		p := plan.Problem
		p.Alpha, p.Beta = 2, -1
		a, b := floats(v[gemm.A]), floats(v[gemm.B])
		if plan.Swapped {
			a, b = b, a
		}
		r := NewHostReference(p, a, b, floats(v[gemm.C]), nil, 1<<20)
		s.Reference(2, v[gemm.A], v[gemm.B], -1, v[gemm.C])
		after := floats(v[gemm.C])
		got := r.Compare(after, 0)
		must.That(t, got.Wrong+got.OutOfBounds <= 0 && got.Checked == int64(s.Elements(gemm.C)), "%s: %+v", x.text, got)
		binary.LittleEndian.PutUint32(after, math.Float32bits(1000))
		got = r.Compare(after, 1e-3)
		must.That(t, got.Wrong == 1, "%s with a wrong element: %+v", x.text, got)
	}
}

func TestHostReferenceOfMatrices(t *testing.T) {
	p := gemm.New(2, 2, 2)
	p.DType, p.Beta, p.LDC = gemm.FP32, 1, 3
	before := floats([]float64{1, 2, 99, 3, 4})
	r := NewHostReference(p, floats([]float64{1, 2, 3, 4}), floats([]float64{5, 6, 7, 8}), before, nil, 1<<20)
	for _, x := range []struct {
		after              []float64
		wrong, outOfBounds int64
	}{
		{[]float64{20, 24, 99, 46, 54}, 0, 0},
		{[]float64{20, 24, 98, 46, 54}, 0, 1}, // one byte of the gap
		{[]float64{20, 24, 99, 46, 55}, 1, 0},
		{[]float64{math.NaN(), 24, 99, 46, 54}, 1, 0},
	} {
		v := r.Compare(floats(x.after), 1e-6)
		must.That(t, v.Wrong == x.wrong && (v.OutOfBounds > 0) == (x.outOfBounds > 0), "%v: %+v", x.after, v)
	}
	// Of more products than allowed a sample is computed, and what was not written is found besides.
	p = gemm.New(64, 64, 4)
	p.DType, p.Alpha = gemm.FP32, 2
	ones := make([]float64, 256)
	for i := range ones {
		ones[i] = 1
	}
	after := make([]float64, 64*64)
	for i := range after {
		after[i] = 8
	}
	after[1] = math.NaN()
	r = NewHostReference(p, floats(ones), floats(ones), floats(make([]float64, 64*64)), nil, 1000)
	if v := r.Compare(floats(after), 1e-6); v.Checked < 10 || v.Checked > 250 || v.Wrong != 1 {
		t.Errorf("%+v", v)
	}
}

func TestNumbers(t *testing.T) {
	for _, x := range []struct {
		d    gemm.DType
		bits uint32
		want float32
	}{
		{gemm.FP16, 0x3C00, 1}, {gemm.FP16, 0xC100, -2.5}, {gemm.FP16, 1, 0x1p-24}, {gemm.FP16, 0x7BFF, 65504},
		{gemm.BF16, 0x3F80, 1}, {gemm.FP8, 0x38, 1}, {gemm.FP8, 0x7E, 448}, {gemm.FP8, 0x81, -0x1p-9},
		{gemm.FP8E5M2, 0x3C, 1}, {gemm.FP8E5M2, 0x7B, 57344}, {gemm.INT8, 0x80, -128}, {gemm.INT32, 0xFFFFFFFF, -1},
		{gemm.TF32, math.Float32bits(1 + 0x1p-11), 1 + 0x1p-10},
	} {
		b := binary.LittleEndian.AppendUint32(nil, x.bits)
		got := numbers(x.d, b[:x.d.Bytes()])[0]
		must.That(t, got == x.want, "%s %#x is read as %g, want %g", x.d, x.bits, got, x.want)
	}
}

// Bits gives the bits of each number back, and of what lies between two numbers those of the even one.
func TestBits(t *testing.T) {
	for _, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2} {
		for bits := range uint32(1) << d.Bits() {
			v, next := Number(d, bits), Number(d, bits+1)
			if math.IsNaN(v) {
				continue
			}
			if got := Bits(d, v); got != bits {
				t.Fatalf("%s: %g has the bits %#x, not %#x", d, v, got, bits)
			}
			if middle := (v + next) / 2; !math.IsNaN(middle) && !math.IsInf(middle, 0) && v*next >= 0 {
				got := Bits(d, middle)
				must.Need(t, got == bits+bits&1, "%s: %g between %g and %g has the bits %#x", d, middle, v, next, got)
			}
		}
		must.That(t, math.IsNaN(Number(d, Bits(d, math.NaN()))), "%s: NaN is a number", d)
	}
}
