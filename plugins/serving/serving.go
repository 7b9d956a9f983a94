// Package serving has what a step of a language model needs besides its products: attention, experts, the links between
// GPUs, what is between kernels, and what servers add. The operators have a few terms each, whose values are rows of
// data with a source. They hold for any device with the numbers of a data sheet.
package serving

import (
	"cmp"
	_ "embed" // the data
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/forward"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/formats/hf"
)

// nodes.json has memory and links of devices, and servers.json the numbers of servers: TestDeployments finds the same.
//
//go:embed nodes.json
var nodeFile []byte

//go:embed servers.json
var serverFile []byte

// Server is what a server adds to the operators of a step, in seconds: for itself, for each layer, for each sequence.
// The three are fitted to its deployments.
type Server struct {
	Name     string  `json:"name"`
	Step     float64 `json:"step"`
	Layer    float64 `json:"layer"`
	Sequence float64 `json:"sequence"`
	Source   string  `json:"source"`
}

type node struct {
	Of    []string `json:"of"`
	Bytes float64  `json:"bytes"` // the memory of a GPU
	Link  float64  `json:"link"`  // bytes per second that a GPU sends to the others of a node, in each direction
	GPUs  int      `json:"gpus"`  // of a node
}

var data = sync.OnceValue(func() (d struct {
	operators []operator
	nodes     []node
	servers   struct {
		Spread  float64  `json:"spread"`
		Servers []Server `json:"servers"`
	}
}) {
	for text, into := range map[*[]byte]any{&operatorFile: &d.operators, &nodeFile: &d.nodes, &serverFile: &d.servers} {
		if err := json.Unmarshal(*text, into); err != nil {
			panic(err) // every test reads them
		}
	}
	return d
})

// Servers are the names of the servers that are known.
func Servers() (names []string) {
	for _, s := range data().servers.Servers {
		names = append(names, s.Name)
	}
	return names
}

// The types of weights, as in {weights}.
const (
	bf16  = "bf16"
	fp8   = "fp8"
	nvfp4 = "nvfp4"
	mxfp4 = "mxfp4"
	int4  = "int4"
)

// Formats are the types of weights.
func Formats() []string { return []string{bf16, fp8, nvfp4, mxfp4, int4} }

// The bytes of a weight with its scales: 16 elements of nvfp4 have one of a byte, 32 of mxfp4 too. An int4 has the same
// as an mxfp4, which is assumed: groups of 32 with a scale of 16 bits have 0.56.
var width = map[string]float64{bf16: 2, fp8: 1, nvfp4: 0.5625, mxfp4: 0.53, int4: 0.53}

// Layout is how GPUs share a model, and how it is stored.
type Layout struct {
	// TP GPUs divide the model among them. EP of them divide the experts of a layer, and the others each expert. In DP
	// groups, each has the attention and dense layers for its own sequences (data parallel).
	TP, EP, DP int
	// Server is one of Servers. Weights is one of Formats, as the model has them if it is empty. Cache is the type of K
	// and V: bf16 or fp8, empty for fp8 where the weights have 8 bits or fewer.
	Server, Weights, Cache string
}

// Plan is a model in a layout. It implements forward.Plan.
type Plan struct {
	Layout
	model    *hf.Config
	products []hf.Layer
	server   Server
	blocks   bool // weights of fp8 have scales per block
}

// New returns a plan. name is the model's file, for errors.
func New(name string, c *hf.Config, l Layout) (*Plan, error) {
	if err := c.Sized(name); err != nil {
		return nil, err
	}
	p := &Plan{Layout: l, model: c}
	p.EP, p.DP = max(1, l.EP), max(1, l.DP)
	i := slices.IndexFunc(data().servers.Servers, func(s Server) bool { return s.Name == l.Server })
	if i < 0 {
		return nil, diag.Inputf("the server %q is not known", l.Server).At("server").
			Do("use one of %s", strings.Join(Servers(), ", "))
	}
	p.server = data().servers.Servers[i]
	stored := c.ExpertWeights()
	if strings.HasPrefix(stored, fp8) {
		stored = fp8
	}
	var err error
	p.Weights = cmp.Or(l.Weights, stored)
	p.blocks = p.Weights == stored && c.Quantization != nil && len(c.Quantization.Block) > 0
	if !slices.Contains(Formats(), p.Weights) {
		return nil, diag.Inputf("weights of %q are not known", p.Weights).At("%s", name).
			Do("say what they are: weights of %s", strings.Join(Formats(), ", "))
	}
	if p.Cache = cmp.Or(l.Cache, bf16); l.Cache == "" && (p.Weights == fp8 || p.Weights == nvfp4 || p.Weights == mxfp4) {
		p.Cache = fp8
	}
	if p.Cache != bf16 && p.Cache != fp8 {
		return nil, diag.Inputf("K and V in %q are not known", p.Cache).At("cache").Do("use bf16 or fp8")
	}
	switch n := c.Routed(); {
	case n == 0 && (p.Weights == mxfp4 || p.Weights == int4):
		return nil, diag.Inputf("no model predicts products of 16 bits by weights of 4").At("%s", name).
			Do("ask for weights of bf16, fp8 or nvfp4")
	case n > 0 && c.TopK > n:
		return nil, diag.Inputf("num_experts_per_tok is %d of %d experts", c.TopK, n).At("%s", name).
			Do("give the config.json that the model has")
	case p.EP > 1 && (n%p.EP != 0 || l.TP%p.EP != 0):
		return nil, diag.Inputf("%d GPUs do not divide %d experts and %d GPUs", p.EP, n, l.TP).At("ep").
			Do("give a number that divides both, or none")
	}
	if l.TP > 0 && l.TP%p.DP != 0 {
		return nil, diag.Inputf("%d groups do not divide %d GPUs", p.DP, l.TP).At("dp").
			Do("give a number that divides them")
	}
	p.products, err = c.Products(l.TP / p.DP)
	return p, err
}

// GPUs implements forward.Plan.
func (p *Plan) GPUs() int { return p.TP }

// Groups implements forward.Plan.
func (p *Plan) Groups() int { return p.DP }

// inGroup is a pass as a group has it: its part of the sequences, and a prompt of its own.
func (p *Plan) inGroup(pass forward.Pass) forward.Pass {
	pass.Sequences = (pass.Sequences + p.DP - 1) / p.DP
	return pass
}

// Spread implements forward.Plan.
func (p *Plan) Spread() float64 { return data().servers.Spread }

// multiplied is the type in which a device multiplies weights of the layers that are no experts.
func (p *Plan) multiplied(d *arch.Description) gemm.DType {
	for _, one := range []struct {
		format string
		t      gemm.DType
	}{{fp8, gemm.FP8}, {nvfp4, gemm.FP4}} {
		if p.Weights == one.format && d.PeakFor(one.t) > 0 {
			return one.t
		}
	}
	return gemm.BF16
}

// Products implements forward.Plan. The last product and the one that chooses experts stay in bf16.
func (p *Plan) Products(d *arch.Description, pass forward.Pass) (all []forward.Product) {
	add := func(name string, t gemm.DType, m, n, k, count int) {
		one := gemm.New(m, n, k)
		one.DType, one.Out = t, gemm.BF16
		one.SetTrans(false, true)
		all = append(all, forward.Product{Name: name, Problem: one.Canonical(), Count: count})
	}
	pass = p.inGroup(pass)
	for _, l := range p.products {
		m, t := pass.Tokens(), p.multiplied(d)
		if l.Name == hf.LMHead {
			m, t = pass.Sequences+min(pass.Prompt, 1), gemm.BF16
		}
		if l.K%2 != 0 { // no whole number of bytes of a type of 4 bits
			t = gemm.BF16
		}
		add(l.Name, t, m, l.N, l.K, l.Count)
	}
	if layers := p.model.ExpertLayers(); layers > 0 {
		add("gate", gemm.BF16, pass.Tokens(), p.model.Routed(), p.model.Hidden, layers)
	}
	return all
}

// machine is the numbers of a device that the operators read.
type machine struct {
	dram, rate float64 // bytes per second, FLOP/s in 16 bits
	*node
	d *arch.Description
}

func machineOf(d *arch.Description) (machine, error) {
	m := machine{dram: d.Constant("dram_speed", 0), rate: float64(d.PeakFor(gemm.BF16)), d: d}
	if m.rate <= 0 {
		m.rate = float64(d.PeakFor(gemm.FP16))
	}
	if m.dram <= 0 || m.rate <= 0 {
		return m, diag.Inputf("the model %s of %s has no bandwidth of DRAM, or no rate of 16 bits", d.Model, d.ID()).
			Do("use its default model, or another device")
	}
	m.node = nodeOf(d)
	return m, nil
}

func nodeOf(d *arch.Description) *node {
	for i := range data().nodes {
		if n := &data().nodes[i]; slices.Contains(n.Of, d.ID()) {
			return n
		}
	}
	return nil
}

// largest is the message in bytes up to which servers have an all-reduce of their own; NCCL's reduces larger ones
// (max_size of vLLM's custom all-reduce is 8 MiB).
const largest = 8 << 20

// The standard deviations of the log of what is assumed, not fitted.
const assumed = 0.5

// Parts implements forward.Plan.
func (p *Plan) Parts(d *arch.Description, pass forward.Pass) ([]forward.Part, error) {
	m, err := machineOf(d)
	if err != nil {
		return nil, err
	}
	if p.TP > 1 && (m.node == nil || p.TP > m.GPUs) {
		most := 1
		if m.node != nil {
			most = m.GPUs
		}
		return nil, diag.Inputf("%d GPUs share the model, and a node of %s is taken to have %d", p.TP, d.ID(), most).
			At("tp").Do("give at most %d: links between nodes are not modelled", most)
	}
	all := pass.Tokens()
	pass = p.inGroup(pass)
	tokens, layers, hidden := float64(pass.Tokens()), float64(p.model.Layers), float64(p.model.Hidden)
	if pass.Prompt > 0 {
		all = pass.Tokens() * p.DP
	}
	parts := []forward.Part{p.attention(&m, pass)}
	sparse := p.model.ExpertLayers()
	if sparse > 0 {
		parts = append(parts, p.experts(&m, float64(all)))
	}
	if p.TP > 1 {
		// In a group, attention and the feed-forward layer end with an all-reduce. Groups send tokens to the GPUs of their
		// experts and get them back: each token to as many GPUs as it has experts, or to all others.
		links := forward.Part{Name: forward.Links}
		send := func(o *operator, gpus int, bytes, times, count float64) {
			if n := float64(gpus); n > 1 {
				seconds := (o.Values[0]+o.Values[1]*n)*1e-6 + times*(n-1)/n*bytes/(o.Values[2]*m.Link)
				links.Seconds += unit.Seconds(count * seconds * o.near("", bytes/2, n, 1))
				links.Sigma = max(links.Sigma, o.Sigma)
			}
		}
		reduces := 2 * layers
		if p.DP > 1 {
			reduces -= float64(sparse)
		}
		reduce := find("reduce", p.Server, d)
		if 2*tokens*hidden > largest {
			reduce = find("reduce", "nccl", d)
		}
		send(reduce, p.TP/p.DP, 2*tokens*hidden, 2, reduces)
		if p.DP > 1 && sparse > 0 {
			copies := float64(min(p.model.TopK, p.TP))
			send(find("exchange", "nccl", d), p.TP, 2*tokens*copies*hidden, 1, 2*float64(sparse))
		}
		parts = append(parts, links)
	}
	// Between kernels, norms and conversions read and write the hidden state four times, at 0.7 of the DRAM's peak.
	between := layers * 16 * tokens * hidden / (0.7 * m.dram)
	if b := float64(pass.Sequences); b > 0 { // a prompt is long enough to hide the host
		between += layers * p.server.Layer
		host := p.server.Step + b*float64(p.DP)*p.server.Sequence
		parts = append(parts, forward.Part{Name: forward.Host, Seconds: unit.Seconds(host), Sigma: assumed})
	}
	return append(parts, forward.Part{Name: forward.Between, Seconds: unit.Seconds(between), Sigma: assumed}), nil
}

// attention is the attention of all layers. Terms of a pass that adds a token: launch, bytes of K and V, a term for the
// longest sequence, which splits do not shorten, and operations. Of a prompt: launch, operations, bytes.
func (p *Plan) attention(m *machine, pass forward.Pass) forward.Part {
	c, tp, of := p.model, p.TP/p.DP, ""
	heads, kv := float64(max(1, c.Heads/tp)), float64(max(1, c.KVHeads/tp))
	if c.Latent() {
		of = "latent "
	}
	cache := map[bool]string{true: "fp8", false: "bfloat16"}[p.Cache == fp8]
	sigma := 0.0
	// one is a layer that sees so many tokens of the context.
	one := func(sees int) (seconds float64) {
		if b, s := float64(pass.Sequences), float64(min(sees, pass.Context)); b > 0 {
			dim := float64(c.HeadDim)
			bytes, flop := 2*b*kv*s*dim*width[p.Cache]+4*b*heads*dim, 4*b*heads*s*dim
			layout, blocks, group := fmt.Sprint(c.HeadDim, " ", cache), b*kv, heads/kv
			if c.Latent() {
				rank, rope := float64(c.RankKV), float64(c.HeadRoPE)
				bytes, flop = b*s*(rank+rope)*width[p.Cache], 2*b*heads*s*(2*rank+rope)
				layout, blocks, group = cache, b, heads
			}
			o := find(of+"decode", p.Server, m.d)
			v := o.Values
			seconds += (v[0]*1e-6 + bytes/(v[1]*m.dram) + v[2]*1e-6*math.Log2(1+s/256) + flop/(v[3]*m.rate)) *
				o.near(layout, s, blocks, group)
			sigma = max(sigma, o.Sigma)
		}
		if s := float64(pass.Prompt); s > 0 {
			length := float64(pass.Length())
			pairs := s * min(length, 2*float64(sees))
			flop, bytes := 2*pairs*heads*float64(c.HeadDim), 4*s*(heads+kv)*float64(c.HeadDim)
			layout, blocks, group := fmt.Sprint(c.HeadDim, " ", p.multiplies(m.d), " ", cache), heads*s/length, heads/kv
			if c.Latent() {
				wide := float64(c.HeadNoRoPE + c.HeadRoPE + c.HeadV)
				flop, bytes = pairs*heads*wide, 4*s*heads*wide
				layout, blocks, group = cache, s/length, heads
			}
			o := find(of+"prefill", p.Server, m.d)
			v := o.Values
			seconds += (v[0]*1e-6 + flop/(v[1]*m.rate) + bytes/(v[2]*m.dram)) * o.near(layout, length, blocks, group)
			sigma = max(sigma, o.Sigma)
		}
		return seconds
	}
	full, windowed := c.Full(), c.Windowed()
	sees := math.MaxInt
	if c.IndexTopK > 0 {
		sees = c.IndexTopK
	}
	seconds := float64(full-windowed)*one(sees) + float64(windowed)*one(max(1, c.Window))
	if c.IndexTopK > 0 { // the indexer reads one vector in fp8 of each token, and scores all of them; assumed
		b, s := float64(pass.Sequences), float64(pass.Context)
		seconds += float64(full) * (1e-5 + b*s*float64(c.IndexDim)/(0.7*m.dram) +
			float64(c.IndexHeads*c.IndexDim)*(2*b*s+float64(pass.Prompt)*float64(pass.Length()))/(0.5*m.rate))
		sigma = assumed
	}
	if linear := c.Layers - full; linear > 0 {
		one, spread := p.linear(m, pass)
		seconds += float64(linear) * one
		sigma = max(sigma, spread)
	}
	return forward.Part{Name: forward.Attention, Seconds: unit.Seconds(seconds), Sigma: sigma}
}

// linear is a layer of linear attention: a token reads and writes the state of its sequence in fp32, a prompt computes
// it in chunks.
func (p *Plan) linear(m *machine, pass forward.Pass) (seconds, sigma float64) {
	tp := float64(p.TP / p.DP)
	heads, keys := float64(p.model.LinearVs)/tp, float64(p.model.LinearKeys)/tp
	state := heads * float64(p.model.LinearDimK*p.model.LinearDimV)
	add := func(name string, length, blocks, bytes, flop float64) {
		o := find("linear "+name, p.Server, m.d)
		v := o.Values
		seconds += (v[0]*1e-6 + flop/(v[1]*m.rate) + bytes/(v[2]*m.dram)) * o.near("", length, blocks, 1)
		sigma = max(sigma, o.Sigma)
	}
	if b := float64(pass.Sequences); b > 0 {
		add("decode", b, heads, 8*state*b, 8*state*b)
	}
	if s := float64(pass.Prompt); s > 0 {
		wide := 2*keys*float64(p.model.LinearDimK) + 2*heads*float64(p.model.LinearDimV)
		add("prefill", s, heads, 4*s*wide, 8*state*s)
	}
	return seconds, sigma
}

// multiplies is the type in which a server multiplies queries by K and V of a prompt.
func (p *Plan) multiplies(d *arch.Description) string {
	if p.Cache == fp8 && p.Server != "vllm" && d.PeakFor(gemm.FP8) > 0 {
		return "fp8"
	}
	return "bfloat16"
}

// experts are the routed experts of all layers: launches and sorting, which takes longer for more tokens, then
// √(a² + b²) of the time a of the weights that some token chose and the time b of the operations, and what moves
// between memory and them. A token chooses each expert with the same probability.
func (p *Plan) experts(m *machine, tokens float64) forward.Part {
	c, ep := p.model, float64(p.EP)
	kernel, format, rate := p.Weights, p.Weights, m.rate
	fp4 := float64(m.d.PeakFor(gemm.FP4))
	switch {
	case format == bf16:
		kernel = "bfloat16"
	case format == fp8 && m.d.PeakFor(gemm.FP8) > 0:
		if rate = float64(m.d.PeakFor(gemm.FP8)); p.blocks {
			kernel = "fp8_block"
		}
	case format == fp8:
		kernel = "bfloat16"
	case format == nvfp4 && fp4 > 0:
		rate = fp4
	case format == int4:
		kernel = "int4_wo"
	case format == mxfp4 && fp4 > 0:
		kernel, rate = "w4a8_mxfp4_mxfp8", float64(m.d.PeakFor(gemm.FP8))
	default:
		kernel = "w4a16_mxfp4"
	}
	o := find("experts "+kernel, p.Server, m.d)
	v := o.Values
	n, k, hidden := float64(c.Routed()), float64(c.TopK), float64(c.Hidden)
	inter := float64(c.ExpertInner) * ep / float64(p.TP)
	chosen := n / ep * (1 - math.Pow(1-k/n, tokens))
	picked := tokens * k / ep
	weights := chosen * 3 * hidden * inter * width[format] / (v[1] * m.dram)
	operations := picked * 6 * hidden * inter / (v[2] * rate)
	moved := (picked*(2*hidden+3*inter)*2 + 4*tokens*hidden) / (v[3] * m.dram)
	seconds := ((v[0]+v[4]*math.Log2(1+tokens))*1e-6 + math.Hypot(weights, operations) + moved) *
		o.near("", picked, n/ep*k, hidden*inter/1024)
	return forward.Part{Name: forward.Experts, Seconds: unit.Seconds(float64(c.ExpertLayers()) * seconds), Sigma: o.Sigma}
}

// reserved is the share of a GPU's memory that a server uses (vLLM's gpu_memory_utilization by default).
const reserved = 0.9

// Memory implements forward.Plan.
func (p *Plan) Memory(d *arch.Description) (m forward.Memory) {
	c, tp := p.model, p.TP/p.DP
	for _, l := range p.products {
		w := width[p.Weights]
		if l.Name == hf.LMHead {
			w = 4 // in bf16, and as many for the words that enter
		} else if p.Weights == mxfp4 || p.Weights == int4 {
			w = width[bf16]
		}
		m.Weights += unit.Bytes(float64(l.N) * float64(l.K) * float64(l.Count) * w)
	}
	m.Weights += unit.Bytes(float64(c.ExpertLayers()) * float64(c.Routed()) * 3 * float64(c.Hidden) *
		float64(c.ExpertInner) / float64(p.TP) * width[p.Weights])
	full, windowed := float64(c.Full()-c.Windowed()), float64(c.Windowed())
	each := 2 * float64(max(1, c.KVHeads/tp)*c.HeadDim) * width[p.Cache]
	if c.Latent() {
		each = float64(c.RankKV+c.HeadRoPE)*width[p.Cache] + float64(c.IndexDim)
	}
	m.Token = unit.Bytes(full * each)
	m.Sequence = unit.Bytes(windowed*each*float64(c.Window) +
		float64(c.Layers-c.Full())*float64(c.LinearVs*c.LinearDimK*c.LinearDimV)/float64(tp)*4)
	if n := nodeOf(d); n != nil {
		m.Capacity = unit.Bytes(n.Bytes * reserved)
	}
	return m
}

// compared are the architectures whose deployments were predicted, and sm103, which has the operators of sm100.
var compared = []string{"sm90", "sm100", "sm103"}

// Unchecked implements forward.Plan.
func (p *Plan) Unchecked(d *arch.Description) (all []string) {
	say := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	timed := slices.ContainsFunc(data().operators, func(o operator) bool { return o.Of == d.Arch })
	say(!timed, "operators on %s: no times of it, but the terms that Hopper and Blackwell share", d.Arch)
	say(!slices.Contains(compared, d.Arch), "%s on %s: compared on sm90 and sm100 only", p.Server, d.Arch)
	say(nodeOf(d) == nil, "the memory of %s: no data sheet is known to the model", d.ID())
	say(p.DP > 1, "attention in groups: no deployment was fitted")
	say(p.TP > 8, "%d GPUs: measured with at most 8", p.TP)
	say(p.model.IndexTopK > 0, "the indexer of sparse attention: its rates are assumed")
	say(p.Weights == nvfp4 && d.PeakFor(gemm.FP4) <= 0, "nvfp4 without such units: layers that are no experts in bf16")
	say(p.Weights == fp8 && d.PeakFor(gemm.FP8) <= 0, "fp8 without such units: multiplied in bf16")
	return all
}

// Others implements forward.Plan.
func (p *Plan) Others(d *arch.Description) map[string]forward.Plan {
	layouts := map[string]Layout{}
	add := func(change string, edit func(*Layout)) {
		l := p.Layout
		edit(&l)
		layouts[change] = l
	}
	if n := nodeOf(d); n != nil && p.DP == 1 && 2*p.TP <= min(n.GPUs, 8) {
		add(fmt.Sprintf("--tp %d", 2*p.TP), func(l *Layout) { l.TP *= 2 })
	}
	if p.TP%2 == 0 && p.EP == 1 && p.DP == 1 {
		add(fmt.Sprintf("--tp %d", p.TP/2), func(l *Layout) { l.TP /= 2 })
	}
	if p.Weights == bf16 && d.PeakFor(gemm.FP8) > 0 {
		add("--weights fp8", func(l *Layout) { l.Weights = fp8 })
	}
	if p.Weights != nvfp4 && p.Weights != mxfp4 && d.PeakFor(gemm.FP4) > 0 {
		add("--weights nvfp4", func(l *Layout) { l.Weights = nvfp4 })
	}
	if p.Cache == bf16 {
		add("--cache fp8", func(l *Layout) { l.Cache = fp8 })
	}
	plans := map[string]forward.Plan{}
	for _, change := range slices.Sorted(maps.Keys(layouts)) {
		if other, err := New("", p.model, layouts[change]); err == nil { // what does not divide is no advice
			plans[change] = other
		}
	}
	return plans
}
