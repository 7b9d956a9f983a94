package shapes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/formats/shapes"
)

// published are lines as public texts have them, with the products that they name: m, n, k, batch, trans_a, trans_b,
// dtype, out_dtype, lda, ldb, ldc, beta and count.
var published = []struct{ source, text, want string }{
	{"pull request 159982 of pytorch/pytorch", `AUTOTUNE mm(3840x1152, 1152x49136)
strides: [1, 3840], [49152, 1]
dtypes: torch.bfloat16, torch.bfloat16
  mm 0.3848 ms 100.0%
SingleProcess AUTOTUNE benchmarking takes 0.2 seconds
`, "3840,49136,1152,1,1,0,bf16,,,49152,,,1"},
	{"pull request 19776 of sgl-project/sglang", `{"num_choices": 20, "num_triton_choices": 19, "best_kernel": "mm"}
AUTOTUNE mm(4096x16384, 16384x4096)
strides: [16384, 1], [1, 16384]
dtypes: torch.bfloat16, torch.bfloat16
`, "4096,4096,16384,1,0,1,bf16,,,,,,1"},
	{"a log of PyTorch 2.8", `AUTOTUNE addmm(1x1000, 1x512, 512x1000)
strides: [0, 1], [0, 1], [1, 512]
dtypes: torch.float32, torch.float32, torch.float32
`, "1,1000,512,1,0,1,fp32,,,,,,1"},
	{"a log of PyTorch 2.6", "AUTOTUNE bmm(128x59x64, 128x64x59)\n  bmm 0.0220 ms 100.0%\n",
		"error: bmm has sizes without strides and types"},
	{"a size that is no number", "AUTOTUNE mm(s0x4096, 4096x128)\nstrides: [4096, 1], [128, 1]\ndtypes: torch.half, torch.half\n",
		"0,128,4096,1,0,0,fp16,,,,,,1"},
	{"a log of a layer of GLM-5 in vLLM: the same call twice", strings.Repeat(
		"hipblaslt-bench --api_method c -m 28672 -n 512 -k 512 --lda 512 --ldb 512 --ldc 28672 --ldd 28672  "+
			"--stride_a 14680064 --alpha 1 --beta 0 --transA T --transB N --batch_count 1 --scaleA 2 --scaleB 2  --a_type i8_r "+
			"--b_type i8_r --c_type i32_r --d_type bf16_r --compute_type i32_r --activation_type none  \n", 2),
		"512,28672,512,1,0,1,int8,bf16_r,,,,,2"},
	{"a sample of hipBLASLt, over several lines", `hipblaslt-bench --api_method c -m 48 -n 176 -k 1024 \
  --lda 48 --ldb 176 --ldc 48 --ldd 48  \
  --alpha 1.000000 --beta 1.000000 --transA N --transB T \
  --a_type bf16_r --b_type bf16_r --c_type bf16_r --d_type bf16_r
`, "176,48,1024,1,1,0,bf16,bf16_r,,,,1.000000,1"},
	{"hipBLASLt's clients, for an MI350X", `[0]:transA,transB,grouped_gemm,batch_count,m,n,k,alpha,lda,stride_a,beta,ldb,` +
		"a_type,b_type,c_type,d_type,compute_type,hipblaslt-Gflops,us\n" +
		"    T,N,0,1,4096,65536,14336,1,14336,58720256,0,14336,f8_r,f8_r,bf16_r,bf16_r,f32_r,3.2733e+06,2351.32\n",
		"65536,4096,14336,1,0,1,fp8,bf16_r,,,,,1"},
	{"rocBLAS with ROCBLAS_LAYER=2", "./rocblas-bench -f gemm_ex --transposeA N --transposeB T -m 3840 -n 384 -k 38 --lda 3840 " +
		"--ldb 3840 --ldc 3840 --alpha 1 --beta 0 --a_type f32_r --b_type f32_r --c_type f32_r --d_type f32_r --compute_type f32_r\n",
		"384,3840,38,1,1,0,fp32,f32_r,3840,,,,1"},
	{"rocBLAS with ROCBLAS_LAYER=4", `- { rocblas_function: "rocblas_gemm_ex", atomics_mode: atomics_allowed, a_type: "bf16_r", ` +
		`b_type: "bf16_r", c_type: "bf16_r", d_type: "bf16_r", compute_type: "f32_r", transA: 'T', transB: 'N', M: 12288, N: 4547, ` +
		`K: 4608, alpha: 1.0, lda: 4608, beta: 0.0, ldb: 4608, ldc: 12288, ldd: 12288, batch_count: 1, call_count: 136 }`,
		"4547,12288,4608,1,0,1,bf16,bf16_r,,,,,136"},
	{"a result of rocblas-bench", "transA,transB,M,N,K,alpha,lda,beta,ldb,ldc,ldd,batch_count,rocblas-Gflops,us\n" +
		"T,N,13824,4547,4608,1,4608,0,4608,13824,13824,1,68121,8503.93\n", "error: it does not say which type the matrices have"},
	{"the README of PyTorch's TunableOp", "Validator,PT_VERSION,2.2.0\nGemmTunableOp_float_NT,nt_25088_4096_64,1219,1.262\n",
		"4096,25088,64,1,1,0,fp32,,,,,,1"},
	{"TunableOp with leading dimensions", "GemmTunableOp_BFloat16_TN,tn_6144_8_2560_ld_2560_2560_6200,Gemm_Hipblaslt_6849,0.2\n",
		"8,6144,2560,1,0,1,bf16,,,,6200,,1"},
	{"AMD's blog on TunableOp", "GemmStridedBatchedTunableOp_float_TN,tn_128_128_64_B_96_ld_64_64_128\n",
		"128,128,64,96,0,1,fp32,,,,,,1"},
	{"Quark", "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,tn_64_12288_2048_ld_2048_2048_64_rw_1_bias_None\n",
		"12288,64,2048,1,0,1,fp8,BFloat16,,,,,1"},
	{"aiter@e404860, a8w8_blockscale_tuned_gemm.csv", "cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n" +
		"304,16,1536,7168,8,0,19.3027,a8w8_blockscale_1x128x128_256x16x64x256_16x16,18.25,578.88,0.0\n",
		"16,1536,7168,1,0,1,fp8,,,,,,1"},
	{"aiter, a8w8_bpreshuffle_tuned_gemm.csv", "gfx,cu_num,M,N,K,q_dtype_w,libtype,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n" +
		"gfx942,80,128,1280,8192,torch.int8,asm,3,4,14.7532,_ZN5aiter41I8gemm_bf16_perTokenI8_BpreShuffle_64x128E,1,8,0.1\n",
		"128,1280,8192,1,0,1,int8,,,,,,1"},
	{"aiter, bf16_tuned_gemm.csv", "gfx,cu_num,M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle,libtype,solidx,splitK,us,kernelName\n" +
		"gfx950,256,64,256,5120,False,torch.bfloat16,torch.float32,False,False,asm,5,13,7.9,_ZN5aiter39bf16gemm_fp32bf16_tn\n",
		"64,256,5120,1,0,1,bf16,torch.float32,,,,,1"},
	{"aiter, a4w4_blockscale_tuned_gemm.csv: no kernel", "cu_num,M,N,K,kernelId,splitK,us,kernelName\n256,16,576,7168,-1,0,nan,None\n",
		"error: it does not say which type the matrices have"},
	{"aiter, untuned experts", "token,model_dim,inter_dim,expert,topk,act_type,dtype,q_dtype_a,q_dtype_w\n",
		"error: a table of fused experts has no m, n and k"},
	{"CUTLASS's profiler, from a course of SYSU", "Problem,Provider,OperationKind,Operation,gemm_kind,m,n,k,A,B,C,beta,batch_count," +
		"op_class\n1,CUTLASS,gemm,cutlass_simt_sgemm_128x128_8x2_nt_align1,universal,8192,4096,1024,f32:column,f32:row," +
		"f32:column,0,1,simt\n", "4096,8192,1024,1,1,0,fp32,f32,,,,,1"},
	{"the same on tensor cores", "Problem,Provider,OperationKind,gemm_kind,m,n,k,A,B,C,beta,batch_count,op_class\n" +
		"1,CUTLASS,gemm,universal,8192,4096,1024,f32:row,f32:column,f32:row,0,1,tensorop\n", "8192,4096,1024,1,0,1,tf32,f32,,,,,1"},
	{"CUTLASS's profiler, from an issue about sparsity", "Problem,Provider,OperationKind,gemm_kind,m,n,k,A,B,C,E\n" +
		"1,CUTLASS,spgemm,spgemm,16384,16384,16384,f16:column,f16:row,f32:row,u16:nk2\n", "error: spgemm (spgemm) is no GEMM"},
	{"CUTLASS's profiler, from an issue", "Problem,Provider,OperationKind,Operation,Disposition,Status,conv_kind,n,h,w,c,k\n",
		"error: convolutions are no products"},
	{"cuBLASLt of CUDA 11, level 5", `[cublasLt][3794797][Trace][cublasLtSSSMatmul] A=0X40 Adesc=[type=R_32F rows=1000 cols=64 ` +
		`ld=1000] B=0X40 Bdesc=[type=R_32F rows=64 cols=16 ld=64] C=0X40 Cdesc=[type=R_32F rows=1000 cols=16 ld=1000] D=0X40 ` +
		`Ddesc=[type=R_32F rows=1000 cols=16 ld=1000] computeDesc=[computeType=COMPUTE_32F_FAST_TF32 scaleType=R_32F ` +
		`smCountTarget=108] algo=[algoId=21] workSpace=0X0 workSpaceSizeInBytes=0 beta=0 outOfPlace=0 stream=0X0`,
		"16,1000,64,1,0,0,tf32,R_32F,,,,,1"},
	{"pull request 1241 of ROCm/pytorch", `[2023-06-12 21:16:46][HIPBLASLT][690719][Trace][rocblaslt_matmul] A=0x7e Adesc=[type=R_32F ` +
		`rows=2400 cols=128 ld=2400] B=0x7e Bdesc=[type=R_32F rows=2400 cols=2048 ld=25272] C=0x7e Cdesc=[type=R_32F rows=128 ` +
		`cols=2048 ld=128] D=0x7e Ddesc=[type=R_32F rows=128 cols=2048 ld=128] computeDesc=[computeType=COMPUTE_32F scaleType=R_32F ` +
		`transA=OP_T transB=OP_N epilogue=EPILOGUE_BIAS] workSpace=0x7e alpha=1 beta=0 stream=0x73`,
		"2048,128,2400,1,0,1,fp32,R_32F,25272,,,,1"},
	{"issue 2271 of composable_kernel", "Best Perf for datatype = bf16 ALayout =  RowMajor BLayout =  ColumnMajor M = 32 N = 512 K = 7168 " +
		"StrideA = 7168 StrideB = 7168 StrideC = 512 : 0.0634091 ms, 3.70421 TFlops, 123.508 GB/s, DeviceGemm_Xdl_CShuffle<Default>",
		"32,512,7168,1,0,1,bf16,bf16,,,,,1"},
	{"the same, had A and B a byte", "Best Perf for datatype = bf16 ALayout =  RowMajor BLayout =  ColumnMajor M = 32 N = 512 K = 7168 " +
		"StrideA = 7168 StrideB = 7168 StrideC = 512 : 0.0634091 ms, 3.70421 TFlops, 62.0 GB/s, DeviceGemm_Xdl_CShuffle<Default>",
		"error: C is bf16, and its bytes per second are those of another type"},
	{"nsys stats", "Time (%),Total Time (ns),Instances,Avg (ns),Name\n42.0,1234,12,102,sm90_xmma_gemm_bf16bf16\n",
		"error: an export of Nsight has the names of kernels"},
	{"ncu --csv", `"ID","Process ID","Process Name","Host Name","Kernel Name","Context"` + "\n", "error: an export of Nsight"},
	{"two types", "hipblaslt-bench -m 8 -n 8 -k 8 --a_type f16_r --b_type f8_r\n", "error: A and B are fp16 and fp8"},
	{"a function that is no product", "rocblas-bench -f gemv -m 8 -n 8 -r f32_r\n", "error: gemv is no product"},
	{"something else", "m,k\n1,2\n", ""},
}

func TestText(t *testing.T) {
	for _, tc := range published {
		rows, err := shapes.Text(strings.NewReader(tc.text))
		check(t, tc.source, rows, err, tc.want)
	}
}

// check compares the only row.
func check(t *testing.T, name string, rows []shapes.Row, err error, want string) {
	t.Helper()
	got := ""
	switch {
	case len(rows) > 1:
		t.Errorf("%s: got %d rows", name, len(rows))
		return
	case len(rows) == 1 && rows[0].Bad != nil:
		err = rows[0].Bad
	case len(rows) == 1:
		got = strings.Join(rows[0].Cells, ",")
		if len(rows[0].Cells) != len(shapes.Columns) {
			t.Errorf("%s: %d cells", name, len(rows[0].Cells))
		}
	}
	if err != nil {
		got = "error: " + err.Error()
		if what, ok := strings.CutPrefix(want, "error: "); ok && strings.HasPrefix(err.Error(), what) {
			got = want
		}
	}
	if got != want {
		t.Errorf("%s: got %s, want %s", name, got, want)
	}
}

// trace has events in the form of a trace that SGLang's users publish, and of one in Kineto's tests.
const trace = `{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "args": {"Input Dims": [[38, 2048], [1536, 2048], []]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::NAME", "args": {"Concrete Inputs": ["", "", "", "", "", "", "15"],
"Input Dims": DIMS, "Input Strides": STRIDES, "Input type": TYPES}},
{"ph": "X", "cat": "kernel", "name": "nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN", "args": {}}], "traceName": "x"}`

func TestTrace(t *testing.T) {
	bf16 := `["c10::BFloat16", "c10::BFloat16"]`
	for _, tc := range []struct{ name, dims, strides, types, want string }{
		{"mm", "[[38, 2048], [2048, 1536]]", "[[2048, 1], [1, 2048]]", bf16, "38,1536,2048,1,0,1,bf16,,,,,,1"},
		{"bmm", "[[12, 38, 64], [12, 64, 48]]", "[[2432, 64, 1], [3072, 48, 1]]", bf16, "38,48,64,12,0,0,bf16,,,,,,1"},
		{"addmm", "[[1000], [1, 2048], [2048, 1000], [], []]", "[[1], [0, 1], [1, 2048], [], []]",
			`["float", "float", "float", "Scalar", "Scalar"]`, "1,1000,2048,1,0,1,fp32,,,,,,1"},
		{"addmm", "[[8, 1000], [8, 2048], [2048, 1000]]", "[[1000, 1], [2048, 1], [1, 2048]]", `["float", "float", "float"]`,
			"8,1000,2048,1,0,1,fp32,,,,,1,1"},
		{"_scaled_mm", "[[64, 4096], [4096, 6144], [64, 1]]", "[[4096, 1], [1, 4096], [1, 1]]",
			`["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float"]`, "64,6144,4096,1,0,1,fp8,bf16,,,,,1"},
		{"mm", "[[4, 8], [8, 16]]", "null", bf16, "error: mm has sizes without strides and types"},
		{"mm", "[[4, 8], [8, 16]]", "[[16, 2], [16, 1]]", bf16, "error: mm has a matrix of the strides [16 2]"},
		{"_grouped_mm", "[[4, 8], [2, 8, 16]]", "[[8, 1], [128, 16, 1]]", bf16, "error: products of _grouped_mm are not read"},
		{"softmax", "[[4, 8]]", "[[8, 1]]", bf16, "error: the trace has no products with sizes"},
	} {
		text := strings.NewReplacer("NAME", tc.name, "DIMS", tc.dims, "STRIDES", tc.strides, "TYPES", tc.types).Replace(trace)
		rows, err := shapes.Trace(strings.NewReader(text))
		check(t, tc.name+" "+tc.dims, rows, err, tc.want)
	}
	if _, err := shapes.Trace(strings.NewReader(trace[:200])); err == nil {
		t.Error("half a trace was read")
	}
}

// Fuzz: whatever the bytes are, a row has a cell per column or an error of kind input with advice.
func FuzzText(f *testing.F) {
	for _, tc := range published {
		f.Add(tc.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := shapes.Text(strings.NewReader(text))
		valid(t, rows, err)
	})
}

func FuzzTrace(f *testing.F) {
	f.Add(trace)
	f.Add(`[{"cat":"cpu_op","name":"aten::mm","args":{"Input Dims":[[1,2],[2]],"Input Strides":[[],[]],"Input type":["",""]}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := shapes.Trace(strings.NewReader(text))
		valid(t, rows, err)
	})
}

func valid(t *testing.T, rows []shapes.Row, err error) {
	if err != nil && rows != nil {
		t.Error("rows and an error")
	}
	for _, row := range rows {
		var d *diag.Error
		if row.Bad == nil && len(row.Cells) != len(shapes.Columns) {
			t.Errorf("%d cells", len(row.Cells))
		}
		if row.Bad != nil && (!errors.As(row.Bad, &d) || d.Kind != diag.Input || d.Fix == "") {
			t.Errorf("error %v", row.Bad)
		}
	}
}
