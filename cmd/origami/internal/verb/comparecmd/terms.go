package comparecmd

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// sections are the groups of terms, what matters most first.
var sections = []struct {
	kind  arch.TermKind
	title string
}{
	{arch.KindShare, "where the time goes"},
	{arch.KindTotal, "prediction"},
	{arch.KindStep, "one K step, the slowest counts"},
	{arch.KindIntermediate, "intermediate"},
}

// leastShare is the part of the time from which on a term has a line where not all are asked for.
const leastShare = 0.02

// terms adds the terms that some side has and that are not zero: all of them, or the largest shares of the time.
func (g *grid) terms(all bool) {
	largest := map[string]float64{}
	g.eachTerm(func(_ int, a *ask.Ranking, e *ask.Entry, j int) {
		if v, ok := a.Share(e, j); ok {
			name := a.Arch.Terms[j].CommonName()
			largest[name] = max(largest[name], math.Abs(v))
		}
	})
	for _, section := range sections {
		before := len(g.rows)
		g.heading(section.title)
		for _, name := range g.termNames(section.kind) {
			if all || largest[name] >= leastShare {
				g.term(name, section.kind)
			}
		}
		if len(g.rows) == before+1 {
			g.rows, g.headings = g.rows[:before], g.headings[:len(g.headings)-1]
		}
	}
}

// term adds a line for a term by the name that all models have for it.
func (g *grid) term(name string, kind arch.TermKind) {
	g.add("  "+name, func(_ int, a *ask.Ranking, e *ask.Entry) string {
		j := slices.IndexFunc(a.Arch.Terms, func(t arch.Term) bool { return t.CommonName() == name && t.Kind == kind })
		if j < 0 || e.Terms[j] == 0 {
			return ""
		}
		if entering := a.Entering(e); entering != nil && !entering[j] {
			return ""
		}
		text := show.TermCell(a.Arch, e.Terms[j], a.Arch.Terms[j].Unit)
		if share, ok := a.Share(e, j); ok {
			text += " (" + digits.Percent(share) + ")"
		}
		return text
	})
}

func (g *grid) eachTerm(f func(i int, a *ask.Ranking, e *ask.Entry, j int)) {
	for i := range g.r.Sides {
		if a, e := g.r.Best(i); a != nil {
			for j := range a.Arch.Terms {
				f(i, a, e, j)
			}
		}
	}
}

// termNames lists the common names of the terms of one kind, in the order of the side that has most of them, then of
// the others. Intermediate terms that several sides have go first.
func (g *grid) termNames(kind arch.TermKind) []string {
	sides := make([][]string, len(g.r.Sides))
	count := map[string]int{}
	g.eachTerm(func(i int, a *ask.Ranking, _ *ask.Entry, j int) {
		if t := &a.Arch.Terms[j]; t.Kind == kind {
			sides[i] = append(sides[i], t.CommonName())
			count[t.CommonName()]++
		}
	})
	slices.SortStableFunc(sides, func(a, b []string) int { return len(b) - len(a) })
	var names []string
	for _, name := range slices.Concat(sides...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if kind == arch.KindIntermediate {
		slices.SortStableFunc(names, func(a, b string) int { return min(count[b], 2) - min(count[a], 2) })
	}
	return names
}
