// Package hf reads the config.json that a model of Hugging Face has beside its weights, and says which products a
// decoder computes.
package hf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Layer is a product that a forward pass computes: C (M×N) = A (M×K) · B, with a weight stored N×K.
type Layer struct {
	Name string
	N, K int
	// Count is how many of them a pass computes, Most the most rows.
	Count, Most int
}

// mostRows is the largest M of a layer. LMHead has one row for each sequence, so its largest M is mostLogits: vLLM
// 0.33.0 runs at most 1,024 sequences at once by default (max_num_seqs), and 256 on smaller GPUs.
const mostRows, mostLogits = 8192, 1024

// LMHead is the last product, which has a row for each sequence.
const LMHead = "lm_head"

// Quantization is how the weights of a model are stored, as whoever quantized them writes it.
type Quantization struct {
	Method    string `json:"quant_method"`
	Block     []int  `json:"weight_block_size"`
	Algorithm string `json:"quant_algo"`
	Bits      any    `json:"bits"`
	Inputs    string `json:"activation_scheme"`
	Groups    map[string]struct {
		Weights struct {
			Bits     int    `json:"num_bits"`
			Type     string `json:"type"`
			Strategy string `json:"strategy"`
			Group    int    `json:"group_size"`
		} `json:"weights"`
		Inputs *struct {
			Dynamic any `json:"dynamic"`
		} `json:"input_activations"`
	} `json:"config_groups"`
}

// Config is what a config.json of Hugging Face says about the sizes of a decoder's layers.
type Config struct {
	ModelType    string        `json:"model_type"`
	Hidden       int           `json:"hidden_size"`
	Intermediate int           `json:"intermediate_size"`
	Heads        int           `json:"num_attention_heads"`
	KVHeads      int           `json:"num_key_value_heads"` // Heads without it
	HeadDim      int           `json:"head_dim"`            // Hidden ÷ Heads without it
	Vocab        int           `json:"vocab_size"`
	Layers       int           `json:"num_hidden_layers"`
	DType        string        `json:"dtype"`
	TorchDType   string        `json:"torch_dtype"` // its name until transformers 4.56
	Quantization *Quantization `json:"quantization_config"`

	// What follows is of models with experts.
	Experts       int    `json:"num_experts"` // of a layer, among which it chooses
	TopK          int    `json:"num_experts_per_tok"`
	ExpertInner   int    `json:"moe_intermediate_size"` // Intermediate without it
	ExpertHidden  int    `json:"moe_latent_size"`       // Hidden without it
	ExpertType    string `json:"expert_dtype"`          // as the others without it
	DenseFirst    int    `json:"first_k_dense_replace"` // layers without experts, by number
	DenseLayers   []int  `json:"mlp_only_layers"`
	SparseStep    int    `json:"decoder_sparse_step"`             // every such layer has experts, counted from one
	SparseEvery   int    `json:"moe_layer_freq"`                  // every such layer has experts, counted from zero
	SharedExperts int    `json:"n_shared_experts"`                // for every token
	SharedInner   int    `json:"shared_expert_intermediate_size"` // ExpertInner · SharedExperts without it

	// Latent attention goes through vectors of these ranks. Its heads have two parts for Q and K, and one for V.
	RankQ      int `json:"q_lora_rank"`
	RankKV     int `json:"kv_lora_rank"`
	HeadNoRoPE int `json:"qk_nope_head_dim"`
	HeadRoPE   int `json:"qk_rope_head_dim"`
	HeadV      int `json:"v_head_dim"`

	// An indexer chooses IndexTopK words of the context for each query.
	IndexTopK  int `json:"index_topk"`
	IndexHeads int `json:"index_n_heads"`
	IndexDim   int `json:"index_head_dim"`

	// Some layers see a window only, or have a state in place of K and V.
	Window     int      `json:"sliding_window"`
	LayerTypes []string `json:"layer_types"`
	FullEvery  int      `json:"full_attention_interval"`
	LinearKeys int      `json:"linear_num_key_heads"`
	LinearDimK int      `json:"linear_key_head_dim"`
	LinearVs   int      `json:"linear_num_value_heads"`
	LinearDimV int      `json:"linear_value_head_dim"`

	// Gateless is a feed-forward layer whose first product has no second half.
	Gateless bool `json:"-"`

	odd, oddExperts string // why the products of its layers, and of its experts, are not known
}

// compared are the model types whose products were compared with those that vLLM 0.33.0 builds: one for Q, K and V, and
// one for both halves of a gated feed-forward layer (vllm/model_executor/models). Experts run in another kernel.
var compared = []string{"deepseek_v3", "ernie4_5", "exaone4", "gemma", "gemma2", "gemma3_text", "granite", "llama",
	"mistral", "mixtral", "phi3", "qwen2", "qwen3", "qwen3_moe"}

// Compared reports whether the products of a model type were compared with a server's.
func (c *Config) Compared() bool { return slices.Contains(compared, c.ModelType) }

// Sized refuses a config without the sizes that its fields ask for, and fills in what follows from others.
func (c *Config) Sized(name string) error {
	if c.odd != "" {
		return diag.Inputf("the layers cannot be told: %s", c.odd).At("%s", name).
			Do("take `origami select -m 1,16,256 -n N -k K` for each layer")
	}
	type size struct {
		key    string
		value  *int
		absent int // what a missing value stands for, 0 if it must be there
	}
	sizes := []size{{"hidden_size", &c.Hidden, 0}, {"num_hidden_layers", &c.Layers, 0}}
	layers := c.ExpertLayers()
	if layers == 0 || layers < c.Layers {
		sizes = append(sizes, size{"intermediate_size", &c.Intermediate, 0})
	}
	sizes = append(sizes, size{"vocab_size", &c.Vocab, 0},
		size{"num_attention_heads", &c.Heads, 0},
		size{"num_key_value_heads", &c.KVHeads, c.Heads}, size{"head_dim", &c.HeadDim, c.Hidden / max(c.Heads, 1)})
	if c.Latent() {
		sizes = append(sizes, size{"kv_lora_rank", &c.RankKV, 0}, size{"qk_nope_head_dim", &c.HeadNoRoPE, 0},
			size{"qk_rope_head_dim", &c.HeadRoPE, 0}, size{"v_head_dim", &c.HeadV, 0})
	}
	if layers > 0 {
		sizes = append(sizes, size{"moe_intermediate_size", &c.ExpertInner, c.Intermediate},
			size{"num_experts_per_tok", &c.TopK, 0})
	}
	for _, one := range sizes {
		if *one.value == 0 {
			*one.value = one.absent
		}
		if *one.value < 1 || *one.value > MostSize {
			return diag.Inputf("%s is %d", one.key, *one.value).At("%s", name).
				Do("give a config.json with %s from 1 to %d", one.key, MostSize)
		}
	}
	return nil
}

// MostSize bounds the sizes of a config.json, so that products of two of them fit.
const MostSize = 1 << 24

// paddedVocab is what vLLM pads the vocabulary to a multiple of (DEFAULT_VOCAB_PADDING_SIZE).
const paddedVocab = 64

// Products returns the products of a forward pass on one of tp GPUs: heads, the inner size of the feed-forward layer
// and the vocabulary are divided among them. Heads of K and V that are fewer than the GPUs are repeated.
func (c *Config) Products(tp int) ([]Layer, error) {
	if tp < 1 {
		return nil, NotPositive(tp)
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
	heads, kv, layers := c.Heads/tp, max(1, c.KVHeads/tp), c.ExpertLayers()
	plain, values := c.Layers-layers, cmp.Or(c.HeadV, c.HeadDim) // V has heads of another size in some models
	shared := cmp.Or(c.SharedInner, c.ExpertInner*c.SharedExperts)
	if err := whole("columns of the shared experts", shared); err != nil {
		return nil, err
	}
	list := []Layer{
		{"qkv_proj", (heads+kv)*c.HeadDim + kv*values, c.Hidden, c.Full(), mostRows},
		{"o_proj", c.Hidden, heads * values, c.Full(), mostRows},
	}
	if c.Latent() {
		list = []Layer{
			{"fused_qkv_a_proj", c.RankQ + c.RankKV + c.HeadRoPE, c.Hidden, c.Layers, mostRows},
			{"q_b_proj", heads * (c.HeadNoRoPE + c.HeadRoPE), c.RankQ, c.Layers, mostRows},
			{"kv_b_proj", heads * (c.HeadNoRoPE + c.HeadV), c.RankKV, c.Layers, mostRows},
			{"o_proj", c.Hidden, heads * c.HeadV, c.Layers, mostRows},
		}
		if c.RankQ == 0 { // queries go through no vector
			list[0] = Layer{"kv_a_proj_with_mqa", c.RankKV + c.HeadRoPE, c.Hidden, c.Layers, mostRows}
			list[1] = Layer{"q_proj", heads * (c.HeadNoRoPE + c.HeadRoPE), c.Hidden, c.Layers, mostRows}
		}
	}
	if linear := c.Layers - c.Full(); linear > 0 {
		// K, Q, V and a gate, and as many columns as V out of each head. Full layers have a gate for each head too.
		list[0].N += heads * c.HeadDim
		list = append(list, Layer{"in_proj_qkvz", (2*c.LinearKeys*c.LinearDimK + 2*c.LinearVs*c.LinearDimV) / tp, c.Hidden,
			linear, mostRows}, Layer{"out_proj", c.Hidden, c.LinearVs * c.LinearDimV / tp, linear, mostRows})
	}
	up, halves := "gate_up_proj", 2
	if c.Gateless {
		up, halves = "up_proj", 1
	}
	list = append(list, Layer{up, halves * c.Intermediate / tp, c.Hidden, plain, mostRows},
		Layer{"down_proj", c.Hidden, c.Intermediate / tp, plain, mostRows})
	if shared > 0 {
		list = append(list, Layer{"shared_experts." + up, halves * shared / tp, c.Hidden, layers, mostRows},
			Layer{"shared_experts.down_proj", c.Hidden, shared / tp, layers, mostRows})
	}
	list = append(list, Layer{LMHead, vocab / tp, c.Hidden, 1, mostLogits})
	return slices.DeleteFunc(list, func(l Layer) bool { return l.Count < 1 }), nil
}

// The types of weights: fp8 with one scale, with one and a fixed one of the inputs, with one for each row of the
// weight, and with one for each block of it.
const (
	BF16       = "bf16"
	FP8        = "fp8"
	FP8Static  = "fp8_static"
	FP8Channel = "fp8_channel"
	FP8Block   = "fp8_block"
)

// Weights is the type of a model's weights: one of the above, int8, int4, mxfp4 or nvfp4, or what its
// quantization_config calls it.
func (c *Config) Weights() string {
	q := c.Quantization
	if q == nil {
		return BF16
	}
	said := strings.ToLower(fmt.Sprint(q.Method, " ", q.Algorithm, " ", q.Bits))
	kind := FP8
	if len(q.Block) > 0 {
		kind = FP8Block
	} else if q.Inputs == "static" || q.Algorithm != "" {
		kind = FP8Static
	} else if q.Method == "fbgemm_fp8" {
		kind = FP8Channel
	}
	for _, key := range slices.Sorted(maps.Keys(q.Groups)) {
		g := q.Groups[key]
		if said += fmt.Sprintf(" %s%d", g.Weights.Type, g.Weights.Bits); g.Weights.Type == "float" && g.Weights.Bits == 4 {
			said += map[int]string{16: " nvfp4", 32: " mxfp4"}[g.Weights.Group]
		}
		switch {
		case g.Weights.Strategy == "block":
			kind = FP8Block
		case g.Weights.Strategy == "channel" || g.Inputs != nil && g.Inputs.Dynamic == true:
			kind = FP8Channel
		case g.Inputs != nil:
			kind = FP8Static
		}
	}
	for _, one := range []struct{ parts, kind string }{{"mxfp4", "mxfp4"}, {"nvfp4 float4", "nvfp4"},
		{"int4 awq 4", "int4"}, {"int8 8", "int8"}, {"fp8 float8", kind}} {
		for _, part := range strings.Fields(one.parts) {
			if slices.ContainsFunc(strings.Fields(said), func(word string) bool {
				return word == part || len(part) > 1 && strings.Contains(word, part)
			}) {
				return one.kind
			}
		}
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(said), "<nil>"))
}

// ExpertWeights is the type of the experts' weights.
func (c *Config) ExpertWeights() string {
	if c.ExpertType == "fp4" {
		return "mxfp4"
	}
	return c.Weights()
}

// Latent reports whether K and V of a word are one latent vector.
func (c *Config) Latent() bool { return c.RankKV > 0 }

// Routed is how many experts a layer chooses from.
func (c *Config) Routed() int { return c.Experts }

// OddExperts says why the products of a model's experts are not known, empty if they are.
func (c *Config) OddExperts() string { return c.oddExperts }

// ExpertLayers is how many layers have experts.
func (c *Config) ExpertLayers() (layers int) {
	for i := range c.Layers {
		if c.Routed() > 0 && i >= c.DenseFirst && i%max(c.SparseEvery, 1) == 0 && (i+1)%max(c.SparseStep, 1) == 0 &&
			!slices.Contains(c.DenseLayers, i) {
			layers++
		}
	}
	return layers
}

// Full is how many layers have K and V for each word, or a latent vector.
func (c *Config) Full() int {
	switch {
	case c.LinearVs == 0:
		return c.Layers
	case len(c.LayerTypes) > 0:
		return min(c.Layers, c.count("full_attention"))
	}
	return c.Layers / cmp.Or(c.FullEvery, 4) // as the classes with linear attention have it
}

// Windowed is how many layers see the last Window words only.
func (c *Config) Windowed() int {
	if c.ModelType == "mistral" && c.Window > 0 && len(c.LayerTypes) == 0 {
		return c.Layers
	}
	return min(c.Full(), c.count("sliding_attention"))
}

func (c *Config) count(layer string) (n int) {
	for _, one := range c.LayerTypes {
		if one == layer {
			n++
		}
	}
	return n
}

// Label names the model in a file name.
func (c *Config) Label(tp int) string {
	return fmt.Sprintf("%s-%dx%d-tp%d", c.ModelType, c.Layers, c.Hidden, tp)
}

// NotPositive refuses a --tp.
func NotPositive(tp int) error {
	return diag.Inputf("--tp %d is not positive", tp).Do("give a whole number of at least 1")
}
