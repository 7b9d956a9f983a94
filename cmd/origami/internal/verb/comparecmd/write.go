package comparecmd

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
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
	case f == show.CSV || f == show.TSV:
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

type grid struct {
	r        *ask.Contest
	rows     [][]string
	headings []int
}

// add adds a row, unless no side has anything in it. Only sides with an answer are asked.
func (g *grid) add(name string, cell func(i int, a *ask.Ranking, e *ask.Entry) string) {
	cells, found := []string{name}, false
	for i := range g.r.Sides {
		text := absent
		if a, e := g.r.Best(i); a != nil {
			text = cmp.Or(cell(i, a, e), absent)
		}
		found = found || text != absent
		cells = append(cells, text)
	}
	if found {
		g.rows = append(g.rows, cells)
	}
}

func (g *grid) heading(title string) {
	g.headings = append(g.headings, len(g.rows))
	g.rows = append(g.rows, append([]string{title}, make([]string, len(g.r.Sides))...))
}

// card writes one problem for a reader.
func (c *comparison) card(s *iostreams.Streams, r *ask.Contest) {
	s.Printf("%-11s %s\n", "problem", r.Problem.Problem)
	header := []string{""}
	for i := range r.Sides {
		header = append(header, r.Sides[i].Label())
	}
	g := &grid{r: r}
	c.failed(g)
	c.times(g)
	g.faster()
	c.identity(g)
	c.costs(g)
	g.ways()
	c.roofs(g)
	g.hierarchy()
	g.terms(c.terms)
	show.WriteSideBySide(s, header, g.rows, g.headings...)
	for _, note := range slices.Concat(c.notes(r), odds(r), confirmed(r)) {
		show.Lines(s, "note: "+note)
	}
}

// failed adds the reasons of the sides that have no answer.
func (c *comparison) failed(g *grid) {
	cells, found := []string{"no answer"}, false
	for i := range g.r.Answers {
		cell := ""
		if err := g.r.Answers[i].Err; err != nil {
			cell, found = err.Error(), true
		}
		cells = append(cells, cell)
	}
	if found {
		g.rows = append(g.rows, cells)
	}
}

// identity adds who answers, and what the answer was checked on.
func (c *comparison) identity(g *grid) {
	g.add("device", func(_ int, a *ask.Ranking, _ *ask.Entry) string { return a.Arch.DeviceName })
	g.add("units", func(_ int, a *ask.Ranking, _ *ask.Entry) string {
		return fmt.Sprintf("%d %ss at %s", a.Arch.Units, a.Arch.UnitName, a.Arch.Clock)
	})
	g.add("model", func(_ int, a *ask.Ranking, _ *ask.Entry) string {
		if a.Arch.RanksOnly {
			return a.Arch.Model + ", ranks only"
		}
		return a.Arch.Model
	})
	g.add("family", func(_ int, a *ask.Ranking, _ *ask.Entry) string { return a.Kernel })
	g.add("rung", func(_ int, a *ask.Ranking, _ *ask.Entry) string { return string(a.Arch.Rung) })
	g.add("timing", func(_ int, a *ask.Ranking, _ *ask.Entry) string { return a.Arch.Timing })
	g.add("options", func(_ int, a *ask.Ranking, _ *ask.Entry) string {
		var words []string
		for _, o := range a.Arch.Options {
			if o.Key != timing.Option {
				words = append(words, o.Key+"="+o.Value)
			}
		}
		return strings.Join(words, ", ")
	})
	g.add("evidence", func(_ int, a *ask.Ranking, e *ask.Entry) string { return show.Evidence(a, e) })
	g.add("pick", func(_ int, _ *ask.Ranking, e *ask.Entry) string { return e.Config.String() })
}

// times adds what is predicted.
func (c *comparison) times(g *grid) {
	g.add("time", func(_ int, a *ask.Ranking, e *ask.Entry) string {
		if a.Arch.RanksOnly {
			return "not a time: " + show.TimeCell(a, e)
		}
		return show.TimeCell(a, e)
	})
	g.add("interval", func(_ int, a *ask.Ranking, e *ask.Entry) string {
		low, high, ok := a.Interval(e)
		if !ok || a.Arch.RanksOnly {
			return ""
		}
		return fmt.Sprintf("%s (%s)", digits.Span(low, high), digits.Level(a.Scope(e).Uncertainty.Level))
	})
	g.add("time ÷ first", func(i int, _ *ask.Ranking, _ *ask.Entry) string {
		return ratioCell(g.r.Ratio(i))
	})
	fastest := g.r.Fastest()
	g.add(show.FastestColumn, func(i int, _ *ask.Ranking, _ *ask.Entry) string {
		if fastest == nil || i != fastest.Entry {
			return ""
		}
		return fmt.Sprintf("lead %.3f", fastest.Lead) + oddsOf(fastest)
	})
	g.add("rate", func(_ int, a *ask.Ranking, e *ask.Entry) string { return show.RateCell(a, e) })
	g.add("launch cost", func(i int, a *ask.Ranking, _ *ask.Entry) string {
		switch t := g.r.Launch(i); {
		case a.Arch.RanksOnly:
			return ""
		case t == nil:
			return "not in the time"
		default:
			return unit.Seconds(*t).String() + " of the time"
		}
	})
}

// faster names the way of each side that is faster than what the side answers with.
func (g *grid) faster() {
	g.add("faster way", func(i int, _ *ask.Ranking, _ *ask.Entry) string {
		way := g.r.Faster(i)
		if way == nil {
			return ""
		}
		e := &way.Entries[0]
		return fmt.Sprintf("%s %s, %s", way.Kernel, show.TimeCell(way, e), way.Scope(e).Evidence)
	})
}

// ways adds the times of the other kernel families.
func (g *grid) ways() {
	var families []string
	for i := range g.r.Sides {
		for _, way := range g.r.Answers[i].Ways {
			if !slices.Contains(families, way.Kernel) {
				families = append(families, way.Kernel)
			}
		}
	}
	if families == nil {
		return
	}
	g.heading("other ways to run it")
	for _, family := range families {
		g.add("  "+family, func(_ int, a *ask.Ranking, _ *ask.Entry) string {
			i := slices.IndexFunc(a.Ways, func(way *ask.Ranking) bool { return way.Kernel == family })
			switch {
			case a.Kernel == family:
				return "as above"
			case i < 0:
				return ""
			}
			return show.TimeCell(a.Ways[i], &a.Ways[i].Entries[0])
		})
	}
}

// roofs adds where the picks are under the roofs.
func (c *comparison) roofs(g *grid) {
	timed := func(name string, cell func(*ask.Ranking, ask.Roofline) string) {
		g.add(name, func(_ int, a *ask.Ranking, e *ask.Entry) string {
			if a.Arch.RanksOnly {
				return ""
			}
			return cell(a, a.Roofline(e))
		})
	}
	g.add("bound", func(_ int, _ *ask.Ranking, e *ask.Entry) string { return e.Estimate.Bound.String() })
	timed("of peak", func(a *ask.Ranking, r ask.Roofline) string {
		return shareOf(r.PeakShare, digits.Rate(a.Arch.PeakFor(a.Problem.DType), a.Problem.DType))
	})
	timed("of DRAM's peak", func(_ *ask.Ranking, r ask.Roofline) string {
		return shareOf(r.DRAMShare, unit.SI(r.DRAMPeak, "B/s"))
	})
	timed("of the roof", func(_ *ask.Ranking, r ask.Roofline) string { return shareOf(r.RoofShare, "") })
	g.add("intensity", func(_ int, a *ask.Ranking, e *ask.Entry) string {
		r := a.Roofline(e)
		text := a.Intensity(r.Intensity)
		if r.Ridge > 0 {
			text += ", ridge " + digits.ThreeDigits(r.Ridge)
		}
		return text
	})
	g.add("occupancy", func(_ int, a *ask.Ranking, e *ask.Entry) string {
		return a.Waves(a.Roofline(e))
	})
}

// hierarchy adds the memory levels of the devices, near to far, and what else their kernels have to fit.
func (g *grid) hierarchy() {
	g.heading("the device")
	sides, least := make([]ask.Hardware, len(g.r.Sides)), map[string]float64{}
	for i := range sides {
		if a, _ := g.r.Best(i); a == nil {
			continue
		}
		sides[i] = g.r.Hardware(i)
		for _, l := range sides[i].Levels {
			capacity := cmp.Or(l.Capacity, math.Inf(1))
			least[l.Name] = min(cmp.Or(least[l.Name], capacity), capacity)
		}
	}
	names := slices.SortedFunc(maps.Keys(least), func(a, b string) int { // what is near is small
		return cmp.Or(cmp.Compare(least[a], least[b]), strings.Compare(a, b))
	})
	row := func(name string, cell func(*ask.Hardware) string) {
		g.add("  "+name, func(i int, _ *ask.Ranking, _ *ask.Entry) string { return cell(&sides[i]) })
	}
	for _, name := range names {
		row(name, func(h *ask.Hardware) string {
			at := slices.IndexFunc(h.Levels, func(l ask.MemoryLevel) bool { return l.Name == name })
			if at < 0 {
				return ""
			}
			return levelCell(&h.Levels[at])
		})
	}
	row("chiplets", func(h *ask.Hardware) string { return strconv.Itoa(h.Chiplets) })
	row("instruction", func(h *ask.Hardware) string { return h.Instruction })
	row("registers", func(h *ask.Hardware) string {
		if h.Registers == 0 {
			return ""
		}
		return fmt.Sprintf("at most %d per thread", h.Registers)
	})
	row("shared memory", func(h *ask.Hardware) string {
		if h.SharedMemory == 0 {
			return ""
		}
		return limit.Size(h.SharedMemory).String() + " per CTA"
	})
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

func (c *comparison) costs(g *grid) {
	if c.dollars {
		g.add("per dollar", func(i int, _ *ask.Ranking, _ *ask.Entry) string { return work(g.r.PerDollar(i)) })
	}
	if c.joules {
		g.add("per joule", func(i int, _ *ask.Ranking, _ *ask.Entry) string { return work(g.r.PerJoule(i)) })
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
			note += "; --same-model takes the model " + c.common
		}
		notes = append(notes, note)
	}
	if len(with) > 0 && len(without) > 0 {
		notes = append(notes, fmt.Sprintf("the time to launch a kernel is in the times of %s and not in those of %s",
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
