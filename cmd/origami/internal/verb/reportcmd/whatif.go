package reportcmd

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// factors are the steps of a slider, and oneFactor the place of the device's own number.
var factors = []float64{0.5, 0.75, 1, 1.25, 1.5}

const oneFactor = 2

// numWhatIfs is how many devices the sliders make at most.
const numWhatIfs = 125

// knobs are the numbers of a device that people ask about. Plugins choose the names of parameters, so the units and the
// clock are found by what the model says of them.
func knobs(d *arch.Description) (sliders []report.Slider) {
	for _, k := range []struct {
		label string
		is    func(p *hw.Param) bool
	}{
		{d.UnitName + "s", func(p *hw.Param) bool { return p.Unit == "1" && p.Value == float64(d.Units) }},
		{"Clock", func(p *hw.Param) bool { return p.Unit == "Hz" && p.Value == float64(d.Clock) }},
		{"DRAM bandwidth", func(p *hw.Param) bool { return p.Name == "dram_bandwidth" }},
	} {
		i := slices.IndexFunc(d.Params, func(p hw.Param) bool { return k.is(&p) && !d.Ignores(p.Name) })
		if i >= 0 {
			sliders = append(sliders, sliderOf(k.label, &d.Params[i]))
		}
	}
	return sliders
}

// whatIfGrid is what a model says with other numbers of its device.
type whatIfGrid struct {
	sliders []report.Slider
	// times and notes are by device and problem.
	times [][]float64
	notes [][]string
	why   string // why there are none
	live  bool   // a server answers for what was not asked
	// rung is that of all predictions. What was measured on the device itself holds for no other.
	rung arch.Rung
}

// whatIfs asks a model about problems with other numbers of its device.
func (b *builder) whatIfs(ctx context.Context, s *subject, problems []problems.Problem) (*whatIfGrid, error) {
	g := &whatIfGrid{}
	before := b.done
	defer func() {
		b.done = before + numWhatIfs
		b.progress(b.done, b.all)
	}()
	if s.Describe().RanksOnly {
		g.why = "The model ranks kernels and does not time them, so it cannot say what other numbers of the " +
			"device would change."
		return g, nil
	}
	g.sliders = knobs(s.Describe())
	if len(g.sliders) == 0 {
		g.why = "The model uses none of the numbers that a slider could change."
		return g, nil
	}
	places := 1
	for i := range g.sliders {
		places *= len(g.sliders[i].Values)
	}
	shapes := make([]gemm.Problem, len(problems))
	for i := range problems {
		shapes[i] = problems[i].Problem
	}
	changed, err := g.open(ctx, b, s, 0) // all sliders are moved
	if err != nil {
		return nil, err
	}
	g.rung = changed.Describe().Rung
	g.times, g.notes = make([][]float64, places), make([][]string, places)
	g.live = b.Ask != "" && s.WhatIf == "" && !slices.ContainsFunc(shapes, func(p gemm.Problem) bool { return !p.Plain() })
	for place := range places {
		if g.live && place != g.base() {
			continue // the reader asks
		}
		if err := g.ask(ctx, b, s, shapes, place); err != nil {
			return nil, err
		}
		b.progress(before+place*numWhatIfs/places, b.all)
	}
	return g, nil
}

// base is the place of the device itself.
func (g *whatIfGrid) base() (place int) {
	for i := range g.sliders {
		place = place*len(g.sliders[i].Values) + g.sliders[i].At
	}
	return place
}

// sliderOf returns the steps of a parameter.
func sliderOf(label string, p *hw.Param) report.Slider {
	slider := report.Slider{Name: p.Name, Label: label, Unit: p.Unit, At: oneFactor}
	if p.Unit == "1" {
		slider.Unit = ""
	}
	for _, f := range factors {
		v := p.Value * f
		if slider.Unit == "" {
			v = math.Round(v)
		}
		slider.Values = append(slider.Values, v)
	}
	slider.Values[oneFactor] = p.Value
	return slider
}

// open opens the model of the device at one place of the sliders.
func (g *whatIfGrid) open(ctx context.Context, b *builder, s *subject, place int) (arch.Architecture, error) {
	target := s.Found
	target.OpenRequest.Overrides = maps.Clone(s.OpenRequest.Overrides)
	if target.OpenRequest.Overrides == nil {
		target.OpenRequest.Overrides = map[string]hw.OverrideValue{}
	}
	rest := place
	for i := len(g.sliders) - 1; i >= 0; i-- {
		sl := &g.sliders[i]
		if at := rest % len(sl.Values); at != sl.At {
			target.OpenRequest.Overrides[sl.Name] = hw.OverrideValue{Value: sl.Values[at]}
		}
		rest /= len(sl.Values)
	}
	if g.rung != "" {
		target.OpenRequest.Rung = g.rung
	}
	model, err := b.Factory.Open(ctx, &target)
	if err != nil {
		return nil, err
	}
	return b.Query.Restrict(model, s.Kernel, false)
}

// ask asks the model of the device at one place of the sliders.
func (g *whatIfGrid) ask(ctx context.Context, b *builder, s *subject, shapes []gemm.Problem, place int) error {
	model, err := g.open(ctx, b, s, place)
	if err != nil {
		return err
	}
	answers, err := ask.Rankings(ctx, model, ask.Question{Problems: shapes, Kernel: s.Kernel, Top: 1})
	if err != nil {
		return err
	}
	times, notes := make([]float64, len(shapes)), make([]string, len(shapes))
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			notes[i] = a.Err.Error()
			continue
		}
		times[i] = float64(a.Seconds(&a.Entries[0]))
		notes[i] = fmt.Sprintf("%s, %s-bound", a.Entries[0].Config, a.Entries[0].Estimate.Bound)
	}
	g.times[place], g.notes[place] = times, notes
	return nil
}

// question is the address that answers for a problem with other numbers of the device, in place of CHANGES.
func (g *whatIfGrid) question(b *builder, s *subject, p *gemm.Problem) string {
	q := url.Values{"m": {strconv.Itoa(p.M)}, "n": {strconv.Itoa(p.N)}, "k": {strconv.Itoa(p.K)},
		"batch": {strconv.Itoa(p.Batch)}, "dtype": {p.DType.String()}, "out_dtype": {p.Output().String()},
		"trans_a": {strconv.FormatBool(p.TransA())}, "trans_b": {strconv.FormatBool(p.TransB())},
		"model": {s.Describe().Model}, "kernel": {s.Kernel}, "rung": {string(g.rung)}}
	return b.Ask + "?arch=" + url.QueryEscape(s.ID()) + ":CHANGES&" + q.Encode()
}

// add adds the sliders for one problem. pick is the predicted time of its pick, and ask its question.
func (g *whatIfGrid) add(to *report.Section, problem int, pick unit.Seconds, ask string) {
	to.Heading("What if the device had other numbers")
	if g.why != "" {
		to.Text(g.why)
		return
	}
	w := &report.WhatIf{Sliders: g.sliders, Base: g.base()}
	if pick == 0 || g.times[w.Base][problem] == 0 {
		to.Text("The model has no answer for this problem.")
		return
	}
	w.Scale = float64(pick) / g.times[w.Base][problem]
	w.Times, w.Notes = make([]float64, len(g.times)), make([]string, len(g.times))
	for i := range g.times {
		if g.times[i] != nil {
			w.Times[i], w.Notes[i] = w.Scale*g.times[i][problem], g.notes[i][problem]
		}
	}
	to.Text(fmt.Sprintf("Each place is the predicted time of the pick × the change that the model predicts, with the "+
		"kernel that is then the best. The change is predicted on the rung %s: what was measured on the device holds for "+
		"no other. All other numbers, such as caches and their bandwidth, stay as they are.", g.rung))
	if g.live {
		w.Ask = ask
	}
	to.WhatIf(w)
	if !g.live {
		to.Table(g.oneByOne(w))
	}
}

// oneByOne is the table behind the sliders: one of them moved at a time.
func (g *whatIfGrid) oneByOne(w *report.WhatIf) (caption string, header []string, rows [][]string) {
	header = []string{"number"}
	for _, f := range factors {
		header = append(header, fmt.Sprintf("× %g", f))
	}
	stride := len(w.Times)
	for i := range g.sliders {
		s := &g.sliders[i]
		stride /= len(s.Values)
		row := []string{s.Label}
		for k := range s.Values {
			t := w.Times[w.Base+(k-s.At)*stride]
			cell := "–"
			if t > 0 {
				cell = unit.Seconds(t).String()
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return "Predicted time with one number changed", header, rows
}
