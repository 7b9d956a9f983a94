package comparecmd

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
)

// kinds are the groups of terms, what matters most first.
var kinds = []struct {
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

// terms are the terms that some side has and that are not zero: all of them, or the largest shares of the time. Terms
// have the name that all models have for them.
func terms(sides []side, all bool) (parts []section) {
	for _, k := range kinds {
		part := section{title: k.title}
		for _, name := range termNames(sides, k.kind) {
			share := func(s *side) (j int, share float64, ok bool) {
				j = slices.IndexFunc(s.a.Arch.Terms, func(t arch.Term) bool { return t.CommonName() == name && t.Kind == k.kind })
				if j >= 0 {
					share, ok = s.a.Share(s.e, j)
				}
				return j, share, ok
			}
			if !all && !slices.ContainsFunc(sides, func(s side) bool {
				if s.a == nil {
					return false
				}
				_, v, _ := share(&s)
				return math.Abs(v) >= leastShare
			}) {
				continue
			}
			part.lines = append(part.lines, text("  "+name, func(s *side) string {
				j, of, ok := share(s)
				if j < 0 || s.e.Terms[j] == 0 {
					return ""
				}
				if entering := s.a.Entering(s.e); entering != nil && !entering[j] {
					return ""
				}
				text := show.TermCell(s.a.Arch, s.e.Terms[j], s.a.Arch.Terms[j].Unit)
				if ok {
					text += " (" + digits.Percent(of) + ")"
				}
				return text
			}))
		}
		parts = append(parts, part)
	}
	return parts
}

// termNames lists the common names of the terms of one kind, in the order of the side that has most of them, then of
// the others. Intermediate terms that several sides have go first.
func termNames(sides []side, kind arch.TermKind) (names []string) {
	of, count := make([][]string, len(sides)), map[string]int{}
	for i := range sides {
		if sides[i].a == nil {
			continue
		}
		for _, t := range sides[i].a.Arch.Terms {
			if t.Kind == kind {
				of[i] = append(of[i], t.CommonName())
				count[t.CommonName()]++
			}
		}
	}
	slices.SortStableFunc(of, func(a, b []string) int { return len(b) - len(a) })
	for _, name := range slices.Concat(of...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if kind == arch.KindIntermediate {
		slices.SortStableFunc(names, func(a, b string) int { return min(count[b], 2) - min(count[a], 2) })
	}
	return names
}
