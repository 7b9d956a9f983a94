package hf

import (
	"bytes"
	"cmp"
	_ "embed" // what classes say
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/strictjson"
)

// classes.json has the sizes that a config.json may leave out: the defaults of its class in transformers 5.24.0
// (classes.py).
// gateless marks classes whose feed-forward layer has no gate.
//
//go:embed classes.json
var classFile []byte

var classes = sync.OnceValue(func() (m map[string]map[string]json.RawMessage) {
	if err := json.Unmarshal(classFile, &m); err != nil {
		panic(err) // every test reads it
	}
	return m
})

// names are sizes by the name in Config, and by the other names that config.json files have for them. A value for each
// layer stands for one if all are equal.
var names = func() (list [][]string) {
	for _, line := range strings.Split(`hidden_size d_model n_embd
intermediate_size ffn_dim ffn_hidden_size n_inner
num_attention_heads n_heads n_head
num_key_value_heads num_kv_heads kv_n_heads num_attention_groups multi_query_group_num
head_dim attention_head_dim
vocab_size padded_vocab_size
num_hidden_layers n_layers n_layer num_layers
num_experts n_routed_experts moe_num_experts num_local_experts
num_experts_per_tok num_experts_per_token moe_topk moe_top_k moe_k top_k_experts
moe_intermediate_size expert_ffn_hidden_size moe_ffn_hidden_size
first_k_dense_replace num_dense_layers moe_layer_start_index
decoder_sparse_step interleave_moe_layer_step moe_layer_interval moe_layer_frequency
n_shared_experts num_shared_experts moe_num_shared_experts num_shared_expert
shared_expert_intermediate_size moe_shared_expert_intermediate_size share_expert_dim shared_intermediate_size`, "\n") {
		list = append(list, strings.Fields(line))
	}
	return slices.AppendSeq(list, slices.Chunk(strings.Fields(`moe_latent_size moe_layer_freq q_lora_rank kv_lora_rank
		qk_nope_head_dim qk_rope_head_dim v_head_dim index_topk index_n_heads index_head_dim sliding_window
		full_attention_interval linear_num_key_heads linear_key_head_dim linear_num_value_heads linear_value_head_dim`), 1))
}()

// inner are the objects that have the language model of a model that also sees or hears, and parts of its layers.
var inner = strings.Fields("thinker_config text_config llm_config language_config ffn_config attn_config")

// unlike are fields of layers whose products no field tells, if they are not empty, behind what they say.
var unlike = map[string]string{
	"some are state-space models": "mamba_n_heads mamba_num_heads mamba_d_state mamba_d_ssm ssm_state_size state_size " +
		"hybrid_override_pattern",
	"some are convolutions": "conv_L_cache",
	"some have another attention": "linear_attn_config linear_attn_alpha_factor linear_num_heads layer_group_size " +
		"share_q_dim o_lora_rank cross_attention_layers",
	"some have other heads": "global_head_dim swa_num_attention_heads attention_other_setting " +
		"num_sliding_attention_heads",
	"each has sizes of its own":    "altup_num_inputs block_configs",
	"some experts compute nothing": "zero_expert_num",
}

// fields are what a config.json says.
type fields map[string]json.RawMessage

// empty reports whether a value is missing, or as good as missing.
func (f fields) empty(name string) bool {
	return slices.Contains([]string{"", "null", "0", "false", "[]", "{}", `""`}, string(f[name]))
}

// text is a field that is a text, empty for others.
func (f fields) text(name string) (s string) {
	_ = json.Unmarshal(f[name], &s)
	return s
}

// add reads an object into f, and the objects of the language model that it has inside, which say more than it does.
func (f fields) add(name string, text []byte) error {
	var object fields
	if err := strictjson.Foreign(text, &object); err != nil {
		return diag.Inputf("it is no config.json of a model: %v", err).At("%s", name).
			Do("give the config.json that a model of Hugging Face has beside its weights")
	}
	for key, value := range object {
		f[key] = bytes.TrimSpace(value)
	}
	for _, key := range inner {
		if value := bytes.TrimSpace(object[key]); len(value) > 0 && value[0] == '{' {
			if err := f.add(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// size returns a size. differs says that it is a list of several.
func (f fields) size(name, field string) (v int, differs bool, err error) {
	value := f[field]
	var list []json.RawMessage
	if _ = json.Unmarshal(value, &list); len(list) > 0 {
		value = list[0]
		differs = slices.ContainsFunc(list, func(one json.RawMessage) bool { return !bytes.Equal(one, value) })
	}
	if f.empty(field) || string(value) == "null" || differs {
		return 0, differs, nil
	}
	if v, err = strconv.Atoi(string(value)); err != nil || v < 0 || v > MostSize {
		return 0, false, diag.Inputf("%s is %.20s", field, value).At("%s", name).
			Do("give a config.json with %s from 0 to %d, or without it", field, MostSize)
	}
	return v, false, nil
}

// endless are numbers that Python writes and JSON does not have. No size is one.
var endless = regexp.MustCompile(`([\[:,]\s*)-?(?:Infinity|NaN)\b`)

// Decode reads a config.json by its fields. What it leaves out is taken from its class.
func Decode(name string, text []byte) (*Config, error) {
	f := fields{}
	if err := f.add(name, endless.ReplaceAll(text, []byte("${1}null"))); err != nil {
		return nil, err
	}
	if f.empty("quantization_config") && !f.empty("compression_config") {
		f["quantization_config"] = f["compression_config"]
	}
	class := classes()[f.text("model_type")]
	for _, all := range slices.Concat(names,
		[][]string{{"intermediate_size_mlp"}, {"expert_layer_period"}, {"expert_layer_offset"}}) {
		if slices.ContainsFunc(all, func(one string) bool { return f[one] != nil }) {
			continue
		}
		for _, one := range all {
			if class[one] != nil && f[all[0]] == nil {
				f[all[0]] = class[one]
			}
		}
	}
	if !f.empty("intermediate_size_mlp") { // Llama 4's name for layers without experts; those with have a shared one
		f["moe_intermediate_size"], f["intermediate_size"] = f["intermediate_size"], f["intermediate_size_mlp"]
		f["n_shared_experts"] = json.RawMessage("1")
	}
	c, known := &Config{Gateless: class["gateless"] != nil || f.text("mlp_hidden_act") == "relu2"}, map[string]any{}
	for _, all := range names {
		at := max(0, slices.IndexFunc(all, func(one string) bool { return !f.empty(one) }))
		v, differs, err := f.size(name, all[at])
		switch {
		case err != nil:
			return nil, err
		case !differs:
			known[all[0]] = v
		case strings.Contains(all[0], "expert") || strings.HasPrefix(all[0], "moe_inter"):
			c.oddExperts = all[at] + " differs from layer to layer"
		case all[0] != "moe_layer_freq":
			c.odd = all[at] + " differs from layer to layer"
		}
	}
	for _, says := range slices.Sorted(maps.Keys(unlike)) {
		for _, field := range strings.Fields(unlike[says]) {
			listed := len(f["layer_types"]) > 0 && strings.HasSuffix(says, "models")
			if !listed && (!f.empty(field) || f[field] == nil && class[field] != nil) {
				c.odd = cmp.Or(c.odd, fmt.Sprintf("%s, as %s says", says, field))
			}
		}
	}
	if !f.empty("zero_expert_num") || class["zero_expert_num"] != nil {
		c.oddExperts = "some compute nothing, as zero_expert_num says"
	}
	for _, key := range []string{"model_type", "dtype", "torch_dtype", "expert_dtype", "quantization_config",
		"mlp_only_layers", "layer_types"} {
		if len(f[key]) > 0 {
			known[key] = f[key]
		}
	}
	clean, err := json.Marshal(known)
	if err == nil {
		err = json.Unmarshal(clean, c)
	}
	if err != nil {
		return nil, diag.Inputf("a field is not as Hugging Face writes it: %v", err).At("%s", name).
			Do("give the config.json that a model of Hugging Face has beside its weights")
	}
	if c.Layers > 0 && c.DenseFirst > c.Layers {
		return nil, diag.Inputf("first_k_dense_replace is %d of %d layers", c.DenseFirst, c.Layers).At("%s", name).
			Do("give a config.json in which it is at most that")
	}
	for _, one := range c.LayerTypes {
		if !slices.Contains(layerTypes, one) || one == "linear_attention" && c.LinearVs == 0 {
			c.odd = cmp.Or(c.odd, fmt.Sprintf("some are %s", one))
		}
	}
	if slices.Contains(f.flags("attn_type_list"), false) {
		c.odd = cmp.Or(c.odd, "some have linear attention of another form")
	}
	c.withExperts(f)
	return c, nil
}

// layerTypes are values of layer_types whose products are known.
var layerTypes = []string{"attention", "full_attention", "sliding_attention", "chunked_attention", "linear_attention",
	"deepseek_sparse_attention"}

// flags are a list for each layer, of 0 and 1, or of words of which "sparse", "moe" and "E" mean true.
func (f fields) flags(name string) (list []bool) {
	var words []any
	if _ = json.Unmarshal(f[name], &words); f.text(name) != "" {
		for _, letter := range f.text(name) {
			words = append(words, string(letter))
		}
	}
	for _, one := range words {
		list = append(list, one == "sparse" || one == "moe" || one == "E" || one == 1.0 || one == true)
	}
	return list
}

// withExperts lists the layers without experts, where the file lists them one by one or by a period.
func (c *Config) withExperts(f fields) {
	has := func(int) bool { return true }
	for _, name := range []string{"mlp_layer_types", "hybrid_override_pattern", "layers_block_type", "moe_layer_freq"} {
		if list := f.flags(name); len(list) > 0 {
			c.Layers = cmp.Or(c.Layers, len(list))
			has = func(i int) bool { return i < len(list) && list[i] }
			c.DenseFirst = 0
			break
		}
	}
	var numbers []int
	if _ = json.Unmarshal(f["moe_layers"], &numbers); f.text("moe_layers_enum") != "" {
		_ = json.Unmarshal([]byte("["+f.text("moe_layers_enum")+"]"), &numbers)
	}
	if len(numbers) > 0 {
		has = func(i int) bool { return slices.Contains(numbers, i) }
	}
	period, _ := strconv.Atoi(string(f["expert_layer_period"]))
	offset, _ := strconv.Atoi(string(f["expert_layer_offset"]))
	if period > 0 {
		has = func(i int) bool { return i%period == offset }
	}
	for i := range min(c.Layers, 1<<12) {
		if !has(i) && !slices.Contains(c.DenseLayers, i) {
			c.DenseLayers = append(c.DenseLayers, i)
		}
	}
}
