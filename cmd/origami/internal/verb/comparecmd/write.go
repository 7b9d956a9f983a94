package comparecmd

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

func (c *comparison) write(s *iostreams.Streams, f show.Format) error {
	switch {
	case f == show.JSON:
		for j := range c.rows {
			if err := show.JSONLine(s, c.rows[j].Comparison(c.labels, s.Hinted)); err != nil {
				return err
			}
		}
		if c.many {
			return show.JSONLine(s, ask.StandingsOf(c.sides, c.rows))
		}
	case f == show.CSV:
		return show.Write(s, f, c.answers(s))
	case c.many:
		c.list(s)
	default:
		for i := range c.rows {
			c.card(s, &c.rows[i])
		}
	}
	return nil
}

// answer is what one side makes of one problem, as a row.
type answer struct {
	ask.Compared
	Ratio   *ask.Number `json:"ratio_to_first"`
	Fastest bool        `json:"fastest"`
	Clear   bool        `json:"clear"`
	Error   *ask.Error  `json:"error,omitempty"`
}

// answers are the rows of all problems and sides. They have the terms of one problem, or where these are asked for.
func (c *comparison) answers(s *iostreams.Streams) (list []answer) {
	for j := range c.rows {
		r := &c.rows[j]
		labels, fastest := ask.Labels(c.labels, r.Labels), r.Fastest()
		for i := range c.sides {
			one := answer{Ratio: r.Ratio(i)}
			if err := r.Answers[i].Err; err != nil {
				failed := ask.ErrorOf(s.Hinted(err))
				one.Error, one.WhatIf = &failed, c.sides[i].WhatIf
				one.Arch, one.Device, one.Problem = c.sides[i].Arch.ID, c.sides[i].Device.ID, r.Record()
			} else {
				one.Compared = *r.Compared(i)
			}
			one.Fastest = fastest != nil && fastest.Entry == i
			one.Clear = one.Fastest && fastest.Clear
			one.Labels = labels
			if one.Terms = ask.TermColumns(one.Terms); c.many && !c.terms {
				one.Terms = nil
			}
			list = append(list, one)
		}
	}
	return list
}

const absent = "–"

// side is a side of one problem. a is nil without an answer.
type side struct {
	r *ask.Contest
	i int
	a *ask.Ranking
	e *ask.Entry
	*ask.Compared
}

type column = show.Column[side]

// key is a line of the card with a value of the JSON, and text a line that is computed of a side with an answer.
var key = show.Key[side]

func text(name string, cell func(*side) string) column {
	return show.Text(name, func(s *side) string {
		if s.a == nil {
			return ""
		}
		return cell(s)
	})
}

// timed is text of models that predict times.
func timed(name string, cell func(*side) string) column {
	return text(name, func(s *side) string {
		if s.RanksOnly {
			return ""
		}
		return cell(s)
	})
}

// section is lines with a title, which may be empty.
type section struct {
	title string
	lines []column
}

// card writes one problem for a reader. A line that no side has anything in is left out.
func (c *comparison) card(s *iostreams.Streams, r *ask.Contest) {
	s.Printf("%-11s %s\n", "problem", r.Problem.Problem)
	header, sides := []string{""}, make([]side, len(r.Sides))
	for i := range sides {
		header = append(header, r.Sides[i].Label())
		sides[i] = side{r: r, i: i}
		if sides[i].a, sides[i].e = r.Best(i); sides[i].a != nil {
			sides[i].Compared = r.Compared(i)
		}
	}
	var rows [][]string
	var headings []int
	parts := append([]section{{"", c.lines(r)}, ways(r), {"", roofs}, hierarchy(sides)}, terms(sides, c.terms)...)
	for _, part := range parts {
		names, cells := show.Texts(sides, part.lines...)
		before := len(rows)
		if part.title != "" {
			headings = append(headings, before)
			rows = append(rows, append([]string{part.title}, make([]string, len(sides))...))
		}
		begin := len(rows)
		for j, name := range names {
			row, found := []string{name}, false
			for i := range sides {
				found = found || cells[i][j] != ""
				cell := absent
				if name == noAnswer {
					cell = ""
				}
				row = append(row, cmp.Or(cells[i][j], cell))
			}
			if found {
				rows = append(rows, row)
			}
		}
		if len(rows) == begin && begin > before {
			rows, headings = rows[:before], headings[:len(headings)-1]
		}
	}
	show.WriteSideBySide(s, header, rows, headings...)
	for _, note := range slices.Concat(c.notes(r), odds(r), confirmed(r)) {
		show.Lines(s, "note: "+note)
	}
}

// noAnswer is the line with the reasons of the sides that have no answer.
const noAnswer = "no answer"

// lines are what is predicted, who answers, and what the answer was checked on.
func (c *comparison) lines(r *ask.Contest) []column {
	fastest := r.Fastest()
	return []column{
		show.Text(noAnswer, func(s *side) string {
			if err := r.Answers[s.i].Err; err != nil {
				return err.Error()
			}
			return ""
		}),
		text("time", func(s *side) string {
			if s.RanksOnly {
				return "not a time: " + show.TimeCell(s.a, s.e)
			}
			return show.TimeCell(s.a, s.e)
		}),
		timed("interval", func(s *side) string {
			low, high, ok := s.a.Interval(s.e)
			if !ok {
				return ""
			}
			return fmt.Sprintf("%s (%s)", digits.Span(low, high), digits.Level(s.a.Scope(s.e).Uncertainty.Level))
		}),
		text("time ÷ first", func(s *side) string { return ratioCell(r.Ratio(s.i)) }),
		text(show.FastestColumn, func(s *side) string {
			if fastest == nil || s.i != fastest.Entry {
				return ""
			}
			return fmt.Sprintf("lead %.3f", fastest.Lead) + oddsOf(fastest)
		}),
		text("rate", func(s *side) string { return show.RateCell(s.a, s.e) }),
		timed("launch cost", func(s *side) string {
			if s.Launch == nil {
				return "not in the time"
			}
			return unit.Seconds(*s.Launch).String() + " of the time"
		}),
		text("faster way", func(s *side) string {
			way := r.Faster(s.i)
			if way == nil {
				return ""
			}
			e := &way.Entries[0]
			return fmt.Sprintf("%s %s, %s", way.Kernel, show.TimeCell(way, e), way.Scope(e).Evidence)
		}),
		text("device", func(s *side) string { return s.a.Arch.DeviceName }),
		text("units", func(s *side) string {
			return fmt.Sprintf("%d %ss at %s", s.a.Arch.Units, s.a.Arch.UnitName, s.a.Arch.Clock)
		}),
		text("model", func(s *side) string { return modelOf(s.a.Arch) }),
		key("kernel", "family"), key("rung"), key("timing"),
		text("options", func(s *side) string {
			var words []string
			for _, o := range s.a.Arch.Options {
				if o.Key != timing.Option {
					words = append(words, o.Key+"="+o.Value)
				}
			}
			return strings.Join(words, ", ")
		}),
		text("evidence", func(s *side) string { return show.Evidence(s.a, s.e) }),
		text("pick", func(s *side) string { return s.e.Config.String() }),
		text("per dollar", func(s *side) string { return work(s.PerDollar) }).If(c.dollars),
		text("per joule", func(s *side) string { return work(s.PerJoule) }).If(c.joules),
	}
}

func modelOf(d *arch.Description) string {
	if d.RanksOnly {
		return d.Model + ", ranks only"
	}
	return d.Model
}

// ways are the times of the other kernel families.
func ways(r *ask.Contest) section {
	var lines []column
	var families []string
	for i := range r.Sides {
		for _, way := range r.Answers[i].Ways {
			family := way.Kernel
			if slices.Contains(families, family) {
				continue
			}
			families = append(families, family)
			lines = append(lines, text("  "+family, func(s *side) string {
				i := slices.IndexFunc(s.a.Ways, func(way *ask.Ranking) bool { return way.Kernel == family })
				switch {
				case s.a.Kernel == family:
					return "as above"
				case i < 0:
					return ""
				}
				return show.TimeCell(s.a.Ways[i], &s.a.Ways[i].Entries[0])
			}))
		}
	}
	return section{"other ways to run it", lines}
}

// roofs are where the picks are under the roofs.
var roofs = []column{
	text("bound", func(s *side) string { return s.e.Estimate.Bound.String() }),
	timed("of peak", func(s *side) string {
		dtype := s.a.Problem.DType
		return shareOf(s.a.Roofline(s.e).PeakShare, digits.Rate(s.a.Arch.PeakFor(dtype), dtype))
	}),
	timed("of DRAM's peak", func(s *side) string {
		r := s.a.Roofline(s.e)
		return shareOf(r.DRAMShare, unit.SI(r.DRAMPeak, "B/s"))
	}),
	timed("of the roof", func(s *side) string { return shareOf(s.a.Roofline(s.e).RoofShare, "") }),
	text("intensity", func(s *side) string {
		r := s.a.Roofline(s.e)
		text := s.a.Intensity(r.Intensity)
		if r.Ridge > 0 {
			text += ", ridge " + digits.ThreeDigits(r.Ridge)
		}
		return text
	}),
	text("occupancy", func(s *side) string { return s.a.Waves(s.a.Roofline(s.e)) }),
}

// hierarchy is the memory levels of the devices, near to far, and what else their kernels have to fit.
func hierarchy(sides []side) section {
	least := map[string]float64{}
	for i := range sides {
		if sides[i].a == nil {
			continue
		}
		for _, l := range sides[i].Hardware.Levels {
			capacity := cmp.Or(l.Capacity, math.Inf(1))
			least[l.Name] = min(cmp.Or(least[l.Name], capacity), capacity)
		}
	}
	var lines []column
	for _, name := range slices.SortedFunc(maps.Keys(least), func(a, b string) int { // what is near is small
		return cmp.Or(cmp.Compare(least[a], least[b]), strings.Compare(a, b))
	}) {
		lines = append(lines, text("  "+name, func(s *side) string {
			at := slices.IndexFunc(s.Hardware.Levels, func(l ask.MemoryLevel) bool { return l.Name == name })
			if at < 0 {
				return ""
			}
			return levelCell(&s.Hardware.Levels[at])
		}))
	}
	return section{"the device", append(lines, key("hardware.chiplets", "  chiplets"),
		key("hardware.instruction", "  instruction"),
		text("  registers", func(s *side) string {
			if s.Hardware.Registers == 0 {
				return ""
			}
			return fmt.Sprintf("at most %d per thread", s.Hardware.Registers)
		}),
		text("  shared memory", func(s *side) string {
			if s.Hardware.SharedMemory == 0 {
				return ""
			}
			return limit.Size(s.Hardware.SharedMemory).String() + " per CTA"
		}))}
}

// levelCell writes the capacity and the bandwidth of a memory level.
func levelCell(l *ask.MemoryLevel) string {
	var words []string
	if l.Capacity > 0 {
		capacity := limit.Size(l.Capacity).String()
		if l.Partitions > 1 {
			capacity = fmt.Sprintf("%d × %s", l.Partitions, capacity)
		}
		words = append(words, capacity)
	}
	if l.Bandwidth > 0 {
		words = append(words, unit.SI(l.Bandwidth, "B/s"))
	}
	return strings.Join(words, ", ")
}

// shareOf writes a share of something. An unknown share is empty.
func shareOf(share float64, of string) string {
	switch {
	case share <= 0:
		return ""
	case of == "":
		return digits.Percent(share)
	default:
		return digits.Percent(share) + " of " + of
	}
}

func work(v *ask.Number) string {
	if v == nil {
		return ""
	}
	return unit.SI(float64(*v), "FLOP")
}

// leastSure is the probability below which it is in doubt who is the fastest.
const leastSure = 0.9

// oddsOf writes the probability behind the fastest side: ", 97 %", ", 54 % ?" in doubt, " ?" if it is unknown.
func oddsOf(f *ask.Fastest) string {
	switch {
	case f.Odds == nil:
		return show.Doubt
	case *f.Odds < leastSure:
		return ", " + percent(*f.Odds) + show.Doubt
	}
	return ", " + percent(*f.Odds)
}

// percent writes a probability. None is certain.
func percent(p ask.Number) string {
	if p > mostSure {
		return fmt.Sprintf("over %.0f %%", 100*mostSure)
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}

// mostSure is the largest probability that is written: of so few sources, none is known better.
const mostSure = 0.99

// notes says what a reader has to know before comparing the columns of a problem.
func (c *comparison) notes(r *ask.Contest) (notes []string) {
	var ranking, with, without, models []string
	for i := range r.Sides {
		a, _ := r.Best(i)
		if a == nil {
			continue
		}
		label := r.Sides[i].Label()
		model := a.Arch.Model + " for " + a.Kernel
		if !slices.Contains(models, model) {
			models = append(models, model)
		}
		switch {
		case a.Arch.RanksOnly:
			ranking = append(ranking, label)
		case r.Launch(i) != nil:
			with = append(with, label)
		default:
			without = append(without, label)
		}
	}
	if len(ranking) > 0 {
		notes = append(notes, fmt.Sprintf("the cycles of %s are not a time: the model ranks kernels; they compare kernels "+
			"of one device, not devices", strings.Join(ranking, ", ")))
	}
	if len(models) > 1 {
		note := "the sides answer with different models (" + strings.Join(models, ", ") + ")"
		if family := r.Shared(); family != "" {
			note += "; --kernel " + family + " asks all for one family"
		} else if c.common != "" {
			note += "; --model " + c.common + " asks all for one model"
		}
		notes = append(notes, note)
	}
	if len(with) > 0 && len(without) > 0 {
		notes = append(notes, fmt.Sprintf("the time to launch a kernel is in the times of %s and not in the times of %s",
			strings.Join(with, ", "), strings.Join(without, ", ")))
	}
	return notes
}

// odds writes the probability that the fastest side is faster, for each other side. It is empty without intervals.
func odds(r *ask.Contest) (note []string) {
	f := r.Fastest()
	if f == nil || f.Odds == nil {
		return nil
	}
	var against []string
	for i := range r.Sides {
		if odds := r.Odds(f.Entry, i); odds != nil && i != f.Entry {
			against = append(against, fmt.Sprintf("than %s %s", r.Sides[i].Label(), percent(*odds)))
		}
	}
	return []string{fmt.Sprintf("probability that %s is faster: %s", r.Sides[f.Entry].Label(),
		strings.Join(against, ", "))}
}

// confirmed writes how often published times confirm who was named, for the fastest side and each other one.
func confirmed(r *ask.Contest) (note []string) {
	f := r.Fastest()
	if f == nil {
		return nil
	}
	var shares []string
	for i := range r.Sides {
		if n := r.Recorded(f.Entry, i); n != nil && i != f.Entry {
			shares = append(shares, fmt.Sprintf("%s %.0f %% of %d", r.Sides[i].Label(),
				100*float64(n.Right)/float64(n.Decided), n.Decided))
		}
	}
	if len(shares) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("of published products in %s of class %s, library names the faster side right: %s and %s",
		r.DType, score.LayerOf(r.Problem.Problem), r.Sides[f.Entry].Label(), strings.Join(shares, ", "))}
}
