package comparecmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// object is `compare --json`: one per problem.
type object struct {
	Problem gemm.Record `json:"problem"`
	// Labels are the columns of the problems file that are passed through.
	Labels ask.Fields `json:"labels,omitempty"`
	// Model is the model of all entries, and ModelClass their class, empty if they have several.
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Entries    []any           `json:"entries"`
	Ratio      []*ask.Number   `json:"ratio_to_first"`
	// Fastest is the entry with the shortest time, null if there is none, or more than one.
	Fastest *fastest `json:"fastest"`
}

type fastest struct {
	Entry int        `json:"entry"`
	Lead  ask.Number `json:"lead"`
	Clear bool       `json:"clear"`
}

// entry is the JSON of a side that answered, failed that of one with an error.
type entry struct {
	ask.Answer
	WhatIf    string      `json:"what_if,omitempty"`
	Checked   *checked    `json:"checked"`
	Roofline  roofline    `json:"roofline"`
	Launch    *ask.Number `json:"launch_seconds"`
	PerDollar *ask.Number `json:"flop_per_dollar,omitempty"`
	PerJoule  *ask.Number `json:"flop_per_joule,omitempty"`
	Terms     ask.Fields  `json:"terms"`
}

// checked is what the likes of a prediction were checked on. What is unknown is left out.
type checked struct {
	DataSet     string  `json:"data_set"`
	Sizes       int     `json:"sizes,omitempty"`
	Times       int     `json:"times,omitempty"`
	MedianError float64 `json:"median_error,omitempty"`
}

// roofline is where a pick is under the roofs. What is unknown is null, as are the shares of a model that ranks.
type roofline struct {
	Intensity *ask.Number `json:"flop_per_byte"`
	Ridge     *ask.Number `json:"ridge_flop_per_byte"`
	Peak      *ask.Number `json:"of_peak"`
	DRAM      *ask.Number `json:"of_dram_peak"`
	Roof      *ask.Number `json:"of_roof"`
}

type failed struct {
	Arch   string              `json:"arch"`
	Device string              `json:"device"`
	WhatIf string              `json:"what_if,omitempty"`
	Error  iostreams.JSONError `json:"error"`
}

func (w *writer) json(s *table.Streams) error {
	for j := range w.all.rows {
		if err := table.JSONLine(s, w.all.object(s, &w.all.rows[j])); err != nil {
			return err
		}
	}
	if !w.many {
		return nil
	}
	return table.JSONLine(s, w.all.summaryJSON())
}

func (c *comparison) object(streams *table.Streams, r *row) object {
	o := object{Problem: r.Record(), Labels: ask.Labels(c.labels, r.Labels)}
	o.Model, o.ModelClass = c.model()
	for i := range r.sides {
		s := &r.sides[i]
		if err := r.answers[i].Err; err != nil {
			o.Entries = append(o.Entries, failed{s.Arch.ID, s.Device.ID, s.WhatIf, iostreams.AsJSON(streams.Hinted(err))})
		} else {
			o.Entries = append(o.Entries, r.entry(i))
		}
		o.Ratio = append(o.Ratio, number(r.ratio(i)))
	}
	if v, ok := r.verdict(); ok {
		o.Fastest = &fastest{v.side, ask.Number(v.lead), v.clear}
	}
	return o
}

func (r *row) entry(i int) entry {
	a, e := r.best(i)
	roofs, timed := a.Roofline(e), !a.Arch.RanksOnly
	out := entry{
		Answer: a.Answer(e), WhatIf: r.sides[i].WhatIf,
		Roofline: roofline{
			number(roofs.Intensity, true), number(roofs.Ridge, roofs.Ridge > 0),
			number(roofs.PeakShare, timed && roofs.PeakShare > 0), number(roofs.DRAMShare, timed && roofs.DRAMShare > 0),
			number(roofs.RoofShare, timed && roofs.RoofShare > 0),
		},
		PerDollar: number(r.perDollar(i)), PerJoule: number(r.perJoule(i)), Terms: a.NamedTerms(e),
	}
	if t, ok := r.launch(i); ok {
		out.Launch = number(float64(t), true)
	}
	if u := a.Nearest(e); u != nil {
		out.Checked = &checked{u.Checked.DataSet, u.Checked.Sizes, u.Checked.Times, u.MedianError}
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
	}, o.cells()) {
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

// cells are the quantities that only comparisons have, by name, value and unit.
func (o *entry) cells() [][3]string {
	exact := func(n *ask.Number) string {
		if n == nil {
			return ""
		}
		return digits.Exact(float64(*n))
	}
	c := checked{}
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
	for _, cells := range (&entry{}).cells() {
		header = append(header, cells[0])
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
		return append(cells, make([]string, len((&entry{}).cells()))...)
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
	for _, one := range o.cells() {
		cells = append(cells, one[1])
	}
	return cells
}
