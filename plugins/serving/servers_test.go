package serving_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/serving"
)

// A wheel with as much of SGLang as servers.py reads.
var wheel = map[string]string{
	"sglang/srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_config.py": `
def get_config_file_name(E, N, dtype, block_shape=None):
    name = f"E={E},N={N},device_name={get_device_name().replace(' ', '_')}"
    name += (f",dtype={dtype}" if dtype else "") + (f",block_shape={block_shape}" if block_shape else "")
    return name + ".json"

def get_default_config(M, E, N, K, topk, dtype, is_marlin, block_shape=None):
    def kernel(m, n, k, group, **more):
        return {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": group, **more}
    if dtype is None:
        return kernel(16, 32, 64, 1) if M <= E else kernel(64, 64, 32, 8)
    if block_shape:
        return kernel(64, 128, 128, 32, num_warps=4, num_stages=3)
    if _use_low_smem_fp8_default():
        return kernel(32, 64, 256, 1, num_warps=4, num_stages=4) if M <= E else \
            kernel(64, 128, 256, 64, num_warps=4, num_stages=2)
    return kernel(64, 128, 128, 1, num_warps=4, num_stages=4) if M <= E else \
        kernel(128, 256, 128, 32, num_warps=8, num_stages=4)
`,
	"sglang/kernels/ops/moe/fused_moe_triton_kernels.py": "def fused_moe_kernel(a):\n    return a  # a comment\n",
	"sglang/kernels/ops/gemm/fp8_kernel.py": `
def w8a8_block_fp8_matmul_triton(block_size):
    config = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": block_size[0], "BLOCK_SIZE_K": block_size[1], "GROUP_SIZE_M": 32,
              "num_warps": 4, "num_stages": 3}
`,
	"sglang/srt/layers/moe/moe_runner/triton_utils/configs/triton_3_8_0/E=8,N=64.json": `{"1": {"BLOCK_SIZE_M": 16}}`,
}

// servers.py says nothing of a server that is as recorded, comments and spaces apart, and names each change.
func TestServersChange(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	folder := t.TempDir()
	for _, name := range []string{"servers.py", "defaults.json"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), must.Get(os.ReadFile(name))(t), 0o644))
	}
	run := func(version string, edit func(string) string, more ...string) (string, int) {
		name := filepath.Join(folder, "sglang-"+version+"-py3-none-any.whl")
		file := must.Get(os.Create(name))(t)
		z := zip.NewWriter(file)
		for path, text := range wheel {
			must.Get(must.Get(z.Create(path))(t).Write([]byte(edit(text))))(t)
		}
		must.Do(t, z.Close())
		must.Do(t, file.Close())
		cmd := exec.Command(python, append([]string{filepath.Join(folder, "servers.py"), name}, more...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	run("1.0", func(text string) string { return text }, "--record")
	same := func(text string) string { return strings.ReplaceAll(text, "# a comment", "#  another") }
	if out, code := run("1.1", same); code != 0 || out != "sglang 1.1: as recorded of 1.0\n" {
		t.Errorf("%d: %s", code, out)
	}
	changed := strings.NewReplacer("return a ", "return a + 1 ", "device_name=", "device=",
		"kernel(16, 32", "kernel(32, 32", `{"BLOCK_SIZE_M": 16}`, `{"BLOCK_SIZE_M": 16, "USE_TMA": true}`)
	out, code := run("1.2", changed.Replace)
	for _, want := range []string{
		"sglang 1.2: changed since 1.0\n", "ops/moe/fused_moe_triton_kernels.py: fused_moe_kernel is another one\n",
		"the name of a table, NVIDIA H200: 8 7168 None None: E=8,N=7168,device=NVIDIA_H200.json, and ",
		"tables have the key USE_TMA\n",
		"the default of experts in bf16, 8 tokens, 8 experts: [32, 32, 64, 1, 4, 3], and [16, 32, 64, 1, 4, 3] was ",
	} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("%d: %q is not in\n%s", code, want, out)
		}
	}
	if out, code = run("1.3", func(text string) string {
		return strings.ReplaceAll(text, "def get_default_config", "def other")
	}); code != 1 || !strings.Contains(out, "its rules cannot be run as those of 1.0: ") {
		t.Errorf("%d: %s", code, out)
	}
}

// The kernels without a table that servers take on a device with much shared memory, and with little.
func TestDefault(t *testing.T) {
	t.Parallel()
	device := func(bytes float64) *arch.Description {
		return &arch.Description{Params: []hw.Param{{Name: "shared_memory_bytes", Number: hw.Number{Value: bytes}}}}
	}
	experts := func(server string, dtype gemm.DType, blocks bool) *serving.Kernel {
		return &serving.Kernel{Server: server, Experts: 128, DType: dtype, Blocks: blocks}
	}
	for _, c := range []struct {
		of     *serving.Kernel
		shared float64
		tokens int
		want   string
	}{
		{experts("", gemm.FP8, true), 232448, 4, "16x64x128 w4 s4 g1"},
		{experts("", gemm.FP8, true), 232448, 8, "16x64x128 w4 s3 g1"},
		{experts("", gemm.FP8, true), 232448, 17, "16x128x128 w4 s3 g32"},
		{experts("", gemm.BF16, false), 232448, 32768, "128x128x64 w8 s3 g16"},
		{experts("sglang", gemm.FP8, false), 232448, 64, "64x128x128 w4 s4 g1"},
		{experts("sglang", gemm.FP8, false), 101376, 64, "32x64x256 w4 s4 g1"},
		{experts("sglang", gemm.BF16, false), 101376, 129, "64x64x32 w4 s3 g8"},
		{&serving.Kernel{DType: gemm.FP8, Blocks: true}, 232448, 1, "64x128x128 w4 s2 g32"},
		{&serving.Kernel{Server: "sglang", DType: gemm.FP8, Blocks: true}, 232448, 1, "64x128x128 w4 s3 g32"},
	} {
		if got := c.of.Default(device(c.shared), c.tokens); got.String() != c.want {
			t.Errorf("%+v, %d tokens: %s, want %s", c.of, c.tokens, &got, c.want)
		}
	}
}

// What vLLM 0.33.0 and SGLang 0.5.23 run by default, as the order of their backends says.
func TestBackends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, layer, weights, arch string
		ep                           int
		runs, reads                  string
	}{
		{"vllm", "experts", "bf16", "sm90", 1, "Triton", "yes"},
		{"vllm", "experts", "bf16", "sm100", 1, "FlashInfer TRTLLM", "no"},
		{"vllm", "experts", "bf16", "gfx942", 1, "Triton", "yes"},
		{"vllm", "experts", "fp8_block", "sm90", 1, "Triton", "yes"},
		{"vllm", "experts", "fp8_block", "sm90", 8, "FlashInfer CUTLASS", "no"},
		{"vllm", "experts", "fp8_static", "sm90", 1, "FlashInfer CUTLASS", "no"},
		{"vllm", "experts", "fp8", "sm89", 1, "Triton", "yes"},
		{"vllm", "experts", "fp8", "sm80", 1, "Marlin", "no"},
		{"vllm", "experts", "int4", "sm90", 1, "Humming", "no"},
		{"vllm", "linear", "fp8_block", "sm90", 1, "DeepGEMM", "no"},
		{"vllm", "linear", "fp8_block", "sm89", 1, "Marlin", "no"},
		{"sglang", "linear", "fp8_block", "sm89", 1, "Triton", "yes"},
		{"sglang", "experts", "fp8_block", "sm90", 8, "Triton", "yes"},
		{"sglang", "linear", "fp8", "sm90", 1, "CUTLASS, FlashInfer, Marlin or others", "no"},
		{"else", "linear", "fp8", "sm90", 1, "a kernel that is not known", "no"},
	} {
		b := serving.BackendOf(c.server, c.layer == "experts", c.weights, c.arch, c.ep)
		must.Equal(t, b.Runs+" "+b.Reads, c.runs+" "+c.reads, c)
	}
	must.Equal(t, serving.BackendOf("vllm", true, "bf16", "sm90", 1).Version, "0.33.0")
}

// Tables that servers ship are found by their names, and SGLang counts a shared expert among the others.
func TestShipped(t *testing.T) {
	t.Parallel()
	table := serving.Shipped("vllm", "E=8,N=7168,device_name=NVIDIA_H200.json")
	must.That(t, len(table) > 10 && table[1].BlockM > 0, "%d rows", len(table))
	must.That(t, len(serving.Shipped("sglang",
		"E=257,N=256,device_name=NVIDIA_H20,dtype=fp8_w8a8,block_shape=[128, 128].json")) > 0,
		"SGLang's table for DeepSeek-V3 is missing")
	must.That(t, serving.Shipped("vllm", "E=9,N=1,device_name=X.json")[1].BlockM == 0, "there is a table of no model")
	for _, c := range []struct {
		server, model string
		experts, ep   int
		want          int
	}{{"sglang", "deepseek_v3", 256, 1, 1}, {"sglang", "deepseek_v3", 256, 8, 0}, {"sglang", "deepseek_v3", 384, 1, 0},
		{"sglang", "glm4_moe", 128, 1, 1}, {"vllm", "deepseek_v3", 256, 1, 0}, {"sglang", "qwen3_moe", 128, 1, 0}} {
		model := &hf.Config{ModelType: c.model, Experts: c.experts, SharedExperts: 1}
		must.Equal(t, serving.Fused(c.server, model, c.ep), c.want, c)
	}
}
