package picturecmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/roofline"
)

// mostRows bounds the kernels of the page's table. The CSV file has all.
const mostRows = 200

// contents are the files of a report: roofline.md, a figure per type of operands as SVG and PNG, and the numbers as
// CSV and JSON.
func (p *picture) contents() report.Contents {
	var labels []string
	for i := range p.Devices {
		if id := p.Devices[i].ID; !slices.Contains(labels, id) {
			labels = append(labels, id)
		}
	}
	return report.Contents{Name: "roofline", Subject: strings.Join(labels, ", "), Numbers: p.write, Page: p.page}
}

func (p *picture) page(r *report.Report) {
	r.Rows("ceilings", func(s *iostreams.Streams, format table.Format) error {
		return ceilings(s, format).All(p.ceilings())
	})
	r.Heading(1, "Kernels under the roofs")
	for _, t := range p.types() {
		title := "Kernels under the roofs, " + t
		r.Figure("roofline-"+t, title, figure.Roofline(title, p.under(t)))
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
	r.Table(ceilings(nil, table.Table).Text(p.ceilings()))
	if len(p.Kernels) > 0 {
		r.Heading(2, "Kernels")
		header, rows := p.rows(nil, table.Table).Text(p.kernels())
		if len(rows) > mostRows {
			r.List([]string{fmt.Sprintf("The first %d of %d; roofline.csv has all.", mostRows, len(rows))})
			rows = rows[:mostRows]
		}
		r.Table(header, rows)
	}
}

// types are the types of operands in the picture.
func (p *picture) types() (types []string) {
	for i := range p.Devices {
		t := p.Devices[i].DType
		used := len(p.Kernels) == 0 ||
			slices.ContainsFunc(p.Kernels, func(k ask.RooflineKernel) bool { return k.Problem.DType == t })
		if p.Devices[i].ID == p.Devices[0].ID && used {
			types = append(types, t)
		}
	}
	return types
}

// under are the devices with their kernels of one type.
func (p *picture) under(t string) (sides []figure.RoofSide) {
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.DType != t {
			continue
		}
		one := figure.RoofSide{Name: d.Name + " (" + d.ID + ")", Device: d.Roofs}
		for j := range p.Kernels {
			kernel := &p.Kernels[j]
			if kernel.Device != d.ID || kernel.Problem.DType != t {
				continue
			}
			shown := figure.RoofKernel{Kernel: kernel.Place, Measured: kernel.Measured,
				Name: fmt.Sprintf("%s %s of %s", kernel.Name, configText(kernel), kernel.Size)}
			if p.Devices[0].ID != p.Devices[len(p.Devices)-1].ID { // the roof of shared memory is not drawn
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
