package picturecmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/roofline"
)

// mostRows bounds the kernels of the page's table. The CSV file has all.
const mostRows = 200

// contents are the files of a report: roofline.md, a figure per type of operands as SVG and PNG, and the numbers as
// CSV and JSON.
func (p *picture) contents() report.Contents {
	labels := make([]string, len(p.sides))
	for i := range p.sides {
		labels[i] = p.sides[i].Label()
	}
	return report.Contents{Name: "roofline", Subject: strings.Join(labels, ", "), Numbers: p.write, Page: p.page}
}

func (p *picture) page(r *report.Report) {
	r.CSV("ceilings", func(s *iostreams.Streams, f table.Format) error {
		return p.ceilings().Write(s, f, p.roofs())
	})
	r.Heading(1, "Kernels under the roofs")
	for _, t := range p.types() {
		title := "Kernels under the roofs, " + t.String()
		r.Figure("roofline-"+t.String(), title, figure.Roofline(title, p.under(t)))
	}
	r.List([]string{
		"A line is the roof of instructions or of a memory: what a microbenchmark reached or, where none was run, the " +
			"limit of the hardware.",
		"A kernel has a point per memory, at its rate and at its operations by byte there. Each point belongs under " +
			"the line of its own memory.",
		"Bytes are the model's, also where the time is measured.",
		fmt.Sprintf("Written by %s on %s.", session.Software(), time.Now().UTC().Format(time.DateOnly)),
	})
	r.Heading(2, "Ceilings")
	r.Table(p.ceilings().Text(p.roofs()))
	if len(p.kernels) > 0 {
		r.Heading(2, "Kernels")
		header, rows := p.columns().Text(p.kernels)
		if len(rows) > mostRows {
			r.List([]string{fmt.Sprintf("The first %d of %d; roofline.csv has all.", mostRows, len(rows))})
			rows = rows[:mostRows]
		}
		r.Table(header, rows)
	}
}

// types are the types of operands in the picture.
func (p *picture) types() (types []gemm.DType) {
	for _, d := range p.sides[0].roofs {
		types = append(types, d.DType)
	}
	if len(p.kernels) == 0 {
		return types
	}
	var used []gemm.DType
	for _, t := range types {
		for i := range p.kernels {
			if p.kernels[i].problem.DType == t {
				used = append(used, t)
				break
			}
		}
	}
	return used
}

// under are the devices with their kernels of one type.
func (p *picture) under(t gemm.DType) (sides []figure.RoofSide) {
	for i := range p.sides {
		s := &p.sides[i]
		one := figure.RoofSide{Name: s.Describe().DeviceName + " (" + s.Label() + ")", Device: s.of(t)}
		for k := range p.kernels {
			kernel := &p.kernels[k]
			if kernel.side != i || kernel.problem.DType != t {
				continue
			}
			shown := figure.RoofKernel{Kernel: kernel.Kernel, Measured: kernel.measured,
				Name: fmt.Sprintf("%s %s of %s", kernel.name, kernel.config, kernel.problem)}
			if len(p.sides) > 1 { // the roof of shared memory is not drawn
				shown.Points = slices.DeleteFunc(slices.Clone(shown.Points), func(p roofline.Point) bool {
					return p.Level == roofline.Shared
				})
			}
			one.Kernels = append(one.Kernels, shown)
		}
		sides = append(sides, one)
	}
	return sides
}
