package arch

import (
	"slices"

	"github.com/origami-gemm/origami/core/gemm"
)

// Checked is the part of all problems and kernels that a model's times were compared with measured times on. Its zero
// value contains nothing.
type Checked struct {
	// the measurements, and how many sizes and times they have; 0 times: not said
	DataSet string `json:"data_set"`
	Sizes   int    `json:"sizes"`
	Times   int    `json:"times,omitempty"`
	// the type that was timed, if none of the layouts' but of the same cost
	TimedType string `json:"timed_type,omitempty"`
	// types and storage of the matrices, and the ranges of split_k and of the power of two that divides rows and
	// addresses: outside, times may be off by any factor
	Layouts []Layout `json:"layouts"`
	Divisor Range    `json:"divisor"`
	Split   Range    `json:"split_k"`
	// the ranges of the sizes, and of 2·M·N·K·batch: outside, times are less certain. Groups have no batch
	M     Range `json:"m"`
	N     Range `json:"n"`
	K     Range `json:"k"`
	Batch Range `json:"batch"`
	Flops Range `json:"flops"`
}

// Layout is how the matrices of a problem are stored.
type Layout struct {
	Types          gemm.Types
	AMajor, BMajor gemm.Major
}

// LayoutOf returns the layout of a problem.
func LayoutOf(p *gemm.Problem) Layout { return Layout{p.Types(), p.AMajor, p.BMajor} }

// Range is from Low to High, both included.
type Range struct{ Low, High float64 }

// Contains reports whether a value lies in the range.
func (r Range) Contains(v float64) bool { return r.Low <= v && v <= r.High }

// With returns the least range that contains r and a value. The zero Range is empty.
func (r Range) With(v float64) Range {
	if r == (Range{}) {
		return Range{v, v}
	}
	return Range{min(r.Low, v), max(r.High, v)}
}

// Add extends the ranges to a problem and a split of K. Problems in groups are another kind, of which nothing counts as
// checked yet.
func (c *Checked) Add(p *gemm.Problem, split int) {
	if p.Groups != (gemm.Groups{}) || p.BeyondProduct() {
		return
	}
	if l := LayoutOf(p); !slices.Contains(c.Layouts, l) {
		c.Layouts = append(c.Layouts, l)
	}
	c.Divisor, c.Split = c.Divisor.With(float64(p.Divisor())), c.Split.With(float64(split))
	c.M, c.N, c.K = c.M.With(float64(p.M)), c.N.With(float64(p.N)), c.K.With(float64(p.K))
	c.Batch, c.Flops = c.Batch.With(float64(p.Batch)), c.Flops.With(p.Flops())
}

// sizes lists the ranges of the sizes with the values of a problem.
func (c *Checked) sizes(p *gemm.Problem) [5]checkedSize {
	batch := float64(p.Batch)
	if c.grouped() {
		batch = 0
	}
	return [...]checkedSize{
		{"M", float64(p.M), c.M}, {"N", float64(p.N), c.N}, {"K", float64(p.K), c.K},
		{"batch", batch, c.Batch}, {work, p.Flops(), c.Flops},
	}
}

// grouped reports whether the problems were in groups. Without a divisor, all problems of the types are alike.
func (c *Checked) grouped() bool { return c.Divisor != (Range{}) && c.Batch == (Range{}) }

// work is the name of the last of the sizes.
const work = "2·M·N·K·batch"

// checkedSize is a size of a problem with the range that was checked.
type checkedSize struct {
	name  string
	value float64
	in    Range
}

// distance counts how a problem and a split of K lie outside. kind is 0 if it is the kind of problem that was checked.
// Another type counts more than another storage, so that the most similar problems have the least distance.
func (c *Checked) distance(p *gemm.Problem, split int) (kind, size int) {
	if !slices.Contains(c.Layouts, LayoutOf(p)) {
		kind++
		if !c.hasTypes(p.Types()) {
			kind++
		}
	}
	if !c.Divisor.Contains(float64(p.Divisor())) {
		kind++
	}
	if !c.Split.Contains(float64(split)) {
		kind++
	}
	kind += len(c.unchecked(p))
	for _, s := range c.sizes(p) {
		if !s.in.Contains(s.value) {
			size++
		}
	}
	return kind, size
}

func (c *Checked) hasTypes(t gemm.Types) bool {
	return slices.ContainsFunc(c.Layouts, func(l Layout) bool { return l.Types == t })
}
