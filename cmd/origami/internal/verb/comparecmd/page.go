package comparecmd

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/gemm"
)

// AddTo compares the architectures of the settings over problems, and adds what `origami compare --report` shows to a
// page. The problems without an answer are added to the failures of the list.
func AddTo(ctx context.Context, p *page.Page, f *session.Factory, search *session.SearchFlags,
	list *session.ProblemList,
) error {
	o := &Options{Factory: f, search: search}
	sides, err := open(ctx, o)
	if err != nil {
		return err
	}
	c, err := ask(ctx, o, sides, list.Problems, func(int) {}) // the caller has a bar
	if err != nil {
		return err
	}
	c.labels = list.Labels
	c.page(p)
	c.faults(func(err error) { list.Failures.Add("", err) })
	return nil
}

// page adds the comparison to a page.
func (c *comparison) page(p *page.Page) {
	var about [][]string
	for i := range c.sides {
		about = append(about, c.about(i))
	}
	s := p.Section("Side by side")
	s.Table("The sides", aboutHeader, about)
	s.List(c.allNotes())
	header, rows := c.standings()
	s.Table("Who is fastest", header, rows)
	clouds := c.ratioClouds()
	if len(clouds) > 0 && len(c.rows) >= fewestBars {
		s.Figure(c.speedFigure())
	}
	if len(clouds) > 0 && len(c.rows) >= fewestDots {
		s.Figure(c.ratioFigure(clouds))
	}
	for _, t := range c.types() {
		if roofs := c.roofs(t); len(roofs) > 0 {
			s.Figure(c.roofFigure(t, roofs))
		}
	}
	header, rows = c.table(true)
	p.Section("Problems").Table("Predicted times of each side", header, rows)
}

// speedFigure shows the speed of each side per class of shape.
func (c *comparison) speedFigure() *page.Figure {
	groups, speeds := c.speeds()
	for i := range groups {
		groups[i] = strings.Replace(groups[i], "\n", " (", 1) + ")"
	}
	f := &page.Figure{Title: "Speed relative to " + c.sides[0].name(),
		Caption: "Higher is faster: the geometric mean per class of shape, and how many problems of a class have both times.",
		X:       page.Axis{Label: "speed ÷ speed of " + c.sides[0].name(), Unit: "÷"}, Y: page.Axis{Names: groups},
		Header: append([]string{"class"}, c.namesOf(speeds)...)}
	for k, group := range groups {
		row := []string{group}
		for i := range speeds {
			row = append(row, ratioCell(speeds[i].Values[k], !math.IsNaN(speeds[i].Values[k])))
		}
		f.Rows = append(f.Rows, row)
	}
	for i := range speeds {
		f.Series = append(f.Series, speeds[i].Name)
		m := page.Mark{Kind: page.Groups, Series: i}
		for k, v := range speeds[i].Values {
			m.Rows = append(m.Rows, page.Row{X: v, Y: groups[k],
				Tip: page.Tip("%s, %s: %.3f", speeds[i].Name, groups[k], v)})
		}
		f.Marks = append(f.Marks, m)
	}
	return f
}

func (c *comparison) namesOf(series []report.Series) []string {
	names := make([]string, len(series))
	for i := range series {
		names[i] = series[i].Name
	}
	return names
}

// ratioFigure shows the time of each side relative to the first over the intensity.
func (c *comparison) ratioFigure(clouds []report.Cloud) *page.Figure {
	first := c.sides[0].name()
	f := &page.Figure{Title: "Time relative to " + first,
		Caption: "Below 1 is faster than " + first + ". Intensity counts the operands and the output once. " +
			"The times are in the table of all problems.",
		X:      page.Axis{Label: "arithmetic intensity (FLOP/B)", Log: true},
		Y:      page.Axis{Label: "time ÷ time of " + first, Log: true},
		Series: c.names()}
	low, high := 0.0, 0.0
	for _, cloud := range clouds {
		m := page.Mark{Kind: page.Dots, Series: cloud.Side}
		for _, point := range cloud.Points {
			if low == 0 || point.X < low {
				low = point.X
			}
			high = max(high, point.X)
			m.Rows = append(m.Rows, page.Row{X: point.X, Y: point.Y,
				Tip: page.Tip("%s\n%s\n%.3f times the time of %s", point.Name, cloud.Name, point.Y, first)})
		}
		f.Marks = append(f.Marks, m)
	}
	one := page.Mark{Kind: page.Line, Series: page.Neutral, Dashed: true,
		Rows: []page.Row{{X: low / 1.2, Y: 1.0}, {X: high * 1.2, Y: 1.0}}}
	f.Marks = slices.Insert(f.Marks, 0, one)
	return f
}

// roofFigure shows the picks under the roofs of their devices.
func (c *comparison) roofFigure(t gemm.DType, roofs []report.Roof) *page.Figure {
	f := &page.Figure{Title: "Rates under the roofs, " + t.String(),
		Caption: "Roofs are the data sheet's dense peak and bandwidth of DRAM. Operands that stay in a cache put a point " +
			"above the sloping one.",
		X:      page.Axis{Label: "arithmetic intensity (FLOP/B)", Log: true},
		Y:      page.Axis{Label: "predicted rate", Unit: strings.TrimPrefix(table.TeraRate(t), "T"), Log: true},
		Series: c.names(), Header: []string{"side", "problem", "FLOP/B", "rate", "of the roof"}}
	low, high := roofs[0].Peak/roofs[0].DRAM/8, 0.0
	for _, r := range roofs {
		low, high = min(low, r.Peak/r.DRAM/8), max(high, r.Peak/r.DRAM*8)
		for _, point := range r.Points {
			low, high = min(low, point.X), max(high, point.X)
		}
	}
	for _, r := range roofs {
		f.Marks = append(f.Marks, page.Mark{Kind: page.Line, Series: r.Side, Rows: []page.Row{
			{X: low, Y: low * r.DRAM}, {X: r.Peak / r.DRAM, Y: r.Peak}, {X: high, Y: r.Peak},
		}})
	}
	for _, r := range roofs {
		m := page.Mark{Kind: page.Dots, Series: r.Side}
		for _, point := range r.Points {
			rate := table.Quantity(point.Y, f.Y.Unit)
			m.Rows = append(m.Rows, page.Row{X: point.X, Y: point.Y, Tip: page.Tip("%s\n%s, %s", point.Name, r.Name, rate)})
			f.Rows = append(f.Rows, []string{r.Name, point.Name, table.ThreeDigits(point.X), rate,
				table.Percent(point.Y / min(r.Peak, point.X*r.DRAM))})
		}
		f.Marks = append(f.Marks, m)
	}
	return f
}
