package gemm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// People type the names of PyTorch, Triton, CUDA and papers, in any case.
func TestNamesOfTypes(t *testing.T) {
	for want, names := range map[string]string{
		"fp16":     "float16 half f16 FP16 Float16 HALF",
		"bf16":     "bfloat16 BF16",
		"fp32":     "float32 f32 float FP32",
		"tf32":     "tensorfloat32 TF32",
		"fp8":      "f8e4m3 e4m3 float8_e4m3fn fp8_e4m3 FP8 fp8e4nv E4M3",
		"fp8_e5m2": "e5m2 float8_e5m2 fp8e5 f8e5m2 FP8_E5M2",
		"int8":     "i8 s8 INT8",
		"int32":    "i32 s32 INT32",
		"fp4":      "e2m1 float4_e2m1fn_x2 nvfp4 MXFP4",
		"fp6":      "mxfp6 e2m3 fp6_e2m3 float6_e2m3fn FP6 E2M3",
		"fp6_e3m2": "e3m2 float6_e3m2fn f6e3m2 FP6_E3M2",
	} {
		for _, name := range append(strings.Fields(names), want) {
			d, err := gemm.ParseDType(name)
			must.That(t, err == nil && d.String() == want, "%s is read as %s, %v", name, d, err)
		}
	}
	must.Fail(t, must.Err(gemm.ParseOutput("int64")), "fp16, bf16, fp32, int32")
}

func TestOutputTypes(t *testing.T) {
	for in, outputs := range map[gemm.DType]string{
		gemm.FP16: "fp16, fp32", gemm.BF16: "bf16, fp32", gemm.FP32: "fp32", gemm.TF32: "fp32",
		gemm.FP8: "fp16, bf16, fp32", gemm.FP8E5M2: "fp16, bf16, fp32", gemm.INT8: "int32, fp16, bf16", gemm.INT32: "",
		gemm.FP4: "fp16, bf16, fp32", gemm.FP6: "fp16, bf16, fp32", gemm.FP6E3M2: "fp16, bf16, fp32",
	} {
		must.Equal(t, gemm.TypeNames(in.Outputs()), outputs, in)
		for out := gemm.DType(0); out < 20; out++ {
			p := gemm.New(64, 64, 64)
			p.DType, p.Out = in, out
			valid := in.Operand() && (out == 0 || strings.Contains(outputs, out.String()))
			err := p.Validate()
			must.That(t, (err == nil) == valid, "%s to %s: %v", in, out, err)
		}
	}
}

func TestVectorBytes(t *testing.T) {
	for _, c := range []struct {
		text    string
		change  func(*gemm.Problem)
		a, b, c int
	}{
		{"64x64x64 fp16", func(*gemm.Problem) {}, 16, 16, 16},
		{"64x64x68 fp16", func(p *gemm.Problem) { p.K = 68 }, 8, 16, 16},
		{"64x63x77 fp16", func(p *gemm.Problem) { p.N, p.K = 63, 77 }, 2, 2, 2},
		{"64x63x77 fp16 trans-a trans-b", func(p *gemm.Problem) { p.N, p.K = 63, 77; p.SetTrans(true, true) }, 16, 2, 2},
		{"64x63x77 fp16 lda 80 ldb 64 ldc 66", func(p *gemm.Problem) {
			p.N, p.K, p.LDA, p.LDB, p.LDC = 63, 77, 80, 64, 66
		}, 16, 16, 4},
		{"64x64x64 fp16 align 2", func(p *gemm.Problem) { p.AlignA, p.AlignB, p.AlignC = 2, 2, 2 }, 2, 2, 2},
		{"64x64x64 fp16 align 16,4,16", func(p *gemm.Problem) { p.AlignB = 4 }, 16, 4, 16},
		{"64x64x65 int8", func(p *gemm.Problem) { p.DType, p.K = gemm.INT8, 65 }, 1, 16, 16},
		{"64x64x68 fp6", func(p *gemm.Problem) { p.DType, p.K = gemm.FP6, 68 }, 1, 16, 16}, // 51 bytes
		{"64x66x64 fp8 out fp32", func(p *gemm.Problem) { p.DType, p.Out, p.N = gemm.FP8, gemm.FP32, 66 }, 16, 2, 8},
		// What is the default is not shown.
		{"64x64x64 fp16", func(p *gemm.Problem) {
			p.Out, p.LDA, p.LDB, p.LDC, p.AlignA, p.AlignB, p.AlignC = gemm.FP16, 64, 64, 64, 16, 16, 16
		}, 16, 16, 16},
	} {
		p := gemm.New(64, 64, 64)
		c.change(&p)
		must.Equal(t, p.String(), c.text)
		must.Do(t, p.Validate())
		for o, want := range []int{c.a, c.b, c.c} {
			must.Equal(t, p.VectorBytes(gemm.Operand(o)), want, p, gemm.Operand(o))
		}
	}
}

// problems are valid problems of every kind.
func problems(t *rapid.T) gemm.Problem {
	size := rapid.IntRange(1, 5000)
	p := gemm.New(size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k"))
	p.Batch = rapid.IntRange(1, 9).Draw(t, "batch")
	p.SetTrans(rapid.Bool().Draw(t, "trans_a"), rapid.Bool().Draw(t, "trans_b"))
	p.DType = rapid.SampledFrom(gemm.DTypes()).Draw(t, "dtype")
	even := 1 // rows are whole bytes
	for even*p.DType.Bits()%8 != 0 {
		even++
	}
	if even > 1 {
		p.K, p.N = even*p.K, even*p.N
		p.SetTrans(false, p.TransB())
	}
	p.Out = rapid.SampledFrom(append(p.DType.Outputs(), 0)).Draw(t, "out")
	if rapid.Bool().Draw(t, "grouped") {
		groups, err := gemm.NewGroups(append(rapid.SliceOfN(rapid.IntRange(0, 300), 0, 40).Draw(t, "groups"), p.M)...)
		if err != nil {
			t.Fatal(err)
		}
		p.SetGroups(groups)
		p.Batch = 1
		p.SetTrans(false, p.TransB())
	}
	for i, ld := range []*int{&p.LDA, &p.LDB, &p.LDC} {
		if _, elements := p.Rows(gemm.Operand(i)); rapid.Bool().Draw(t, "ld") {
			*ld = elements + even*rapid.IntRange(0, 70).Draw(t, "gap")
		}
	}
	for i := range 3 {
		if o := gemm.Operand(i); rapid.Bool().Draw(t, "align") {
			if err := p.SetAlign(o, max(1, p.Type(o).Bytes())<<rapid.IntRange(0, 8).Draw(t, "bits")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// An access of VectorBytes is aligned at the start of every row of every matrix, and one of twice that is not.
func TestVectorBytesOfAnyProblem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		if err := p.Validate(); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		for o := gemm.A; o <= gemm.C; o++ {
			rows, elements := p.Rows(o)
			if p.LD(o) < elements || p.Stride(o) != rows*p.LD(o) {
				t.Fatalf("%s: the leading dimension of %s is %d, the stride %d", p, o, p.LD(o), p.Stride(o))
			}
			aligned := func(bytes int) bool {
				for batch := range min(p.Batch, 3) {
					for row := range min(rows, 20) {
						if (p.Align(o)+p.Type(o).Size(batch*p.Stride(o)+row*p.LD(o)))%bytes != 0 {
							return false
						}
					}
				}
				return true
			}
			got := p.VectorBytes(o)
			if got < p.Type(o).Bytes() || got > gemm.MaxVector || !aligned(got) {
				t.Errorf("%s: %d bytes at once of %s", p, got, o)
			}
			if rows > 1 && got < gemm.MaxVector && aligned(2*got) {
				t.Errorf("%s: %d bytes at once of %s, and %d would do", p, got, o, 2*got)
			}
		}
	})
}

// A problem comes back from JSON as the same value, however it states its defaults. Its text has no new keys at the
// defaults.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		text, err := json.Marshal(p.Record())
		if err != nil {
			t.Fatal(err)
		}
		var r gemm.Record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		back, err := r.Problem()
		if err != nil || back != p.Canonical() || back != back.Canonical() || back.String() != p.String() {
			t.Errorf("%+v became %s and %+v, %v", p, text, back, err)
		}
		if plain := strings.HasSuffix(string(text), `"dtype":"`+p.DType.String()+`"}`); plain != p.Plain() {
			t.Errorf("%s is written as %s", p, text)
		}
	})
	for _, c := range []struct{ text, says string }{
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","out_dtype":"fp33"}`, `unknown output type "fp33"`},
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","align_b":6}`, "no power of two"},
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","align_b":-4}`, "no power of two"},
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","ldc":4}`, "ldc is 4"},
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","groups":[4,3]}`, "the groups have 7 rows, and m is 8"},
		{`{"m":8,"n":8,"k":8,"batch":1,"dtype":"fp16","groups":[9,-1]}`, "group 1 has -1 rows"},
	} {
		var r gemm.Record
		must.Do(t, json.Unmarshal([]byte(c.text), &r))
		must.Fail(t, must.Err(r.Problem()), c.says)
	}
}

// The divisor is that of every access to every matrix, and does not depend on what is said by default.
func TestDivisor(t *testing.T) {
	for _, tc := range []struct {
		change func(*gemm.Problem)
		want   int
	}{
		{func(*gemm.Problem) {}, 16},
		{func(p *gemm.Problem) { p.M = 1001 }, 16},
		{func(p *gemm.Problem) { p.M = 1001; p.SetTrans(true, false) }, 1},
		{func(p *gemm.Problem) { p.N = 1004 }, 4},
		{func(p *gemm.Problem) { p.K = 1000 }, 8},
		{func(p *gemm.Problem) { p.K = 1000; p.SetTrans(true, false) }, 16},
		{func(p *gemm.Problem) { p.K = 1000; p.SetTrans(true, true) }, 8},
		{func(p *gemm.Problem) { p.K, p.LDA, p.LDB = 1000, 1024, 1024 }, 8},
		{func(p *gemm.Problem) { p.LDB = 1026 }, 2},
		{func(p *gemm.Problem) { p.AlignC = 2 }, 2},
		{func(p *gemm.Problem) { p.LDA, p.AlignA = 1024, 16 }, 16},
	} {
		p := gemm.New(1024, 1024, 1024)
		tc.change(&p)
		must.Equal(t, p.Divisor(), tc.want, p)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := gemm.New(rapid.IntRange(1, 4096).Draw(t, "m"), rapid.IntRange(1, 4096).Draw(t, "n"),
			rapid.IntRange(1, 4096).Draw(t, "k"))
		p.SetTrans(rapid.Bool().Draw(t, "a"), rapid.Bool().Draw(t, "b"))
		for o := gemm.A; o <= gemm.C; o++ {
			if _, elements := p.Rows(o); elements%p.Divisor() != 0 {
				t.Fatalf("%d does not divide the rows of %s of %s", p.Divisor(), o, p)
			}
		}
	})
}
