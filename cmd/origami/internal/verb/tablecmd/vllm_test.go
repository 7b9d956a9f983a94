package tablecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// vLLM finds the table in a folder of PYTHONPATH and reads it, as far as testdata has the names and rules of its
// source. On another device, and in a vLLM without these names, it runs as without a table, and a warning says so.
func TestVLLMReadsTable(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	made := &invariantTable{Format: vllmFormat, DeviceName: "NVIDIA H100 80GB HBM3", For: "llama-2x4096-tp1",
		Layers: []tableLayer{{N: 6144, K: 4096, BlockK: 128, Kernels: []kernel{
			{M: 16, BlockM: 16, BlockN: 64, NumWarps: 4, NumStages: 5},
			{M: 8192, BlockM: 128, BlockN: 256, NumWarps: 8, NumStages: 3},
		}}}}
	folder := t.TempDir()
	must.Do(t, made.install(folder))
	const form = `{"BLOCK_SIZE_M": %d, "BLOCK_SIZE_N": %d, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 8, "num_warps": %d, ` +
		`"num_stages": %d}`
	small, large := fmt.Sprintf(form, 16, 64, 4, 5), fmt.Sprintf(form, 128, 256, 8, 3)
	for _, c := range []struct {
		name, device, capability, rename string
		want                             []string // for M of 1, 16, 17 and 9000, and for a layer that only vLLM has
		warning                          string
	}{
		{"device", "NVIDIA H100 80GB HBM3", "9.0", "", []string{small, small, large, large, small}, ""},
		{"no family", "NVIDIA H100 80GB HBM3", "8.0", "", []string{small, small, large, large, "null"}, ""},
		{"other device", "NVIDIA H20", "9.0", "", []string{"null", "null", "null", "null", small},
			"No table of origami is for NVIDIA H20; there are some for: NVIDIA H100 80GB HBM3"},
		{"other vLLM", "NVIDIA H100 80GB HBM3", "9.0", "_MatmulShapeConfig", []string{"null", "null", "null", "null", small},
			"does not fit this vLLM: AttributeError"},
		{"no driver", "", "9.0", "", []string{"null", "null", "null", "null", small},
			"does not fit this vLLM: RuntimeError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			vllm := t.TempDir()
			must.Do(t, os.CopyFS(vllm, os.DirFS("testdata/vllm-0.33.0")))
			if c.rename != "" {
				rename(t, filepath.Join(vllm, "vllm/model_executor/determinism/batch_invariant_configs.py"), c.rename)
			}
			cmd := exec.Command(python, filepath.Join(vllm, "ask.py"), "1,6144,4096", "16,6144,4096", "17,6144,4096",
				"9000,6144,4096", "1,2048,2048")
			cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "DEVICE_NAME="+c.device, "CAPABILITY="+c.capability,
				"PYTHONDONTWRITEBYTECODE=1")
			var warnings strings.Builder
			cmd.Stderr = &warnings
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err, warnings.String())
			}
			var got []struct {
				Config   json.RawMessage
				Compiled bool
			}
			must.Do(t, json.Unmarshal(text, &got))
			for i, want := range c.want {
				// vLLM's entry of one shape has BLOCK_SIZE_K 128 and the same tile as ours for few rows.
				if string(got[i].Config) != want || got[i].Compiled != (want == "null") {
					t.Errorf("product %d: %s, compiled %v; want %s", i, got[i].Config, got[i].Compiled, want)
				}
			}
			must.That(t, c.warning == "" == (warnings.Len() == 0) && strings.Contains(warnings.String(), c.warning),
				"the warning is %q, want %q", &warnings, c.warning)
		})
	}
}

// rename gives a name in a file another one.
func rename(t *testing.T, file, name string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), name, name+"2")), 0o644)
	}
	must.Do(t, err)
}
