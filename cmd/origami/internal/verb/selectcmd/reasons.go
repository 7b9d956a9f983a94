package selectcmd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
)

// reasonWidth keeps a line of reasons, behind its label, readable.
const reasonWidth = 108

// countsToShow are the common terms that say most about a pick.
var countsToShow = []string{
	arch.CommonTilesM, arch.CommonTilesN, arch.CommonActiveUnits, arch.CommonWaves, arch.CommonL2Hit,
	arch.CommonMALLHit,
	arch.CommonUtilization,
}

// reasons says in words what the terms say: how long one K step takes, where the time goes, and the counts behind it.
func reasons(a *session.Answer, e *session.Entry) []string {
	type named struct {
		name  string
		value float64
		unit  string
	}
	var steps, shares, counts []named
	for i, t := range a.Arch.Terms {
		n := named{t.Name, e.Terms[i], t.Unit}
		switch {
		case t.Kind == arch.KindStep:
			steps = append(steps, n)
		case t.Kind == arch.KindShare:
			shares = append(shares, n)
		case slices.Contains(countsToShow, t.CommonName()):
			counts = append(counts, named{t.CommonName(), n.value, n.unit})
		}
	}
	descending := func(a, b named) int { return cmp.Compare(b.value, a.value) }
	var out []string
	if len(steps) > 0 {
		slices.SortStableFunc(steps, descending)
		parts := make([]string, len(steps))
		for i, step := range steps {
			parts[i] = fmt.Sprintf("%s %s", step.name, render.Quantity(step.value, step.unit))
		}
		lead := "one K step:"
		if len(steps) > 1 {
			lead = "one K step, the slowest counts:"
		}
		out = append(out, render.WrapList(lead, parts, reasonWidth)...)
	}
	if total, ok := a.Total(e); ok && len(shares) > 0 {
		slices.SortStableFunc(shares, descending)
		var parts []string
		for _, s := range shares {
			if s.value/total >= 0.001 {
				parts = append(parts, fmt.Sprintf("%s %s", s.name, render.Percent(s.value/total)))
			}
		}
		out = append(out, render.WrapList("the time goes to", parts, reasonWidth)...)
	}
	if len(counts) > 0 {
		parts := make([]string, len(counts))
		for i, c := range counts {
			parts[i] = c.name + " " + render.SixDigits(c.value)
		}
		out = append(out, render.WrapList("with", parts, reasonWidth)...)
	}
	return out
}
