package gemm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// DType is an element type.
type DType uint8

// The element types. FP8 is e4m3 and FP4 e2m1, of which a byte holds two; INT32 is a type of results only. Sums are
// INT32 for INT8 operands and FP32 for all others.
const (
	FP16 DType = iota + 1
	BF16
	FP32
	TF32
	FP8
	INT8
	FP8E5M2
	INT32
	FP4
)

// types has what is known of each type, by its number.
var types = [...]struct {
	name string
	bits int
	// outputs are the types of C for operands of this type, the default first; none for a type of results only.
	outputs []DType
	// aliases are the other names that are read, in lower case.
	aliases []string
}{
	FP16: {"fp16", 16, []DType{FP16, FP32}, []string{"float16", "half", "f16"}},
	BF16: {"bf16", 16, []DType{BF16, FP32}, []string{"bfloat16"}},
	FP32: {"fp32", 32, []DType{FP32}, []string{"float32", "float", "f32"}},
	TF32: {"tf32", 32, []DType{FP32}, []string{"tensorfloat32"}},
	FP8: {"fp8", 8, []DType{FP16, BF16, FP32}, []string{"fp8_e4m3", "e4m3", "fp8e4m3", "f8e4m3", "e4m3fn",
		"f8e4m3fn", "float8_e4m3", "float8_e4m3fn", "fp8e4nv"}},
	INT8: {"int8", 8, []DType{INT32, FP16, BF16}, []string{"i8", "s8"}},
	FP8E5M2: {"fp8_e5m2", 8, []DType{FP16, BF16, FP32}, []string{"e5m2", "fp8e5m2", "f8e5m2", "float8_e5m2",
		"fp8e5"}},
	INT32: {"int32", 32, nil, []string{"i32", "s32"}},
	FP4: {"fp4", 4, []DType{FP16, BF16, FP32}, []string{"fp4_e2m1", "e2m1", "fp4e2m1", "f4e2m1", "float4_e2m1",
		"float4_e2m1fn", "float4_e2m1fn_x2"}},
}

// operands are the types that A and B can have, in the order of help texts.
var operands = []DType{FP16, BF16, FP32, TF32, FP8, FP8E5M2, INT8, FP4}

// DTypes lists the types that A and B can have.
func DTypes() []DType { return slices.Clone(operands) }

// OutputTypes lists the types that C can have.
func OutputTypes() []DType { return []DType{FP16, BF16, FP32, INT32} }

func (d DType) known() bool { return d >= FP16 && int(d) < len(types) }

// String returns the name that every output has.
func (d DType) String() string {
	if d.known() {
		return types[d].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// TypeNames lists the names of types, separated by commas.
func TypeNames(list []DType) string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

// ParseDType reads the name of a type, or one of the names that PyTorch, Triton, CUDA and papers have for it. Case does
// not matter.
func ParseDType(s string) (DType, error) {
	lower := strings.ToLower(s)
	var names []string
	for d := FP16; d.known(); d++ {
		if lower == types[d].name || slices.Contains(types[d].aliases, lower) {
			return d, nil
		}
		names = append(append(names, types[d].name), types[d].aliases...)
	}
	err := diag.Inputf("unknown dtype %q", s)
	if near := diag.Typo(lower, names); near != "" {
		return 0, err.Do("did you mean %s? The types are %s", near, TypeNames(operands))
	}
	return 0, err.Do("use one of %s", TypeNames(operands))
}

// ParseOutput is ParseDType for the type of C.
func ParseOutput(s string) (DType, error) {
	d, err := ParseDType(s)
	if err != nil {
		return 0, diag.Inputf("unknown output type %q", s).Do("use one of %s", TypeNames(OutputTypes()))
	}
	return d, nil
}

// Bits returns the size of one element in memory. TF32 is stored as 32 bits.
func (d DType) Bits() int {
	if d.known() {
		return types[d].bits
	}
	return 16
}

// Bytes returns the size of one element in memory, 0 for a type of which a byte holds several.
func (d DType) Bytes() int { return d.Bits() / 8 }

// Size returns the bytes of so many elements that follow each other.
func (d DType) Size(elements int) int { return elements * d.Bits() / 8 }

// Integer reports whether the type is an integer type. The field writes rates of integers in TOPS, and all others in
// TFLOP/s.
func (d DType) Integer() bool { return d == INT8 || d == INT32 }

// Operand reports whether A and B can have the type.
func (d DType) Operand() bool { return d.known() && types[d].outputs != nil }

// Outputs lists the types that C can have for operands of this type, the default first.
func (d DType) Outputs() []DType {
	if !d.known() {
		return nil
	}
	return slices.Clone(types[d].outputs)
}

// Output returns the default type of C for operands of this type, the one that vendors' libraries write by default.
func (d DType) Output() DType {
	if !d.Operand() {
		return 0
	}
	return types[d].outputs[0]
}

// CostsLike returns the type that stands for this one in rates and costs: FP8 for both 8-bit formats, whose
// instructions differ in the format alone. Any other type stands for itself.
func (d DType) CostsLike() DType {
	if d == FP8E5M2 {
		return FP8
	}
	return d
}

// Types is a type of A and B with a type of C.
type Types struct{ In, Out DType }

// String formats as "fp8 to fp16".
func (t Types) String() string { return t.In.String() + " to " + t.Out.String() }

// Text formats as "fp8", or as "fp8 with fp32 results" if the result is not the default.
func (t Types) Text() string {
	if t.Out == t.In.Output() {
		return t.In.String()
	}
	return t.In.String() + " with " + t.Out.String() + " results"
}

// TypesText lists types by operand: "fp16, fp8 (results fp16, bf16)". Only results beside the default are listed.
func TypesText(list []Types) string {
	var parts []string
	for i, t := range list {
		if slices.IndexFunc(list, func(u Types) bool { return u.In == t.In }) < i {
			continue
		}
		var outputs []DType
		for _, u := range list {
			if u.In == t.In {
				outputs = append(outputs, u.Out)
			}
		}
		part := t.In.String()
		if len(outputs) > 1 || outputs[0] != t.In.Output() {
			part += " (results " + TypeNames(outputs) + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Scaled reports whether results exist only with scales, as vendors' libraries apply them: 4-bit operands have one per
// block, and integer sums become floats with them. Other kernels multiply plain matrices.
func (t Types) Scaled() bool { return t.In == FP4 || t.In == INT8 && t.Out != INT32 }

// Valid reports whether hardware can multiply operands of type In into results of type Out.
func (t Types) Valid() bool { return t.In.known() && slices.Contains(types[t.In].outputs, t.Out) }
