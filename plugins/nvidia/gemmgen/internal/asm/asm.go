package gemmgen

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// asm is a builder with short forms, which return their result in a new register.
type asm struct{ *ptx.Builder }

func (e asm) special(s ptx.Operand) ptx.Operand {
	d := e.B32()
	e.MovU32(d, s)
	return d
}

func (e asm) param32(p ptx.Operand) ptx.Operand {
	d := e.B32()
	e.LdParamU32(d, p)
	return d
}

func (e asm) param64(p ptx.Operand) ptx.Operand {
	d := e.B64()
	e.LdParamU64(d, p)
	return d
}

func (e asm) shr(a ptx.Operand, n int) ptx.Operand {
	d := e.B32()
	e.ShrU32(d, a, ptx.Int(n))
	return d
}

func (e asm) shl(a ptx.Operand, n int) ptx.Operand {
	d := e.B32()
	e.ShlB32(d, a, ptx.Int(n))
	return d
}

func (e asm) and(a ptx.Operand, mask int) ptx.Operand {
	d := e.B32()
	e.AndB32(d, a, ptx.Int(mask))
	return d
}

func (e asm) add(a, b ptx.Operand) ptx.Operand {
	d := e.B32()
	e.AddS32(d, a, b)
	return d
}

func (e asm) sub(a, b ptx.Operand) ptx.Operand {
	d := e.B32()
	e.SubS32(d, a, b)
	return d
}

// mad returns a·b + c for a constant e.
func (e asm) mad(a ptx.Operand, b int, c ptx.Operand) ptx.Operand {
	d := e.B32()
	e.MadLoS32(d, a, ptx.Int(b), c)
	return d
}

// wide returns a, sign-extended to 64 bits.
func (e asm) wide(a ptx.Operand) ptx.Operand {
	d := e.B64()
	e.CvtS64S32(d, a)
	return d
}

// unsigned returns a, zero-extended to 64 bits.
func (e asm) unsigned(a ptx.Operand) ptx.Operand {
	d := e.B64()
	e.CvtU64U32(d, a)
	return d
}

// toDouble widens a 16-bit element. A bf16 is the upper half of a float.
func (e asm) toDouble(d, h ptx.Operand, t gemm.DType) {
	if t == gemm.FP16 {
		e.CvtF64F16(d, h)
		return
	}
	f := e.F32()
	e.toFloat(f, h, t)
	e.CvtF64F32(d, f)
}

// toFloat widens a 16-bit element.
func (e asm) toFloat(d, h ptx.Operand, t gemm.DType) {
	if t == gemm.FP16 {
		e.CvtF32F16(d, h)
		return
	}
	bits := e.B32()
	e.CvtU32U16(bits, h)
	e.ShlB32(bits, bits, ptx.Int(16))
	e.MovF32Bits(d, bits)
}
