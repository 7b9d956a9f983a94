package laddercmd

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/unit"
)

// report writes the outcome into a folder: ladder.md with the tables and the figures, which are SVG and PNG, and
// ladder.csv and ladder.json with the numbers.
func (w *writer) report(folder string, args []string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	if err := to.Numbers("ladder", w.write); err != nil {
		return err
	}
	var page report.Page
	page.Heading(1, fmt.Sprintf("SGEMM ladder on %s, %s", w.desc.DeviceName, w.problem))
	all := writer{w.outcome, true}
	page.Table(all.columns().Text(w.entries))
	if err := w.figures(report.PlaceOf(folder, w.desc.DeviceName, args), &page); err != nil {
		return report.Unwritable(folder, err)
	}
	page.Heading(2, "Claims")
	page.Table(w.claims())
	if sources := w.sources(); len(sources) > 0 {
		page.Heading(2, "Sources of measured times")
		page.List(sources)
	}
	return to.Page("ladder.md", &page)
}

// figures draws the rates of the rungs, and the rungs under the roof of DRAM at each of their three intensities.
func (w *writer) figures(to report.Place, page *report.Page) error {
	peak, dram := float64(w.desc.PeakFor(w.problem.DType)), session.DRAMPeak(w.model)
	if peak <= 0 || dram <= 0 {
		return nil // no roof to draw them under
	}
	title := fmt.Sprintf("%s, %s", w.desc.DeviceName, w.problem)
	predicted, measured := report.Series{Name: "predicted", Side: 0}, report.Series{Name: "measured", Side: 1}
	var names []string
	clouds := []report.Cloud{{Name: "bytes that threads ask for", Side: 0}, {Name: "bytes from the L2", Side: 1},
		{Name: "bytes of DRAM", Side: 2}}
	for i := range w.entries {
		e := &w.entries[i]
		t, _ := e.Time()
		if t <= 0 {
			continue
		}
		names = append(names, e.Rung.Name)
		predicted.Values = append(predicted.Values, float64(w.rate(e.Predicted))/peak)
		measured.Values = append(measured.Values, float64(w.rate(e.Measured))/peak)
		for j, name := range []string{requested, atL2, atDRAM} {
			if x := e.Values[name]; x > 0 {
				clouds[j].Points = append(clouds[j].Points, report.Point{X: x, Y: float64(w.rate(t))})
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	y := fmt.Sprintf("rate ÷ %s peak", w.problem.DType)
	files, err := report.Bars(to, "rates", title, y, names, []report.Series{predicted, measured})
	if err != nil {
		return err
	}
	page.Image("Rates of the rungs", files.SVG)
	var roofs []report.Roof
	for _, c := range clouds {
		if len(c.Points) > 0 {
			roofs = append(roofs, report.Roof{Cloud: c, Peak: peak, DRAM: dram})
		}
	}
	if len(roofs) == 0 {
		return nil
	}
	files, err = report.Rooflines(to, "roofline", title, table.TeraRate(w.problem.DType), roofs)
	if err != nil {
		return err
	}
	page.Image("A rung has three intensities. One that is above the roof of DRAM at the bytes that its threads ask for "+
		"is served by the caches", files.SVG)
	return nil
}

// rate is the rate for a time, NaN if there is none.
func (w *writer) rate(t unit.Seconds) unit.FlopsPerSecond {
	if t <= 0 {
		return unit.FlopsPerSecond(math.NaN())
	}
	return unit.FlopsPerSecond(w.problem.Flops() / float64(t))
}
