package problems

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The words of libraries for types, layouts and batches mean what they say, and what they contradict is an error.
func TestReadCSVWords(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"m,n,k,batch_count,a_type,layout\n8,4,2,16,f8_r,nt", "8x4x2 fp8 batch 16 trans-b"},
		{"M,N,K,Batch Count,Data Type,Layout\n8,4,2,3,CUDA_R_16BF,TN", "8x4x2 bf16 batch 3 trans-a"},
		{"m,n,k,precision,transA,transB\n8,4,2,half,T,n", "8x4x2 fp16 trans-a"},
		{"m,n,k,a_major,b_major,d_type\n8,4,2,k,k,f32_r", "8x4x2 fp16 out fp32 trans-b"},
		{"m,n,k,a_layout,b_layout\n8,4,2,RowMajor,ColumnMajor", "8x4x2 fp16 trans-b"},
		{"m,n,k,dtype,right_dtype\n8,4,2,torch.bfloat16,bf16", "8x4x2 bf16"},
		{"m,n,k,layout,right_trans_b\n8,4,2,nt,1", "8x4x2 fp16 trans-b"},
		{"m,n,k,layout,right_trans_b\n8,4,2,nn,1", `p.csv:2:10: trans_b "1" is not what another column says`},
		{"m,n,k,a_type,b_type\n8,4,2,f16_r,f8_r", `p.csv:2:13: dtype "f8_r" is not what another column says`},
		{"m,n,k,dtype,weight_dtype\n8,4,2,bf16,int4", `p.csv:2:12: dtype "int4" is none of fp16`},
		{"m,n,k,dtype\n8,4,2,bfloat", `p.csv:2:7: dtype "bfloat" is none of fp16, bf16`},
		{"m,n,k,dtype\n8,4,2,mxfp8", `p.csv:2:7: dtype "mxfp8" is none of fp16`},
		{"m,n,k,layout\n8,4,2,xn", `p.csv:2:7: layout "xn" is no layout; write nn, nt, tn or tt`},
		{"m,n,k,micro_batch\n8,4,2,1", `p.csv:1:7: unknown column "micro_batch"; did you mean batch?`},
		{"m,n,k,B\n8,4,2,1", `p.csv:1:7: unknown column "B"; did you mean batch?`},
		{"m,n,k,weight_type\n8,4,2,int4", `p.csv:1:7: unknown column "weight_type"; did you mean dtype or out_dtype?`},
		{"m,n,k,storage order\n8,4,2,row", `p.csv:1:7: unknown column "storage order"; did you mean layout,`},
		{"m,n,k,scheme\n8,4,2,mxfp8", `p.csv:1:7: unknown column "scheme"; leave the scales`},
		{"m,n,k,labels.weight_type\n8,4,2,int4", "8x4x2 fp16"},
		{`{"m":8,"n":4,"k":2,"labels":{"weight_type":"int4"}}`, "8x4x2 fp16"},
		{"m,n,k,split_k,kernel_id\n8,4,2,1,7", "8x4x2 fp16"},
		{"\"M\";\"N\";\"K\";\"Type\"\n8;4;2;\"bf16\"", "8x4x2 bf16"},
		{"m,n,k,count\n8,4,2,few", `p.csv:2:7: count "few" is not a whole number`},
	} {
		good, bad, err := readCSV("p.csv", strings.NewReader(tc.file), base)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(bad) > 0:
			got = bad[0].Error()
		default:
			got = good[0].String()
		}
		must.That(t, strings.HasPrefix(got, tc.want), "%q: got %s, want %s…", tc.file, got, tc.want)
	}
}

// The advice for a type is the nearest name, and for a type with scales how to say both.
func TestTypeAdvice(t *testing.T) {
	for cell, want := range map[string]string{
		"bfloat": "did you mean bfloat16?", "mxfp8": "write fp8, and leave the scales to the model's option scheme=block32",
		"f64": "use one of those",
	} {
		_, fix, err := parseType(cell, gemm.DTypes())
		must.That(t, err != nil && fix == want, "%s: got %q, %v; want %q", cell, fix, err, want)
	}
}

// A log is known by what it says, whatever comes before it, and equal calls are one row with their number.
func TestReadForeign(t *testing.T) {
	const call = "hipblaslt-bench -m 64 -n 8 -k 32 --transA T --transB N -r bf16_r\n"
	log := "starting, with no header\n" + call + "AUTOTUNE _grouped_mm(1x2, 1x2x3)\n" + call
	for _, compressed := range []bool{false, true} {
		text := []byte(log)
		if compressed {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			_, _ = zip.Write(text)
			_ = zip.Close()
			text = b.Bytes()
		}
		file := must.Get(Open("p.log", bytes.NewReader(text), 0, base))(t)
		first, second, end := file.Next(false), file.Next(false), file.Next(false)
		p := first.Problem
		must.That(t, first.Bad == nil && p.String() == "8x64x32 bf16 trans-b" && p.Count == 2 &&
			p.Where == "p.log:2" && len(p.Labels) == 1 && p.Labels[0] == "2", "got %+v", first)
		if second.Bad == nil || !strings.HasPrefix(second.Bad.Error(), "p.log:3: products of _grouped_mm are not read") {
			t.Errorf("got %+v", second)
		}
		must.That(t, end.End != nil, "got %+v", end)
	}
}
