package reportcmd

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// rooflines shows the pick and the runners-up under the roofs of the device.
func rooflines(_ *subject, a *session.Answer) []*page.Figure {
	peak, dram := float64(a.Arch.PeakFor(a.Problem.DType)), a.DRAMPeak
	if a.Arch.RanksOnly || peak <= 0 || dram <= 0 {
		return nil
	}
	unit := "FLOP/s"
	if a.Problem.DType.Integer() {
		unit = "OP/s"
	}
	f := &page.Figure{Title: "Roofline",
		Caption: "The data sheet's dense peak, and its bandwidth of DRAM.",
		X:       page.Axis{Label: "arithmetic intensity (FLOP/B)", Log: true},
		Y:       page.Axis{Label: "rate", Unit: unit, Log: true},
		Series:  []string{"DRAM", "runners-up", "pick"},
		Header:  []string{"configuration", "FLOP/B", "rate", "of the peak", "of DRAM's"}}
	ridge := peak / dram
	best := a.Roofline(&a.Entries[0])
	low, high := min(ridge/10, best.Intensity/2), max(ridge*10, best.Intensity*2)
	f.Marks = append(f.Marks, page.Mark{Kind: page.Line, Series: 0,
		Rows: []page.Row{{X: low, Y: low * dram}, {X: ridge, Y: peak}, {X: high, Y: peak}}})
	for i := len(a.Entries) - 1; i >= 0; i-- {
		e := &a.Entries[i]
		r := a.Roofline(e)
		m := page.Mark{Kind: page.Dots, Series: 1}
		if i == 0 {
			m.Series, m.Large = 2, true
		}
		m.Rows = []page.Row{{X: r.Intensity, Y: float64(a.Rate(e)), Tip: page.Tip("%s\n%s", e.Config, render.RateCell(a, e))}}
		f.Marks = append(f.Marks, m)
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		r := a.Roofline(e)
		f.Rows = append(f.Rows, []string{e.Config.String(), render.ThreeDigits(r.Intensity), render.RateCell(a, e),
			render.Percent(r.PeakShare), render.Percent(r.DRAMShare)})
	}
	return []*page.Figure{f}
}
