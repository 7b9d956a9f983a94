package reportcmd

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

const (
	// runnersUp are how many entries are shown with their terms, the pick among them.
	runnersUp = 10
	// perDecade is how many dots a figure of candidates has per factor of ten of the rank.
	perDecade = 90
	// mostListed is how many candidates the table behind it has.
	mostListed = 50
)

// detail adds what a model says of one problem, and returns the predicted time of the pick, 0 without an answer.
func (b *builder) detail(
	ctx context.Context, to *report.Section, s *subject, problem *problems.Problem,
) (pick unit.Seconds, err error) {
	p := problem.Problem
	leading, err := s.Rankings(ctx, ask.Question{Problems: []gemm.Problem{p}, Kernel: s.Kernel, Top: runnersUp,
		Terms: true, Regret: true, Ways: true, Advice: true})
	if err != nil {
		return 0, err
	}
	a := &leading[0]
	if a.Err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		b.failures.Add(problem.Where, diag.Within(s.Label(), a.Err))
		to.Note(fmt.Sprintf("%s has no answer for %s: %v", s.Called(), p, a.Err))
		return 0, nil
	}
	everyone, err := s.Rankings(ctx, ask.Question{Problems: []gemm.Problem{p}, Kernel: s.Kernel})
	if err != nil {
		return 0, err
	}
	a.Entries = a.Entries[:min(len(a.Entries), runnersUp)] // more may be worth measuring
	facts(to, a)
	ways(to, a)
	to.Figure(candidates(a, &everyone[0]))
	if f := shares(a); f != nil {
		to.Figure(f)
	}
	if f := rooflines(s, a); f != nil {
		to.Figure(f)
	}
	return a.Seconds(&a.Entries[0]), nil
}

// facts adds the pick in words and numbers.
func facts(to *report.Section, a *ask.Ranking) {
	best := &a.Entries[0]
	interval, regret := "none: the model states no error", ""
	if low, high, ok := a.Interval(best); ok {
		interval = fmt.Sprintf("%s (%s)", digits.Span(low, high), digits.Level(a.Scope(best).Uncertainty.Level))
	}
	if a.Regret != nil {
		regret = fmt.Sprintf("%s; measure the first %d", digits.Percent(a.Regret.Expected), a.Regret.WorthMeasuring)
	}
	label := "Predicted time"
	if a.Arch.RanksOnly {
		label = "Score (not a time: this model ranks)"
	}
	to.Facts(
		report.Fact{Label: "Pick", Value: best.Config.String()},
		report.Fact{Label: label, Value: table.TimeCell(a, best)},
		report.Fact{Label: "Interval", Value: interval},
		report.Fact{Label: "Rate", Value: table.RateCell(a, best)},
		report.Fact{Label: "Expected regret", Value: regret},
		report.Fact{Label: "Model", Value: fmt.Sprintf("%s, kernel family %s, rung %s", a.Arch.Model, a.Kernel, a.Arch.Rung)},
		report.Fact{Label: "Evidence", Value: table.Evidence(a, best)},
		report.Fact{Label: "Candidates", Value: table.CandidateCounts(a.Feasible, a.Rejected)},
	)
	to.Text("Why: " + a.Why(best) + ".")
	to.Text("In words: " + inWords(&best.Config) + ".")
}

// inWords writes a configuration for those who see the short form for the first time.
func inWords(c *gemm.Config) string {
	text := fmt.Sprintf("tiles of %d rows by %d columns of C, which advance along K in steps of %d", c.BlockM, c.BlockN,
		c.BlockK)
	if c.NumWarps > 0 {
		text += fmt.Sprintf("; %s per tile (w), loads %s ahead (s)", digits.Plural(c.NumWarps, "warp", "warps"),
			digits.Plural(c.NumStages, "stage", "stages"))
	}
	if c.GroupM > 0 {
		text += fmt.Sprintf("; tiles launched in groups of %d rows of tiles (g)", c.GroupM)
	}
	if c.SplitK > 1 {
		text += fmt.Sprintf("; K divided among %d of them (k)", c.SplitK)
	}
	return text
}

// ways adds the pick of each other kernel family, and the advice.
func ways(to *report.Section, a *ask.Ranking) {
	if len(a.Ways) > 0 {
		to.Heading("Other ways to run it")
		to.List(table.Ways(a))
	}
	if len(a.Advice) > 0 {
		to.Heading("What would be faster")
		to.List(table.Advice(a))
	}
}

// candidates shows the predicted times of all candidates, by rank and by what limits them.
func candidates(a, all *ask.Ranking) *figure.Figure {
	axis := figure.Axis{Label: "predicted time", Unit: "s", Log: true}
	value := func(e *ask.Entry) float64 { return float64(a.Seconds(e)) }
	if a.Arch.RanksOnly {
		axis = figure.Axis{Label: "predicted cycles (not a time)", Log: true}
		value = func(e *ask.Entry) float64 { return float64(e.Estimate.Cycles) }
	}
	f := &figure.Figure{Title: "The pick and the other candidates",
		Caption: fmt.Sprintf("Each dot is one of %d candidates, in the order of the model. The large dot is the pick.",
			len(all.Entries)),
		X: figure.Axis{Label: "rank", Log: true}, Y: axis,
		Header: []string{"rank", "configuration", table.TimeHeader(a.Arch), "÷ pick", "bound"}}
	best := &all.Entries[0]
	if low, high, ok := a.Interval(best); ok && !a.Arch.RanksOnly {
		f.Caption += " The band is the interval of the pick's time: a candidate below its upper end may be as fast."
		f.Marks = append(f.Marks, figure.Mark{Kind: figure.Band, Series: figure.Neutral, Rows: []figure.Row{
			{X: 1.0, Y: float64(low), Y2: float64(high)}, {X: float64(len(all.Entries)), Y: float64(low), Y2: float64(high)}}})
	}
	bounds := map[arch.Bound]int{}
	next := 1.0
	for i := range all.Entries {
		e := &all.Entries[i]
		if i < mostListed {
			f.Rows = append(f.Rows, []string{fmt.Sprint(i + 1), e.Config.String(), table.TimeCell(a, e),
				fmt.Sprintf("%.3f", value(e)/value(best)), e.Estimate.Bound.String()})
		}
		if float64(i+1) < next {
			continue
		}
		next = max(next+1, math.Floor(next*math.Pow(10, 1.0/perDecade)))
		series, ok := bounds[e.Estimate.Bound]
		if !ok {
			series = len(f.Series)
			bounds[e.Estimate.Bound] = series
			f.Series = append(f.Series, e.Estimate.Bound.String()+"-bound")
			f.Marks = append(f.Marks, figure.Mark{Kind: figure.Dots, Series: series})
		}
		m := &f.Marks[len(f.Marks)-len(f.Series)+series]
		m.Rows = append(m.Rows, figure.Row{X: float64(i + 1), Y: value(e),
			Tip: figure.Tip("%d. %s\n%s", i+1, e.Config, table.TimeCell(a, e))})
	}
	f.Marks = append(f.Marks, figure.Mark{Kind: figure.Dots, Series: bounds[best.Estimate.Bound], Large: true,
		Rows: []figure.Row{{X: 1.0, Y: value(best),
			Tip: figure.Tip("the pick: %s\n%s", best.Config, table.TimeCell(a, best))}}})
	if more := len(all.Entries) - mostListed; more > 0 {
		f.More = fmt.Sprintf("The first %d of %d; origami rank --all lists all.", mostListed, len(all.Entries))
	}
	return f
}

// leastShare is the share of the total from which on a term is shown on its own.
const leastShare = 0.02

// shares shows where the time of the pick and of the runners-up goes, nil for a model that does not say.
func shares(a *ask.Ranking) *figure.Figure {
	f := &figure.Figure{Title: "Where the time goes",
		Caption: "The parts of the predicted time of the pick and of the runners-up. Parts that are small " +
			"everywhere are added up. A part left of 0 takes time away. The number is the sum.",
		X: figure.Axis{Label: "predicted time", Unit: "s"}, Header: []string{"configuration", table.TimeHeader(a.Arch)}}
	seconds := func(cycles float64) float64 { return float64(unit.Cycles(cycles).At(a.Arch.Clock)) }
	if a.Arch.RanksOnly {
		f.X = figure.Axis{Label: "predicted cycles (not a time)"}
		seconds = func(cycles float64) float64 { return cycles }
	}
	var terms []int
	for j := range a.Arch.Terms {
		for i := range a.Entries {
			if v, ok := a.Share(&a.Entries[i], j); ok && math.Abs(v) >= leastShare {
				terms = append(terms, j)
				break
			}
		}
	}
	if len(terms) == 0 {
		return nil
	}
	var words []string
	for _, j := range terms {
		term := &a.Arch.Terms[j]
		f.Series = append(f.Series, term.CommonName())
		if term.Doc != "" {
			words = append(words, term.CommonName()+": "+term.Doc)
		}
	}
	if len(words) > 0 {
		f.Caption += " The parts are " + strings.Join(words, "; ") + "."
	}
	f.Series = append(f.Series, "other")
	f.Header = append(f.Header, f.Series...)
	f.Marks = make([]figure.Mark, len(f.Series)+1)
	for k := range f.Marks {
		f.Marks[k] = figure.Mark{Kind: figure.Bars, Series: k}
	}
	totals := &f.Marks[len(f.Series)]
	totals.Kind, totals.Series = figure.Texts, figure.Neutral
	for i := range a.Entries {
		e := &a.Entries[i]
		name := fmt.Sprintf("%d. %s", i+1, e.Config)
		f.Y.Names = append(f.Y.Names, name)
		row := []string{name, table.TimeCell(a, e)}
		total, _ := a.Total(e)
		rest, left, right := total, 0.0, 0.0
		for k := range f.Series {
			cycles := rest
			if k < len(terms) {
				cycles = e.Terms[terms[k]]
				rest -= cycles
			}
			from := &right
			if cycles < 0 { // what a term takes away is left of 0
				from = &left
			}
			r := figure.Row{X: seconds(*from), X2: seconds(*from + cycles), Y: name,
				Tip: figure.Tip("%s\n%s: %s", name, f.Series[k], digits.Percent(cycles/total))}
			*from += cycles
			if cycles != 0 {
				f.Marks[k].Rows = append(f.Marks[k].Rows, r)
			}
			row = append(row, digits.Percent(cycles/total))
		}
		totals.Rows = append(totals.Rows, figure.Row{X: seconds(right), Y: name, Text: table.TimeCell(a, e)})
		f.Rows = append(f.Rows, row)
	}
	return f
}
