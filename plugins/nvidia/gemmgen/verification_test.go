package gemmgen

import (
	"bytes"
	"encoding/binary"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// sm90 is a target for kernels whose target does not matter.
var sm90 = target.Target{CC: 90}

// verifiers returns the text of every reference and comparison.
func verifiers(t *testing.T, to target.Target) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2, gemm.INT8, gemm.TF32, gemm.FP32} {
		if (d == gemm.FP8 || d == gemm.FP8E5M2) && to.CC < 89 {
			continue
		}
		for _, majors := range []string{"kn", "kk", "mn", "mk"} {
			r := must.Get(EmitReference(d, gemm.Major(majors[0]), gemm.Major(majors[1]), to))(t)
			texts[r.Name] = r.Text
		}
	}
	for _, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32, gemm.INT32} {
		c := must.Get(EmitComparison(d, to))(t)
		texts[c.Name] = c.Text
	}
	return texts
}

// TestVerifyText: the reference sums in double precision alone and rounds once; the comparison loads before it
// computes, and takes three reductions per CTA to global memory.
func TestVerifyText(t *testing.T) {
	texts := verifiers(t, sm90)
	must.That(t, len(texts) == 32, "%d kernels", len(texts))
	for name, text := range texts {
		count := func(re string) int { return len(regexp.MustCompile(re).FindAllString(text, -1)) }
		if strings.HasPrefix(name, "reference") {
			must.That(t, count(`fma\.rn\.f64`) == 9 && count(`cvt\.rn\.f32\.f64`)+count(`cvt\.rni\.s32\.f64`) == 1 &&
				count(`(fma|add|mul)\.rn\.f32`) == 0 && count(`st\.global`) == 1,
				"%s does not sum in double precision:\n%s", name, text)
			want := map[bool]int{true: 18, false: 0}[strings.Contains(name, "fp16") || strings.Contains(name, "fp8")]
			if count(`cvt\.f64\.f16`) != want {
				t.Errorf("%s widens %d fp16 elements, want %d", name, count(`cvt\.f64\.f16`), want)
			}
			continue
		}
		must.That(t, count(`red\.global`) == 3 && count(`bar\.sync`) == 2 && count(`@%p\d+ red\.global`) == 3,
			"%s does not reduce once per CTA:\n%s", name, text)
		_, loop, _ := strings.Cut(text, "\n$loop:")
		must.That(t, strings.LastIndex(loop, "ld.global") <= strings.Index(loop, "abs.f32"),
			"%s computes before the last load", name)
	}
	_, err := EmitReference(gemm.INT32, gemm.MajorK, gemm.MajorN, sm90)
	must.That(t, err != nil, "a reference for int32 operands")
	_, err = EmitComparison(gemm.INT8, sm90)
	must.That(t, err != nil, "a comparison of int8")
}

func verification(m, n, k, batch, rows, step int) Verification {
	call := NewCall(gentest.Problem(m, n, k, batch, true, false))
	call.A.Address, call.B.Address, call.C.Address = 1<<40, 1<<41, 1<<42
	return Verification{
		Call: call, Rows: rows, RowStep: step, Want: 1 << 43, Verdict: 1 << 44, Tolerance: 0.25, Scale: 2,
	}
}

func TestVerifyLaunch(t *testing.T) {
	r := must.Get(EmitReference(gemm.FP16, gemm.MajorM, gemm.MajorN, sm90))(t)
	c := must.Get(EmitComparison(gemm.FP32, sm90))(t)
	v := verification(200000, 300, 70, 3, 66667, 3)
	if v.WantBytes() != 4*66667*300*3 {
		t.Errorf("want has %v B", v.WantBytes())
	}
	l := must.Get(r.Launch(v))(t)
	must.That(t, l.GridX == 2 && l.GridY == 65535 && l.GridZ == 3 && l.Threads == 256 && l.SharedMemory == 0,
		"launch %+v", l)
	if n := gentest.Want(t, r.Kernel, l.Params, map[string]uint64{
		"a": 1 << 40, "b": 1 << 41, "want": 1 << 43,
		"lda": 200000, "ldb": 300, "stride_a": 14000000, "stride_b": 21000,
		"rows": 66667, "row_step": 3, "n": 300, "k": 70,
	}); n != 11 {
		t.Errorf("%d parameters of the reference", n)
	}
	if l = must.Get(c.Launch(v))(t); l.GridX != 1365 || l.GridY != 1 || l.GridZ != 3 || l.Threads != 256 {
		t.Errorf("launch %+v", l)
	}
	if n := gentest.Want(t, c.Kernel, l.Params, map[string]uint64{
		"got": 1 << 42, "want": 1 << 43, "verdict": 1 << 44, "ldc": 300, "stride_c": 60000000,
		"rows": 66667, "row_step": 3, "n": 300,
		"tolerance": uint64(math.Float32bits(0.25)), "scale": uint64(math.Float32bits(2)),
	}); n != 10 {
		t.Errorf("%d parameters of the comparison", n)
	}
	// No CTA has nothing to do, and one element is enough for one.
	for _, s := range []struct{ rows, n, batch, ctas int }{
		{1, 1, 1, 1}, {1, 1024, 1, 1}, {1, 1025, 1, 2}, {4096, 4096, 1, 4096}, {4096, 4096, 5000, 1},
	} {
		l, err := c.Launch(verification(s.rows, s.n, 1, s.batch, s.rows, 1))
		must.That(t, err == nil && l.GridX == s.ctas && l.GridZ == s.batch,
			"%+v: grid %dx%dx%d, %v", s, l.GridX, l.GridY, l.GridZ, err)
	}
}

func TestVerifyLaunchRefuses(t *testing.T) {
	r := must.Get(EmitReference(gemm.FP16, gemm.MajorM, gemm.MajorN, sm90))(t)
	c := must.Get(EmitComparison(gemm.FP16, sm90))(t)
	for _, x := range []struct {
		name, want string
		change     func(*Verification)
	}{
		{"no problem", "m is missing", func(v *Verification) { v.Call.Problem.M = 0 }},
		{"a result that is not A·B", "alpha is 1 and beta 2", func(v *Verification) { v.Call.Beta = 2 }},
		{"no rows", "0 rows", func(v *Verification) { v.Rows = 0 }},
		{"rows beyond the last", "35 rows, 3 apart, of the 100", func(v *Verification) { v.Rows = 35 }},
		{"a leading dimension below the row", "leading dimension of C", func(v *Verification) { v.Call.C.LD = 7 }},
		{"a batch beyond the grid", "exceeds the grid", func(v *Verification) { v.Call.Problem.Batch = 1 << 16 }},
		{"another layout", "not for",
			func(v *Verification) { v.Call.Problem.SetTrans(false, false); v.Call.A.LD = 100 }},
		{"no scale", "scale 0", func(v *Verification) { v.Scale = 0 }},
		{"a tolerance that is no number", "tolerance NaN", func(v *Verification) { v.Tolerance = float32(math.NaN()) }},
	} {
		v := verification(100, 60, 50, 2, 34, 3)
		for _, launch := range []func(Verification) (Launch, error){r.Launch, c.Launch} {
			must.Get(launch(v))(t)
		}
		x.change(&v)
		_, err := r.Launch(v)
		if err == nil {
			_, err = c.Launch(v)
		}
		must.That(t, err != nil && strings.Contains(err.Error(), x.want) && diag.KindOf(err) == diag.Input,
			"%s: %v", x.name, err)
	}
}

func TestVerdict(t *testing.T) {
	b := NewVerdict()
	v, err := ParseVerdict(b)
	must.That(t, err == nil && v == (Verdict{First: math.MaxUint64}), "a new verdict is %+v, %v", v, err)
	binary.LittleEndian.PutUint32(b, math.Float32bits(float32(math.Inf(1))))
	binary.LittleEndian.PutUint64(b[8:], 7)
	binary.LittleEndian.PutUint64(b[16:], 1<<33)
	v, err = ParseVerdict(b)
	must.That(t, err == nil &&
		v == (Verdict{MaxError: float32(math.Inf(1)), Wrong: 7, First: 1 << 33}), "verdict %+v, %v", v, err)
	_, err = ParseVerdict(bytes.Repeat([]byte{0}, 8))
	must.That(t, err != nil, "half a verdict is read")
}

func TestAssembleVerifiers(t *testing.T) {
	ptxas := gentest.Ptxas(t)
	for to := range gentest.SharedPerCTA {
		for name, text := range verifiers(t, to) {
			registers, spills, err := gentest.Assemble(t, ptxas, text, to)
			must.That(t, err == nil && spills <= 0 && registers <= 64,
				"%s on %s: %d registers, %d bytes of spills: %v", name, to, registers, spills, err)
		}
	}
}
