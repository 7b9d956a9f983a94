package serving

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed" // the rules and tables of servers
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/hf"
)

// backends.json says in which kernels servers run layers by default: the first rule that fits.
//
//go:embed backends.json
var backendFile []byte

// shipped.json.gz has the tables of kernels that the wheels of servers have inside (shipped.py).
//
//go:embed shipped.json.gz
var shippedFile []byte

// Backend is what a server runs a kind of layer in, unless it is told otherwise.
type Backend struct {
	Server  string `json:"server"`  // whose rules these are
	Version string `json:"version"` // of the server
	Runs    string `json:"runs"`    // the library of the kernel
	Reads   string `json:"reads"`   // whether that reads a table: yes or no
	// what makes the server take the kernel that reads it
	But string `json:"but,omitempty"`
}

type rule struct {
	Backend
	Weights, On []string // as in hf.Config.Weights, and beginnings of architectures; all if it is empty
	EP          bool     // for experts that GPUs divide among them
}

// server is what a server runs, in the first rule that fits, and the models of which it fuses a shared expert: counts
// of experts by model type, all if there are none.
type server struct {
	Version         string
	Devices         map[string]string // how tables of experts call every device that has a word in its name
	Fused           map[string][]int
	Experts, Linear []rule
}

var backends = sync.OnceValue(func() (servers map[string]server) {
	if err := json.Unmarshal(backendFile, &servers); err != nil {
		panic(err) // every test reads it
	}
	return servers
})

// DeviceName is what a server's tables of experts call a device, given the name of its driver with _ for spaces.
func DeviceName(name, device string) string {
	for _, word := range strings.Split(device, "_") {
		if called := backends()[name].Devices[word]; called != "" {
			return called
		}
	}
	return device
}

// BackendOf returns what a server runs experts or other layers in, with weights as hf.Config.Weights calls them.
func BackendOf(name string, experts bool, weights, arch string, ep int) Backend {
	s := backends()[name]
	rules := s.Linear
	if experts {
		rules = s.Experts
	}
	b := Backend{Runs: "a kernel that is not known", Reads: "no"}
	i := slices.IndexFunc(rules, func(r rule) bool {
		return (len(r.Weights) == 0 || slices.Contains(r.Weights, weights)) && (!r.EP || ep > 1) &&
			(len(r.On) == 0 || slices.ContainsFunc(r.On, func(on string) bool { return strings.HasPrefix(arch, on) }))
	})
	if i >= 0 {
		b = rules[i].Backend
	}
	b.Server, b.Version = name, s.Version
	return b
}

// Fused is how many shared experts of a layer a server counts among the others: it looks for so many more of them, and
// each token goes to so many more.
func Fused(name string, c *hf.Config, ep int) int {
	counts, is := backends()[name].Fused[c.ModelType]
	if is && ep == 1 && c.SharedExperts == 1 && (len(counts) == 0 || slices.Contains(counts, c.Routed())) {
		return 1
	}
	return 0
}

var shipped = sync.OnceValue(func() (tables map[string]map[int][6]int) {
	zip, err := gzip.NewReader(bytes.NewReader(shippedFile))
	if err == nil {
		err = json.NewDecoder(zip).Decode(&tables)
	}
	if err != nil {
		panic(err) // every test reads it
	}
	return tables
})

// Stages is how many stages Triton takes where a table of this name is silent: fewer on AMD (its HIPOptions).
func Stages(name string) int {
	if strings.Contains(name, "device_name=AMD_") {
		return 2
	}
	return 3
}

// Shipped returns the kernels of a table that a server ships, by the number of rows, nil without one. Where the table
// is silent, Triton takes 4 warps. AMD's keys are not in the copy here: of 566 lines for an MI300X that have them, 563
// say matrix_instr_nonkdim 16, and of 271 for bf16 204 kpack 2. Those for experts in fp8 have none.
func Shipped(server, name string) map[int]gemm.Config {
	kernels, axes := map[int]gemm.Config{}, gemm.Axes{}
	if fp8 := strings.Contains(name, "fp8"); strings.Contains(name, "device_name=AMD_") &&
		(!fp8 || strings.HasPrefix(name, "N=")) {
		axes, _ = axes.With("matrix_instr_nonkdim", "16")
		if !fp8 {
			axes, _ = axes.With("kpack", "2")
		}
	}
	for rows, v := range shipped()[server+" "+name] {
		kernels[rows] = gemm.Config{Axes: axes, BlockM: v[0], BlockN: v[1], BlockK: v[2], GroupM: max(1, v[3]),
			NumWarps: cmp.Or(v[4], 4), NumStages: cmp.Or(v[5], Stages(name)), SplitK: 1}
	}
	return kernels
}
