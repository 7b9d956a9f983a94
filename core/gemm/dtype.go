package gemm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// DType is an element type.
type DType uint8

// The element types. The wire protocol and the C header have the same numbers: a type keeps its number.
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
	FP6
	FP6E3M2
	end
)

// row is what is known of an element type. The wire protocol, the C header, Python and help texts have their lists from
// these rows (docs/checklists/add-a-type.md).
type row struct {
	dtype DType
	name  string
	// note says what the name leaves open.
	note string
	bits int
	// sums is the type that products are added up in.
	sums DType
	// plain are the types of C that kernels have for matrices without scales. scaled are those that exist only with
	// scales, as vendors' libraries apply them: small floats have one per block, and integer sums become floats with
	// them. The first of all is the default. A type without any is one of results.
	plain, scaled []DType
	// like is the type with the same rates and costs, if that is another one.
	like DType
	// aliases are the other names that are read, in lower case.
	aliases []string
}

// table has the rows in the order of help texts.
var table = [...]row{
	{dtype: FP16, name: "fp16", bits: 16, sums: FP32, plain: []DType{FP16, FP32},
		aliases: []string{"float16", "half", "f16", "16f"}},
	{dtype: BF16, name: "bf16", bits: 16, sums: FP32, plain: []DType{BF16, FP32}, aliases: []string{"bfloat16", "16bf"}},
	{dtype: FP32, name: "fp32", bits: 32, sums: FP32, plain: []DType{FP32},
		aliases: []string{"float32", "float", "f32", "32f"}},
	{dtype: TF32, name: "tf32", bits: 32, sums: FP32, plain: []DType{FP32}, aliases: []string{"tensorfloat32", "xf32"}},
	{dtype: FP8, name: "fp8", note: "e4m3", bits: 8, sums: FP32, plain: []DType{FP16, BF16, FP32},
		aliases: []string{"fp8_e4m3", "e4m3", "fp8e4m3", "f8e4m3", "e4m3fn", "f8e4m3fn", "float8_e4m3", "float8_e4m3fn",
			"fp8e4nv", "f8", "fe4m3", "8f_e4m3", "float8_e4m3fnuz", "f8_fnuz", "fp8e4b8"}},
	{dtype: FP8E5M2, name: "fp8_e5m2", bits: 8, sums: FP32, plain: []DType{FP16, BF16, FP32}, like: FP8,
		aliases: []string{"e5m2", "fp8e5m2", "f8e5m2", "float8_e5m2", "fp8e5", "bf8", "fe5m2", "8f_e5m2",
			"float8_e5m2fnuz", "bf8_fnuz", "fp8e5b16"}},
	{dtype: INT8, name: "int8", bits: 8, sums: INT32, plain: []DType{INT32}, scaled: []DType{FP16, BF16},
		aliases: []string{"i8", "s8", "8i", "signed char"}},
	{dtype: INT32, name: "int32", note: "of C only", bits: 32, sums: INT32, aliases: []string{"i32", "s32", "32i", "int"}},
	{dtype: FP4, name: "fp4", note: "e2m1", bits: 4, sums: FP32, scaled: []DType{FP16, BF16, FP32},
		aliases: []string{"fp4_e2m1", "e2m1", "fp4e2m1", "f4e2m1", "float4_e2m1", "float4_e2m1fn", "float4_e2m1fn_x2",
			"f4", "fe2m1", "4f_e2m1", "nvfp4", "mxfp4"}},
	{dtype: FP6, name: "fp6", note: "e2m3", bits: 6, sums: FP32, scaled: []DType{FP16, BF16, FP32},
		aliases: []string{"fp6_e2m3", "e2m3", "fp6e2m3", "f6e2m3", "e2m3fn", "f6e2m3fn", "float6_e2m3", "float6_e2m3fn",
			"f6", "fe2m3", "6f_e2m3", "mxfp6"}},
	{dtype: FP6E3M2, name: "fp6_e3m2", bits: 6, sums: FP32, scaled: []DType{FP16, BF16, FP32}, like: FP6,
		aliases: []string{"e3m2", "fp6e3m2", "f6e3m2", "e3m2fn", "f6e3m2fn", "float6_e3m2", "float6_e3m2fn", "bf6",
			"fe3m2", "6f_e3m2"}},
}

// A type without a row does not compile.
var _ = [1]struct{}{}[len(table)+1-int(end)]

// types are the rows by number, and outputs what C can be for each. operands are the types of A and B, in the order of
// help texts, and results the types of C.
var (
	types, outputs    = byNumber()
	operands, results = roles()
)

func byNumber() (rows [end]row, outputs [end][]DType) {
	for _, r := range table {
		rows[r.dtype], outputs[r.dtype] = r, slices.Concat(r.plain, r.scaled)
	}
	return rows, outputs
}

func roles() (operands, results []DType) {
	for _, r := range table {
		if outputs[r.dtype] != nil {
			operands = append(operands, r.dtype)
		}
		results = append(results, outputs[r.dtype]...)
	}
	slices.Sort(results)
	return operands, slices.Compact(results)
}

// DTypes lists the types that A and B can have.
func DTypes() []DType { return slices.Clone(operands) }

// OutputTypes lists the types that C can have.
func OutputTypes() []DType { return slices.Clone(results) }

// Known reports whether there is such a type.
func (d DType) Known() bool { return d >= FP16 && d < end }

// String returns the name that every output has.
func (d DType) String() string {
	if d.Known() {
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

// unmodelled are the names of types that BLAS has and no model, and what is known of them: predicted ÷ measured times
// of cuBLAS on an H200, if they were taken for fp32: fp64 has the same peak there. TestUnmodelled of plugins/library
// has the figures.
var unmodelled = []struct{ names, asFP32 string }{
	{"fp64 float64 f64 double", "1.23 at the median, 0.45 to 2.76 over 216 products"},
	{"complex complex64 cfloat", "0.42 at the median, 0.25 to 1.31 over 112 products"},
	{"complex128 cdouble", "0.53 at the median, 0.25 to 1.70 over 105 products"},
}

// MarshalText writes the type's name.
func (t DType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// affixes are what libraries write around the name of a type: torch.bfloat16, c10::Half, CUDA_R_16BF, f16_r.
var affixes = regexp.MustCompile(`^(torch\.|c10::|([a-z]+_)?r_)|_r$`)

// ParseDType reads the name of a type, or one of the names that PyTorch, Triton, CUDA, HIP and papers have for it. Case
// does not matter.
func ParseDType(s string) (DType, error) {
	lower := strings.ToLower(s)
	for d := FP16; d < end; d++ {
		if lower == types[d].name || slices.Contains(types[d].aliases, lower) {
			return d, nil
		}
	}
	if plain := affixes.ReplaceAllString(lower, ""); plain != lower {
		if d, err := ParseDType(plain); err == nil {
			return d, nil
		}
	}
	for _, u := range unmodelled {
		if slices.Contains(strings.Fields(u.names), lower) {
			return 0, diag.Inputf("no model predicts %s: taken for fp32, predicted ÷ measured times of a vendor's library "+
				"are %s", s, u.asFP32).Do("use one of %s", TypeNames(operands))
		}
	}
	if lower == "mxfp8" {
		return 0, diag.Inputf("%s is fp8 with a scale per 32 elements, which is no part of the type", s).
			Do("write fp8, and leave the scales to the model's option scheme=block32")
	}
	var names []string
	for _, t := range types[FP16:end] {
		names = append(append(names, t.name), t.aliases...)
	}
	err := diag.Inputf("unknown dtype %q", s)
	if near := diag.Nearest(lower, names, 1); len(near) > 0 && len(near[0]) > 1 {
		return 0, err.Do("did you mean %s? The types are %s", near[0], TypeNames(operands))
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
	if d.Known() {
		return types[d].bits
	}
	return 16
}

// Bytes returns the size of one element in memory, 0 for a type of which a byte holds several.
func (d DType) Bytes() int { return d.Bits() / 8 }

// Size returns the bytes of so many elements that follow each other.
func (d DType) Size(elements int) int { return elements * d.Bits() / 8 }

// Integer reports whether the type is an integer type. Products of integers are added up in INT32, all others in FP32.
// The field writes rates of integers in TOPS, and all others in TFLOP/s.
func (d DType) Integer() bool { return d.Known() && types[d].sums == INT32 }

// Operand reports whether A and B can have the type.
func (d DType) Operand() bool { return d.Known() && outputs[d] != nil }

// Outputs lists the types that C can have for operands of this type, the default first.
func (d DType) Outputs() []DType {
	if !d.Known() {
		return nil
	}
	return slices.Clone(outputs[d])
}

// Output returns the default type of C for operands of this type: vendors' libraries write it by default.
func (d DType) Output() DType {
	if !d.Operand() {
		return 0
	}
	return outputs[d][0]
}

// CostsLike returns the type that stands for this one in rates and costs: FP8 for both 8-bit formats, whose
// instructions differ in the format alone. Most types stand for themselves.
func (d DType) CostsLike() DType {
	if d.Known() && types[d].like != 0 {
		return types[d].like
	}
	return d
}

// rowElements is the fewest elements that take whole bytes.
func (d DType) rowElements() int {
	n := 1
	for n*d.Bits()%8 != 0 {
		n++
	}
	return n
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

// Plain lists the types that kernels of matrices without scales can have, for operands of the types given.
func Plain(operands ...DType) (list []Types) {
	for _, in := range operands {
		for _, out := range types[in].plain {
			list = append(list, Types{In: in, Out: out})
		}
	}
	return list
}

// Valid reports whether hardware can multiply operands of type In into results of type Out.
func (t Types) Valid() bool { return t.In.Known() && slices.Contains(outputs[t.In], t.Out) }

// Scaled reports whether results exist only with scales, as vendors' libraries apply them: small floats have one per
// block, and integer sums become floats with them. Other kernels multiply plain matrices.
func (t Types) Scaled() bool { return t.In.Known() && slices.Contains(types[t.In].scaled, t.Out) }
