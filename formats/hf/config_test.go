package hf

import (
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"testing"
)

// The layers are those that vLLM's tables name: Qwen3-1.7B on one GPU, and on 2, 4 and 8
// (vLLM 0.33.0, batch_invariant_configs.py). Heads of K and V that are fewer than the GPUs are repeated.
func TestLayers(t *testing.T) {
	t.Parallel()
	const qwen = `{"model_type":"qwen3","hidden_size":2048,"intermediate_size":6144,"num_attention_heads":16,
		"num_key_value_heads":8,"head_dim":128,"num_hidden_layers":28,"vocab_size":151936,"torch_dtype":"bfloat16"}`
	for _, c := range []struct {
		name, config string
		tp           int
		want         string
	}{
		{"qwen3", qwen, 1, "4096x2048 2048x2048 12288x2048 2048x6144 151936x2048"},
		{"qwen3", qwen, 2, "2048x2048 2048x1024 6144x2048 2048x3072 75968x2048"},
		{"qwen3", qwen, 4, "1024x2048 2048x512 3072x2048 2048x1536 37984x2048"},
		{"qwen3", qwen, 8, "512x2048 2048x256 1536x2048 2048x768 18992x2048"},
		{"repeated", strings.Replace(qwen, `_value_heads":8`, `_value_heads":2`, 1), 8,
			"512x2048 2048x256 1536x2048 2048x768 18992x2048"},
		{"padded", strings.Replace(qwen, "151936", "151900", 1), 1, "4096x2048 2048x2048 12288x2048 2048x6144 151936x2048"},
		{"experts", strings.Replace(qwen, `"qwen3"`, `"qwen3_moe"`, 1), 1, "4096x2048 2048x2048 151936x2048"},
		{"sees", `{"model_type":"gemma3","text_config":` + strings.Replace(qwen, `"qwen3"`, `"gemma3_text"`, 1) + `}`, 1,
			"4096x2048 2048x2048 12288x2048 2048x6144 151936x2048"},
		{"llama", `{"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,
			"num_hidden_layers":32,"vocab_size":32000}`, 1, "12288x4096 4096x4096 22016x4096 4096x11008 32000x4096"},
	} {
		m, err := Decode("config.json", []byte(c.config))
		if err == nil {
			err = m.Sized("config.json")
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		list, err := m.Products(c.tp)
		must.Do(t, err)
		var got []string
		for _, l := range list {
			got = append(got, fmt.Sprintf("%dx%d", l.N, l.K))
		}
		must.Alike(t, got, strings.Fields(c.want), c.name, c.tp, c.want)
	}
}

// A config.json that says two things, or that no model can have, is refused.
func TestConfigsOfNoModel(t *testing.T) {
	t.Parallel()
	const latent = `{"model_type":"deepseek_v3","hidden_size":7168,"intermediate_size":18432,"vocab_size":129280,
		"num_attention_heads":128,"num_hidden_layers":61,"n_routed_experts":256,"num_experts_per_tok":8,
		"moe_intermediate_size":2048,"first_k_dense_replace":3,"n_shared_experts":1,"q_lora_rank":1536,"kv_lora_rank":512,
		"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128}`
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{`"hidden_size":7168`, `"hidden_size":1,"hidden_size":7168`, `"hidden_size" is there twice`},
		{`replace":3`, `replace":-1`, "first_k_dense_replace is -1"},
		{`replace":3`, `replace":62`, "first_k_dense_replace is 62"},
		{`{"model_type"`, `{"decoder_sparse_step":-2,"model_type"`, "decoder_sparse_step is -2"},
		{`{"model_type"`, `{"moe_layer_freq":-2,"model_type"`, "moe_layer_freq is -2"},
		{`n_routed_experts":256`, `n_routed_experts":-256`, "n_routed_experts is -256"},
	} {
		m, err := Decode("config.json", []byte(strings.Replace(latent, c.from, c.to, 1)))
		if err == nil {
			err = m.Sized("config.json")
		}
		must.That(t, (c.want != "" || err == nil) && (c.want == "" || err != nil && strings.Contains(err.Error(), c.want)),
			"%s: %v, want %q", c.to, err, c.want)
	}
}
