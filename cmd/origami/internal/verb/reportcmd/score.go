package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// scores adds how well each model did against measurements.
func (b *builder) scores() {
	s := b.page.Section("How good the models are")
	for i := range b.subjects {
		scoreOf(s, &b.subjects[i])
		b.step()
	}
}

// evaluated holds a model against the measurements that there are of its device, nil without any.
func (b *builder) evaluated(ctx context.Context, s *subject, first bool) (*score.Subset, []score.Evaluation, error) {
	records, err := b.recordsOf(ctx, s, first)
	if err != nil || records == nil {
		return nil, nil, err
	}
	rows, errs, err := score.Evaluate(ctx, s.model, records, records.Problems)
	if err != nil {
		return nil, nil, err
	}
	kept := rows[:0]
	for i := range rows {
		if errs[i] == nil {
			kept = append(kept, rows[i])
		}
	}
	return records, kept, nil
}

// Memory keeps how models did against measurements, which takes longer than a page. It is safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	kept map[string]remembered
}

type remembered struct {
	records *score.Subset
	rows    []score.Evaluation
}

// of returns what is kept of a model, or computes it. Devices with other numbers are too many to keep.
func (m *Memory) of(s *subject, compute func() (*score.Subset, []score.Evaluation, error)) (
	*score.Subset, []score.Evaluation, error,
) {
	if m == nil || s.WhatIf != "" {
		return compute()
	}
	key := strings.Join([]string{s.desc.ID(), s.desc.Model, s.kernel, string(s.desc.Rung)}, " ")
	m.mu.Lock()
	found, ok := m.kept[key]
	m.mu.Unlock()
	if ok {
		return found.records, found.rows, nil
	}
	records, rows, err := compute()
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.kept == nil {
			m.kept = map[string]remembered{}
		}
		m.kept[key] = remembered{records, rows}
	}
	return records, rows, err
}

// scoreOf adds how a model did.
func scoreOf(to *report.Section, s *subject) {
	to.Heading(s.desc.DeviceName)
	if s.records == nil {
		to.Text(fmt.Sprintf("No sweep of %s kernels on this device is shipped, so no pick could be held against the fastest "+
			"kernel. What the predicted times were checked on:", s.kernel))
		to.List(checked(s))
		return
	}
	kept := s.rows
	if len(kept) == 0 {
		to.Text("The model answers none of the problems that were measured.")
		return
	}
	scope := func(p *gemm.Problem, split int) arch.Scope { return s.desc.Scope(s.kernel, p, split) }
	sum := score.SummariseEvaluations(kept, scope)
	inSample := 0
	for i := range kept {
		if s.desc.InSample(kept[i].Problem, s.kernel) {
			inSample++
		}
	}
	to.Facts(
		report.Fact{Label: "Measurements", Value: fmt.Sprintf("%s, %s kernels", s.records.Name, s.kernel)},
		report.Fact{Label: "Problems", Value: fmt.Sprintf("%d, of which the model was fitted to %d", len(kept), inSample)},
		report.Fact{Label: "Speed of the pick ÷ the fastest", Value: fmt.Sprintf("%s geometric mean, %s worst",
			digits.Percent(sum.Efficiency.Geomean), digits.Percent(sum.Efficiency.Worst))},
		report.Fact{Label: "Best of the first 8", Value: fmt.Sprintf("%s geometric mean, %s worst",
			digits.Percent(sum.Top[1].Geomean), digits.Percent(sum.Top[1].Worst))},
		report.Fact{Label: "Error of predicted times", Value: known(sum.Error, digits.Percent) + " median"},
		report.Fact{Label: "Order (Kendall's tau-b)", Value: known(sum.TauMean, digits.ThreeDigits) + " mean"},
		report.Fact{Label: "Measured times inside their interval", Value: known(sum.Coverage, digits.Percent)},
	)
	to.Figure(efficiencies(s, kept))
	var points []score.Point
	for i := range kept {
		points = append(points, kept[i].Points...)
	}
	if f := figure.Agreement(s.name()+": predicted against measured times", points); f != nil {
		to.Figure(f)
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
	for i := range s.desc.Uncertainty {
		if u := &s.desc.Uncertainty[i]; u.Kernel == s.kernel {
			lines = append(lines, table.CheckedOn(u))
		}
	}
	if len(lines) == 0 {
		return []string{table.NeverChecked}
	}
	return lines
}

// mostShown is how many problems a figure names.
const mostShown = 60

// efficiencies shows what each pick is worth, the worst first.
func efficiencies(s *subject, rows []score.Evaluation) *figure.Figure {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(x, y score.Evaluation) int { return cmp.Compare(x.Efficiency(), y.Efficiency()) })
	f := &figure.Figure{Title: s.name() + ": speed of the pick beside the fastest kernel, per problem",
		Caption: "100 % is the fastest of all kernels that were measured. The worst are first. The other dot is what " +
			"measuring the model's first 8 would find.",
		X: figure.Axis{Label: "speed ÷ speed of the fastest", Unit: "%"}, Series: []string{"pick", "best of the first 8"},
		Header: []string{"problem", "pick", "measured", "predicted", "fastest", "measured", "speed", "first 8"}}
	picks, top := figure.Mark{Kind: figure.Dots}, figure.Mark{Kind: figure.Dots, Series: 1, Hollow: true}
	for i := range sorted {
		r := &sorted[i]
		name := r.Problem.String()
		f.Rows = append(f.Rows, []string{name, r.Pick.Config.String(), r.Pick.Time.String(), r.Predicted.String(),
			r.Best.Config.String(), r.Best.Time.String(), digits.Percent(r.Efficiency()), digits.Percent(r.Top[1])})
		if i < mostShown {
			f.Y.Names = append(f.Y.Names, name)
			top.Rows = append(top.Rows, figure.Row{X: r.Top[1], Y: name})
			picks.Rows = append(picks.Rows, figure.Row{X: r.Efficiency(), Y: name,
				Tip: figure.Tip("%s\npick %s: %s\nfastest %s: %s", name, r.Pick.Config, r.Pick.Time, r.Best.Config, r.Best.Time)})
		}
	}
	if len(sorted) > mostShown {
		f.Caption += fmt.Sprintf(" The figure has the worst %d of %d, the table all.", mostShown, len(sorted))
	}
	f.Marks = []figure.Mark{top, picks}
	return f
}
