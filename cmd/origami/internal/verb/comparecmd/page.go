package comparecmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
	roofs "github.com/origami-gemm/origami/core/roofline"
)

// AddTo compares the architectures of the settings over problems, and adds what `origami compare --report` shows to a
// page. The problems without an answer are added to the failures of the list.
func AddTo(ctx context.Context, p *report.Page, f *session.Factory, search *question.Search,
	list *session.ProblemList,
) error {
	o := &Options{Factory: f, search: search}
	sides, _, err := open(ctx, o)
	if err != nil {
		return err
	}
	rows, err := ask.Compare(ctx, sides, list.Problems, false, func(int) {}) // the caller has a bar
	if err != nil {
		return err
	}
	c := &comparison{sides: sides, rows: rows, labels: list.Labels}
	c.page(p)
	c.faults(func(err error) { list.Failures.Add("", err) })
	return nil
}

func (c *comparison) page(p *report.Page) {
	s := p.Section("Side by side")
	times, rows := c.table(true)
	one := len(c.rows) == 1
	if one {
		s.Table("Predicted times of each side", times, rows)
	}
	s.Table("The sides", aboutHeader, c.about())
	s.List(c.allNotes())
	if !one {
		header, standings := c.standings()
		s.Table("Who is fastest", header, standings)
	}
	for _, f := range c.figures() {
		s.Figure(f.Figure)
	}
	if !one {
		p.Section("Problems").Table("Predicted times of each side", times, rows)
	}
}

type namedFigure struct {
	*figure.Figure
	name string
}

// The fewest problems that a figure says something about: means of classes, and dots over the intensity.
const fewestBars, fewestDots = 2, 3

// figures shows what there are times for.
func (c *comparison) figures() (all []namedFigure) {
	ratios := c.ratioFigure()
	if ratios != nil && len(c.rows) >= fewestBars {
		all = append(all, namedFigure{c.speedFigure(), "classes"})
	}
	if ratios != nil && len(c.rows) >= fewestDots {
		all = append(all, namedFigure{ratios, "ratio"})
	}
	for _, t := range c.types() {
		if f := c.roofFigure(t); f != nil {
			all = append(all, namedFigure{f, "rooflines-" + t.String()})
		}
	}
	return all
}

// speedFigure shows the geometric mean of the speed of each side relative to the first, per class of shape.
func (c *comparison) speedFigure() *figure.Figure {
	standings := ask.StandingsOf(c.sides, c.rows)
	classes := standings.Classes
	if len(classes) > 1 {
		classes = append(classes, standings.Summary)
	}
	first := c.sides[0].Called()
	f := &figure.Figure{Title: "Speed relative to " + first,
		Caption: "Higher is faster: the geometric mean per class of shape, and how many problems of a class have both times.",
		X:       figure.Axis{Label: "speed ÷ speed of " + first, Unit: "÷", Reference: 1}, Header: []string{"class"},
		Series: c.names()}
	f.Rows = make([][]string, len(classes))
	for k := range classes {
		f.Y.Names = append(f.Y.Names, fmt.Sprintf("%s (%s)", classes[k].Class, comparedOf(&classes[k])))
		f.Rows[k] = []string{f.Y.Names[k]}
	}
	for i := range c.sides {
		if !c.sides[i].Timed() {
			continue
		}
		name := c.sides[i].Called()
		f.Header = append(f.Header, name)
		m := figure.Mark{Kind: figure.Groups, Series: i}
		for k, group := range f.Y.Names {
			ratio := classes[k].Sides[i].Ratio
			if ratio == nil {
				f.Rows[k] = append(f.Rows[k], absent)
				continue
			}
			v := 1 / float64(*ratio)
			f.Rows[k] = append(f.Rows[k], fmt.Sprintf("%.3f", v))
			m.Rows = append(m.Rows, figure.Row{X: v, Y: group, Tip: figure.Tip("%s, %s: %.3f", name, group, v)})
		}
		f.Marks = append(f.Marks, m)
	}
	return f
}

// ratioFigure shows the time of each side relative to the first over the intensity, nil without a time.
func (c *comparison) ratioFigure() *figure.Figure {
	first := c.sides[0].Called()
	f := &figure.Figure{Title: "Time relative to " + first,
		Caption: "Below 1 is faster than " + first + ". Intensity counts the operands and the output once. " +
			"The times are in the table of all problems.",
		X:      figure.Axis{Label: "arithmetic intensity (FLOP/B)", Log: true},
		Y:      figure.Axis{Label: "time ÷ time of " + first, Log: true, Reference: 1},
		Series: c.names()}
	for i := 1; i < len(c.sides); i++ {
		m := figure.Mark{Kind: figure.Dots, Series: i}
		for j := range c.rows {
			r := &c.rows[j]
			if ratio := r.Ratio(i); ratio != nil {
				a, e := r.Best(i)
				m.Rows = append(m.Rows, figure.Row{X: a.Roofline(e).Intensity, Y: float64(*ratio),
					Tip: figure.Tip("%s\n%s\n%.3f times the time of %s", r, c.sides[i].Called(), *ratio, first)})
			}
		}
		if len(m.Rows) > 0 {
			f.Marks = append(f.Marks, m)
		}
	}
	if len(f.Marks) == 0 {
		return nil
	}
	return f
}

// roofFigure shows the picks under the roofs of their devices, nil where no roof is known.
func (c *comparison) roofFigure(t gemm.DType) *figure.Figure {
	sides := make([]figure.RoofSide, len(c.sides))
	var rows [][]string
	rateUnit := strings.TrimPrefix(digits.TeraRate(t), "T")
	for i := range c.sides {
		s, name := &sides[i], c.sides[i].Called()
		*s = figure.RoofSide{Name: name, Device: &roofs.Device{}}
		if !c.sides[i].Timed() {
			continue
		}
		peak := float64(c.sides[i].Model.Describe().PeakFor(t))
		for j := range c.rows {
			r := &c.rows[j]
			a, e := r.Best(i)
			if a == nil || r.DType != t || peak <= 0 || a.DRAMPeak <= 0 {
				continue
			}
			s.Device.Ceilings = []roofs.Ceiling{{Name: t.String(), Level: roofs.Compute, Limit: peak},
				{Name: "DRAM", Level: roofs.DRAM, Limit: a.DRAMPeak}}
			x, y := a.Roofline(e).Intensity, float64(a.Rate(e))
			rate := digits.Quantity(y, rateUnit)
			s.Kernels = append(s.Kernels, figure.RoofKernel{Name: fmt.Sprintf("%s on %s, %s", r, name, rate),
				Kernel: roofs.Kernel{Rate: y, Points: []roofs.Point{{Level: roofs.DRAM, Intensity: x}}}})
			rows = append(rows, []string{name, r.String(), digits.ThreeDigits(x), rate,
				digits.Percent(y / min(peak, x*a.DRAMPeak))})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	f := figure.Roofline("Predicted rates under the roofs, "+t.String(), sides)
	f.X.Label, f.Y.Unit = "arithmetic intensity (FLOP/B)", rateUnit
	f.Caption = "Roofs are the data sheet's dense peak and bandwidth of DRAM. Operands that stay in a cache put a point " +
		"above the sloping one."
	f.Header, f.Rows = []string{"side", "problem", "FLOP/B", "rate", "of the roof"}, rows
	return f
}

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
