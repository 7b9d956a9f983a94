package contract

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Plan is a way to compute a contraction with GEMMs.
type Plan struct {
	// Problem is each GEMM. In the direct plan it is the only one.
	Problem gemm.Problem
	// M, N, K and Batch are the indices that each dimension of the GEMM consists of, the shortest stride first. Several
	// indices are merged into one dimension; none is a dimension of 1.
	M, N, K, Batch string
	// BatchStrides are the elements from one matrix of the batch to the next, for each operand of the GEMM.
	BatchStrides [3]int
	// Swapped says that A and B change places, and the GEMM computes the transpose of C: C is contiguous along a free
	// index of A.
	Swapped bool
	// Loop lists the indices that are in no GEMM: the GEMM runs once for each of their values, Calls times in all. Nested
	// is how many of these GEMMs add up into the same part of C.
	Loop          string
	Calls, Nested int
	// Copied lists the tensors that are copied into another order of their indices: operands before, C after.
	Copied []gemm.Operand
	// Moved are the bytes that the copies read and write, and the bytes of C that are read again, by each GEMM that adds
	// to it, and by a beta other than 0.
	Moved float64
}

// Direct reports whether the plan is one kernel on the tensors as they are stored.
func (p *Plan) Direct() bool { return p.Calls == 1 && len(p.Copied) == 0 }

// Plans returns the ways to compute a contraction: one plan if a single GEMM does, or else GEMMs in turn, if there are
// such, and one GEMM after copies that put the indices in order. beta says that C is read.
func (s *Shape) Plans(types gemm.Types, beta bool) ([]Plan, error) {
	if !types.Valid() {
		return nil, diag.Inputf("no hardware multiplies %s operands into %s results", types.In, types.Out).
			Do("use other types")
	}
	var plans []Plan
	inPlace, ok := s.plan(types, nil, beta)
	if ok {
		plans = append(plans, inPlace)
	}
	if !ok || !inPlace.Direct() {
		if copied, ok := s.leastCopied(types, beta); ok {
			plans = append(plans, copied)
		}
	}
	for i := range plans {
		plans[i].Problem = plans[i].Problem.Canonical()
		if err := plans[i].Problem.Validate(); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// leastCopied returns the single GEMM with the fewest bytes copied.
func (s *Shape) leastCopied(types gemm.Types, beta bool) (best Plan, ok bool) {
	for mask := 1; mask < 1<<3; mask++ {
		var copied []gemm.Operand
		for o := gemm.A; o <= gemm.C; o++ {
			if mask>>o&1 == 1 {
				copied = append(copied, o)
			}
		}
		p, fits := s.plan(types, copied, beta)
		if fits && p.Calls == 1 && (!ok || p.Moved < best.Moved) {
			best, ok = p, true
		}
	}
	return best, ok
}

// axis is an index, or several that are merged: each stride is the one before times its size.
type axis struct {
	letters string
	size    int
	stride  [3]int
}

// plan returns the plan with the fewest GEMMs if some tensors are copied, and false if there is none.
func (s *Shape) plan(types gemm.Types, copied []gemm.Operand, beta bool) (Plan, bool) {
	var free [3]bool // tensors whose strides may be anything
	for _, o := range copied {
		free[o] = true
	}
	var axes [classes][]axis
	for c := range classes {
		axes[c] = s.merged(c, free)
	}
	best, found := Plan{}, false
	for _, m := range choices(axes[FreeA]) {
		for _, n := range choices(axes[FreeB]) {
			for _, k := range choices(axes[Sum]) {
				for _, b := range choices(axes[Batch]) {
					r := roles{m: m, n: n, k: k, batch: b, free: free, types: types}
					p, ok := r.fit()
					if !ok {
						if p, ok = r.swapped().fit(); !ok {
							continue
						}
						p.Swapped = true
					}
					s.loops(&p, axes, r)
					if !found || p.Calls < best.Calls {
						best, found = p, true
					}
				}
			}
		}
	}
	if found {
		best.Copied = copied
		s.account(&best, types, beta)
	}
	return best, found
}

// merged returns the axes of a class: its indices of more than one element, merged as far as the strides of all tensors
// that have them allow.
func (s *Shape) merged(c Class, free [3]bool) []axis {
	var axes []axis
	for _, x := range []byte(s.Of(c)) {
		a := axis{letters: string(x), size: s.sizes[x]}
		for o := gemm.A; o <= gemm.C; o++ {
			a.stride[o] = s.Stride(o, x)
		}
		if a.size > 1 {
			axes = append(axes, a)
		}
	}
	for again := true; again; {
		again = false
		for i := range axes {
			for j := range axes {
				if i == j || !follows(c, axes[i], axes[j], free) {
					continue
				}
				axes[i].letters += axes[j].letters
				axes[i].size *= axes[j].size
				axes = append(axes[:j:j], axes[j+1:]...)
				again = true
				break
			}
			if again {
				break
			}
		}
	}
	return axes
}

// follows reports whether an axis of a class continues another one in every tensor that has the class.
func follows(c Class, a, b axis, free [3]bool) bool {
	for o := gemm.A; o <= gemm.C; o++ {
		absent := o == gemm.A && c == FreeB || o == gemm.B && c == FreeA || o == gemm.C && c == Sum
		if !absent && !free[o] && b.stride[o] != a.stride[o]*a.size {
			return false
		}
	}
	return true
}

// one is the axis of a dimension without indices.
var one = axis{size: 1}

// choices returns the axes that may be a dimension of the GEMM.
func choices(axes []axis) []axis {
	if len(axes) == 0 {
		return []axis{one}
	}
	return axes
}

// roles are the axes that are the dimensions of a GEMM.
type roles struct {
	m, n, k, batch axis
	free           [3]bool
	types          gemm.Types
}

// swapped exchanges A and B.
func (r roles) swapped() roles {
	exchange := func(x axis) axis {
		x.stride[gemm.A], x.stride[gemm.B] = x.stride[gemm.B], x.stride[gemm.A]
		return x
	}
	r.m, r.n = exchange(r.n), exchange(r.m)
	r.k, r.batch = exchange(r.k), exchange(r.batch)
	r.free[gemm.A], r.free[gemm.B] = r.free[gemm.B], r.free[gemm.A]
	return r
}

// fit returns the GEMM over the axes, and false if no GEMM has these strides.
func (r roles) fit() (Plan, bool) {
	p := gemm.Problem{M: r.m.size, N: r.n.size, K: r.k.size, Batch: r.batch.size, DType: r.types.In, Out: r.types.Out,
		AMajor: gemm.MajorK, BMajor: gemm.MajorN}
	var ok bool
	if !r.free[gemm.A] {
		if p.LDA, ok = rows(gemm.A, r.m, r.k); !ok {
			if p.LDA, ok = rows(gemm.A, r.k, r.m); !ok {
				return Plan{}, false
			}
			p.AMajor = gemm.MajorM
		}
	}
	if !r.free[gemm.B] {
		if p.LDB, ok = rows(gemm.B, r.k, r.n); !ok {
			if p.LDB, ok = rows(gemm.B, r.n, r.k); !ok {
				return Plan{}, false
			}
			p.BMajor = gemm.MajorK
		}
	}
	if !r.free[gemm.C] {
		if p.LDC, ok = rows(gemm.C, r.m, r.n); !ok {
			return Plan{}, false
		}
	}
	return Plan{Problem: p, M: r.m.letters, N: r.n.letters, K: r.k.letters, Batch: r.batch.letters,
		BatchStrides: r.batch.stride}, true
}

// rows returns the leading dimension of a matrix whose rows are contiguous along an axis, and false if they are not or
// if they overlap.
func rows(o gemm.Operand, down, along axis) (ld int, ok bool) {
	contiguous := along.size == 1 || along.stride[o] == 1
	if down.size == 1 {
		return along.size, contiguous
	}
	return down.stride[o], contiguous && down.stride[o] >= along.size
}

// loops fills in what runs outside of the GEMM.
func (s *Shape) loops(p *Plan, axes [classes][]axis, r roles) {
	p.Calls, p.Nested = 1, 1
	for c, chosen := range [...]axis{FreeA: r.m, FreeB: r.n, Batch: r.batch, Sum: r.k} {
		for _, x := range axes[c] {
			if x.letters == chosen.letters {
				continue
			}
			p.Loop += x.letters
			p.Calls *= x.size
			if Class(c) == Sum {
				p.Nested *= x.size
			}
		}
	}
}

// account fills in alignments and the bytes that are moved besides the GEMMs'.
func (s *Shape) account(p *Plan, types gemm.Types, beta bool) {
	var copied [3]bool
	bytes := func(o gemm.Operand) float64 {
		if o == gemm.C {
			return float64(s.Elements(o)) * float64(types.Out.Bits()) / 8
		}
		return float64(s.Elements(o)) * float64(types.In.Bits()) / 8
	}
	for _, o := range p.Copied {
		copied[o] = true
		p.Moved += 2 * bytes(o)
	}
	rereads := p.Nested - 1
	if beta {
		rereads++
	}
	p.Moved += float64(rereads) * bytes(gemm.C)
	for o := gemm.A; o <= gemm.C; o++ {
		if copied[o] {
			continue
		}
		in := o // the GEMM's operand that the tensor is
		if p.Swapped && o != gemm.C {
			in = gemm.B - o
		}
		offsets := gemm.MaxVector
		for _, x := range []byte(p.Loop + p.Batch) {
			offsets |= p.Problem.Type(in).Size(s.Stride(o, x))
		}
		_ = p.Problem.SetAlign(in, offsets&-offsets) // a power of two
	}
}

// Slowest returns letters in the other order: the longest stride first.
func Slowest(letters string) string { return reversed(letters) }

// Text says which indices each dimension of the GEMM consists of, the longest stride first, and what happens around
// it: "m = b·s, n = n, k = k; 16 GEMMs in turn over j, whose results add up".
func (p *Plan) Text() string {
	dot := func(letters string) string { return strings.Join(strings.Split(Slowest(letters), ""), "·") }
	var dimensions []string
	for _, d := range [...]struct{ name, letters string }{{"m", p.M}, {"n", p.N}, {"k", p.K}, {"batch", p.Batch}} {
		switch {
		case d.letters != "":
			dimensions = append(dimensions, d.name+" = "+dot(d.letters))
		case d.name != "batch":
			dimensions = append(dimensions, d.name+" = 1")
		}
	}
	text := strings.Join(dimensions, ", ")
	if p.Swapped {
		text += "; A and B change places"
	}
	if p.Problem.Nest != (gemm.Nest{}) {
		text += "; one kernel looks each element up"
	}
	if p.Calls > 1 {
		text += fmt.Sprintf("; %d GEMMs in turn over %s", p.Calls, dot(p.Loop))
		switch {
		case p.Nested == p.Calls:
			text += ", whose results add up"
		case p.Nested > 1:
			text += fmt.Sprintf(", of which each %d add up", p.Nested)
		}
	}
	for i, o := range p.Copied {
		text += [...]string{"; ", " and "}[min(i, 1)]
		if i == 0 {
			text += "copies "
		}
		text += o.String()
	}
	return text
}
