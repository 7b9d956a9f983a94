package comparecmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

func (w *writer) json(s *table.Streams) error {
	for j := range w.all.rows {
		if err := table.JSONLine(s, w.all.object(&w.all.rows[j], s.Hinted)); err != nil {
			return err
		}
	}
	if !w.many {
		return nil
	}
	return table.JSONLine(s, w.all.summaryJSON())
}

// object is a problem as a plain value. hint puts errors into the words of who asks.
func (c *comparison) object(r *row, hint func(error) error) ask.Comparison {
	o := ask.Comparison{Problem: r.Record(), Labels: ask.Labels(c.labels, r.Labels)}
	o.Model, o.ModelClass = c.model()
	for i := range r.sides {
		s := &r.sides[i]
		if err := r.answers[i].Err; err != nil {
			o.Entries = append(o.Entries, &ask.Failed{Arch: s.Arch.ID, Device: s.Device.ID, WhatIf: s.WhatIf,
				Error: ask.ErrorOf(hint(err))})
		} else {
			o.Entries = append(o.Entries, r.entry(i))
		}
		o.Ratio = append(o.Ratio, number(r.ratio(i)))
	}
	if v, ok := r.verdict(); ok {
		o.Fastest = &ask.Fastest{Entry: v.side, Lead: ask.Number(v.lead), Clear: v.clear}
	}
	return o
}

func (r *row) entry(i int) *ask.Compared {
	a, e := r.best(i)
	roofs, timed := a.Roofline(e), !a.Arch.RanksOnly
	out := &ask.Compared{
		Answer: a.Answer(e), WhatIf: r.sides[i].WhatIf,
		Roofline: ask.Roofs{
			Intensity: number(roofs.Intensity, true), Ridge: number(roofs.Ridge, roofs.Ridge > 0),
			Peak: number(roofs.PeakShare, timed && roofs.PeakShare > 0),
			DRAM: number(roofs.DRAMShare, timed && roofs.DRAMShare > 0),
			Roof: number(roofs.RoofShare, timed && roofs.RoofShare > 0),
		},
		PerDollar: number(r.perDollar(i)), PerJoule: number(r.perJoule(i)), Terms: a.NamedTerms(e),
	}
	if t, ok := r.launch(i); ok {
		out.Launch = number(float64(t), true)
	}
	if u := a.Nearest(e); u != nil {
		out.Checked = &ask.Checked{DataSet: u.Checked.DataSet, Sizes: u.Checked.Sizes, Times: u.Checked.Times,
			MedianError: u.MedianError}
	}
	return out
}

func number(v float64, ok bool) *ask.Number {
	if !ok {
		return nil
	}
	n := ask.Number(v)
	return &n
}

// model is the model of all sides and its class, each empty if they have several.
func (c *comparison) model() (name string, class arch.ModelClass) {
	first := true
	for i := range c.sides {
		switch d := c.sides[i].desc; {
		case c.sides[i].err != nil:
		case first:
			name, class, first = d.Model, d.Class(), false
		default:
			if d.Model != name {
				name = ""
			}
			if d.Class() != class {
				class = ""
			}
		}
	}
	return name, class
}

// summaryJSON is the last object of many problems.
func (c *comparison) summaryJSON() any {
	type one struct {
		Side   string      `json:"side"`
		Wins   int         `json:"fastest"`
		Clear  int         `json:"clear"`
		Ratio  *ask.Number `json:"ratio_to_first"`
		Count  int         `json:"ratios"`
		Dollar *ask.Number `json:"flop_per_dollar,omitempty"`
		Joule  *ask.Number `json:"flop_per_joule,omitempty"`
	}
	type class struct {
		Class    string `json:"class"`
		Problems int    `json:"problems"`
		Decided  int    `json:"decided"`
		Sides    []one  `json:"sides"`
	}
	convert := func(s *summary) class {
		out := class{Class: s.name, Problems: s.problems, Decided: s.decided}
		for i := range s.sides {
			own, speed := &s.sides[i], s.sides[i].speed
			dollars, watts := c.sides[i].dollars, c.sides[i].watts
			out.Sides = append(out.Sides, one{c.sides[i].Label(), own.wins, own.clear,
				number(own.ratio.mean(), own.ratio.count > 0), own.ratio.count,
				number(speed.mean()/dollars, dollars > 0 && speed.count > 0),
				number(speed.mean()/watts, watts > 0 && speed.count > 0)})
		}
		return out
	}
	all, classes := c.summaries()
	out := struct {
		Summary class   `json:"summary"`
		Classes []class `json:"classes"`
	}{Summary: convert(&all)}
	for i := range classes {
		out.Classes = append(out.Classes, convert(&classes[i]))
	}
	return out
}

// records writes a row per quantity of a side for one problem, and a row per problem and side for many.
func (w *writer) records(s *table.Streams, f table.Format) error {
	if w.many {
		return w.wide(s, f)
	}
	r := table.NewDelimited(s, f,
		[]string{"arch", "device", "kind", "name", "common", "value", "unit", "share", "what_if"})
	for j := range w.all.rows {
		for i := range w.all.sides {
			if err := w.all.rows[j].quantities(i, r.Write); err != nil {
				return err
			}
		}
	}
	return nil
}

// quantities writes a row per quantity of a side.
func (r *row) quantities(i int, write func([]string) error) error {
	s := &r.sides[i]
	var err error
	row := func(kind, name, common, value, unit, share string) {
		if err == nil {
			err = write([]string{s.Arch.ID, s.Device.ID, kind, name, common, value, unit, share, s.WhatIf})
		}
	}
	a, best := r.best(i)
	if a == nil {
		row("error", "error", "", r.answers[i].Err.Error(), "", "")
		return err
	}
	o := r.entry(i)
	for _, cells := range slices.Concat([][3]string{
		{"model", o.Model, ""}, {"kernel", o.Kernel, ""}, {"rung", string(o.Rung), ""},
		{"config", best.Config.String(), ""},
		{"cycles", digits.Exact(o.Predicted.Cycles), "cycles"}, {"seconds", digits.Exact(o.Predicted.Seconds), "s"},
		{"tflops", digits.Exact(o.Predicted.TFLOPS), digits.TeraRate(r.DType)}, {"bound", o.Predicted.Bound, ""},
		{"outside", strings.Join(o.Outside, "; "), ""},
	}, quantitiesOf(o)) {
		if cells[1] != "" {
			row("answer", cells[0], "", cells[1], cells[2], "")
		}
	}
	if ratio, ok := r.ratio(i); ok {
		row("answer", "ratio_to_first", "", digits.Exact(ratio), "1", "")
	}
	for j, t := range a.Arch.Terms {
		share := ""
		if v, ok := a.Share(best, j); ok {
			share = digits.Exact(v)
		}
		row("term", t.Name, t.CommonName(), digits.Exact(best.Terms[j]), t.Unit, share)
	}
	return err
}

// quantitiesOf are the quantities that only comparisons have, by name, value and unit.
func quantitiesOf(o *ask.Compared) [][3]string {
	exact := func(n *ask.Number) string {
		if n == nil {
			return ""
		}
		return digits.Exact(float64(*n))
	}
	c := ask.Checked{}
	if o.Checked != nil {
		c = *o.Checked
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	median := ""
	if c.MedianError > 0 {
		median = digits.Exact(c.MedianError)
	}
	return [][3]string{
		{"ranks_only", table.Flag(o.RanksOnly), ""}, {"checked_on", c.DataSet, ""}, {"checked_sizes", count(c.Sizes), ""},
		{"checked_times", count(c.Times), ""}, {"median_error", median, "1"},
		{"launch_seconds", exact(o.Launch), "s"},
		{"flop_per_byte", exact(o.Roofline.Intensity), "FLOP/B"},
		{"ridge_flop_per_byte", exact(o.Roofline.Ridge), "FLOP/B"}, {"of_peak", exact(o.Roofline.Peak), "1"},
		{"of_dram_peak", exact(o.Roofline.DRAM), "1"}, {"of_roof", exact(o.Roofline.Roof), "1"},
		{"flop_per_dollar", exact(o.PerDollar), "FLOP"}, {"flop_per_joule", exact(o.PerJoule), "FLOP"},
	}
}

// wide writes a row per problem and side.
func (w *writer) wide(s *table.Streams, f table.Format) error {
	c := w.all
	more := slices.ContainsFunc(c.rows, func(r row) bool { return !r.Plain() })
	header := slices.Concat(gemm.Columns, c.labels, []string{"arch", "device", "what_if", "model", "kernel", "rung",
		"config", "cycles", "seconds", "tflops", "bound", "ratio_to_first", "fastest", "clear", "error"})
	for _, one := range quantitiesOf(&ask.Compared{}) {
		header = append(header, one[0])
	}
	out := table.NewDelimited(s, f, slices.Concat(header, table.MoreColumns(more)))
	for j := range c.rows {
		rest := table.MoreCells(c.rows[j].Problem.Problem, more)
		for i := range c.sides {
			if err := out.Write(slices.Concat(c.rows[j].wide(i), rest)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *row) wide(i int) []string {
	s := &r.sides[i]
	cells := slices.Concat(r.Cells(), r.Labels, []string{s.Arch.ID, s.Device.ID, s.WhatIf})
	a, best := r.best(i)
	if a == nil {
		cells = append(cells, make([]string, 11)...)
		cells = append(cells, r.answers[i].Err.Error())
		return append(cells, make([]string, len(quantitiesOf(&ask.Compared{})))...)
	}
	o := r.entry(i)
	ratio, fastest, clear := "", "", ""
	if v, ok := r.ratio(i); ok {
		ratio = digits.Exact(v)
	}
	if v, ok := r.verdict(); ok {
		fastest, clear = table.Flag(v.side == i), table.Flag(v.side == i && v.clear)
	}
	cells = append(cells, o.Model, o.Kernel, string(o.Rung), best.Config.String(), digits.Exact(o.Predicted.Cycles),
		digits.Exact(o.Predicted.Seconds), digits.Exact(o.Predicted.TFLOPS), o.Predicted.Bound, ratio, fastest, clear, "")
	for _, one := range quantitiesOf(o) {
		cells = append(cells, one[1])
	}
	return cells
}
