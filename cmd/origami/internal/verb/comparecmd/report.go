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
	place := report.PlaceOf(folder, strings.Join(w.all.names(), ", "), args)
	if err := w.all.figures(place); err != nil {
		return report.Unwritable(folder, err)
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

// The fewest problems that a figure says something about: means of classes, and dots over the intensity.
const fewestBars, fewestDots = 2, 3

// figures draws what there are times for.
func (c *comparison) figures(to report.Place) error {
	first := c.sides[0].name()
	clouds := c.ratioClouds()
	if len(clouds) > 0 && len(c.rows) >= fewestBars {
		groups, speeds := c.speeds()
		if _, err := report.Bars(to, "classes", "Speed relative to "+first, "geometric mean of the speed", groups,
			speeds); err != nil {
			return err
		}
	}
	if len(clouds) > 0 && len(c.rows) >= fewestDots {
		if _, err := report.Ratios(to, "ratio", "Time relative to "+first, "arithmetic intensity (FLOP/B)",
			"time ÷ time of "+first, clouds); err != nil {
			return err
		}
	}
	for _, t := range c.types() {
		if roofs := c.roofs(t); len(roofs) > 0 {
			name := t.String()
			if _, err := report.Rooflines(to, "rooflines-"+name, "Predicted rates under the roofs, "+name,
				table.TeraRate(t), roofs); err != nil {
				return err
			}
		}
	}
	return nil
}

// speeds are the geometric means of the speed relative to the first side, per class of shape.
func (c *comparison) speeds() (groups []string, all []report.Series) {
	summary, classes := c.summaries()
	if len(classes) > 1 {
		classes = append(classes, summary)
	}
	for i := range c.sides {
		if c.sides[i].timed() {
			all = append(all, report.Series{Name: c.sides[i].name(), Side: i})
		}
	}
	for k := range classes {
		groups = append(groups, fmt.Sprintf("%s\n%s", classes[k].name, classes[k].of(classes[k].compared)))
		at := 0
		for i := range c.sides {
			if c.sides[i].timed() {
				all[at].Values = append(all[at].Values, 1/classes[k].sides[i].ratio.mean())
				at++
			}
		}
	}
	return groups, all
}

// ratioClouds are the ratios to the first side over the intensity, of each other side that has any.
func (c *comparison) ratioClouds() (clouds []report.Cloud) {
	for i := range c.sides[1:] {
		cloud := report.Cloud{Name: c.sides[1+i].name(), Side: 1 + i}
		for j := range c.rows {
			r := &c.rows[j]
			if ratio, ok := r.ratio(1 + i); ok {
				a, e := r.best(1 + i)
				cloud.Points = append(cloud.Points, report.Point{X: a.Roofline(e).Intensity, Y: ratio, Name: r.String()})
			}
		}
		if len(cloud.Points) > 0 {
			clouds = append(clouds, cloud)
		}
	}
	return clouds
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

// roofs has the roof of each side for a type of operands.
func (c *comparison) roofs(t gemm.DType) (roofs []report.Roof) {
	for i := range c.sides {
		if !c.sides[i].timed() {
			continue
		}
		roof := report.Roof{Cloud: report.Cloud{Name: c.sides[i].name(), Side: i},
			Peak: float64(c.sides[i].desc.PeakFor(t))}
		for j := range c.rows {
			r := &c.rows[j]
			if a, e := r.best(i); a != nil && r.DType == t {
				roof.DRAM = a.DRAMPeak
				roof.Points = append(roof.Points, report.Point{X: a.Roofline(e).Intensity, Y: float64(a.Rate(e)), Name: r.String()})
			}
		}
		if roof.Peak > 0 && roof.DRAM > 0 {
			roofs = append(roofs, roof)
		}
	}
	return roofs
}
