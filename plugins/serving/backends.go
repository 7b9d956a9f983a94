package serving

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed" // the rules and tables of servers
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/hf"
)

// backends.json says in which kernels servers run layers by default: the first rule that fits.
//
//go:embed backends.json
var backendFile []byte

// shipped.txt.gz has the tables of kernels that the wheels of servers have inside (shipped.py).
//
//go:embed shipped.txt.gz
var shippedFile []byte

// Backend is what a server runs a kind of layer in, unless it is told otherwise.
type Backend struct {
	Server  string `json:"server"`
	Version string `json:"version"` // of the server
	Runs    string `json:"runs"`    // the library of the kernel
	Reads   string `json:"reads"`   // whether it reads a table: yes or no
	// what makes the server take the kernel that reads it
	But string `json:"but,omitempty"`
}

type rule struct {
	Backend
	Layer   string   `json:"layer"`
	Weights []string `json:"weights"` // as in hf.Config.Weights, all if it is empty
	On      []string `json:"on"`      // beginnings of architectures, all if it is empty
	EP      bool     `json:"ep"`      // for experts that GPUs divide among them
}

var backends = sync.OnceValue(func() (d struct {
	Servers []struct {
		Server  string           `json:"server"`
		Version string           `json:"version"`
		Source  string           `json:"source"`
		Fused   map[string][]int `json:"fused"`
	} `json:"servers"`
	Rules []rule `json:"rules"`
}) {
	if err := json.Unmarshal(backendFile, &d); err != nil {
		panic(err) // every test reads it
	}
	return d
})

// The kinds of layers that BackendOf knows.
const (
	ExpertLayer = "experts"
	LinearLayer = "linear"
)

// BackendOf returns what a server runs a kind of layer in, with weights as hf.Config.Weights calls them.
func BackendOf(server, layer, weights, arch string, ep int) (b Backend) {
	b = Backend{Server: server, Runs: "a kernel that is not known", Reads: "no"}
	for _, r := range backends().Rules {
		on := func(begin string) bool { return strings.HasPrefix(arch, begin) }
		if r.Server == server && r.Layer == layer && (len(r.Weights) == 0 || slices.Contains(r.Weights, weights)) &&
			(len(r.On) == 0 || slices.ContainsFunc(r.On, on)) && (!r.EP || ep > 1) {
			b = r.Backend
			break
		}
	}
	for _, s := range backends().Servers {
		if s.Server == server {
			b.Version = s.Version
		}
	}
	return b
}

// Fused is how many shared experts of a layer a server counts among the others: it looks for so many more of them, and
// each token goes to so many more.
func Fused(server string, c *hf.Config, ep int) int {
	for _, s := range backends().Servers {
		counts, is := s.Fused[c.ModelType]
		if s.Server == server && is && ep == 1 && c.SharedExperts == 1 &&
			(len(counts) == 0 || slices.Contains(counts, c.Routed())) {
			return 1
		}
	}
	return 0
}

// Shipped returns the kernels of a table that a server ships, by the number of rows, nil without one.
func Shipped(server, name string) map[int]gemm.Config {
	zip, err := gzip.NewReader(bytes.NewReader(shippedFile))
	if err != nil {
		panic(err) // every test reads it
	}
	var found map[int]gemm.Config
	for lines := bufio.NewScanner(io.Reader(zip)); lines.Scan(); {
		line := lines.Text()
		if strings.Contains(line, "=") {
			if found != nil {
				return found
			}
			if line == server+" "+strings.TrimSuffix(name, ".json") {
				found = map[int]gemm.Config{}
			}
			continue
		}
		if found == nil {
			continue
		}
		var v [7]int
		for i, cell := range strings.Fields(line) {
			v[i], _ = strconv.Atoi(cell)
		}
		c := gemm.Config{BlockM: v[1], BlockN: v[2], BlockK: v[3], GroupM: max(1, v[4]), NumWarps: v[5], NumStages: v[6],
			SplitK: 1}
		if c.NumWarps == 0 {
			c.NumWarps = 4 // as Triton has them where the table is silent
		}
		if c.NumStages == 0 {
			c.NumStages = 3
		}
		if c.Validate() == nil {
			found[v[0]] = c
		}
	}
	return found
}
