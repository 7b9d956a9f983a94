package comparecmd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

func (c *comparison) json(s *iostreams.Streams) error {
	for j := range c.rows {
		if err := table.JSONLine(s, c.rows[j].Comparison(c.labels, s.Hinted)); err != nil {
			return err
		}
	}
	if !c.many {
		return nil
	}
	return table.JSONLine(s, ask.StandingsOf(c.sides, c.rows))
}

// record is the answer of one side to one problem.
type record struct {
	*ask.Contest
	*ask.Contender
	at int
	// answer is empty without one, and failure says why.
	answer  ask.Compared
	failure string
}

// quantity is one number or text of an answer. Nothing is written of an empty one.
type quantity struct {
	name  string
	value any
	unit  string
}

// quantities lists what CSV and TSV have of an answer, in two parts.
func (r *record) quantities() (first, second []quantity) {
	o := &r.answer
	p, k := cmp.Or(o.Predicted, &ask.Predicted{}), cmp.Or(o.Checked, &ask.Checked{})
	config := ""
	if o.Predicted != nil {
		config = o.Config.String()
	}
	return []quantity{
			{"model", o.Model, ""}, {"kernel", o.Kernel, ""}, {"rung", o.Rung, ""}, {"timing", o.Timing, ""},
			{"config", config, ""},
			{"cycles", p.Cycles, "cycles"}, {"seconds", p.Seconds, "s"}, {"tflops", p.TFLOPS, digits.TeraRate(r.DType)},
			{"bound", p.Bound, ""},
		}, []quantity{
			{"ranks_only", o.RanksOnly, ""}, {"checked_on", k.DataSet, ""}, {"checked_type", k.TimedType, ""},
			{"checked_sizes", k.Sizes, ""}, {"checked_times", k.Times, ""}, {"median_error", k.MedianError, "1"},
			{"launch_seconds", o.Launch, "s"},
			{"flop_per_byte", o.Roofline.Intensity, "FLOP/B"}, {"ridge_flop_per_byte", o.Roofline.Ridge, "FLOP/B"},
			{"of_peak", o.Roofline.Peak, "1"}, {"of_dram_peak", o.Roofline.DRAM, "1"}, {"of_roof", o.Roofline.Roof, "1"},
			{"flop_per_dollar", o.PerDollar, "FLOP"}, {"flop_per_joule", o.PerJoule, "FLOP"},
		}
}

// cell writes a value. A count or an error of 0 is unknown, and of a failed side everything is.
func (r *record) cell(q quantity) string {
	if r.failure != "" || q.value == 0 || q.value == 0.0 {
		return ""
	}
	return table.Cell(q.value)
}

func (r *record) ratio() quantity { return quantity{"ratio_to_first", r.Ratio(r.at), "1"} }

func (c *comparison) records() (list []record) {
	for j := range c.rows {
		for i := range c.sides {
			r := record{Contest: &c.rows[j], Contender: &c.sides[i], at: i}
			if err := r.Answers[i].Err; err != nil {
				r.failure = err.Error()
			} else {
				r.answer = *r.Compared(i)
			}
			list = append(list, r)
		}
	}
	return list
}

// wide has a row per problem and side. like is any of them.
func (c *comparison) wide(like *record) table.Columns[record] {
	part := func(of func(*record) []quantity) table.Column[record] {
		var names []string
		for _, q := range of(like) {
			names = append(names, q.name)
		}
		return table.Group(names, func(r *record) (cells []string) {
			for _, q := range of(r) {
				cells = append(cells, r.cell(q))
			}
			return cells
		})
	}
	problem := func(r *record) gemm.Problem { return r.Problem.Problem }
	more := slices.ContainsFunc(c.rows, func(r ask.Contest) bool { return !r.Plain() })
	return append(table.Problem(problem), table.Group(c.labels, func(r *record) []string { return r.Labels }),
		table.Col("arch", func(r *record) string { return r.Arch.ID }),
		table.Col("device", func(r *record) string { return r.Device.ID }),
		table.Col("what_if", func(r *record) string { return r.WhatIf }),
		part(func(r *record) []quantity {
			first, _ := r.quantities()
			return append(first, r.ratio())
		}),
		part(func(r *record) []quantity {
			f := r.Fastest()
			if f == nil {
				return []quantity{{name: "fastest"}, {name: "clear"}}
			}
			return []quantity{{"fastest", f.Entry == r.at, ""}, {"clear", f.Entry == r.at && f.Clear, ""}}
		}),
		table.Col("error", func(r *record) string { return r.failure }),
		part(func(r *record) []quantity {
			_, second := r.quantities()
			return second
		}),
		table.More(more, problem))
}

// line is a quantity of a side's answer to one problem, with a cell for each of lineNames.
type line []string

var lineNames = []string{"arch", "device", "kind", "name", "common", "value", "unit", "share", "what_if"}

func (r *record) lines() (list []line) {
	add := func(kind, name, common, value, unit, share string) {
		if value != "" {
			list = append(list, line{r.Arch.ID, r.Device.ID, kind, name, common, value, unit, share, r.WhatIf})
		}
	}
	if add("error", "error", "", r.failure, "", ""); r.failure != "" {
		return list
	}
	first, second := r.quantities()
	outside := quantity{"outside", strings.Join(r.answer.Outside, "; "), ""}
	for _, q := range slices.Concat(first, []quantity{outside}, second, []quantity{r.ratio()}) {
		add("answer", q.name, "", r.cell(q), q.unit, "")
	}
	a, best := r.Best(r.at)
	for j, t := range a.Arch.Terms {
		share := ""
		if v, ok := a.Share(best, j); ok {
			share = digits.Exact(v)
		}
		add("term", t.Name, t.CommonName(), digits.Exact(best.Terms[j]), t.Unit, share)
	}
	return list
}

// delimited writes a row per quantity of a side for one problem, and a row per problem and side for many.
func (c *comparison) delimited(s *iostreams.Streams, f table.Format) error {
	records := c.records()
	if len(records) == 0 {
		return nil
	}
	if c.many {
		return c.wide(&records[0]).Write(s, f, records)
	}
	var lines []line
	for i := range records {
		lines = append(lines, records[i].lines()...)
	}
	return table.Columns[line]{table.Group(lineNames, func(l *line) []string { return *l })}.Write(s, f, lines)
}
