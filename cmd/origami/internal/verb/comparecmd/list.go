package comparecmd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/unit"
)

// list writes a row per problem, and who wins how often and by how much.
func (c *comparison) list(s *iostreams.Streams) {
	show.Grid{Header: aboutHeader, Rows: c.about(), Least: []string{"units", "rung", "device", "family"}}.Write(s)
	s.Printf("\n")
	for _, ratios := range []bool{true, false} {
		header, rows := c.table(ratios)
		if ratios && len(c.sides) > 2 && show.TableWidth(header, rows) > show.PageWidth(s) {
			continue
		}
		show.Grid{Header: header, Rows: rows}.Write(s)
		break
	}
	header, rows := c.standings()
	s.Printf("\n")
	show.WriteSideBySide(s, header, rows)
	for _, note := range c.allNotes() {
		show.Lines(s, "note: "+note)
	}
}

var aboutHeader = []string{"side", "device", "units", "model", "family", "rung", "timing", "evidence"}

// about says who answers.
func (c *comparison) about() (rows [][]string) {
	for i := range c.sides {
		s := &c.sides[i]
		if s.Err != nil {
			rows = append(rows, []string{s.Called(), s.ID(), "", "", "", "", "", "no answer: " + s.Err.Error()})
			continue
		}
		d := s.Model.Describe()
		rows = append(rows, []string{s.Called(), s.ID(), fmt.Sprintf("%d %ss at %s", d.Units, d.UnitName, d.Clock),
			modelOf(d), s.Kernel, string(d.Rung), d.Timing, c.evidence(i)})
	}
	return rows
}

// evidence counts what is known of the errors of a side's times, the best first: "checked, sister for 2 of 7 problems".
func (c *comparison) evidence(i int) string {
	count, answers := map[arch.Evidence]int{}, 0
	for j := range c.rows {
		if a, e := c.rows[j].Best(i); a != nil {
			count[a.Scope(e).Evidence]++
			answers++
		}
	}
	var words []string
	for _, grade := range arch.Grades {
		switch n := count[grade]; n {
		case 0:
		case answers:
			words = append(words, string(grade))
		default:
			words = append(words, fmt.Sprintf("%s for %d of %d", grade, n, answers))
		}
	}
	return strings.Join(words, ", ")
}

// table has a row per problem: the time of each side, and its ratio to the first unless there is no room for it.
func (c *comparison) table(ratios bool) (header []string, rows [][]string) {
	header = append([]string{"problem", show.FastestColumn}, c.labels...)
	for i := range c.sides {
		header = append(header, c.sides[i].Called())
		if i > 0 && ratios {
			header = append(header, "÷ first")
		}
	}
	for j := range c.rows {
		r := &c.rows[j]
		fastest := absent
		if f := r.Fastest(); f != nil {
			fastest = fmt.Sprintf("%s, lead %.3f%s", c.sides[f.Entry].Called(), f.Lead, oddsOf(f))
		}
		row := append([]string{r.String(), fastest}, r.Labels...)
		for i := range c.sides {
			cell := absent
			if a, e := r.Best(i); a != nil {
				cell = show.TimeCell(a, e)
			}
			row = append(row, cell)
			if i > 0 && ratios {
				row = append(row, cmp.Or(ratioCell(r.Ratio(i)), absent))
			}
		}
		rows = append(rows, row)
	}
	return header, rows
}

func ratioCell(v *ask.Number) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *v)
}

// standings is who wins how often and by how much, over all problems and over each class of shape.
func (c *comparison) standings() (header []string, rows [][]string) {
	header = []string{""}
	for i := range c.sides {
		header = append(header, c.sides[i].Called())
	}
	standings := ask.StandingsOf(c.sides, c.rows)
	all := &standings.Summary
	cells := func(of *ask.Standing, name string, cell func(*ask.SideStanding) string) {
		row := []string{name}
		for i := range of.Sides {
			row = append(row, cmp.Or(cell(&of.Sides[i]), absent))
		}
		rows = append(rows, row)
	}
	geomean := func(of *ask.Standing, name string) {
		cells(of, name, func(one *ask.SideStanding) string {
			cell := ratioCell(one.Ratio)
			if 0 < one.Count && one.Count < of.Compared {
				cell += fmt.Sprintf(" (of %d)", one.Count)
			}
			return cell
		})
	}
	problems := digits.Plural(all.Problems, "problem", "problems")
	if all.Decided < all.Problems {
		problems = fmt.Sprintf("%d of %s", all.Decided, problems)
	}
	cells(all, "fastest, of "+problems, func(s *ask.SideStanding) string { return strconv.Itoa(s.Wins) })
	cells(all, "  with 95 % and more", func(s *ask.SideStanding) string { return strconv.Itoa(s.Clear) })
	compared := ""
	if all.Compared < all.Problems {
		compared = ", of " + comparedOf(all)
	}
	geomean(all, "time ÷ first, geomean"+compared)
	if len(standings.Classes) > 1 {
		for k := range standings.Classes {
			class := &standings.Classes[k]
			geomean(class, fmt.Sprintf("  %s (%s)", class.Class, comparedOf(class)))
		}
	}
	if slices.ContainsFunc(all.Sides, func(s ask.SideStanding) bool { return s.Sum != nil }) {
		cells(all, "sum of count × time", func(s *ask.SideStanding) string {
			if s.Sum == nil {
				return ""
			}
			return unit.Seconds(*s.Sum).String()
		})
	}
	if c.dollars {
		cells(all, "FLOP per dollar, geomean", func(s *ask.SideStanding) string { return work(s.PerDollar) })
	}
	if c.joules {
		cells(all, "FLOP per joule, geomean", func(s *ask.SideStanding) string { return work(s.PerJoule) })
	}
	return header, rows
}

// comparedOf is how many of the problems have two times: the number alone if that is all of them.
func comparedOf(s *ask.Standing) string {
	if s.Compared == s.Problems {
		return strconv.Itoa(s.Compared)
	}
	return fmt.Sprintf("%d of %d", s.Compared, s.Problems)
}

// allNotes are the notes of all problems, each once.
func (c *comparison) allNotes() (notes []string) {
	sure := false
	for j := range c.rows {
		r := &c.rows[j]
		f := r.Fastest()
		sure = sure || f != nil && f.Odds != nil
		for _, note := range c.notes(r) {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	if sure {
		notes = append(notes, "beside the fastest side stands the probability that it is faster than the next")
	}
	return notes
}
