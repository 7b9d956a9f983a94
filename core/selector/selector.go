// Package selector picks configurations: it asks an architecture for candidates and estimates, orders them as the
// model declares, and maps the winners to a launch order. The same code runs beside the model and on the far side of a
// plugin boundary.
package selector

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Request asks for a ranking of each of several problems.
type Request struct {
	Problems []gemm.Problem
	Space    arch.Space
	// Top is how many entries to return per problem, best first; 0 means all.
	Top int
	// Map is how many of those get a mapping, best first; 0 means all. The others keep a GroupM of 0.
	Map int
}

// Entry is one ranked candidate. Config.GroupM comes from Mapping; both are zero in an entry that was not to be mapped.
type Entry struct {
	// Index is the candidate's place in Candidates.Configs.
	Index    int
	Config   gemm.Config
	Estimate arch.Estimate
	Mapping  arch.Mapping
}

// Result is the ranking for one problem.
type Result struct {
	// Entries are the best candidates, best first. Empty only when Err is set.
	Entries []Entry
	// Feasible counts the candidates that could be used, Rejected the others by reason.
	Feasible int
	Rejected []ReasonCount
	// Err says why this problem has no answer; the other problems of the request still have theirs.
	Err error
}

// RejectedTotal returns how many candidates were rejected.
func (r *Result) RejectedTotal() int {
	total := 0
	for _, c := range r.Rejected {
		total += c.Count
	}
	return total
}

// ReasonCount counts the candidates rejected for one reason.
type ReasonCount struct {
	Reason arch.Reason
	Count  int
}

// Ranker is implemented by an architecture that lives elsewhere and runs this package's Rank next to its model: one
// round trip instead of one per phase.
type Ranker interface {
	Rank(ctx context.Context, r Request) ([]Result, error)
}

// Rank answers a request over an architecture, where its model is. The error is for the request as a whole; what is
// wrong with one problem is in its Result.
func Rank(ctx context.Context, a arch.Architecture, r Request) ([]Result, error) {
	if remote, ok := a.(Ranker); ok {
		return remote.Rank(ctx, r)
	}
	s := New(a, r.Space)
	s.Map = r.Map
	results := make([]Result, len(r.Problems))
	for i, p := range r.Problems {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var own Result
		own.Err = s.Rank(ctx, p, r.Top, &own)
		results[i] = own
	}
	return results, nil
}

// RankOne ranks one problem; an error that concerns the problem alone is returned like any other.
func RankOne(ctx context.Context, a arch.Architecture, p gemm.Problem, r Request) ([]Entry, error) {
	r.Problems = []gemm.Problem{p}
	results, err := Rank(ctx, a, r)
	if err != nil {
		return nil, err
	}
	return results[0].Entries, results[0].Err
}

// Selector ranks problem after problem over one architecture and space. It keeps the candidate lists and its scratch
// space between calls, so that a steady stream of problems allocates nothing. It is not safe for concurrent use; give
// each goroutine its own.
type Selector struct {
	// Map is how many of the entries of a ranking get a mapping, best first; 0 means all. Mapping a configuration can cost
	// more than scoring it.
	Map int

	arch  arch.Architecture
	space arch.Space
	order arch.Order

	lists  []candidateList // one per combination of types and layout seen
	est    []arch.Estimate
	ranked []scored
}

type candidateList struct {
	dtype          gemm.DType
	aMajor, bMajor gemm.Major
	*arch.Candidates
	static []ReasonCount // the counts of Candidates.Rejected
}

// scored is a feasible candidate during ranking. For positive floats the bit pattern orders like the value.
type scored struct {
	bits  uint64
	index int
}

// New returns a Selector over a and s.
func New(a arch.Architecture, s arch.Space) *Selector {
	return &Selector{arch: a, space: s, order: a.Describe().Order}
}

// Select returns the best candidate for a problem. It is Rank with one entry.
func (s *Selector) Select(ctx context.Context, p gemm.Problem, into *Result) error {
	return s.Rank(ctx, p, 1, into)
}

// Rank fills into with the best `top` candidates for a problem (all if top is 0), reusing its slices. The top-k list is
// a prefix of the full one. When no candidate is feasible the error says so with the rejection counts, which are also
// in into.
func (s *Selector) Rank(ctx context.Context, p gemm.Problem, top int, into *Result) error {
	into.Entries, into.Rejected, into.Feasible, into.Err = into.Entries[:0], into.Rejected[:0], 0, nil
	if err := p.Validate(); err != nil {
		return err
	}
	list, err := s.candidates(ctx, p)
	if err != nil {
		return err
	}
	s.est = slices.Grow(s.est[:0], len(list.Configs))[:len(list.Configs)]
	if err := s.arch.Estimate(ctx, s.est, p, list.Configs); err != nil {
		return err
	}

	s.ranked = s.ranked[:0]
	into.Rejected = append(into.Rejected, list.static...)
	for i := range s.est {
		e := &s.est[i]
		if e.Reject != "" {
			into.Rejected = count(into.Rejected, e.Reject)
			continue
		}
		if !(e.Cycles > 0) || math.IsInf(float64(e.Cycles), 0) {
			return &diag.Error{Kind: diag.Plugin, Where: s.arch.Describe().ID(), Fix: "report it to the model's author",
				What: fmt.Sprintf("the %s model predicts %v cycles for %s of %s", s.arch.Describe().Model, float64(e.Cycles), list.Configs[i], p)}
		}
		s.ranked = append(s.ranked, scored{math.Float64bits(float64(e.Cycles)), i})
	}
	into.Feasible = len(s.ranked)
	if into.Feasible == 0 {
		return noFit(s.arch.Describe(), p, into)
	}

	if top <= 0 || top > len(s.ranked) {
		top = len(s.ranked)
	}
	s.sort(list.Configs, top)
	into.Entries = slices.Grow(into.Entries, top)[:top]
	for i := range into.Entries {
		e, index := &into.Entries[i], s.ranked[i].index
		e.Index, e.Config, e.Estimate, e.Mapping = index, list.Configs[index], s.est[index], arch.Mapping{}
		if s.Map > 0 && i >= s.Map {
			continue
		}
		if e.Mapping, err = s.arch.Mapping(ctx, p, e.Config); err != nil {
			into.Entries = into.Entries[:0]
			return err
		}
		e.Config.GroupM = e.Mapping.GroupM
	}
	return nil
}

// candidates returns the candidate list for the problem's types and layout, asking the architecture once for each.
func (s *Selector) candidates(ctx context.Context, p gemm.Problem) (*candidateList, error) {
	for i := range s.lists {
		if l := &s.lists[i]; l.dtype == p.DType && l.aMajor == p.AMajor && l.bMajor == p.BMajor {
			return l, nil
		}
	}
	c, err := s.arch.Candidates(ctx, p, s.space)
	if err != nil {
		return nil, err
	}
	list := candidateList{dtype: p.DType, aMajor: p.AMajor, bMajor: p.BMajor, Candidates: c}
	for _, r := range c.Rejected {
		list.static = count(list.static, r.Reason)
	}
	s.lists = append(s.lists, list)
	return &s.lists[len(s.lists)-1], nil
}

func count(counts []ReasonCount, r arch.Reason) []ReasonCount {
	for i := range counts {
		if counts[i].Reason == r {
			counts[i].Count++
			return counts
		}
	}
	return append(counts, ReasonCount{r, 1})
}

// noFit says that nothing fits, with the counts by reason, most frequent first.
func noFit(d *arch.Description, p gemm.Problem, r *Result) error {
	counts := slices.Clone(r.Rejected)
	sort.SliceStable(counts, func(i, j int) bool { return counts[i].Count > counts[j].Count })
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = fmt.Sprintf("%d %s", c.Count, c.Reason)
	}
	why := strings.Join(parts, ", ")
	if why == "" {
		why = "the space is empty"
	}
	return diag.Inputf("no configuration of %s fits %s (rejected: %s)", d.ID(), p, why).
		Coded(diag.CodeNothingFits, "")
}

// sort puts the best `top` of s.ranked first, in order.
func (s *Selector) sort(configs []gemm.Config, top int) {
	if s.order.Window <= 0 {
		s.partialSort(top, func(a, b scored) int {
			if a.bits != b.bits {
				return cmp(a.bits < b.bits)
			}
			if less, ok := s.before(configs, a.index, b.index); ok {
				return cmp(less)
			}
			return a.index - b.index
		})
		return
	}

	byTotal := func(a, b scored) int {
		if a.bits != b.bits {
			return cmp(a.bits < b.bits)
		}
		return a.index - b.index
	}
	// The leading group must be whole before its order is known, so at least that many are sorted out.
	best := math.Float64frombits(slices.MinFunc(s.ranked, byTotal).bits)
	group := 0
	for _, c := range s.ranked {
		if s.near(best, c) {
			group++
		}
	}
	s.partialSort(max(top, group), byTotal)
	head := s.ranked[:group]
	for _, key := range s.order.Keys {
		if len(head) < 2 {
			break
		}
		switch key {
		case arch.KeyIntensity:
			slices.SortStableFunc(head, func(a, b scored) int {
				return -compare(configs[a.index].Intensity(), configs[b.index].Intensity())
			})
			first, n := configs[head[0].index].Intensity(), 1
			for n < len(head) && math.Abs(configs[head[n].index].Intensity()-first) < arch.IntensityTolerance {
				n++
			}
			head = head[:n]
		case arch.KeyLargeTile:
			slices.SortStableFunc(head, func(a, b scored) int { return -compareTile(&configs[a.index], &configs[b.index]) })
			n := 1
			for n < len(head) && compareTile(&configs[head[n].index], &configs[head[0].index]) == 0 {
				n++
			}
			head = head[:n]
		}
	}
}

// near reports whether a candidate belongs to the leading group.
func (s *Selector) near(best float64, c scored) bool {
	return math.Abs(math.Float64frombits(c.bits)-best)/max(math.Abs(best), 1e-9) < s.order.Window
}

// before applies the keys to two candidates with bit-equal totals. ok is false when no key tells them apart.
func (s *Selector) before(configs []gemm.Config, a, b int) (less, ok bool) {
	for _, key := range s.order.Keys {
		c := 0
		switch key {
		case arch.KeyIntensity:
			c = compare(configs[a].Intensity(), configs[b].Intensity())
		case arch.KeyLargeTile:
			c = compareTile(&configs[a], &configs[b])
		}
		if c != 0 {
			return c > 0, true
		}
	}
	return false, false
}

// partialSort puts the `top` smallest of s.ranked first, sorted; the rest stays in no particular order. For a small top
// it keeps a sorted prefix, which is one comparison for most of the others.
func (s *Selector) partialSort(top int, order func(a, b scored) int) {
	v := s.ranked
	if top > 16 || top > len(v)/4 {
		slices.SortFunc(v, order)
		return
	}
	slices.SortFunc(v[:top], order)
	for i := top; i < len(v); i++ {
		if order(v[i], v[top-1]) >= 0 {
			continue
		}
		c := v[i]
		v[i] = v[top-1]
		j := top - 1
		for ; j > 0 && order(c, v[j-1]) < 0; j-- {
			v[j] = v[j-1]
		}
		v[j] = c
	}
}

func cmp(less bool) int {
	if less {
		return -1
	}
	return 1
}

func compare(a, b float64) int {
	if a == b {
		return 0
	}
	return cmp(a < b)
}

func compareTile(a, b *gemm.Config) int {
	if a.BlockM != b.BlockM {
		return a.BlockM - b.BlockM
	}
	if a.BlockN != b.BlockN {
		return a.BlockN - b.BlockN
	}
	return a.BlockK - b.BlockK
}
