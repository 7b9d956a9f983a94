package comparecmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
)

// contents are the files of a report: compare.html, which needs no other file, the figures as SVG and PNG, and
// compare.csv and compare.json with the numbers.
func (c *comparison) contents() report.Contents {
	names := strings.Join(c.names(), ", ")
	return report.Contents{Name: "compare", Subject: names, Numbers: c.write, Page: func(r *report.Report) {
		for _, f := range c.figures() {
			r.Draw(f.name, f.Figure)
		}
		p := &report.Page{Title: printable.Line("Comparison of " + names),
			Footer: fmt.Sprintf("Written by %s on %s.", session.Software(), time.Now().UTC().Format(time.DateOnly))}
		c.page(p)
		r.HTML("compare.html", p)
	}}
}

func (c *comparison) names() []string {
	names := make([]string, len(c.sides))
	for i := range c.sides {
		names[i] = c.sides[i].Called()
	}
	return names
}

func (c *comparison) types() (types []gemm.DType) {
	for j := range c.rows {
		if t := c.rows[j].DType; !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
