package laddercmd

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/roofline"
)

func (w *outcome) page(r *report.Report) {
	r.Heading(1, fmt.Sprintf("SGEMM ladder on %s, %s", w.model.Describe().DeviceName, w.problem))
	all := *w
	all.terms = true
	r.Table(all.rows(nil, table.Table).Text(w.Rungs))
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
	peak, dram := float64(w.model.Describe().PeakFor(w.problem.DType)), ask.PeakBandwidth(w.model)
	if peak <= 0 || dram <= 0 {
		return // no roof to draw them under
	}
	title := fmt.Sprintf("%s, %s", w.model.Describe().DeviceName, w.problem)
	rates := &figure.Figure{Title: title, Series: []string{"predicted", "measured"},
		X: figure.Axis{Label: fmt.Sprintf("rate ÷ %s peak", w.problem.DType), Unit: "%", Reference: 1}}
	predicted, measured := figure.Mark{Kind: figure.Groups}, figure.Mark{Kind: figure.Groups, Series: 1}
	roofs := figure.RoofSide{Device: &roofline.Device{Ceilings: []roofline.Ceiling{
		{Name: w.problem.DType.String(), Level: roofline.Compute, Limit: peak},
		{Name: "DRAM", Level: roofline.DRAM, Limit: dram}}}}
	for i := range w.Rungs {
		e := &w.Rungs[i]
		t := e.Measured
		if math.IsNaN(float64(t)) {
			t = e.Predicted
		}
		if !(t > 0) {
			continue
		}
		rates.Y.Names = append(rates.Y.Names, e.Name)
		predicted.Rows = append(predicted.Rows, figure.Row{X: w.rate(e.Predicted) / peak, Y: e.Name})
		measured.Rows = append(measured.Rows, figure.Row{X: w.rate(e.Measured) / peak, Y: e.Name})
		k := figure.RoofKernel{Name: e.Name, Kernel: roofline.Kernel{Rate: w.rate(t)}}
		for _, p := range []roofline.Point{{Level: roofline.Requested, Intensity: float64(e.Requested)},
			{Level: roofline.L2, Intensity: float64(e.AtL2)}, {Level: roofline.DRAM, Intensity: float64(e.AtDRAM)}} {
			if p.Intensity > 0 {
				k.Points = append(k.Points, p)
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
