package hf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// Sizes have other names in other models, are inside of the language model, are lists, or are left out.
func TestFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, want string }{
		// Gemma 3's file leaves out what its class says: 8 heads of 256, 4 of K and V, and the vocabulary.
		{`{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,
			"num_hidden_layers":34}}`, "4096x2560 2560x2048 20480x2560 2560x10240 262208x2560"},
		{`{"model_type":"hunyuan_v1_moe","hidden_size":4096,"intermediate_size":3072,
			"moe_intermediate_size":[3072,3072,3072,3072],"moe_topk":[8,8,8,8],"num_experts":64,"num_hidden_layers":4,
			"num_attention_heads":32}`, "4 of 64x3072, 8 for a token"},
		{`{"model_type":"internvl_chat","llm_config":{"model_type":"qwen3_moe","hidden_size":2048,"num_experts":128,
			"moe_intermediate_size":768,"num_experts_per_tok":8,"num_hidden_layers":48}}`, "48 of 128x768, 8 for a token"},
		{`{"model_type":"qwen3_omni_moe","thinker_config":{"text_config":{"model_type":"qwen3_omni_moe_text",
			"num_hidden_layers":4}}}`, "4 of 128x768, 8 for a token"},
		{`{"model_type":"dbrx","d_model":6144,"n_layers":40,"n_heads":48,"vocab_size":100352,
			"ffn_config":{"ffn_hidden_size":10752,"moe_num_experts":16,"moe_top_k":4},"attn_config":{"kv_n_heads":8}}`,
			"40 of 16x10752, 4 for a token"},
		// Every other layer of Llama 4 Maverick has experts, and a shared one.
		{`{"model_type":"llama4","text_config":{"model_type":"llama4_text","num_local_experts":128,
			"interleave_moe_layer_step":2}}`, "24 of 128x8192, 1 for a token; 7168x5120 5120x5120 32768x5120 5120x16384 " +
			"16384x5120 5120x8192 202048x5120"},
		{`{"model_type":"nemotron_h","hidden_size":2688,"hybrid_override_pattern":"MEM*EM","num_hidden_layers":6,
			"mlp_hidden_act":"relu2","n_routed_experts":128,"num_experts_per_tok":6,"moe_intermediate_size":1856}`,
			"2 of 128x1856, 6 for a token, no gate; the layers cannot be told: some are state-space models, " +
				"as mamba_num_heads says"},
		{`{"model_type":"mimo","num_hidden_layers":4,"moe_layer_freq":[0,1,1,1],"n_routed_experts":8,"moe_topk":2,
			"moe_intermediate_size":64}`, "3 of 8x64, 2 for a token"},
		{`{"model_type":"step3","num_hidden_layers":8,"moe_layers_enum":"4,5,6","moe_num_experts":48,"moe_top_k":3,
			"moe_intermediate_size":64}`, "3 of 48x64, 3 for a token"},
		{`{"model_type":"jamba","num_hidden_layers":8,"hidden_size":64,"intermediate_size":128}`,
			"4 of 16x128, 2 for a token"},
		{`{"model_type":"lfm2_moe","num_hidden_layers":6}`, "4 of 32x1792, 4 for a token"},
		{`{"model_type":"x","num_hidden_layers":2,"num_experts":[8,16],"num_experts_per_tok":2,"intermediate_size":64}`,
			"num_experts differs from layer to layer"},
		{`{"model_type":"starcoder2","hidden_size":3072,"intermediate_size":12288,"num_hidden_layers":30,
			"num_attention_heads":24,"num_key_value_heads":2,"vocab_size":49152}`,
			"3584x3072 3072x3072 12288x3072 3072x12288 49152x3072"},
		{`{"model_type":"deepseek_v2","num_hidden_layers":2,"q_lora_rank":null,"n_routed_experts":0}`,
			"576x4096 6144x4096 8192x512 4096x4096 22016x4096 4096x11008 102400x4096"},
		{`{"hidden_size":"big"}`, `hidden_size is "big"`},
		{`[]`, "it is no config.json of a model"},
	} {
		m, err := Decode("config.json", []byte(c.config))
		if err != nil {
			must.That(t, strings.HasPrefix(err.Error(), "config.json: "+c.want), "%s: %v", c.config, err)
			continue
		}
		got := m.OddExperts()
		if n := m.ExpertLayers(); n > 0 {
			inner := m.ExpertInner
			if inner == 0 {
				inner = m.Intermediate
			}
			got = fmt.Sprintf("%d of %dx%d, %d for a token", n, m.Routed(), inner, m.TopK)
			if m.Gateless {
				got += ", no gate"
			}
		}
		if strings.Contains(c.want, "; ") || got == "" {
			if err := m.Sized("config.json"); err != nil {
				what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "config.json: "), ";")
				got += "; " + what
			} else {
				list, err := m.Products(1)
				must.Do(t, err)
				got += ";"
				for _, l := range list {
					got += fmt.Sprintf(" %dx%d", l.N, l.K)
				}
			}
		}
		must.Equal(t, strings.TrimPrefix(got, "; "), c.want, c.config)
	}
}

// The type of weights is told by whoever quantized them.
func TestWeights(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`null`: BF16,
		`{"quant_method":"fp8","weight_block_size":[128,128],"activation_scheme":"dynamic"}`: FP8Block,
		`{"quant_method":"fp8","activation_scheme":"dynamic"}`:                               FP8,
		`{"quant_method":"fp8","activation_scheme":"static"}`:                                FP8Static,
		`{"quant_method":"modelopt","quant_algo":"FP8"}`:                                     FP8Static,
		`{"quant_method":"modelopt","quant_algo":"NVFP4"}`:                                   "nvfp4",
		`{"quant_method":"mxfp4"}`:                                                           "mxfp4",
		`{"quant_method":"awq","bits":4}`:                                                    "int4",
		`{"quant_method":"gptq","bits":8}`:                                                   "int8",
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int",
			"strategy":"group","group_size":32}}}}`: "int4",
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float",
			"strategy":"channel"},"input_activations":{"dynamic":true}}}}`: FP8Channel,
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float",
			"strategy":"tensor_group","group_size":16}}}}`: "nvfp4",
		`{"quant_method":"bitsandbytes"}`: "bitsandbytes",
	} {
		m := must.Get(Decode("config.json", []byte(`{"model_type":"llama","quantization_config":`+config+`}`)))(t)
		must.Equal(t, m.Weights(), want, config)
	}
}
