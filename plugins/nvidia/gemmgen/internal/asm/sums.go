package asm

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Sums has the operations on sums, which are fp32 or int32.
type Sums struct {
	b       Builder
	Integer bool
	// Register returns a new register, Zero is the constant.
	Register func() ptx.Operand
	Zero     ptx.Operand
	// parameter reads a parameter of the kernel, Move copies a sum or a constant.
	parameter, Move func(d, a ptx.Operand) ptx.Operand
	Add, Multiply   func(d, a, b ptx.Operand) ptx.Operand
	MultiplyAdd     func(d, a, b, c ptx.Operand) ptx.Operand // d = a·b + c
	Differ          func(p, a, b ptx.Operand) ptx.Operand
}

// Sums returns the operations on sums.
func (b Builder) Sums(integer bool) Sums {
	if integer {
		return Sums{b, true, b.B32, ptx.Int(0), b.LdParamU32, b.MovB32, b.AddS32, b.MulLoS32, b.MadLoS32, b.SetpNeS32}
	}
	return Sums{b, false, b.F32, ptx.Float(0), b.LdParamF32, b.MovF32, b.AddF32, b.MulF32, b.FmaF32, b.SetpNeuF32}
}

// Zeros returns n sums that are zero.
func (s Sums) Zeros(n int) []ptx.Operand {
	return s.b.Regs(n, func() ptx.Operand { return s.Move(s.Register(), s.Zero) })
}

// Clear makes sums zero.
func (s Sums) Clear(sums [][]ptx.Operand) {
	for _, of := range sums {
		for _, sum := range of {
			s.Move(sum, s.Zero)
		}
	}
}

// Param returns a parameter of the kernel in the type of the sums.
func (s Sums) Param(name string) ptx.Operand { return s.parameter(s.Register(), s.b.ParamAt(name)) }

// sumBytes is the size of a sum. Elements of that size have the type of the sums.
const sumBytes = 4

// Write rounds neighbours to elements of type t and writes them, if they are valid.
func (s Sums) Write(to ptx.Operand, v []ptx.Operand, t gemm.DType, valid ptx.Operand) {
	b := s.b
	switch {
	case t.Bytes() == sumBytes:
	case len(v) == 1:
		v = []ptx.Operand{b.Half(v[0], t)}
	default:
		packed := make([]ptx.Operand, len(v)/2)
		for i := range packed {
			packed[i] = b.Halves(v[2*i], v[2*i+1], t)
		}
		v = packed
	}
	b.If(valid).Store(to, v)
}

// Read returns n neighbours of type t, zeros if they are not valid.
func (s Sums) Read(from ptx.Operand, n int, t gemm.DType, valid ptx.Operand) []ptx.Operand {
	b := s.b
	if t.Bytes() == sumBytes {
		v := s.Zeros(n)
		b.If(valid).Load(v, from)
		return v
	}
	if n == 1 {
		return []ptx.Operand{b.Element(from, t, valid)}
	}
	packed := b.Zeros(n / 2)
	b.If(valid).Load(packed, from)
	h := b.Regs(2, b.B16)
	var v []ptx.Operand
	for _, p := range packed {
		b.MovB32Unpack(b.Vec(h...), p)
		v = append(v, b.ToFloat(h[0], t), b.ToFloat(h[1], t))
	}
	return v
}
