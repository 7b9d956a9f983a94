package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
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
func scoreOf(to *page.Section, s *subject) {
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
		page.Fact{Label: "Measurements", Value: fmt.Sprintf("%s, %s kernels", s.records.Name, s.kernel)},
		page.Fact{Label: "Problems", Value: fmt.Sprintf("%d, of which the model was fitted to %d", len(kept), inSample)},
		page.Fact{Label: "Speed of the pick ÷ the fastest", Value: fmt.Sprintf("%s geometric mean, %s worst",
			table.Percent(sum.Efficiency.Geomean), table.Percent(sum.Efficiency.Worst))},
		page.Fact{Label: "Best of the first 8", Value: fmt.Sprintf("%s geometric mean, %s worst",
			table.Percent(sum.Top[1].Geomean), table.Percent(sum.Top[1].Worst))},
		page.Fact{Label: "Error of predicted times", Value: known(sum.Error, table.Percent) + " median"},
		page.Fact{Label: "Order (Kendall's tau-b)", Value: known(sum.TauMean, table.ThreeDigits) + " mean"},
		page.Fact{Label: "Measured times inside their interval", Value: known(sum.Coverage, table.Percent)},
	)
	to.Figure(efficiencies(s, kept))
	if f := agreement(s, kept); f != nil {
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
			lines = append(lines, render.CheckedOn(u))
		}
	}
	if len(lines) == 0 {
		return []string{render.NeverChecked}
	}
	return lines
}

// mostShown is how many problems a figure names.
const mostShown = 60

// efficiencies shows what each pick is worth, the worst first.
func efficiencies(s *subject, rows []score.Evaluation) *page.Figure {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(x, y score.Evaluation) int { return cmp.Compare(x.Efficiency(), y.Efficiency()) })
	f := &page.Figure{Title: s.name() + ": speed of the pick beside the fastest kernel, per problem",
		Caption: "100 % is the fastest of all kernels that were measured. The worst are first. The other dot is what " +
			"measuring the model's first 8 would find.",
		X: page.Axis{Label: "speed ÷ speed of the fastest", Unit: "%"}, Series: []string{"pick", "best of the first 8"},
		Header: []string{"problem", "pick", "measured", "predicted", "fastest", "measured", "speed", "first 8"}}
	picks, top := page.Mark{Kind: page.Dots}, page.Mark{Kind: page.Dots, Series: 1, Hollow: true}
	for i := range sorted {
		r := &sorted[i]
		name := r.Problem.String()
		f.Rows = append(f.Rows, []string{name, r.Pick.Config.String(), r.Pick.Time.String(), r.Predicted.String(),
			r.Best.Config.String(), r.Best.Time.String(), table.Percent(r.Efficiency()), table.Percent(r.Top[1])})
		if i < mostShown {
			f.Y.Names = append(f.Y.Names, name)
			top.Rows = append(top.Rows, page.Row{X: r.Top[1], Y: name})
			picks.Rows = append(picks.Rows, page.Row{X: r.Efficiency(), Y: name,
				Tip: page.Tip("%s\npick %s: %s\nfastest %s: %s", name, r.Pick.Config, r.Pick.Time, r.Best.Config, r.Best.Time)})
		}
	}
	if len(sorted) > mostShown {
		f.Caption += fmt.Sprintf(" The figure has the worst %d of %d, the table all.", mostShown, len(sorted))
	}
	f.Marks = []page.Mark{top, picks}
	return f
}

// binsPerDecade is how fine the figure of thousands of times is.
const binsPerDecade = 16

// agreement shows predicted against measured times, as counts: there are too many for a dot each.
func agreement(s *subject, rows []score.Evaluation) *page.Figure {
	type bin struct{ x, y int }
	counts := map[bin]int{}
	low, high, total := math.Inf(1), math.Inf(-1), 0
	place := func(v float64) int { return int(math.Floor(math.Log10(v) * binsPerDecade)) }
	edge := func(i int) float64 { return math.Pow(10, float64(i)/binsPerDecade) }
	for i := range rows {
		for _, p := range rows[i].Points {
			if p.Predicted <= 0 || p.Measured <= 0 {
				continue
			}
			b := bin{place(float64(p.Measured)), place(float64(p.Predicted))}
			counts[b]++
			total++
			low, high = min(low, edge(min(b.x, b.y))), max(high, edge(max(b.x, b.y)+1))
		}
	}
	if total == 0 {
		return nil
	}
	f := &page.Figure{Title: s.name() + ": predicted against measured times",
		Caption: fmt.Sprintf("All %d kernels that were measured and predicted. On the line the two are equal; the dashed "+
			"lines are 1.5 times off.", total),
		X: page.Axis{Label: "measured", Unit: "s", Log: true, Low: low, High: high},
		Y: page.Axis{Label: "predicted", Unit: "s", Log: true, Low: low, High: high}, Square: true,
		Scale:  &page.Scale{Label: "kernels", Log: true},
		Header: []string{"predicted ÷ measured", "kernels", "share"}}
	boxes := page.Mark{Kind: page.Boxes}
	for b, n := range counts {
		boxes.Rows = append(boxes.Rows, page.Row{X: edge(b.x), Y: edge(b.y), X2: edge(b.x + 1), Y2: edge(b.y + 1),
			Value: float64(n),
			Tip: page.Tip("measured %s to %s\npredicted %s to %s\n%s", table.Quantity(edge(b.x), "s"),
				table.Quantity(edge(b.x+1), "s"), table.Quantity(edge(b.y), "s"), table.Quantity(edge(b.y+1), "s"),
				table.Plural(n, "kernel", "kernels"))})
	}
	slices.SortFunc(boxes.Rows, func(x, y page.Row) int {
		return cmp.Or(cmp.Compare(x.X.(float64), y.X.(float64)), cmp.Compare(x.Y.(float64), y.Y.(float64)))
	})
	f.Marks = []page.Mark{boxes}
	for _, factor := range []float64{1 / 1.5, 1, 1.5} {
		f.Marks = append(f.Marks, page.Mark{Kind: page.Line, Series: page.Neutral, Dashed: factor != 1, Rows: []page.Row{
			{X: low * max(1, 1/factor), Y: low * max(1, factor)}, {X: high * min(1, 1/factor), Y: high * min(1, factor)}}})
	}
	f.Rows = ratios(rows, total)
	return f
}

// ratios counts predicted ÷ measured in steps: the table behind the figure.
func ratios(rows []score.Evaluation, total int) (counted [][]string) {
	limits := []float64{0.5, 1 / 1.5, 1 / 1.1, 1.1, 1.5, 2, math.Inf(1)}
	counts := make([]int, len(limits))
	for i := range rows {
		for _, p := range rows[i].Points {
			if p.Predicted > 0 && p.Measured > 0 {
				counts[slices.IndexFunc(limits, func(l float64) bool { return float64(p.Predicted/p.Measured) <= l })]++
			}
		}
	}
	names := []string{"below 0.5", "0.5 to 0.67", "0.67 to 0.91", "0.91 to 1.1", "1.1 to 1.5", "1.5 to 2", "above 2"}
	for i, name := range names {
		counted = append(counted, []string{name, fmt.Sprint(counts[i]), table.Percent(float64(counts[i]) / float64(total))})
	}
	return counted
}
