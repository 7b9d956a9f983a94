package serving

import (
	_ "embed" // the kernels
	"encoding/json"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// defaults.json has the kernels that servers take where they have no table: the first row that fits. servers.py finds
// the same in their packages.
//
//go:embed defaults.json
var defaultFile []byte

// The servers that read tables of kernels.
const (
	VLLM   = "vllm"
	SGLang = "sglang"
)

// Kernel is a kernel of a server that reads tables: for the experts of a layer, or for one matrix if there are none.
type Kernel struct {
	Server  string // empty for VLLM
	Experts int
	DType   gemm.DType
	Blocks  bool // the weights have scales per block
}

// inTable is the type of the weights in defaults.json.
func (k *Kernel) inTable() string {
	switch {
	case k.Blocks:
		return fp8 + "_block"
	case k.DType == gemm.FP8:
		return fp8
	}
	return bf16
}

var defaultKernels = sync.OnceValue(func() (d struct {
	Kernels []struct {
		Server    string `json:"server"`
		Kernel    string `json:"kernel"`
		Weights   string `json:"weights"`    // any if it is empty
		Tokens    int    `json:"tokens"`     // at most so many, 0 for any number
		PerExpert int    `json:"per_expert"` // and so many for each expert
		Shared    int    `json:"shared"`     // for devices whose CTAs have less shared memory, in bytes
		// BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, GROUP_SIZE_M, num_warps (4 without it), num_stages (3 without it)
		Config [6]int `json:"config"`
	} `json:"kernels"`
}) {
	if err := json.Unmarshal(defaultFile, &d); err != nil {
		panic(err) // every test reads it
	}
	return d
})

// Default is what a server takes for so many tokens on a device if it has no table.
func (k *Kernel) Default(d *arch.Description, tokens int) gemm.Config {
	server, kernel, weights := k.Server, "experts", k.inTable()
	if server == "" {
		server = VLLM
	}
	if k.Experts == 0 {
		kernel = "matrix"
	}
	shared, nvidia := hw.Set(d.Params).Lookup("shared_memory_bytes")
	var c gemm.Config
	for _, row := range defaultKernels().Kernels {
		if row.Server != server || row.Kernel != kernel || row.Weights != "" && row.Weights != weights ||
			row.Tokens > 0 && tokens > row.Tokens || row.PerExpert > 0 && tokens > row.PerExpert*k.Experts ||
			row.Shared > 0 && (!nvidia || shared.Value >= float64(row.Shared)) {
			continue
		}
		v := row.Config
		c = gemm.Config{BlockM: v[0], BlockN: v[1], BlockK: v[2], GroupM: v[3], NumWarps: v[4], NumStages: v[5], SplitK: 1}
		break
	}
	if k.Experts > 0 && server == VLLM && !k.Blocks && tokens/k.Experts > 128 {
		c.GroupM = 16
	}
	// Where torch is for ROCm, both servers' functions take two stages for scales per block, and SGLang's for all fp8.
	if !nvidia && k.DType == gemm.FP8 && (k.Blocks || server == SGLang) {
		c.NumStages = 2
	}
	return c
}
