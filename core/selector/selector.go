// Package selector picks configurations. It asks an architecture for candidates and estimates, orders them as the model
// declares, and maps the best to a launch order. The same code runs in the process of the model and, over the plugin
// boundary, in the host.
package selector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/keep"
)

// Request asks for rankings of problems.
type Request struct {
	Problems []gemm.Problem
	Space    arch.Space
	// Top is the number of entries per problem, best first; 0 means all.
	Top int
	// Map is the number of these entries that get a mapping, best first; 0 means all. The others keep a GroupM of 0.
	Map int
}

// Entry is one ranked candidate. Config.GroupM comes from Mapping. Both are zero in an entry without a mapping.
type Entry struct {
	// Index is the position of the candidate in Candidates.Configs.
	Index    int
	Config   gemm.Config
	Estimate arch.Estimate
	Mapping  arch.Mapping
}

// Result is the ranking for one problem.
type Result struct {
	// Entries are the best candidates, best first. They are empty only if Err is set.
	Entries []Entry
	// Feasible counts the usable candidates. Rejected counts the others by reason.
	Feasible int
	Rejected []ReasonCount
	// Err is the error of this problem. It does not affect the other problems of the request.
	Err error
}

// RejectedTotal returns the number of rejected candidates.
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

// Ranker is an architecture in another process that runs this package's Rank beside its model. A ranking then takes one
// round trip instead of one per phase.
type Ranker interface {
	Rank(ctx context.Context, r Request) ([]Result, error)
}

// Rank ranks the problems of a request, in the process of the model if it can. The error concerns the whole request. An
// error of one problem is in its Result.
func Rank(ctx context.Context, a arch.Architecture, r Request) ([]Result, error) {
	results, _, err := RankListed(ctx, a, r)
	return results, err
}

// Lists has the candidates that rankings were made from.
type Lists struct {
	local  *Selector         // nil if they were made in another process
	remote arch.Architecture // in that process
	space  arch.Space
}

// Of returns the candidates of a problem, with the rejected ones.
func (l *Lists) Of(ctx context.Context, p gemm.Problem) (*arch.Candidates, error) {
	if l.local == nil {
		return l.remote.Candidates(ctx, p, l.space)
	}
	return l.local.arch.Candidates(ctx, p, l.space)
}

// Configs returns the candidates of a problem that can be used.
func (l *Lists) Configs(ctx context.Context, p gemm.Problem) ([]gemm.Config, error) {
	if l.local != nil {
		list, err := l.local.candidates(ctx, p)
		if err != nil {
			return nil, err
		}
		return list.configs, nil
	}
	list, err := l.Of(ctx, p)
	if err != nil {
		return nil, err
	}
	return list.Configs, nil
}

// Candidate returns an entry of a ranking, by its index and configuration, as the list has it: without a mapping. From
// another process it asks for a list of this configuration alone, as the whole list has some megabytes.
func (l *Lists) Candidate(ctx context.Context, p gemm.Problem, index int, c gemm.Config) (gemm.Config, error) {
	if l.local == nil {
		space := l.space
		numbers := space.Numbers()
		for i, v := range c.Numbers() {
			if numbers[i] != nil && v != 0 {
				*numbers[i] = []int{v}
			}
		}
		if list, err := l.remote.Candidates(ctx, p, space); err == nil {
			for _, listed := range list.Configs {
				mapped := listed
				if mapped.GroupM = c.GroupM; mapped == c {
					return listed, nil
				}
			}
		}
	}
	configs, err := l.Configs(ctx, p)
	if err != nil {
		return gemm.Config{}, err
	}
	return configs[index], nil
}

// RankListed is Rank for a caller who needs the candidates too. A ranking in this process has listed them.
func RankListed(ctx context.Context, a arch.Architecture, r Request) ([]Result, *Lists, error) {
	if remote, ok := a.(Ranker); ok {
		results, err := remote.Rank(ctx, r)
		return results, &Lists{remote: a, space: r.Space}, err
	}
	s := New(a, r.Space)
	s.Map = r.Map
	results := make([]Result, len(r.Problems))
	for i, p := range r.Problems {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var result Result
		result.Err = s.Rank(ctx, p, r.Top, &result)
		results[i] = result
	}
	return results, &Lists{local: s, space: r.Space}, nil
}

// RankOne ranks one problem. It returns an error of the problem like any other error.
func RankOne(ctx context.Context, a arch.Architecture, p gemm.Problem, r Request) ([]Entry, error) {
	r.Problems = []gemm.Problem{p}
	results, err := Rank(ctx, a, r)
	if err != nil {
		return nil, err
	}
	return results[0].Entries, results[0].Err
}

// Selector ranks one problem after another on one architecture and space. It keeps candidate lists (package keep) and
// buffers between calls, so that repeated calls allocate nothing. It is not safe for concurrent use: each goroutine
// needs a separate Selector.
type Selector struct {
	// Map is the number of entries of a ranking that get a mapping, best first; 0 means all. Mapping a configuration
	// can take longer than estimating it.
	Map int

	arch  arch.Architecture
	space arch.Space
	order arch.Order

	lists  []*kind
	est    []arch.Estimate
	ranked []scored
}

// kind is a combination of types and layout.
type kind struct {
	types          gemm.Types
	aMajor, bMajor gemm.Major
	grouped        bool
	list           keep.Value[candidateList]
}

// candidateList is a list without the rejected candidates, which can be many times as many.
type candidateList struct {
	configs  []gemm.Config
	rejected []ReasonCount
	detail   string // of all rejections, empty if there are several, or candidates that were not rejected at once
}

// scored is a feasible candidate during ranking. Positive floats and their bit patterns have the same order.
type scored struct {
	bits  uint64
	index int
}

// New returns a Selector for an architecture and a space.
func New(a arch.Architecture, s arch.Space) *Selector {
	return &Selector{arch: a, space: s, order: a.Describe().Order}
}

// Select finds the best candidate for a problem. It is Rank with one entry.
func (s *Selector) Select(ctx context.Context, p gemm.Problem, into *Result) error {
	return s.Rank(ctx, p, 1, into)
}

// Rank fills into with the best top candidates for a problem, or with all if top is 0. It reuses the slices of into.
// The list for a smaller top is a prefix of the full list. If no candidate is feasible, the error contains the
// rejection counts, as does into.
func (s *Selector) Rank(ctx context.Context, p gemm.Problem, top int, into *Result) error {
	into.Entries, into.Rejected, into.Feasible, into.Err = into.Entries[:0], into.Rejected[:0], 0, nil
	if err := p.Validate(); err != nil {
		return err
	}
	list, err := s.candidates(ctx, p)
	if err != nil {
		return err
	}
	s.est = slices.Grow(s.est[:0], len(list.configs))[:len(list.configs)]
	if err := s.estimate(ctx, p, list.configs, top); err != nil {
		return err
	}

	into.Rejected = append(into.Rejected, list.rejected...)
	for i := range s.est {
		if e := &s.est[i]; e.Reject != "" {
			into.Rejected = count(into.Rejected, e.Reject)
		} else if !arch.IsTotal(e.Cycles) {
			return s.arch.Describe().Implausible(e.Cycles, fmt.Sprintf("%s of %s", list.configs[i], p))
		}
	}
	s.score()
	into.Feasible = len(s.ranked)
	if into.Feasible == 0 {
		return s.noFit(ctx, p, list, into)
	}

	if top <= 0 || top > len(s.ranked) {
		top = len(s.ranked)
	}
	s.sort(list.configs, top)
	if err := s.settle(ctx, p, list.configs, top); err != nil {
		return err
	}
	into.Entries = slices.Grow(into.Entries, top)[:top]
	for i := range into.Entries {
		e, index := &into.Entries[i], s.ranked[i].index
		e.Index, e.Config, e.Estimate, e.Mapping = index, list.configs[index], s.est[index], arch.Mapping{}
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

// score fills s.ranked from s.est, in the order of candidates.
func (s *Selector) score() {
	s.ranked = slices.Grow(s.ranked[:0], len(s.est))
	for i := range s.est {
		if e := &s.est[i]; e.Reject == "" {
			s.ranked = append(s.ranked, scored{math.Float64bits(float64(e.Cycles)), i})
		}
	}
}

// A split of K of which the model knows less than of kernels without a split is not taken for a gain that no
// measurement would show: noise, as a fraction. As many candidates as settled are looked at for one without a split.
const (
	noise   = 0.01
	settled = 16
)

// settle moves the first candidate without a split of K to the front if the first of all has a split with worse
// evidence, and the time of the former is within noise.
func (s *Selector) settle(ctx context.Context, p gemm.Problem, configs []gemm.Config, top int) error {
	best, d := s.ranked[0], s.arch.Describe()
	split := configs[best.index].SplitK
	if split <= 1 || s.order.Window > 0 {
		return nil
	}
	evidence := func(split int) arch.Evidence { return d.Scope(s.space.Kernel, &p, split).Evidence }
	if !evidence(split).Worse(evidence(1)) {
		return nil
	}
	if leading := min(settled, len(s.ranked)); leading > top {
		if err := s.estimate(ctx, p, configs, leading); err != nil {
			return err
		}
		s.score()
		s.sort(configs, leading)
	}
	limit := math.Float64frombits(best.bits) * (1 + noise)
	for i, c := range s.ranked[:min(settled, len(s.ranked))] {
		if math.Float64frombits(c.bits) <= limit && configs[c.index].SplitK <= 1 {
			copy(s.ranked[1:i+1], s.ranked[:i])
			s.ranked[0] = c
			break
		}
	}
	return nil
}

// estimate fills s.est: all estimates that a ranking with top entries reads are exact.
func (s *Selector) estimate(ctx context.Context, p gemm.Problem, configs []gemm.Config, top int) error {
	if fast, ok := s.arch.(arch.FastestEstimator); ok && top > 0 && s.order.Window <= 0 {
		return fast.EstimateFastest(ctx, s.est, p, configs, top)
	}
	return s.arch.Estimate(ctx, s.est, p, configs)
}

// candidates returns the candidate list for the problem's types and layout. Each list is computed once, if there is
// room to keep it.
func (s *Selector) candidates(ctx context.Context, p gemm.Problem) (*candidateList, error) {
	types, grouped := p.Types(), p.Groups != gemm.Groups{}
	i := slices.IndexFunc(s.lists, func(k *kind) bool {
		return k.types == types && k.aMajor == p.AMajor && k.bMajor == p.BMajor && k.grouped == grouped
	})
	if i >= 0 {
		if list := s.lists[i].list.Load(); list != nil {
			return list, nil
		}
	}
	c, err := s.arch.Candidates(ctx, p, s.space)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i = len(s.lists)
		s.lists = append(s.lists, &kind{types: types, aMajor: p.AMajor, bMajor: p.BMajor, grouped: grouped})
	}
	list := &candidateList{configs: c.Configs, detail: sharedDetail(c)}
	if cap(c.Configs) > len(c.Configs)*5/4 { // the space that they were chosen from
		list.configs = slices.Clone(c.Configs)
	}
	for _, r := range c.Rejected {
		list.rejected = count(list.rejected, r.Reason)
	}
	s.lists[i].list.Store(list, len(list.configs)*int(unsafe.Sizeof(gemm.Config{})))
	return list, nil
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

// noFit is the error if no candidate is feasible. It lists the counts by reason, most frequent first. If all have one
// reason in detail, it says that, and which layout would do if another one does.
func (s *Selector) noFit(ctx context.Context, p gemm.Problem, list *candidateList, r *Result) error {
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
	text := fmt.Sprintf("no configuration of %s fits %s", s.arch.Describe().ID(), p)
	detail := list.detail
	if detail != "" {
		text += ": " + detail
	}
	err := diag.Inputf("%s (rejected: %s)", text, why)
	if detail != "" {
		if layout := s.otherLayout(ctx, p); layout != "" {
			return err.Do("let %s", layout).Coded(diag.CodeOtherLayout, "")
		}
	}
	return err.Coded(diag.CodeNothingFits, "")
}

// sharedDetail is candidateList.detail.
func sharedDetail(c *arch.Candidates) string {
	if len(c.Configs) > 0 || len(c.Rejected) == 0 {
		return ""
	}
	detail := c.Rejected[0].Detail
	if slices.ContainsFunc(c.Rejected, func(r arch.Rejection) bool { return r.Detail != detail }) {
		return ""
	}
	return detail
}

// otherLayout says what is different in a layout that has candidates, empty if none has. It changes B rather than A.
func (s *Selector) otherLayout(ctx context.Context, p gemm.Problem) string {
	for _, flip := range [...]struct{ a, b bool }{{b: true}, {a: true}, {a: true, b: true}} {
		q := p
		q.SetTrans(p.TransA() != flip.a, p.TransB() != flip.b)
		q.LDA, q.LDB = 0, 0
		if q.Validate() != nil {
			continue
		}
		if list, err := s.candidates(ctx, q); err != nil || len(list.configs) == 0 {
			continue
		}
		var parts []string
		if flip.a {
			parts = append(parts, fmt.Sprintf("A be contiguous along %c", q.AMajor))
		}
		if flip.b {
			parts = append(parts, fmt.Sprintf("B be contiguous along %c", q.BMajor))
		}
		return strings.Join(parts, " and ")
	}
	return ""
}

// sort moves the best top elements of s.ranked to the front, in order.
func (s *Selector) sort(configs []gemm.Config, top int) {
	if s.order.Window <= 0 {
		s.partialSort(top, func(a, b scored) int {
			if a.bits != b.bits {
				return cmp.Compare(a.bits, b.bits)
			}
			return cmp.Or(s.compareKeys(&configs[a.index], &configs[b.index]), a.index-b.index)
		})
		return
	}

	byTotal := func(a, b scored) int {
		if a.bits != b.bits {
			return cmp.Compare(a.bits, b.bits)
		}
		return a.index - b.index
	}
	// The keys need the whole leading group, so at least that many elements are moved to the front.
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
				return -cmp.Compare(configs[a.index].Intensity(), configs[b.index].Intensity())
			})
			first, n := configs[head[0].index].Intensity(), 1
			for n < len(head) && math.Abs(configs[head[n].index].Intensity()-first) < arch.IntensityTolerance {
				n++
			}
			head = head[:n]
		case arch.KeyLargeTile:
			slices.SortStableFunc(head, func(a, b scored) int {
				return -compareTile(&configs[a.index], &configs[b.index])
			})
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

// compareKeys compares two candidates with equal totals by the keys. The better one comes first.
func (s *Selector) compareKeys(a, b *gemm.Config) int {
	for _, key := range s.order.Keys {
		c := 0
		switch key {
		case arch.KeyIntensity:
			c = cmp.Compare(b.Intensity(), a.Intensity())
		case arch.KeyLargeTile:
			c = compareTile(b, a)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// partialSort moves the top smallest elements of s.ranked to the front, sorted. The order of the rest is unspecified.
// For a small top it maintains a sorted prefix, which needs one comparison for most other elements.
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

func compareTile(a, b *gemm.Config) int {
	return cmp.Or(a.BlockM-b.BlockM, a.BlockN-b.BlockN, a.BlockK-b.BlockK)
}
