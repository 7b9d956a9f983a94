package gemm_test

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestNewIsValidAndRowMajor(t *testing.T) {
	p := gemm.New(2048, 1024, 512)
	must.Do(t, p.Validate())
	must.That(t, !p.TransA() && !p.TransB() && p.Batch == 1 && p.DType == gemm.FP16, "%+v", p)
	must.Equal(t, p.String(), "2048x1024x512 fp16")
	must.Equal(t, p.Flops(), 2*2048*1024*512)
	p.SetTrans(true, true)
	p.Batch = 4
	must.That(t, p.AMajor == gemm.MajorM && p.BMajor == gemm.MajorK && p.TransA() && p.TransB(), "%+v", p)
	must.Equal(t, p.String(), "2048x1024x512 fp16 batch 4 trans-a trans-b")
	p.SetTrans(false, false)
	must.That(t, p.AMajor == gemm.MajorK && p.BMajor == gemm.MajorN, "%+v", p)
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		says   string
		change func(*gemm.Problem)
	}{
		{"m is missing or zero", func(p *gemm.Problem) { p.M = 0 }},
		{"n is negative (-1)", func(p *gemm.Problem) { p.N = -1 }},
		{"k is missing or zero", func(p *gemm.Problem) { p.K = 0 }},
		{"k is negative", func(p *gemm.Problem) { p.K = math.MinInt }},
		{"batch is missing or zero", func(p *gemm.Problem) { p.Batch = 0 }},
		{"dtype is missing", func(p *gemm.Problem) { p.DType = 0 }},
		{"dtype is missing", func(p *gemm.Problem) { p.DType = 99 }},
		{"dtype int32 is a type of results only", func(p *gemm.Problem) { p.DType = gemm.INT32 }},
		{"no hardware multiplies fp16 operands into bf16 results; use an output type of fp16, fp32",
			func(p *gemm.Problem) { p.Out = gemm.BF16 }},
		{"no hardware multiplies int8 operands into fp32 results", func(p *gemm.Problem) {
			p.DType, p.Out = gemm.INT8, gemm.FP32
		}},
		{"no hardware multiplies fp8 operands into int32 results", func(p *gemm.Problem) {
			p.DType, p.Out = gemm.FP8, gemm.INT32
		}},
		{"results", func(p *gemm.Problem) { p.Out = gemm.FP4 }},
		{"a row of A has 63 elements of fp4, which are no whole number of bytes", func(p *gemm.Problem) {
			p.DType, p.K = gemm.FP4, 63
		}},
		{"a row of A has 66 elements of fp6, which are no whole number of bytes; use rows of a multiple of 4 elements",
			func(p *gemm.Problem) { p.DType, p.K = gemm.FP6, 66 }},
		{"a row of B has 70 elements of fp6_e3m2", func(p *gemm.Problem) { p.DType, p.LDB = gemm.FP6E3M2, 70 }},
		{"a row of B has 65 elements of fp4", func(p *gemm.Problem) { p.DType, p.LDB = gemm.FP4, 65 }},
		{"lda is 63, and a row of A has 64 elements; give at least 64", func(p *gemm.Problem) { p.LDA = 63 }},
		{"ldb is -1", func(p *gemm.Problem) { p.LDB = -1 }},
		{"ldc is 32", func(p *gemm.Problem) { p.N, p.LDC = 33, 32 }},
		{"B with ldb 4611686018427387904 overflows", func(p *gemm.Problem) { p.LDB = 1 << 62 }},
		{"C with ldc 281474976710656 overflows", func(p *gemm.Problem) { p.LDC = 1 << 48 }}, // the rows padded take 2^12
		{"align_a is 3", func(p *gemm.Problem) { p.AlignA = 3 }},
		{"align_b is 32", func(p *gemm.Problem) { p.AlignB = 32 }},
		{"align_c is 1, and an element of C has 2 bytes", func(p *gemm.Problem) { p.AlignC = 1 }},
		{"align_c is 2, and an element of C has 4 bytes", func(p *gemm.Problem) { p.Out, p.AlignC = gemm.FP32, 2 }},
		{"a_major is missing", func(p *gemm.Problem) { p.AMajor = 0 }},
		{"a_major is missing", func(p *gemm.Problem) { p.AMajor = gemm.MajorN }},
		{"b_major is missing", func(p *gemm.Problem) { p.BMajor = gemm.MajorM }},
		{"overflows", func(p *gemm.Problem) { p.M = math.MaxInt }},
		{"overflows", func(p *gemm.Problem) { p.Batch = math.MaxInt }},
		{"overflows", func(p *gemm.Problem) { p.M, p.N, p.K = 1<<20, 1<<20, 1<<20 }},
		{"overflows", func(p *gemm.Problem) { p.M, p.N, p.K, p.Batch = 1, 1, 1, 1<<24 }}, // padding alone takes 2^36
	} {
		p := gemm.New(64, 64, 64)
		c.change(&p)
		err := p.Validate()
		must.Refuse(t, err, c.says)
		must.That(t, p.Canonical().Validate() != nil, "%+v is valid in its canonical form", p)
	}
}

// The limit is where it says it is: the volume padded to the largest block, times 8 bytes, fits 63 bits exactly when
// the problem is valid.
func TestValidateLimit(t *testing.T) {
	const block = 1 << 12
	pad := func(v int) *big.Int {
		b := new(big.Int).Add(big.NewInt(int64(v)), big.NewInt(block-1))
		return b.Mul(b.Div(b, big.NewInt(block)), big.NewInt(block))
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 63)
	sizes := []int{1, 16, block, block + 1, 1 << 16, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1 << 31, 1 << 40, 1 << 52,
		math.MaxInt - block, math.MaxInt}
	valid := 0
	for _, m := range sizes {
		for _, n := range sizes {
			for _, k := range sizes {
				for _, batch := range []int{1, 3, 1 << 16, 1 << 24, math.MaxInt} {
					p := gemm.New(m, n, k)
					p.Batch = batch
					product := new(big.Int).Mul(big.NewInt(8), big.NewInt(int64(batch)))
					for _, v := range []int{m, n, k} {
						product.Mul(product, pad(v))
					}
					fits := product.Cmp(limit) < 0
					must.Equal(t, p.Validate() == nil, fits, p, product)
					if fits {
						valid++
					}
				}
			}
		}
	}
	must.That(t, valid >= 50, "only %d sizes were valid: the test checks one side of the limit", valid)
}

func TestDTypes(t *testing.T) {
	bits := map[gemm.DType]int{gemm.FP16: 16, gemm.TF32: 32, gemm.INT8: 8, gemm.FP6: 6, gemm.FP4: 4}
	for _, d := range gemm.DTypes() {
		back, err := gemm.ParseDType(d.String())
		must.That(t, err == nil && back == d, "ParseDType(%q) = %v, %v", d, back, err)
		want, known := bits[d]
		must.That(t, d.Bytes() == d.Bits()/8 && d.Size(64) == 8*d.Bits() && (!known || d.Bits() == want) &&
			d.Output().Bits() >= d.Bits(), "%s has %d bits in, %d out", d, d.Bits(), d.Output().Bits())
	}
	for _, s := range []string{"", "int999", "fp", "float8", "torch.halves", "f16_c"} {
		d, err := gemm.ParseDType(s)
		must.That(t, err != nil && strings.Contains(err.Error(), "fp16, bf16"), "ParseDType(%q) = %v, %v", s, d, err)
	}
	must.Equal(t, gemm.DType(99).String(), "dtype(99)")
}

func TestParseConfig(t *testing.T) {
	base := gemm.Config{GroupM: 8, NumWarps: 8, NumStages: 2, SplitK: 1, Kernel: "triton"}
	for _, c := range []struct {
		s    string
		want gemm.Config
	}{
		{"128x256x64", gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 8, NumWarps: 8, NumStages: 2, SplitK: 1,
			Kernel: "triton"}},
		{"128x256x64 w4 s3", gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 8, NumWarps: 4, NumStages: 3,
			SplitK: 1, Kernel: "triton"}},
		{" 128x256x64,w4,  s3, k2 g1", gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 1, NumWarps: 4, NumStages: 3,
			SplitK: 2, Kernel: "triton"}},
		{"16x32x512,stages=3,warps=4", gemm.Config{BlockM: 16, BlockN: 32, BlockK: 512, GroupM: 8, NumWarps: 4, NumStages: 3,
			SplitK: 1, Kernel: "triton"}},
		{"1x1x4096,split=4096,group=1,warps=1,stages=1", gemm.Config{BlockM: 1, BlockN: 1, BlockK: 4096, GroupM: 1,
			NumWarps: 1, NumStages: 1, SplitK: 4096, Kernel: "triton"}},
	} {
		must.Equal(t, must.Get(gemm.ParseConfig(c.s, base))(t), c.want, c.s)
	}
	for _, c := range []struct{ s, says string }{
		{"", "does not start with a tile"},
		{"128x256", "does not start with a tile"},
		{"128x256x64x2", "does not start with a tile"},
		{"ax256x64", `block size "a" is not a whole number`},
		{"128x256x", `block size "" is not a whole number`},
		{"128x256x1e2", "is not a whole number"},
		{"128x-256x64", "is outside 1 to 4096"},
		{"128x0x64", "is outside 1 to 4096"},
		{"128x256x4097", "is outside 1 to 4096"},
		{"128x256x99999999999999999999", "is not a whole number"},
		{"128x256x64,warp=8", `unknown or repeated key "warp"`},
		{"128x256x64,warps=8,warps=4", `unknown or repeated key "warps"; use each of group, split, stages at most once`},
		{"128x256x64,warps", "warps= is not a whole number"},
		{"128x256x64,stages=0", "stages=0 is outside 1 to 4096"},
		{"128x256x64 w8 warps=4", `unknown or repeated key "warps"`},
		{"128x256x64 x8", `unknown or repeated key "x8"`},
		{"128x256x64 w0", "warps=0 is outside 1 to 4096"},
	} {
		got, err := gemm.ParseConfig(c.s, base)
		must.That(t, err != nil && strings.Contains(err.Error(), c.says) &&
			got == (gemm.Config{}), "ParseConfig(%q) = %+v, %v, want an error saying %q", c.s, got, err, c.says)
	}
}

func TestConfigRoundTrip(t *testing.T) {
	for _, c := range []gemm.Config{
		{BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 1, NumWarps: 8, NumStages: 2, SplitK: 1},
		{BlockM: 16, BlockN: 16, BlockK: 512, GroupM: 16, NumWarps: 4, NumStages: 5, SplitK: 8},
		{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1}, // GroupM not chosen yet
	} {
		must.Equal(t, must.Get(gemm.ParseConfig(c.String(), gemm.Config{}))(t), c)
	}
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 1, NumWarps: 8, NumStages: 2, SplitK: 1}
	must.Equal(t, c.String(), "128x256x64 w8 s2 g1")
}

func TestIntensity(t *testing.T) {
	// 2·128·256·64 / (128·64 + 256·64 + 128·256)
	must.Equal(t, (gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64}).Intensity(), 4194304.0/57344)
	// The largest configuration stays finite and positive.
	must.Equal(t, (gemm.Config{BlockM: 4096, BlockN: 4096, BlockK: 4096}).Intensity(), 8192.0/3)
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{
		"", "128x256x64", "128x256x64,warps=8,stages=2,group=1,split=1", "128x256x64 w8 s2 g1 k4", "1x1x1 w",
		"16x16x16,group=0", "1x1x1,,", "xx",
		"128x256x64,warps=+8",
		"4096x4096x4096,split=4096", "9223372036854775808x1x1", "１x1x1", "1x1x1,warps=1=1",
	} {
		f.Add(s)
	}
	base := gemm.Config{GroupM: 8, NumWarps: 8, NumStages: 2, SplitK: 1, Kernel: "triton"}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := gemm.ParseConfig(s, base)
		if err != nil {
			must.That(t, diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\n\r"), "%q: %v", s, err)
			return
		}
		for _, v := range []int{c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK} {
			must.Need(t, v >= 1 && v <= 4096, "%q gives %+v", s, c)
		}
		must.Equal(t, must.Get(gemm.ParseConfig(c.String(), gemm.Config{Kernel: "triton"}))(t), c, s)
	})
}

// What nobody knows of a kernel is left out of its text and null in JSON, and both read back.
func TestUnknownNumbers(t *testing.T) {
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, SplitK: 2}
	if err := c.ValidateKnown(); err != nil || c.Validate() == nil || c.ValidateNumbers() == nil {
		t.Errorf("only ValidateKnown takes %s: %v", c, err)
	}
	text, err := json.Marshal(c)
	want := `{"block_m":128,"block_n":256,"block_k":64,"group_m":null,"num_warps":null,"num_stages":null,"split_k":2}`
	must.That(t, err == nil && string(text) == want, "%s, %v", text, err)
	var read gemm.Config
	err = json.Unmarshal(text, &read)
	must.That(t, err == nil && read == c, "%+v, %v", read, err)
	const name = "128x256x64 k2"
	parsed, err := gemm.ParseConfig(name, gemm.Config{})
	must.That(t, err == nil && parsed == c && c.String() == name, "%s is read as %+v, %v", c, parsed, err)
	for _, wrong := range []gemm.Config{
		{BlockM: 128, BlockN: 256, BlockK: 64, SplitK: 2, NumWarps: 4},
		{BlockM: 128, BlockN: 256, BlockK: 64, SplitK: 2, GroupM: 1},
		{BlockM: 128, BlockN: 256, BlockK: 64},
	} {
		must.That(t, wrong.ValidateKnown() != nil, "%+v is taken", wrong)
	}
}

func TestSteps(t *testing.T) {
	for _, x := range []struct{ in, want []int }{
		{[]int{3104}, []int{3104}},
		{[]int{64, 200}, []int{64, 128, 192}},
		{[]int{64, 96, 300}, []int{64, 160, 256}},
		// The axis of the first experiment on AMD's slides of 2017.
		{[]int{16, 16, 16, 5632}, []int{16, 32, 64, 112, 176, 256, 352, 464, 592, 736, 896, 1072, 1264, 1472, 1696, 1936,
			2192, 2464, 2752, 3056, 3376, 3712, 4064, 4432, 4816, 5216, 5632}},
		{[]int{5, 9, 1, 5}, []int{5}},
	} {
		got := must.Get(gemm.Steps(x.in...))(t)
		must.Equal(t, cmp.Diff(x.want, got), "", x.in)
	}
}

func TestStepsRefuses(t *testing.T) {
	for _, in := range [][]int{{}, {0}, {-1, 5}, {8, 4}, {1, 0, 9}, {1, 1, -1, 9}, {1, 2, 3, 4, 5}, {1, 1, 1 << 20},
		{1, 1, 1, 1<<63 - 1}, {1, 1<<63 - 1, 1<<63 - 1, 1 << 39}} {
		must.Fail(t, must.Err(gemm.Steps(in...)), "a range ")
	}
}

func TestStepsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 4).Draw(t, "range")
		got, err := gemm.Steps(in...)
		if err != nil {
			return
		}
		if !slices.IsSorted(got) || got[0] != in[0] || got[len(got)-1] > in[len(in)-1] {
			t.Fatalf("%v: %v", in, got)
		}
	})
}
