// Package forward has what the passes of a language model through a GPU are made of: products, whose times a model of a
// kernel family predicts, and the operators between them, whose times a plugin has.
package forward

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Pass is what a GPU and those that share a model with it compute at once.
type Pass struct {
	// Sequences get a token more each, with a context of so many tokens.
	Sequences, Context int
	// Prompt is how many tokens of prompts are read, in each group of GPUs, and Seen how many tokens each of them sees on
	// average: half of Prompt, as those of one whole prompt do, if it is 0.
	Prompt, Seen int
}

// Length is the length of one whole prompt whose tokens see as many others on average.
func (p Pass) Length() int {
	if p.Seen > 0 {
		return 2 * p.Seen
	}
	return p.Prompt
}

// PassOf is the pass of requests as simulators of servers give them: of each, the tokens that it adds, and those that
// it had before, each at most 2^20. One that adds a token to others gets a new one.
func PassOf(requests [][2]int) (p Pass) {
	context, pairs := 0, 0
	for _, r := range requests {
		fresh, past := min(max(0, r[0]), 1<<20), min(max(0, r[1]), 1<<20)
		if fresh == 1 && past > 0 {
			p.Sequences++
			context += past
			continue
		}
		p.Prompt += fresh
		pairs += fresh * (past + (fresh+1)/2)
	}
	p.Context, p.Seen = context/max(1, p.Sequences), pairs/max(1, p.Prompt)
	return p
}

// Tokens is how many rows the products have.
func (p Pass) Tokens() int { return p.Sequences + p.Prompt }

// Product is a product of a pass on one GPU.
type Product struct {
	Name    string
	Problem gemm.Problem
	Count   int
}

// Part is the time of all operators of a kind in a pass.
type Part struct {
	Name    string
	Seconds unit.Seconds
	// Sigma is the standard deviation of the log of its time on a device that it was not fitted to.
	Sigma float64
}

// The names of parts. Products is the products of all layers. Between is the norms, rotations and conversions between a
// layer's other kernels. Host is the server's work between two steps.
const (
	Products  = "products"
	Attention = "attention"
	Experts   = "experts"
	Links     = "links"
	Between   = "between"
	Host      = "host"
)

// Memory is what a model takes of the memory of a GPU.
type Memory struct {
	Weights unit.Bytes
	// Token is what a sequence keeps of each token, Sequence what it keeps besides.
	Token, Sequence unit.Bytes
	// Capacity is the memory that a server uses, 0 if it is unknown.
	Capacity unit.Bytes
}

// Cache is what one sequence of so many tokens keeps.
func (m *Memory) Cache(tokens int) unit.Bytes { return m.Token*unit.Bytes(tokens) + m.Sequence }

// Plan is a language model as GPUs share it, in a server.
type Plan interface {
	// Products are the products of a pass on a device.
	Products(*arch.Description, Pass) []Product
	// Parts are the operators of a pass on a device, besides Products.
	Parts(*arch.Description, Pass) ([]Part, error)
	// Spread is the standard deviation of the log of a step's time besides its parts' own.
	Spread() float64
	Memory(*arch.Description) Memory
	GPUs() int
	// Groups is how many prompts a pass reads at once: one in each group of GPUs that has its own sequences.
	Groups() int
	// Unchecked says what of the answer for a device rests on nothing that was measured.
	Unchecked(*arch.Description) []string
	// Others are the same model shared or stored in another way, by what changes.
	Others(*arch.Description) map[string]Plan
}
