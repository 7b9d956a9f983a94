package comparecmd

import (
	"fmt"
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// comparison is what several architectures make of the same problems.
type comparison struct {
	sides  []side
	rows   []row
	labels []string // the columns of row.Labels
	// common is the best model that all sides have, empty if they have none in common.
	common string
	// dollars and joules say that the user gave prices and watts.
	dollars, joules bool
}

// row is one problem.
type row struct {
	problems.Problem
	sides   []side
	answers []ask.Ranking
}

// best returns the i-th side's pick with its answer, nil if it has none.
func (r *row) best(i int) (*ask.Ranking, *ask.Entry) {
	if a := &r.answers[i]; a.Err == nil {
		return a, &a.Entries[0]
	}
	return nil, nil
}

// time returns the i-th side's predicted time, and false if it has none.
func (r *row) time(i int) (unit.Seconds, bool) {
	a, e := r.best(i)
	if a == nil || a.Arch.RanksOnly {
		return 0, false
	}
	return a.Seconds(e), true
}

// ratio returns the i-th side's predicted time ÷ the first one's, and false if either has none.
func (r *row) ratio(i int) (float64, bool) {
	first, ok := r.time(0)
	t, also := r.time(i)
	return float64(t / first), ok && also
}

// verdict says which side is fastest.
type verdict struct {
	side int
	// lead is the next time ÷ that of the fastest.
	lead float64
	// clear says that the interval of the fastest ends before those of the others begin.
	clear bool
}

// leadCell is the lead, with a question mark where it is in doubt.
func (v verdict) leadCell() string {
	lead := fmt.Sprintf("%.3f", v.lead)
	if !v.clear {
		lead += table.Doubt
	}
	return lead
}

// leastLead is below what four digits show. Sides that are nearer to each other are equally fast.
const leastLead = 1.0005

// verdict returns false if fewer than two sides have a time, or two of them are equally fast.
func (r *row) verdict() (verdict, bool) {
	v, best, second, timed := verdict{}, unit.Seconds(math.Inf(1)), unit.Seconds(math.Inf(1)), 0
	for i := range r.answers {
		t, ok := r.time(i)
		switch {
		case !ok:
			continue
		case t < best:
			v.side, best, second = i, t, best
		default:
			second = min(second, t)
		}
		timed++
	}
	v.lead, v.clear = float64(second/best), true
	for i := range r.answers {
		if _, ok := r.time(i); ok && i != v.side {
			v.clear = v.clear && r.before(v.side, i)
		}
	}
	return v, timed > 1 && v.lead >= leastLead
}

// before reports whether the i-th side's interval ends before the j-th one's begins.
func (r *row) before(i, j int) bool {
	a, e := r.best(i)
	b, f := r.best(j)
	_, high, ok := a.Interval(e)
	low, _, also := b.Interval(f)
	return ok && also && high < low
}

// launch returns the part of the i-th side's time that the launch is, and false if its time has no launch.
func (r *row) launch(i int) (unit.Seconds, bool) {
	a, e := r.best(i)
	if a == nil {
		return 0, false
	}
	for j := range a.Arch.Terms {
		if t := &a.Arch.Terms[j]; t.Kind == arch.KindShare && t.CommonName() == arch.CommonLaunch {
			return unit.Cycles(e.Terms[j]).At(a.Arch.Clock), true
		}
	}
	return 0, false
}

// perDollar and perJoule return operations, and false if the i-th side has no time, price or watts.
func (r *row) perDollar(i int) (float64, bool) { return r.per(i, r.sides[i].dollars) }
func (r *row) perJoule(i int) (float64, bool)  { return r.per(i, r.sides[i].watts) }

func (r *row) per(i int, cost float64) (float64, bool) {
	t, ok := r.time(i)
	return r.Flops() / (float64(t) * cost), ok && cost > 0
}

// summary is how the sides stand over some problems.
type summary struct {
	name string
	// problems counts those that are summed up, compared those where the first side and another have a time, and decided
	// those where at least two sides have a time and one is fastest.
	problems, compared, decided int
	sides                       []sideSummary
}

// of writes how many of all problems something is known of: the number alone if that is all of them.
func (s *summary) of(count int) string {
	if count == s.problems {
		return strconv.Itoa(count)
	}
	return fmt.Sprintf("%d of %d", count, s.problems)
}

type sideSummary struct {
	// wins counts the problems where the side is fastest, clear those where intervals prove it.
	wins, clear int
	// ratio is the geometric mean of the side's time ÷ the first one's, over the problems where both have one, and speed
	// that of its rate in operations per second.
	ratio, speed stat
}

// stat is a geometric mean of so many values.
type stat struct {
	count int
	logs  float64
}

func (s *stat) add(v float64) { s.count, s.logs = s.count+1, s.logs+math.Log(v) }

// mean is NaN without values.
func (s *stat) mean() float64 { return math.Exp(s.logs / float64(s.count)) }

// summarise sums up the rows that are chosen.
func (c *comparison) summarise(name string, chosen func(*row) bool) summary {
	out := summary{name: name, sides: make([]sideSummary, len(c.sides))}
	for j := range c.rows {
		r := &c.rows[j]
		if !chosen(r) {
			continue
		}
		out.problems++
		if v, ok := r.verdict(); ok {
			out.decided++
			out.sides[v.side].wins++
			if v.clear {
				out.sides[v.side].clear++
			}
		}
		others := 0
		for i := range c.sides {
			if ratio, ok := r.ratio(i); ok {
				out.sides[i].ratio.add(ratio)
				others += min(i, 1)
			}
			if t, ok := r.time(i); ok {
				out.sides[i].speed.add(r.Flops() / float64(t))
			}
		}
		out.compared += min(others, 1)
	}
	return out
}

// summaries sums up all rows, and those of each class of shape if there are several.
func (c *comparison) summaries() (all summary, classes []summary) {
	all = c.summarise("all", func(*row) bool { return true })
	for _, class := range score.Layers() {
		s := c.summarise(class.String(), func(r *row) bool { return score.LayerOf(r.Problem.Problem) == class })
		if s.problems > 0 {
			classes = append(classes, s)
		}
	}
	return all, classes
}
