package serving_test

import (
	"testing"

	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/serving"
)

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
