package tablecmd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// What a server logs about a file that it has not found is as good as a model, with two more sizes, and a model's
// config.json says how GPUs share its experts.
func TestInput(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const line = "WARNING 11-28 [fused_moe.py:1160] Using default MoE config. Performance might be sub-optimal! " +
		"Config file not found at /t/E=16,N=1536,device_name=NVIDIA_H200,dtype=fp8_w8a8.json, /v/configs/E=16,N=1536," +
		"device_name=NVIDIA_H200,dtype=fp8_w8a8.json"
	qwen := file("qwen.json", `{"model_type":"qwen3_moe","hidden_size":4096,"moe_intermediate_size":1536,"num_experts":128,
		"num_experts_per_tok":8,"num_hidden_layers":94}`)
	deepseek := file("deepseek.json", `{"model_type":"deepseek_v3"}`)
	for _, c := range []struct {
		args   []string
		sized  sized
		shared shared
		tp     int
		want   string // the file, experts for a token and layers, or the error
	}{
		{[]string{line}, sized{TopK: 8, Hidden: 4096}, shared{}, 1, "E=16,N=1536,device_name=X,dtype=fp8_w8a8.json 8 1"},
		{[]string{file("log", "a\n"+line+"\nb\n")}, sized{TopK: 8, Hidden: 4096}, shared{}, 1,
			"E=16,N=1536,device_name=X,dtype=fp8_w8a8.json 8 1"},
		{[]string{line, qwen}, sized{}, shared{}, 1, "E=16,N=1536,device_name=X,dtype=fp8_w8a8.json 8 94"},
		{[]string{line}, sized{}, shared{}, 1, "the number of experts for each token, or a size of an expert, is not given"},
		{nil, sized{Experts: 64, TopK: 6, Hidden: 2048, Inner: 1408}, shared{}, 2, "E=64,N=704,device_name=X.json 6 1"},
		{[]string{qwen}, sized{Experts: 64}, shared{}, 1, "a config.json and --experts are two models"},
		{[]string{qwen}, sized{}, shared{EP: 8}, 8, "E=16,N=1536,device_name=X.json 8 94"},
		{[]string{qwen}, sized{}, shared{EP: 2}, 8, "E=64,N=384,device_name=X.json 8 94"},
		{[]string{qwen}, sized{}, shared{EP: 3}, 8, "3 GPUs do not divide 128 experts on 8 GPUs"},
		{[]string{deepseek}, sized{}, shared{}, 8, "E=256,N=256,device_name=X.json 8 58"},
		{[]string{deepseek}, sized{}, shared{SGLang: "3.7.1"}, 8, "E=257,N=256,device_name=X.json 9 58"},
		{[]string{"E=257,N=256,device_name=X,dtype=fp8_w8a8,block_shape=[128, 128].json", deepseek}, sized{},
			shared{SGLang: "3.7.1"}, 1, "E=257,N=256,device_name=X,dtype=fp8_w8a8,block_shape=[128, 128].json 9 58"},
		{[]string{"E=161,N=192,device_name=X,dtype=fp8_w8a8,per_channel_quant=True.json"}, sized{TopK: 8, Hidden: 5120},
			shared{SGLang: "3.7.1"}, 1, "E=161,N=192,device_name=X,dtype=fp8_w8a8,per_channel_quant=True.json 8 1"},
		{[]string{"E=20,N=1536,device_name=X.json", qwen}, sized{}, shared{}, 1, "the model has 128 experts of 1536 columns"},
		{[]string{"N=1536,K=7168,device_name=X,dtype=int8_w8a8,block_shape=[128,128].json"}, sized{}, shared{}, 1,
			"no model predicts a matrix of int8_w8a8,block_shape=[128,128]"},
		{[]string{file("int4", `{"model_type":"qwen3_moe","num_hidden_layers":2,"quantization_config":{"quant_method":"awq",
			"bits":4}}`)}, sized{}, shared{}, 1, "weights of int4: vllm 0.33.0 runs their experts in Humming, which reads no"},
		{[]string{file("dense", `{"model_type":"llama","num_hidden_layers":2}`)}, sized{}, shared{}, 1,
			"no layer of llama has experts"},
	} {
		in, err := c.sized.read(t.Context(), c.args)
		got := ""
		if err == nil {
			var e *experts
			var layers int
			if e, layers, err = c.shared.expertsOf(&in, c.tp, "sm90"); err == nil {
				got = strings.Join([]string{fileName(c.shared.server(), e, "X"), strconv.Itoa(e.topK), strconv.Itoa(layers)}, " ")
			}
		}
		if err != nil {
			_, got, _ = strings.Cut(err.Error(), ": ")
			got = got[:min(len(got), len(c.want))]
		}
		must.Equal(t, got, c.want, c.args, c.sized, c.shared)
	}
}
