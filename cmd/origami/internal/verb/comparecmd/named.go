package comparecmd

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// named looks up how often the faster of two devices was named right.
func named(first, second *ask.Contender, p gemm.Problem) *ask.Recorded {
	scheme := ""
	for _, side := range []*ask.Contender{first, second} {
		for _, o := range side.Describe().Options {
			if o.Key == "scheme" && o.Value != published.TensorScheme {
				scheme = o.Value
			}
		}
	}
	device := func(c *ask.Contender) string { return c.Arch.ID + "@" + c.Device.ID }
	n := published.WinnerNamed(device(first), device(second), p.DType.String(), scheme, score.LayerOf(p))
	if n.Decided == 0 {
		return nil
	}
	return &ask.Recorded{Decided: n.Decided, Right: n.Right}
}

// confirmed writes how often published times confirm who was named, for the fastest side and each other one.
func confirmed(r *ask.Contest) (note []string) {
	f := r.Fastest()
	if f == nil {
		return nil
	}
	var shares []string
	for i := range r.Sides {
		if n := r.Recorded(f.Entry, i); n != nil && i != f.Entry {
			shares = append(shares, fmt.Sprintf("%s %.0f %% of %d", r.Sides[i].Label(),
				100*float64(n.Right)/float64(n.Decided), n.Decided))
		}
	}
	if len(shares) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("of published products in %s of class %s, library names the faster side right: %s and %s",
		r.DType, score.LayerOf(r.Problem.Problem), r.Sides[f.Entry].Label(), strings.Join(shares, ", "))}
}
