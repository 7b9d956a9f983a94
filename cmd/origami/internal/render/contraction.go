package render

import (
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/contract"
)

// ContractionJSON is a contraction in JSON, and how GEMMs compute it. Indices are listed as in einsum, the longest
// stride first.
type ContractionJSON struct {
	Einsum string `json:"einsum"`
	FreeA  string `json:"free_a"`
	FreeB  string `json:"free_b"`
	Batch  string `json:"batch"`
	Sum    string `json:"sum"`
	PlanJSON
	Instead []*PlanJSON `json:"instead,omitempty"`
}

// PlanJSON is a way to compute it.
type PlanJSON struct {
	Direct  bool     `json:"direct"`
	Nest    string   `json:"nest,omitempty"`
	Kernel  string   `json:"kernel"`
	M       string   `json:"m"`
	N       string   `json:"n"`
	K       string   `json:"k"`
	GEMMs   string   `json:"batch_of_gemm"`
	Swapped bool     `json:"swapped"`
	Loop    string   `json:"loop"`
	Calls   int      `json:"calls"`
	Adding  int      `json:"adding"`
	Copied  []string `json:"copied"`
	Moved   float64  `json:"moved_bytes"`
	Seconds float64  `json:"seconds"`
}

func contractionJSON(c *session.Contracted) *ContractionJSON {
	if c == nil {
		return nil
	}
	of := func(class contract.Class) string { return contract.Slowest(c.Of(class)) }
	out := &ContractionJSON{Einsum: c.String(), FreeA: of(contract.FreeA), FreeB: of(contract.FreeB),
		Batch: of(contract.Batch), Sum: of(contract.Sum), PlanJSON: *planJSON(c)}
	for _, other := range c.Instead {
		out.Instead = append(out.Instead, planJSON(other))
	}
	return out
}

func planJSON(c *session.Contracted) *PlanJSON {
	p := c.Plan
	out := &PlanJSON{Direct: p.Direct(), Nest: p.Problem.Nest.String(), Kernel: c.Kernel,
		M: contract.Slowest(p.M), N: contract.Slowest(p.N), K: contract.Slowest(p.K),
		GEMMs: contract.Slowest(p.Batch), Swapped: p.Swapped, Loop: contract.Slowest(p.Loop), Calls: p.Calls,
		Adding: p.Nested, Copied: []string{}, Moved: p.Moved, Seconds: float64(c.Seconds)}
	for _, o := range p.Copied {
		out.Copied = append(out.Copied, o.String())
	}
	return out
}

// ContractionLines print how GEMMs compute a contraction, and how long that takes beside the other way.
func ContractionLines(s *iostreams.Streams, a *session.Answer) {
	c := a.Contraction
	table.Line(s, "contraction", "%s", c.String())
	table.Line(s, "", "%s", c.Plan.Text())
	if !c.Plan.Direct() {
		table.Line(s, "in all", "%s", s.Bold(c.Seconds.String()+": "+parts(a, c)))
	}
	for i, other := range c.Instead {
		table.Line(s, [...]string{"instead", ""}[min(i, 1)], "%s: %s", other.Plan.Text(), other.Seconds)
	}
}

// parts says what the time of a contraction consists of.
func parts(a *session.Answer, c *session.Contracted) string {
	gemms := table.Plural(c.Plan.Calls, "GEMM", "GEMMs") + " of " + a.Seconds(&a.Entries[0]).String()
	if c.Plan.Moved == 0 {
		return gemms
	}
	text := fmt.Sprintf("%s, and %.3g MB moved besides at the bandwidth of DRAM", gemms, c.Plan.Moved/1e6)
	if len(c.Plan.Copied) > 0 {
		text += ", in " + table.Plural(len(c.Plan.Copied), "copy", "copies")
	}
	return text
}
