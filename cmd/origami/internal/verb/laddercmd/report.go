package laddercmd

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/unit"
)

func (w *outcome) page(r *report.Report) {
	r.Heading(1, fmt.Sprintf("SGEMM ladder on %s, %s", w.desc.DeviceName, w.problem))
	all := *w
	all.terms = true
	r.Table(all.columns().Text(w.entries))
	w.figures(r)
	r.Heading(2, "Claims")
	r.Table(w.claims())
	if sources := w.sources(); len(sources) > 0 {
		r.Heading(2, "Sources of measured times")
		r.List(sources)
	}
}

// figures draws the rates of the rungs, and the rungs under the roof of DRAM at each of their three intensities.
func (w *outcome) figures(r *report.Report) {
	peak, dram := float64(w.desc.PeakFor(w.problem.DType)), ask.PeakBandwidth(w.model)
	if peak <= 0 || dram <= 0 {
		return // no roof to draw them under
	}
	title := fmt.Sprintf("%s, %s", w.desc.DeviceName, w.problem)
	rates := &figure.Figure{Title: title, Series: []string{"predicted", "measured"},
		X: figure.Axis{Label: fmt.Sprintf("rate ÷ %s peak", w.problem.DType), Unit: "%", Reference: 1}}
	predicted, measured := figure.Mark{Kind: figure.Groups}, figure.Mark{Kind: figure.Groups, Series: 1}
	roofs := figure.RoofSide{Device: &roofline.Device{Ceilings: []roofline.Ceiling{
		{Name: w.problem.DType.String(), Level: roofline.Compute, Limit: peak},
		{Name: "DRAM", Level: roofline.DRAM, Limit: dram}}}}
	for i := range w.entries {
		e := &w.entries[i]
		t, _ := e.Time()
		if t <= 0 {
			continue
		}
		name := e.Rung.Name
		rates.Y.Names = append(rates.Y.Names, name)
		predicted.Rows = append(predicted.Rows, figure.Row{X: float64(w.rate(e.Predicted)) / peak, Y: name})
		measured.Rows = append(measured.Rows, figure.Row{X: float64(w.rate(e.Measured)) / peak, Y: name})
		k := figure.RoofKernel{Name: name, Kernel: roofline.Kernel{Rate: float64(w.rate(t))}}
		for _, l := range []struct {
			level roofline.Level
			name  string
		}{{roofline.Requested, requested}, {roofline.L2, atL2}, {roofline.DRAM, atDRAM}} {
			if x := e.Values[l.name]; x > 0 {
				k.Points = append(k.Points, roofline.Point{Level: l.level, Intensity: x})
			}
		}
		roofs.Kernels = append(roofs.Kernels, k)
	}
	if len(rates.Y.Names) == 0 {
		return
	}
	rates.Marks = []figure.Mark{predicted, measured}
	r.Figure("rates", "Rates of the rungs", rates)
	r.Figure("roofline", "A rung has three intensities. One that is above the roof of DRAM at the bytes that its "+
		"threads ask for is served by the caches", figure.Roofline(title, []figure.RoofSide{roofs}))
}

// rate is the rate for a time, NaN if there is none.
func (w *outcome) rate(t unit.Seconds) unit.FlopsPerSecond {
	if t <= 0 {
		return unit.FlopsPerSecond(math.NaN())
	}
	return unit.FlopsPerSecond(w.problem.Flops() / float64(t))
}
