package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

func (b *builder) scores() {
	s := b.page.Section("How good the models are")
	for i := range b.subjects {
		b.scoreOf(s, &b.subjects[i])
		b.step()
	}
}

// verdict is how a model did against measurements. It is small: the measurements take a hundred times as much.
type verdict struct {
	problems []gemm.Problem
	facts    []report.Fact
	figures  []*figure.Figure // their titles lack the name of the subject
}

// evaluated holds a model against the measurements that there are of its device. The verdict is nil without any.
func (b *builder) evaluated(ctx context.Context, s *subject, first bool) (*verdict, error) {
	records, err := b.recordsOf(ctx, s, first)
	if err != nil || records == nil {
		return nil, err
	}
	list := make([]problems.Problem, len(records.Problems))
	for i, p := range records.Problems {
		list[i].Problem = p
	}
	of := s.Found
	of.Timing = records.Timing()
	model, err := b.Factory.Open(ctx, &of)
	if err != nil {
		return nil, err
	}
	scored, err := ask.Score(ctx, model, records, list, func(int) {}, func(string, error) {})
	if err != nil {
		return nil, err
	}
	return verdictOf(scored), nil
}

// Memory keeps what pages about a model share: how it did against measurements, which takes longer than a page, and its
// last map. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	verdicts map[string]*verdict
	maps     map[string]drawnMap
	// computing is held by the one model at a time that is held against measurements: they take memory.
	computing sync.Mutex
}

// key names a model in a memory. It is empty without one, and for devices with other numbers, which are too many to
// keep.
func (m *Memory) key(s *subject) string {
	if m == nil || s.WhatIf != "" {
		return ""
	}
	return strings.Join([]string{s.Describe().ID(), s.Describe().Model, s.Kernel, string(s.Describe().Rung)}, " ")
}

// verdict returns what is kept of a model, or computes it.
func (m *Memory) verdict(s *subject, compute func() (*verdict, error)) (*verdict, error) {
	key := m.key(s)
	if key == "" {
		return compute()
	}
	find := func() (*verdict, bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		v, ok := m.verdicts[key]
		return v, ok
	}
	if v, ok := find(); ok {
		return v, nil
	}
	m.computing.Lock()
	defer m.computing.Unlock()
	if v, ok := find(); ok { // another page has computed it
		return v, nil
	}
	v, err := compute()
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.verdicts == nil {
			m.verdicts = map[string]*verdict{}
		}
		m.verdicts[key] = v
	}
	return v, err
}

// drawnMap is a map of the problems that are like one, whatever its M and N. The figure is nil if the model has none.
type drawnMap struct {
	like   gemm.Problem
	figure *figure.Figure
}

// drawn returns the map that is kept of a model, or draws it.
func (m *Memory) drawn(s *subject, like gemm.Problem, draw func() (*figure.Figure, error)) (*figure.Figure, error) {
	key := m.key(s)
	if key == "" {
		return draw()
	}
	m.mu.Lock()
	kept, ok := m.maps[key]
	m.mu.Unlock()
	if ok && kept.like == like {
		return kept.figure, nil
	}
	f, err := draw()
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.maps == nil {
			m.maps = map[string]drawnMap{}
		}
		m.maps[key] = drawnMap{like, f}
	}
	return f, err
}

// verdictOf says how a model did, at the problems that it answers.
func verdictOf(s *ask.Scored) *verdict {
	v := &verdict{problems: s.Data.Problems}
	if len(s.Rows) == 0 {
		return v
	}
	sum := score.SummariseEvaluations(s.Rows, s.Scope)
	var points []score.Point
	for i := range s.Rows {
		points = append(points, s.Rows[i].Points...)
	}
	v.facts = []report.Fact{
		{Label: "Measurements", Value: fmt.Sprintf("%s, %s kernels", s.Data.Name, s.Data.Kernel)},
		{Label: "Problems", Value: fmt.Sprintf("%d, of which the model was fitted to %d", len(s.Rows), s.InSample())},
		{Label: "Speed of the pick ÷ the fastest", Value: fmt.Sprintf("%s geometric mean, %s worst",
			known(sum.Efficiency.Geomean, digits.Percent), known(sum.Efficiency.Worst, digits.Percent))},
		{Label: "Best of the first 8", Value: fmt.Sprintf("%s geometric mean, %s worst",
			known(sum.Top[1].Geomean, digits.Percent), known(sum.Top[1].Worst, digits.Percent))},
		{Label: "Error of predicted times", Value: known(sum.Error, digits.Percent) + " median"},
		{Label: "Order (Kendall's tau-b)", Value: known(sum.TauMean, digits.ThreeDigits) + " mean"},
		{Label: "Measured times inside their interval", Value: known(sum.Coverage, digits.Percent)},
	}
	v.figures = []*figure.Figure{efficiencies(s.Rows)}
	if f := figure.Agreement("predicted against measured times", points); f != nil {
		v.figures = append(v.figures, f)
	}
	return v
}

func (b *builder) scoreOf(to *report.Section, s *subject) {
	to.Heading(s.Describe().DeviceName)
	if s.verdict == nil {
		text := fmt.Sprintf("No sweep of %s kernels on this device is shipped, so no pick could be held against the fastest "+
			"kernel.", s.Kernel)
		if b.Ask != "" && datastore.Ships(s.Describe(), s.Kernel) {
			text = fmt.Sprintf("A sweep of %s kernels on this device is shipped. Ask with “Show measurements” to see how the "+
				"picks did.", s.Kernel)
		}
		lines := checked(s)
		if len(lines) == 0 {
			to.Text(text + " No times of them were compared with the predicted ones.")
			return
		}
		to.Text(text + " What the predicted times were checked on:")
		to.List(lines)
		return
	}
	if len(s.verdict.figures) == 0 {
		to.Text("The model answers none of the problems that were measured.")
		return
	}
	to.Facts(s.verdict.facts...)
	for _, f := range s.verdict.figures {
		titled := *f
		titled.Title = s.Called() + ": " + f.Title
		to.Figure(&titled)
	}
}

func known(v float64, write func(float64) string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return write(v)
}

// checked lists what the times of a model were checked on.
func checked(s *subject) (lines []string) {
	for i := range s.Describe().Uncertainty {
		u := &s.Describe().Uncertainty[i]
		if u.Kernel == s.Kernel && len(u.Checked.Layouts) > 0 && s.Describe().EvidenceOf(u) == arch.EvidenceChecked {
			lines = append(lines, table.CheckedOn(u))
		}
	}
	return lines
}

// mostShown is how many problems a figure names.
const mostShown = 60

// efficiencies shows what each pick is worth, the worst first.
func efficiencies(rows []score.Evaluation) *figure.Figure {
	sorted := slices.DeleteFunc(slices.Clone(rows), func(r score.Evaluation) bool {
		return math.IsNaN(r.Top[1]) // nothing is known of the problem
	})
	slices.SortStableFunc(sorted, func(x, y score.Evaluation) int { return cmp.Compare(x.Efficiency(), y.Efficiency()) })
	f := &figure.Figure{Title: "speed of the pick beside the fastest kernel, per problem",
		Caption: "100 % is the fastest of all kernels that were measured. The worst are first. The other dot is what " +
			"measuring the model's first 8 would find.",
		X: figure.Axis{Label: "speed ÷ speed of the fastest", Unit: "%"}, Series: []string{"pick", "best of the first 8"},
		Header: []string{"problem", "pick", "measured", "predicted", "fastest", "measured", "speed", "first 8"}}
	picks, top := figure.Mark{Kind: figure.Dots}, figure.Mark{Kind: figure.Dots, Series: 1, Hollow: true}
	for i := range sorted {
		r := &sorted[i]
		name := r.Problem.String()
		f.Rows = append(f.Rows, []string{name, r.Pick.Config.String(), r.Pick.Time.String(), r.Predicted.String(),
			r.Best.Config.String(), r.Best.Time.String(), known(r.Efficiency(), digits.Percent),
			known(r.Top[1], digits.Percent)})
		if i < mostShown {
			f.Y.Names = append(f.Y.Names, name)
			top.Rows = append(top.Rows, figure.Row{X: r.Top[1], Y: name})
			if efficiency := r.Efficiency(); !math.IsNaN(efficiency) {
				picks.Rows = append(picks.Rows, figure.Row{X: efficiency, Y: name, Tip: figure.Tip(
					"%s\npick %s: %s\nfastest %s: %s", name, r.Pick.Config, r.Pick.Time, r.Best.Config, r.Best.Time)})
			}
		}
	}
	if len(sorted) > mostShown {
		f.Caption += fmt.Sprintf(" The figure has the worst %d of %d, the table all.", mostShown, len(sorted))
	}
	f.Marks = []figure.Mark{top, picks}
	return f
}
