package table

import (
	"fmt"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/digits"
)

// ContractionLines print how GEMMs compute a contraction, and how long that takes beside the other way.
func ContractionLines(s *iostreams.Streams, a *ask.Ranking) {
	c := a.Contraction
	Line(s, "contraction", "%s", c.String())
	Line(s, "", "%s", c.Plan.Text())
	if !c.Plan.Direct() {
		Line(s, "in all", "%s", s.Bold(c.Seconds.String()+": "+parts(a, c)))
	}
	for i, other := range c.Instead {
		Line(s, [...]string{"instead", ""}[min(i, 1)], "%s: %s", other.Plan.Text(), other.Seconds)
	}
}

// parts says what the time of a contraction consists of.
func parts(a *ask.Ranking, c *ask.Contracted) string {
	gemms := digits.Plural(c.Plan.Calls, "GEMM", "GEMMs") + " of " + a.Seconds(&a.Entries[0]).String()
	if c.Plan.Moved == 0 {
		return gemms
	}
	text := fmt.Sprintf("%s, and %.3g MB moved besides at the bandwidth of DRAM", gemms, c.Plan.Moved/1e6)
	if len(c.Plan.Copied) > 0 {
		text += ", in " + digits.Plural(len(c.Plan.Copied), "copy", "copies")
	}
	return text
}
