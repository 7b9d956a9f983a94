package ptx

import (
	"math"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// Operand is anything that an instruction takes: a register, a vector of registers, a constant, a memory address, a
// label. The zero Operand is invalid everywhere.
type Operand struct {
	// form is the form of the operand, or of its registers if it is a vector.
	form inst.Form
	// vector is the number of registers of a vector, 0 for a single operand.
	vector uint16
	// id numbers registers, vectors (first element), labels, parameters, shared variables and special registers.
	id uint32
	// value is an integer constant, the bits of a float constant, or the byte offset of an address.
	value int64
}

// Int returns an integer constant.
func Int[T ~int | ~int32 | ~int64 | ~uint32](v T) Operand {
	return Operand{form: inst.Int, value: int64(v)}
}

// Float returns a single-precision constant.
func Float(v float32) Operand {
	return Operand{form: inst.Float, value: int64(math.Float32bits(v))}
}

// Global returns the global address [base+offset]. The base is a b64 register.
func Global(base Operand, offset int) Operand { return address(inst.Global, base, offset) }

// Shared returns the shared address [base+offset]. The base is a b32 register.
func Shared(base Operand, offset int) Operand { return address(inst.Shared, base, offset) }

// Tensor returns the element at the coordinates, the contiguous dimension first, of the tensor whose map is at the
// generic address base.
func (b *Builder) Tensor(base Operand, coordinates ...Operand) Operand {
	if base.form != inst.B64 || base.vector != 0 {
		return Operand{}
	}
	o := Operand{form: inst.Tensor, id: uint32(len(b.vectors)), value: int64(1 + len(coordinates))}
	b.vectors = append(b.vectors, base.id)
	for _, c := range coordinates {
		if c.form != inst.B32 || c.vector != 0 {
			return Operand{}
		}
		b.vectors = append(b.vectors, c.id)
	}
	return o
}

// address returns the zero Operand for a wrong base, so that the pass that checks operands reports it with its
// instruction.
func address(space inst.Form, base Operand, offset int) Operand {
	want := inst.B32
	if space == inst.Global {
		want = inst.B64
	}
	if base.form != want || base.vector != 0 {
		return Operand{}
	}
	return Operand{form: space, id: base.id, value: int64(offset)}
}

// The special registers, for MovU32.
var (
	TidX    = special(0) // thread in the CTA
	CtaidX  = special(1) // CTA in the grid
	CtaidY  = special(2)
	CtaidZ  = special(3)
	NctaidX = special(4) // CTAs in the grid
	NctaidY = special(5)
	LaneID  = special(6) // thread in the warp
)

// The special registers of 64 bits, for MovU64.
var (
	Clock64     = Operand{form: inst.Special64, id: 0} // cycles of the SM
	GlobalTimer = Operand{form: inst.Special64, id: 1} // nanoseconds
)

var special64Names = [...]string{"%clock64", "%globaltimer"}

var specialNames = [...]string{"%tid.x", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%laneid"}

func special(id uint32) Operand { return Operand{form: inst.Special, id: id} }

// Type is the type of a kernel parameter.
type Type uint8

// The parameter types.
const (
	U32 Type = iota
	S32
	U64
	S64
	F32
	TensorMap // what cuTensorMapEncodeTiled writes; Builder.MapParam declares it
)

var typeNames = [...]string{"u32", "s32", "u64", "s64", "f32", "b8"}

// String returns the type as PTX spells it, without the dot.
func (t Type) String() string { return typeNames[t] }

// Bytes returns the size of a parameter.
func (t Type) Bytes() int {
	switch t {
	case U64, S64:
		return 8
	case TensorMap:
		return 128
	default:
		return 4
	}
}

// align returns the alignment of a parameter.
func (t Type) align() int { return min(t.Bytes(), 64) }
