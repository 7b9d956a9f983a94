package comparecmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
)

// list writes a row per problem, and who wins how often and by how much.
func (w *writer) list(s *table.Streams) {
	c := w.all
	w.about(s)
	for _, ratios := range []bool{true, false} {
		header, rows := c.table(ratios)
		if ratios && len(c.sides) > 2 && table.TableWidth(header, rows) > table.PageWidth(s) {
			continue
		}
		table.WriteTable(s, header, rows)
		break
	}
	header, rows := c.standings()
	s.Printf("\n")
	table.WriteSideBySide(s, header, rows)
	for _, note := range c.allNotes() {
		table.Lines(s, "note: "+note)
	}
}

// about writes who answers.
func (w *writer) about(s *table.Streams) {
	var rows [][]string
	for i := range w.all.sides {
		rows = append(rows, w.all.about(i))
	}
	table.Grid{Header: aboutHeader, Rows: rows, Least: []string{"units", "rung", "device", "family"}}.Write(s)
	s.Printf("\n")
}

var aboutHeader = []string{"side", "device", "units", "model", "family", "rung", "checked"}

// about describes a side for aboutHeader.
func (c *comparison) about(i int) []string {
	s := &c.sides[i]
	if s.err != nil {
		return []string{s.Called(), s.ID(), "", "", "", "", "no answer: " + s.err.Error()}
	}
	model := s.desc.Model
	if s.desc.RanksOnly {
		model += ", ranks only"
	}
	return []string{s.Called(), s.ID(), fmt.Sprintf("%d %ss at %s", s.desc.Units, s.desc.UnitName, s.desc.Clock),
		model, s.kernel, string(s.desc.Rung), c.checked(i)}
}

// checked says what the predictions of a side were checked on: that of most problems, and how many of them are inside.
func (c *comparison) checked(i int) string {
	count, most, inside := map[string]int{}, "", 0
	for j := range c.rows {
		a, e := c.rows[j].best(i)
		if a == nil || a.Nearest(e) == nil {
			continue
		}
		text := table.CheckedOn(a.Nearest(e))
		if count[text]++; count[text] > count[most] {
			most = text
		}
		if a.Scope(e).Uncertainty != nil {
			inside++
		}
	}
	switch {
	case most == "":
		return table.NeverChecked
	case inside == len(c.rows):
		return most
	default:
		return fmt.Sprintf("%s; %d of %s are like these", most, inside, digits.Plural(len(c.rows), "problem", "problems"))
	}
}

// table has a row per problem: the time of each side, and its ratio to the first unless there is no room for it.
func (c *comparison) table(ratios bool) (header []string, rows [][]string) {
	header = append([]string{"problem"}, c.labels...)
	for i := range c.sides {
		header = append(header, c.sides[i].Called())
		if i > 0 && ratios {
			header = append(header, "÷ first")
		}
	}
	header = append(header, table.FastestColumn, "lead")
	for j := range c.rows {
		r := &c.rows[j]
		row := append([]string{r.String()}, r.Labels...)
		for i := range c.sides {
			cell := absent
			if a, e := r.best(i); a != nil {
				cell = table.TimeCell(a, e)
			}
			row = append(row, cell)
			if i > 0 && ratios {
				row = append(row, ratioCell(r.ratio(i)))
			}
		}
		fastest, lead := absent, absent
		if v, ok := r.verdict(); ok {
			fastest, lead = c.sides[v.side].Called(), fmt.Sprintf("%.3f", v.lead)
			if !v.clear {
				fastest += table.Doubt
			}
		}
		rows = append(rows, append(row, fastest, lead))
	}
	return header, rows
}

func ratioCell(v float64, ok bool) string {
	if !ok {
		return absent
	}
	return fmt.Sprintf("%.3f", v)
}

// standings is who wins how often and by how much, over all problems and over each class of shape.
func (c *comparison) standings() (header []string, rows [][]string) {
	header = []string{""}
	for i := range c.sides {
		header = append(header, c.sides[i].Called())
	}
	all, classes := c.summaries()
	cells := func(name string, cell func(*sideSummary) string, s *summary) {
		row := []string{name}
		for i := range s.sides {
			row = append(row, cell(&s.sides[i]))
		}
		rows = append(rows, row)
	}
	geomean := func(name string, s *summary) {
		cells(name, func(one *sideSummary) string {
			cell := ratioCell(one.ratio.mean(), one.ratio.count > 0)
			if 0 < one.ratio.count && one.ratio.count < s.compared {
				cell += fmt.Sprintf(" (of %d)", one.ratio.count)
			}
			return cell
		}, s)
	}
	problems := digits.Plural(all.problems, "problem", "problems")
	if all.decided < all.problems {
		problems = fmt.Sprintf("%d of %s", all.decided, problems)
	}
	cells("fastest, of "+problems,
		func(s *sideSummary) string { return strconv.Itoa(s.wins) }, &all)
	cells("  by their intervals too", func(s *sideSummary) string { return strconv.Itoa(s.clear) }, &all)
	compared := ""
	if all.compared < all.problems {
		compared = ", of " + all.of(all.compared)
	}
	geomean("time ÷ first, geomean"+compared, &all)
	if len(classes) > 1 {
		for k := range classes {
			geomean(fmt.Sprintf("  %s (%s)", classes[k].name, classes[k].of(classes[k].compared)), &classes[k])
		}
	}
	c.costRow(&rows, c.dollars, "FLOP per dollar, geomean", func(s *side) float64 { return s.dollars }, &all)
	c.costRow(&rows, c.joules, "FLOP per joule, geomean", func(s *side) float64 { return s.watts }, &all)
	return header, rows
}

func (c *comparison) costRow(rows *[][]string, asked bool, name string, cost func(*side) float64, all *summary) {
	if !asked {
		return
	}
	row := []string{name}
	for i := range c.sides {
		per := cost(&c.sides[i])
		row = append(row, orAbsent(work(all.sides[i].speed.mean()/per, per > 0 && all.sides[i].speed.count > 0)))
	}
	*rows = append(*rows, row)
}

func orAbsent(text string) string {
	if text == "" {
		return absent
	}
	return text
}

// allNotes are the notes of all problems, each once.
func (c *comparison) allNotes() (notes []string) {
	doubt := false
	for j := range c.rows {
		r := &c.rows[j]
		v, ok := r.verdict()
		doubt = doubt || ok && !v.clear
		for _, note := range c.notes(r) {
			if !slices.Contains(notes, note) && !strings.HasPrefix(note, "no interval") {
				notes = append(notes, note)
			}
		}
	}
	if doubt {
		notes = append(notes, "? marks a fastest side that no interval shows to be: they overlap, or a side has none")
	}
	return notes
}
