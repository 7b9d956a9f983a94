package ask

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Contender is one side of a comparison, a figure or a page: a device with the model that answers for it.
type Contender struct {
	models.Found
	Model  arch.Architecture
	Kernel string
	// Fixed says that the user chose the family, the model or the candidates.
	Fixed bool
	// Free is the model with the configurations that Model leaves out because the order of their sums depends on M. It is
	// nil if Model leaves none out for that.
	Free arch.Architecture
	// Others are the other kernel families of the device.
	Others []*Family
	// Dollars per second and Watts are 0 if they are unknown.
	Dollars, Watts float64
	// Err says why it answers no problem.
	Err error
}

// Describe describes the model.
func (c *Contender) Describe() *arch.Description { return c.Model.Describe() }

// Contest is what the sides make of one problem.
type Contest struct {
	problems.Problem
	Sides   []Contender
	Answers []Ranking
	// Named says how often published times confirm who was named the faster of two devices, nil if nobody asks.
	Named func(first, second *Contender, p gemm.Problem) *Recorded
}

// Compare asks all sides about all problems, with the terms of their picks, and with the other ways if ways is set.
// done is told how many predictions are made. What is wrong with a side is in it, and in its answers.
func Compare(ctx context.Context, sides []Contender, list []problems.Problem, ways bool,
	done func(predictions int),
) ([]Contest, error) {
	out := make([]Contest, len(list))
	for i := range list {
		out[i] = Contest{Problem: list[i], Sides: sides, Answers: make([]Ranking, len(sides))}
	}
	group := Group{Most: sidesAtOnce}
	for i := range sides {
		group.Go(func() { askSide(ctx, &sides[i], i, out, problems.Shapes(list), ways, done) })
	}
	group.Wait()
	return out, ctx.Err()
}

// sidesAtOnce is how many sides are asked at once: what a plugin computes for one can go before it computes the next.
const sidesAtOnce = 2

// askSide asks one side, about a few problems at a time: a plugin has to hold what it is asked at once.
func askSide(ctx context.Context, s *Contender, i int, rows []Contest, shapes []gemm.Problem, ways bool,
	done func(int),
) {
	const atOnce = 64
	if s.Err == nil && len(shapes) > 0 {
		*s = *s.For(ctx, &shapes[0])
	}
	for from := 0; from < len(shapes); from += atOnce {
		part := shapes[from:min(from+atOnce, len(shapes))]
		var answers []Ranking
		if s.Err == nil {
			answers, s.Err = s.Rankings(ctx,
				Question{Problems: part, Kernel: s.Kernel, Top: 1, Terms: true, Ways: ways})
		}
		done(len(part))
		for j := range part {
			if rows[from+j].Answers[i].Err = s.Err; s.Err == nil {
				rows[from+j].Answers[i] = answers[j]
			}
		}
	}
}

// Best returns the i-th side's pick with its ranking, nil if it has none.
func (c *Contest) Best(i int) (*Ranking, *Entry) {
	if a := &c.Answers[i]; a.Err == nil {
		return a, &a.Entries[0]
	}
	return nil, nil
}

// Time returns the i-th side's predicted time, and false if it has none.
func (c *Contest) Time(i int) (unit.Seconds, bool) {
	a, e := c.Best(i)
	if a == nil || a.Arch.RanksOnly {
		return 0, false
	}
	return a.Seconds(e), true
}

// Ratio returns the i-th side's predicted time ÷ the first one's, nil if either has none.
func (c *Contest) Ratio(i int) *Number {
	first, ok := c.Time(0)
	t, also := c.Time(i)
	return known(float64(t/first), ok && also)
}

// leastLead is below what four digits show. Sides that are nearer to each other are equally fast.
const leastLead = 1.0005

// clearOdds is the probability from which a side is clearly the faster one.
const clearOdds = 0.95

// Fastest returns nil if fewer than two sides have a time, or two of them are equally fast.
func (c *Contest) Fastest() *Fastest {
	f, best, second, timed := &Fastest{}, unit.Seconds(math.Inf(1)), unit.Seconds(math.Inf(1)), 0
	for i := range c.Answers {
		t, ok := c.Time(i)
		switch {
		case !ok:
			continue
		case t < best:
			f.Entry, best, second = i, t, best
		default:
			second = min(second, t)
		}
		timed++
	}
	f.Lead, f.Clear = Number(second/best), true
	for i := range c.Answers {
		if _, ok := c.Time(i); ok && i != f.Entry {
			odds := c.Odds(f.Entry, i)
			f.Clear = f.Clear && odds != nil && *odds >= clearOdds
			if odds != nil && (f.Odds == nil || *odds < *f.Odds) {
				f.Odds = odds
			}
		}
	}
	if timed < 2 || !(f.Lead >= leastLead) {
		return nil
	}
	return f
}

// Odds returns the probability that the i-th side is faster than the j-th, nil if either has no interval.
func (c *Contest) Odds(i, j int) *Number {
	a, e := c.Best(i)
	b, f := c.Best(j)
	if a == nil || b == nil || a.Arch.RanksOnly || b.Arch.RanksOnly {
		return nil
	}
	if u := deviceOf(a, b, e); u != nil {
		return known(score.OddsOfOneModel(a.Seconds(e), b.Seconds(f), u, e.Estimate.Bound), true)
	}
	first, ok := a.Distribution(e)
	second, also := b.Distribution(f)
	if !ok || !also {
		return nil
	}
	return known(score.Odds(first, second), true)
}

// deviceOf returns what was checked on the device of two answers of one model, of which one or both have other hardware
// numbers than the device. It is nil for others.
func deviceOf(a, b *Ranking, e *Entry) *arch.Uncertainty {
	x, y := a.Arch, b.Arch
	if x.ID() != y.ID() || x.Model != y.Model || x.Timing != y.Timing || a.Kernel != b.Kernel ||
		len(x.Overridden())+len(y.Overridden()) == 0 {
		return nil
	}
	if u := a.Nearest(e); u != nil && len(u.Ranges) > 0 {
		return u
	}
	return nil
}

// Recorded says how often published times confirm who was named the faster of two sides, nil if it is unknown.
func (c *Contest) Recorded(i, j int) *Recorded {
	first, second := &c.Sides[i], &c.Sides[j]
	if c.Named == nil || first.Err != nil || second.Err != nil || first.WhatIf+second.WhatIf != "" {
		return nil
	}
	return c.Named(first, second, c.Problem.Problem)
}

// Shared returns the first kernel family that all sides with an answer have a time for. It is empty if there is none,
// or if all answer with one family as it is.
func (c *Contest) Shared() string {
	has := func(a *Ranking, family string) bool {
		return a.Kernel == family || slices.ContainsFunc(a.Ways, func(way *Ranking) bool { return way.Kernel == family })
	}
	var answers []*Ranking
	var families []string
	one := true
	for i := range c.Answers {
		if a, _ := c.Best(i); a != nil {
			answers = append(answers, a)
			families = append(families, a.Kernel)
			for _, way := range a.Ways {
				families = append(families, way.Kernel)
			}
			one = one && a.Kernel == answers[0].Kernel
		}
	}
	i := slices.IndexFunc(families, func(family string) bool {
		return !slices.ContainsFunc(answers, func(a *Ranking) bool { return !has(a, family) })
	})
	if one || i < 0 {
		return ""
	}
	return families[i]
}

// Faster returns the i-th side's fastest other way, if it is faster than what the side answers with and checked. It is
// nil otherwise, and where nobody asked for ways.
func (c *Contest) Faster(i int) *Ranking {
	t, ok := c.Time(i)
	for _, way := range c.Answers[i].Ways {
		if e := &way.Entries[0]; ok && way.Scope(e).Checked() && way.Seconds(e)*leastLead < t {
			return way
		}
	}
	return nil
}

// Launch returns the part of the i-th side's time that the launch is, nil if its time has no launch.
func (c *Contest) Launch(i int) *Number {
	a, e := c.Best(i)
	if a == nil {
		return nil
	}
	for j := range a.Arch.Terms {
		if t := &a.Arch.Terms[j]; t.Kind == arch.KindShare && t.CommonName() == arch.CommonLaunch {
			return known(float64(unit.Cycles(e.Terms[j]).At(a.Arch.Clock)), true)
		}
	}
	return nil
}

// PerDollar and PerJoule return operations, nil if the i-th side has no time, price or watts.
func (c *Contest) PerDollar(i int) *Number { return c.per(i, c.Sides[i].Dollars) }

// PerJoule is described at PerDollar.
func (c *Contest) PerJoule(i int) *Number { return c.per(i, c.Sides[i].Watts) }

func (c *Contest) per(i int, cost float64) *Number {
	t, ok := c.Time(i)
	return known(c.Flops()/(float64(t)*cost), ok && cost > 0)
}

// Comparison returns a contest as a plain value. hint puts errors into the words of who asks.
func (c *Contest) Comparison(labels []string, hint func(error) error) Comparison {
	o := Comparison{Problem: c.Record(), Labels: Labels(labels, c.Labels), Fastest: c.Fastest()}
	first := true
	for i := range c.Sides {
		s := &c.Sides[i]
		if err := c.Answers[i].Err; err != nil {
			o.Entries = append(o.Entries, &Failed{Arch: s.Arch.ID, Device: s.Device.ID, WhatIf: s.WhatIf,
				Error: ErrorOf(hint(err))})
		} else {
			o.Entries = append(o.Entries, c.Compared(i))
		}
		o.Ratio = append(o.Ratio, c.Ratio(i))
		odds, recorded := make([]*Number, len(c.Sides)), make([]*Recorded, len(c.Sides))
		for j := range c.Sides {
			if j != i {
				odds[j], recorded[j] = c.Odds(i, j), c.Recorded(i, j)
			}
		}
		o.Odds, o.Recorded = append(o.Odds, odds), append(o.Recorded, recorded)
		if s.Err != nil {
			continue
		}
		d := s.Describe()
		if first {
			o.Model, o.ModelClass, first = d.Model, d.Class(), false
		}
		if d.Model != o.Model {
			o.Model = ""
		}
		if d.Class() != o.ModelClass {
			o.ModelClass = ""
		}
	}
	return o
}

// Compared returns the answer of the i-th side, which has one, as a plain value.
func (c *Contest) Compared(i int) *Compared {
	a, e := c.Best(i)
	roofs, timed := a.Roofline(e), !a.Arch.RanksOnly
	out := &Compared{
		Answer: a.Answer(e), WhatIf: c.Sides[i].WhatIf, Launch: c.Launch(i),
		Roofline: Roofs{
			Intensity: known(roofs.Intensity, true), Ridge: known(roofs.Ridge, roofs.Ridge > 0),
			Peak: known(roofs.PeakShare, timed && roofs.PeakShare > 0),
			DRAM: known(roofs.DRAMShare, timed && roofs.DRAMShare > 0),
			Roof: known(roofs.RoofShare, timed && roofs.RoofShare > 0),
		},
		Hardware: c.Hardware(i), PerDollar: c.PerDollar(i), PerJoule: c.PerJoule(i), Terms: a.NamedTerms(e),
		Checked: a.checked(e),
	}
	return out
}

// Hardware returns what kernels of the i-th side, which has an answer, have to fit. Nobody knows the matrix instruction
// of a library's kernel, so another way's instruction stands for it.
func (c *Contest) Hardware(i int) Hardware {
	a, _ := c.Best(i)
	d, p := a.Arch, &a.Problem
	h := Hardware{Chiplets: max(d.Partitions, 1), Registers: d.RegistersPerThread, SharedMemory: float64(d.SharedMemory)}
	atom := d.Atom(p.DType)
	for _, way := range a.Ways {
		atom = cmp.Or(atom, way.Arch.Atom(p.DType))
	}
	if atom != nil {
		h.Instruction = fmt.Sprintf("%dx%dx%d", atom.M, atom.N, atom.K)
	}
	for _, l := range c.Sides[i].Model.Hierarchy().Levels() {
		level := MemoryLevel{Name: l.Name, Bandwidth: float64(l.DataSheet)}
		if l.Bound == arch.BoundDRAM {
			level.Name = "DRAM" // some call it HBM
		}
		if l.DataSheet == 0 {
			level.Bandwidth = float64(l.Bandwidth.Peak) * float64(d.Clock)
		}
		if l.Capacity > 0 {
			level.Capacity, level.Partitions = float64(l.Capacity), max(l.Partitions, 1)
		}
		h.Levels = append(h.Levels, level)
	}
	return h
}

// checked returns what the predictions most like an entry's were checked on, nil if none ever was.
func (a *Ranking) checked(e *Entry) *Checked {
	u := a.Nearest(e)
	if u == nil {
		return nil
	}
	return &Checked{DataSet: u.Checked.DataSet, TimedType: u.Checked.TimedType, Sizes: u.Checked.Sizes,
		Times: u.Checked.Times, MedianError: u.MedianError}
}

// known returns a number, nil for one that is unknown.
func known(v float64, ok bool) *Number {
	if !ok {
		return nil
	}
	n := Number(v)
	return &n
}

// Standings are how the sides stand over all problems, and over each class of shape.
type Standings struct {
	Summary Standing   `json:"summary"`
	Classes []Standing `json:"classes"`
}

// Standing is how the sides stand over some problems.
type Standing struct {
	// the class of shape, or `all`
	Class string `json:"class"`
	// the problems
	Problems int `json:"problems"`
	// Compared counts the problems where the first side and another have a time.
	Compared int `json:"-"`
	// the problems where at least two sides have a time and one is fastest
	Decided int `json:"decided"`
	// one per side
	Sides []SideStanding `json:"sides"`
}

// SideStanding is how one side stands.
type SideStanding struct {
	// the side, with its hardware numbers
	Side string `json:"side"`
	// the problems where it is fastest, and where it is with a probability of at least 95 %
	Wins  int `json:"fastest"`
	Clear int `json:"clear"`
	// the geometric mean of its time ÷ the first side's, and over how many problems
	Ratio *Number `json:"ratio_to_first"`
	Count int     `json:"ratios"`
	// operations per dollar and per joule, as a geometric mean
	PerDollar *Number `json:"flop_per_dollar,omitempty"`
	PerJoule  *Number `json:"flop_per_joule,omitempty"`
	// the sum of the times of all problems, each as often as its label `count` says, if all have one
	Sum *Number `json:"seconds,omitempty"`
}

// StandingsOf sums up contests of the same sides.
func StandingsOf(sides []Contender, rows []Contest) Standings {
	out := Standings{Summary: standing("all", sides, rows, func(*Contest) bool { return true })}
	for _, class := range score.Layers() {
		s := standing(class.String(), sides, rows,
			func(c *Contest) bool { return score.LayerOf(c.Problem.Problem) == class })
		if s.Problems > 0 {
			out.Classes = append(out.Classes, s)
		}
	}
	return out
}

// standing sums up the contests that are chosen.
func standing(name string, sides []Contender, rows []Contest, chosen func(*Contest) bool) Standing {
	out := Standing{Class: name, Sides: make([]SideStanding, len(sides))}
	ratios, speeds := make([][]float64, len(sides)), make([][]float64, len(sides))
	sums := make([]float64, len(sides)) // NaN if a time or a count is missing
	for j := range rows {
		c := &rows[j]
		if !chosen(c) {
			continue
		}
		out.Problems++
		if f := c.Fastest(); f != nil {
			out.Decided++
			out.Sides[f.Entry].Wins++
			if f.Clear {
				out.Sides[f.Entry].Clear++
			}
		}
		others := 0
		for i := range sides {
			if ratio := c.Ratio(i); ratio != nil {
				ratios[i] = append(ratios[i], float64(*ratio))
				others += min(i, 1)
			}
			t, ok := c.Time(i)
			if ok {
				speeds[i] = append(speeds[i], c.Flops()/float64(t))
			}
			if sums[i] += float64(t) * float64(c.Count); !ok || c.Count == 0 {
				sums[i] = math.NaN()
			}
		}
		out.Compared += min(others, 1)
	}
	for i := range sides {
		s := &out.Sides[i]
		s.Side, s.Ratio, s.Count = sides[i].Label(), meanPer(1, ratios[i]), len(ratios[i])
		s.PerDollar, s.PerJoule = meanPer(sides[i].Dollars, speeds[i]), meanPer(sides[i].Watts, speeds[i])
		s.Sum = known(sums[i], sums[i] > 0)
	}
	return out
}

// meanPer is the geometric mean of values ÷ a cost, nil without values or a cost.
func meanPer(cost float64, values []float64) *Number {
	return known(stats.Geomean(values)/cost, len(values) > 0 && cost > 0)
}
