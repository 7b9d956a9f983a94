package tablecmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/strictjson"
)

// layer is a product that a forward pass computes: C (M×N) = A (M×K) · B, with a weight stored N×K.
type layer struct {
	name string
	n, k int
	// count is how many of them a pass computes, most the most rows.
	count, most int
}

// mostRows is the largest M of a layer. lm_head has one row for each sequence, so its largest M is mostLogits: vLLM
// 0.33.0 runs at most 1,024 sequences at once by default (max_num_seqs), and 256 on smaller GPUs.
const mostRows, mostLogits = 8192, 1024

// modelConfig is what a config.json of Hugging Face says about the sizes of a decoder's layers.
type modelConfig struct {
	ModelType    string `json:"model_type"`
	Hidden       int    `json:"hidden_size"`
	Intermediate int    `json:"intermediate_size"`
	Heads        int    `json:"num_attention_heads"`
	KVHeads      int    `json:"num_key_value_heads"` // Heads without it
	HeadDim      int    `json:"head_dim"`            // Hidden ÷ Heads without it
	Vocab        int    `json:"vocab_size"`
	Layers       int    `json:"num_hidden_layers"`
	DType        string `json:"dtype"`
	TorchDType   string `json:"torch_dtype"` // its name until transformers 4.56
	Quantization *struct {
		Method string `json:"quant_method"`
		Block  []int  `json:"weight_block_size"`
	} `json:"quantization_config"`
	// Text is the language model of a model that also sees or hears.
	Text json.RawMessage `json:"text_config"`

	// What follows is of models with experts. The names of the number of experts differ.
	LocalExperts  int   `json:"num_local_experts"`
	Experts       int   `json:"num_experts"`
	RoutedExperts int   `json:"n_routed_experts"`
	TopK          int   `json:"num_experts_per_tok"`
	ExpertInner   int   `json:"moe_intermediate_size"` // Intermediate without it
	DenseFirst    int   `json:"first_k_dense_replace"` // layers without experts, by number
	DenseLayers   []int `json:"mlp_only_layers"`
	SparseStep    int   `json:"decoder_sparse_step"` // every such layer has experts, counted from one
	SparseEvery   int   `json:"moe_layer_freq"`      // every such layer has experts, counted from zero
	SharedExperts int   `json:"n_shared_experts"`    // for every token

	// Latent attention goes through vectors of these ranks. Its heads have two parts for Q and K, and one for V.
	RankQ      int `json:"q_lora_rank"`
	RankKV     int `json:"kv_lora_rank"`
	HeadNoRoPE int `json:"qk_nope_head_dim"`
	HeadRoPE   int `json:"qk_rope_head_dim"`
	HeadV      int `json:"v_head_dim"`
}

// dense, sparse and latent are the model types for which modelConfig.layers is right. vLLM 0.33.0 builds them with a
// product for Q, K and V, and one for both halves of a gated feed-forward layer (vllm/model_executor/models). Experts
// run in another kernel.
var (
	dense = []string{"ernie4_5", "exaone4", "gemma", "gemma2", "gemma3_text", "granite", "llama", "mistral", "phi3",
		"qwen2", "qwen3"}
	sparse = []string{"mixtral", "qwen3_moe"}
	latent = []string{"deepseek_v3"}
)

// decode reads a config.json.
func decode(name string, text []byte) (*modelConfig, error) {
	var c modelConfig
	read := func(text []byte) error {
		if err := strictjson.Foreign(text, &c); err != nil {
			return diag.Inputf("it is no config.json of a model: %v", err).At("%s", name).
				Do("give the config.json that a model of Hugging Face has beside its weights")
		}
		return nil
	}
	if err := read(text); err != nil {
		return nil, err
	}
	if len(c.Text) > 0 {
		if err := read(c.Text); err != nil {
			return nil, err
		}
	}
	return &c, c.checkCounts(name)
}

// checkCounts refuses counts of layers and experts that no model has. What is not there is 0.
func (c *modelConfig) checkCounts(name string) error {
	for _, one := range []struct {
		key   string
		value *int
		most  int
	}{
		{"first_k_dense_replace", &c.DenseFirst, cmp.Or(c.Layers, mostSize)},
		{"decoder_sparse_step", &c.SparseStep, mostSize},
		{"moe_layer_freq", &c.SparseEvery, mostSize}, {"n_shared_experts", &c.SharedExperts, mostSize},
		{"num_local_experts", &c.LocalExperts, mostSize}, {"num_experts", &c.Experts, mostSize},
		{"n_routed_experts", &c.RoutedExperts, mostSize},
	} {
		if *one.value < 0 || *one.value > one.most {
			return diag.Inputf("%s is %d", one.key, *one.value).At("%s", name).
				Do("give a config.json with %s from 0 to %d, or without it", one.key, one.most)
		}
	}
	return nil
}

// complete fills in what a config.json leaves out, and refuses one whose layers are not known.
func (c *modelConfig) complete(name string) error {
	if known := slices.Concat(dense, sparse, latent); !slices.Contains(known, c.ModelType) {
		slices.Sort(known)
		return diag.Inputf("the layers of the model_type %q are not known", c.ModelType).At("%s", name).
			Do("use one of %s; or take `origami select -m 1,16,256 -n N -k K --same block_k` for each layer",
				strings.Join(known, ", "))
	}
	type size struct {
		key    string
		value  *int
		absent int // what a missing value stands for, 0 if it must be there
	}
	sizes := []size{
		{"hidden_size", &c.Hidden, 0}, {"intermediate_size", &c.Intermediate, 0}, {"vocab_size", &c.Vocab, 0},
		{"num_attention_heads", &c.Heads, 0}, {"num_hidden_layers", &c.Layers, 0},
		{"num_key_value_heads", &c.KVHeads, c.Heads}, {"head_dim", &c.HeadDim, c.Hidden / max(c.Heads, 1)},
	}
	if slices.Contains(latent, c.ModelType) {
		sizes = append(sizes, size{"q_lora_rank", &c.RankQ, 0}, size{"kv_lora_rank", &c.RankKV, 0},
			size{"qk_nope_head_dim", &c.HeadNoRoPE, 0}, size{"qk_rope_head_dim", &c.HeadRoPE, 0},
			size{"v_head_dim", &c.HeadV, 0}, size{"moe_intermediate_size", &c.ExpertInner, 0},
			size{"n_shared_experts", &c.SharedExperts, 0})
	}
	for _, one := range sizes {
		if *one.value == 0 {
			*one.value = one.absent
		}
		if *one.value < 1 || *one.value > mostSize {
			return diag.Inputf("%s is %d", one.key, *one.value).At("%s", name).
				Do("give a config.json with %s from 1 to %d", one.key, mostSize)
		}
	}
	return nil
}

// mostSize bounds the sizes of a config.json, so that products of two of them fit.
const mostSize = 1 << 24

// paddedVocab is what vLLM pads the vocabulary to a multiple of (DEFAULT_VOCAB_PADDING_SIZE).
const paddedVocab = 64

// layers returns the products of a forward pass on one of tp GPUs: heads, the inner size of the feed-forward layer and
// the vocabulary are divided among them. Heads of K and V that are fewer than the GPUs are repeated.
func (c *modelConfig) layers(tp int) ([]layer, error) {
	if tp < 1 {
		return nil, notPositive(tp)
	}
	whole := func(what string, size int) error {
		if size%tp == 0 {
			return nil
		}
		return diag.Inputf("%d GPUs do not divide the %d %s", tp, size, what).At("--tp").
			Do("give a number that divides them, as vLLM asks for")
	}
	vocab := (c.Vocab + paddedVocab - 1) / paddedVocab * paddedVocab
	err := whole("heads", c.Heads)
	if err == nil && tp%c.KVHeads != 0 {
		err = whole("heads of K and V", c.KVHeads)
	}
	if err == nil {
		err = whole("columns of the feed-forward layer", c.Intermediate)
	}
	if err == nil {
		err = whole("words of the vocabulary", vocab)
	}
	if err != nil {
		return nil, err
	}
	heads, kv := c.Heads/tp, max(1, c.KVHeads/tp)
	if slices.Contains(latent, c.ModelType) {
		shared := c.ExpertInner * c.SharedExperts
		if err := whole("columns of the shared experts", shared); err != nil {
			return nil, err
		}
		sparse := c.Layers - c.DenseFirst
		list := []layer{
			{"fused_qkv_a_proj", c.RankQ + c.RankKV + c.HeadRoPE, c.Hidden, c.Layers, mostRows},
			{"q_b_proj", heads * (c.HeadNoRoPE + c.HeadRoPE), c.RankQ, c.Layers, mostRows},
			{"kv_b_proj", heads * (c.HeadNoRoPE + c.HeadV), c.RankKV, c.Layers, mostRows},
			{"o_proj", c.Hidden, heads * c.HeadV, c.Layers, mostRows},
			{"gate_up_proj", 2 * c.Intermediate / tp, c.Hidden, c.DenseFirst, mostRows},
			{"down_proj", c.Hidden, c.Intermediate / tp, c.DenseFirst, mostRows},
			{"shared_experts.gate_up_proj", 2 * shared / tp, c.Hidden, sparse, mostRows},
			{"shared_experts.down_proj", c.Hidden, shared / tp, sparse, mostRows},
			{"lm_head", vocab / tp, c.Hidden, 1, mostLogits},
		}
		return slices.DeleteFunc(list, func(l layer) bool { return l.count < 1 }), nil
	}
	list := []layer{
		{"qkv_proj", (heads + 2*kv) * c.HeadDim, c.Hidden, c.Layers, mostRows},
		{"o_proj", c.Hidden, heads * c.HeadDim, c.Layers, mostRows},
	}
	if slices.Contains(dense, c.ModelType) {
		list = append(list, layer{"gate_up_proj", 2 * c.Intermediate / tp, c.Hidden, c.Layers, mostRows},
			layer{"down_proj", c.Hidden, c.Intermediate / tp, c.Layers, mostRows})
	}
	return append(list, layer{"lm_head", vocab / tp, c.Hidden, 1, mostLogits}), nil
}

// label names the model in a file name.
func (c *modelConfig) label(tp int) string {
	return fmt.Sprintf("%s-%dx%d-tp%d", c.ModelType, c.Layers, c.Hidden, tp)
}
