package reportcmd

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/roofline"
)

// rooflines shows the pick and the runners-up under the roofs of the device, at each level of memory. It is nil for a
// model that does not predict times, and where no peak is known.
func rooflines(s *subject, a *session.Answer) *page.Figure {
	d := roofline.New(s.model, a.Problem.DType)
	if a.Arch.RanksOnly || d.Peak() <= 0 {
		return nil
	}
	f := &page.Figure{Title: "Hierarchical roofline",
		Caption: "A kernel has a point per level of memory: its operations ÷ the bytes that pass there. A sloping line " +
			"is the bandwidth of a level, the flat one the rate of the instructions. The large points are the pick.",
		X:      page.Axis{Label: "operations per byte", Log: true},
		Y:      page.Axis{Label: "rate", Unit: d.Ceiling(roofline.Compute).Unit(), Log: true},
		Header: []string{"configuration", "level", "FLOP/B", "bandwidth", "of the roof", "rate"}}
	series := map[roofline.Level]int{}
	low, high := 0.0, 0.0
	var points []page.Mark
	var cells [][]string
	for i := len(a.Entries) - 1; i >= 0; i-- { // the pick is on top
		e := &a.Entries[i]
		k := d.Place(a.Arch, a.Problem, e.Candidate, e.Terms, float64(a.Seconds(e)))
		for _, p := range k.Points {
			if _, ok := series[p.Level]; !ok {
				series[p.Level] = len(f.Series)
				f.Series = append(f.Series, p.Level.String())
			}
			if low == 0 || p.Intensity < low {
				low = p.Intensity
			}
			high = max(high, p.Intensity)
			points = append(points, page.Mark{Kind: page.Dots, Series: series[p.Level], Large: i == 0, Rows: []page.Row{{
				X: p.Intensity, Y: k.Rate, Tip: page.Tip("%s\n%s: %s of the roof", e.Config, p.Level, table.Percent(p.Share))}}})
		}
		for _, p := range slices.Backward(k.Points) {
			cells = append(cells, []string{e.Config.String(), p.Level.String(), table.ThreeDigits(p.Intensity),
				table.Quantity(p.Bandwidth, "B/s"), shareCell(p.Share), render.RateCell(a, e)})
		}
	}
	slices.Reverse(cells) // the pick is on top of them too
	f.Rows = cells
	for level := range series {
		if roof := d.Bandwidth(level); roof > 0 {
			low, high = min(low, d.Peak()/roof/4), max(high, d.Peak()/roof*4)
		}
	}
	f.Marks = append(roofs(f, d, series, low/1.2, high*1.2), points...)
	return f
}

func shareCell(share float64) string {
	if share <= 0 {
		return "–"
	}
	return table.Percent(share)
}

// roofs are the lines of the levels that kernels have points at, and of the instructions.
func roofs(f *page.Figure, d *roofline.Device, series map[roofline.Level]int, low, high float64) (marks []page.Mark) {
	peak := d.Peak()
	leftmost := high
	for _, c := range d.Ceilings {
		i, ok := series[c.Level]
		if !ok || c.Roof() != d.Bandwidth(c.Level) {
			continue
		}
		ridge := peak / c.Roof()
		leftmost = min(leftmost, ridge)
		marks = append(marks, page.Mark{Kind: page.Line, Series: i, Rows: []page.Row{{X: low, Y: low * c.Roof()},
			{X: ridge, Y: peak}}})
		f.Rows = append(f.Rows, []string{"roof: " + c.Name, c.Level.String(), table.ThreeDigits(ridge) + " (ridge)",
			table.Quantity(c.Roof(), c.Unit()), "", ""})
	}
	top := d.Ceiling(roofline.Compute)
	f.Rows = append(f.Rows, []string{"roof: " + top.Name, "", "", "", "", table.Quantity(peak, top.Unit())})
	return append(marks, page.Mark{Kind: page.Line, Series: page.Neutral, Rows: []page.Row{{X: leftmost, Y: peak},
		{X: high, Y: peak}}}, page.Mark{Kind: page.Texts, Series: page.Neutral, Rows: []page.Row{{X: leftmost, Y: peak,
		Tip: fmt.Sprintf("%s, %s", top.Name, table.Quantity(peak, top.Unit()))}}})
}
