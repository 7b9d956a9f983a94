package comparecmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
)

// report writes a comparison into a folder: compare.html, which needs no other file, the figures as SVG and PNG, and
// compare.csv and compare.json with the numbers.
func (w *writer) report(folder string, args []string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	err := to.Numbers("compare", func(s *iostreams.Streams, f table.Format) error { return w.write(s, f) })
	if err != nil {
		return err
	}
	source := report.Source(strings.Join(w.all.names(), ", "), args)
	for _, f := range w.all.figures() {
		if _, err := to.Figure(f.name, f.Figure, source); err != nil {
			return err
		}
	}
	p := &page.Page{Title: printable.Line("Comparison of " + strings.Join(w.all.names(), ", ")),
		Footer: fmt.Sprintf("Written by %s on %s.", session.Software(), time.Now().UTC().Format(time.DateOnly))}
	w.all.page(p)
	return to.HTML("compare.html", p)
}

func (c *comparison) names() []string {
	names := make([]string, len(c.sides))
	for i := range c.sides {
		names[i] = c.sides[i].name()
	}
	return names
}

// types lists the types of the operands.
func (c *comparison) types() (types []gemm.DType) {
	for j := range c.rows {
		if t := c.rows[j].DType; !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
