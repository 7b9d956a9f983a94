// Package asm has short forms of the instructions that kernels use most. They return their result in a new register.
package asm

import (
	"math/bits"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Builder is a builder of PTX with the short forms.
type Builder struct{ *ptx.Builder }

// New returns a builder for a kernel of the given name.
func New(name string) Builder { return Builder{ptx.New(name)} }

// Special returns a special register.
func (b Builder) Special(s ptx.Operand) ptx.Operand {
	d := b.B32()
	b.MovU32(d, s)
	return d
}

// Param32 returns a 32-bit parameter of the kernel.
func (b Builder) Param32(p ptx.Operand) ptx.Operand {
	d := b.B32()
	b.LdParamU32(d, p)
	return d
}

// Param64 returns a 64-bit parameter of the kernel.
func (b Builder) Param64(p ptx.Operand) ptx.Operand {
	d := b.B64()
	b.LdParamU64(d, p)
	return d
}

// Shr returns a >> n, filled with zeros.
func (b Builder) Shr(a ptx.Operand, n int) ptx.Operand {
	d := b.B32()
	b.ShrU32(d, a, ptx.Int(n))
	return d
}

// Shl returns a << n.
func (b Builder) Shl(a ptx.Operand, n int) ptx.Operand {
	d := b.B32()
	b.ShlB32(d, a, ptx.Int(n))
	return d
}

// And returns a & mask.
func (b Builder) And(a ptx.Operand, mask int) ptx.Operand {
	d := b.B32()
	b.AndB32(d, a, ptx.Int(mask))
	return d
}

// Add returns x + y.
func (b Builder) Add(x, y ptx.Operand) ptx.Operand {
	d := b.B32()
	b.AddS32(d, x, y)
	return d
}

// Sub returns x - y.
func (b Builder) Sub(x, y ptx.Operand) ptx.Operand {
	d := b.B32()
	b.SubS32(d, x, y)
	return d
}

// Mad returns x·factor + y.
func (b Builder) Mad(x ptx.Operand, factor int, y ptx.Operand) ptx.Operand {
	d := b.B32()
	b.MadLoS32(d, x, ptx.Int(factor), y)
	return d
}

// Wide returns a, sign-extended to 64 bits.
func (b Builder) Wide(a ptx.Operand) ptx.Operand {
	d := b.B64()
	b.CvtS64S32(d, a)
	return d
}

// Unsigned returns a, zero-extended to 64 bits.
func (b Builder) Unsigned(a ptx.Operand) ptx.Operand {
	d := b.B64()
	b.CvtU64U32(d, a)
	return d
}

// Elements are the types of operands that LoadElement and ToDouble read.
var Elements = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32, gemm.TF32, gemm.FP8, gemm.FP8E5M2, gemm.INT8}

// LoadElement reads an element of type t for ToDouble.
func (b Builder) LoadElement(from ptx.Operand, t gemm.DType) ptx.Operand {
	switch t.Bytes() {
	case 1:
		h := b.B16()
		b.LdGlobalB8(h, from)
		return h
	case 2:
		h := b.B16()
		b.LdGlobalB16(h, from)
		return h
	default:
		f := b.F32()
		b.LdGlobalF32(f, from)
		return f
	}
}

// ToDouble widens an element of type t that LoadElement has read. An element of type tf32 is rounded first.
func (b Builder) ToDouble(d, x ptx.Operand, t gemm.DType) {
	switch t {
	case gemm.FP16:
		b.CvtF64F16(d, x)
	case gemm.BF16:
		f := b.F32()
		b.ToFloat(f, x, t)
		b.CvtF64F32(d, f)
	case gemm.FP8, gemm.FP8E5M2:
		pair, halves := b.B32(), b.Regs(2, b.B16)
		if t == gemm.FP8 {
			b.CvtF16x2E4M3x2(pair, x)
		} else {
			b.CvtF16x2E5M2x2(pair, x)
		}
		b.MovB32Unpack(b.Vec(halves...), pair)
		b.CvtF64F16(d, halves[0])
	case gemm.INT8:
		i := b.B32()
		b.CvtS32S8(i, x)
		b.CvtF64S32(d, i)
	case gemm.TF32:
		word, f := b.B32(), b.F32()
		b.CvtRnaTF32F32(word, x)
		b.MovF32Bits(f, word)
		b.CvtF64F32(d, f)
	default:
		b.CvtF64F32(d, x)
	}
}

// ToFloat widens a 16-bit element h of type t. A bf16 is the upper half of a float.
func (b Builder) ToFloat(d, h ptx.Operand, t gemm.DType) {
	if t == gemm.FP16 {
		b.CvtF32F16(d, h)
		return
	}
	word := b.B32()
	b.CvtU32U16(word, h)
	b.ShlB32(word, word, ptx.Int(16))
	b.MovF32Bits(d, word)
}

// Log2 returns the exponent of a power of two.
func Log2(v int) int { return bits.TrailingZeros(uint(v)) }

// Grouped returns the row and the column of a CTA's output tile in the grouped launch order: the CTAs of groupM rows of
// tiles are numbered column by column, then those of the next group, so that CTAs that run together share operand
// tiles in L2.
func (b Builder) Grouped(cta, tilesM, tilesN, groupM ptx.Operand) (row, column ptx.Operand) {
	perGroup, group, first, rows, inGroup := b.B32(), b.B32(), b.B32(), b.B32(), b.B32()
	row, column = b.B32(), b.B32()
	b.MulLoS32(perGroup, groupM, tilesN)
	b.DivU32(group, cta, perGroup)
	b.MulLoS32(first, group, groupM)
	b.SubS32(rows, tilesM, first)
	b.MinU32(rows, rows, groupM)
	b.MulLoS32(inGroup, group, perGroup)
	b.SubS32(inGroup, cta, inGroup)
	b.DivU32(column, inGroup, rows)
	b.MulLoS32(row, column, rows)
	b.SubS32(row, inGroup, row)
	b.AddS32(row, row, first)
	return row, column
}
