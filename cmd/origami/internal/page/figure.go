package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/printable"
)

// Figure is a picture of numbers, with the table that has them.
type Figure struct {
	// Title names it, Caption says how to read it.
	Title, Caption string
	X, Y           Axis
	// Series are the names of the colours and shapes, in their order.
	Series []string
	Marks  []Mark
	// Scale is for marks that are coloured by a number, nil without.
	Scale *Scale
	// Square says that both axes have the same scale.
	Square bool
	// Header and Rows are the table behind the figure, More what the table leaves out.
	Header []string
	Rows   [][]string
	More   string
}

// Axis is one of the two axes.
type Axis struct {
	Label string `json:"label"`
	// Unit is behind the numbers, with a prefix: "s" makes 1e-6 "1 µs". "%" makes 0.5 "50 %".
	Unit string `json:"unit,omitempty"`
	Log  bool   `json:"log,omitempty"`
	// Low and High are the ends, or both 0.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Names are those of the places of an axis without numbers, in their order.
	Names []string `json:"names,omitempty"`
}

// Scale says what the colours of numbers mean.
type Scale struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"`
	Log   bool   `json:"log,omitempty"`
	// Low and High are the ends, or both 0 for those of the numbers.
	Low  float64 `json:"low"`
	High float64 `json:"high,omitempty"`
}

// Kind is what a mark looks like.
type Kind string

// The kinds of marks. A row of Dots, Line and Texts is a point; one of Bars reaches from X to X2 at the place Y; one of
// Groups is a bar from 0 to X of the series in the group Y; one of Band reaches from Y to Y2 at X; one of Cells is the
// place X, Y, and one of Boxes the rectangle from X, Y to X2, Y2, both coloured by Value.
const (
	Dots   Kind = "dots"
	Line   Kind = "line"
	Band   Kind = "band"
	Bars   Kind = "bars"
	Groups Kind = "groups"
	Cells  Kind = "cells"
	Boxes  Kind = "boxes"
	Texts  Kind = "texts"
)

// Neutral is the series of marks that have no colour of their own.
const Neutral = -1

// Mark is a list of rows that look alike.
type Mark struct {
	Kind   Kind  `json:"kind"`
	Series int   `json:"series"`
	Rows   []Row `json:"-"`
	Dashed bool  `json:"dashed,omitempty"`
	// Large dots stand out, those that are Hollow let others be seen.
	Large  bool `json:"large,omitempty"`
	Hollow bool `json:"hollow,omitempty"`
}

// Row is one point, bar or cell. X and Y are numbers, or names of the axis.
type Row struct {
	X     any     `json:"x"`
	Y     any     `json:"y"`
	X2    float64 `json:"x2,omitempty"`
	Y2    float64 `json:"y2,omitempty"`
	Value float64 `json:"v,omitempty"`
	// Tip is what a pointer at the row shows, as the function Tip makes it.
	Tip string `json:"tip,omitempty"`
}

// Tip is fmt.Sprintf whose arguments may be foreign: each stays on its line.
func Tip(format string, args ...any) string {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = printable.Line(v)
		case fmt.Stringer:
			args[i] = printable.Line(v.String())
		}
	}
	return fmt.Sprintf(format, args...)
}

// placed is a figure on a page.
type placed struct {
	Number         int
	Title, Caption string
	More           string
	Table          *table
	Spec           spec
}

// spec is what the script draws.
type spec struct {
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []string `json:"series"`
	Marks  []mark   `json:"marks"`
	Scale  *Scale   `json:"scale,omitempty"`
	Square bool     `json:"square,omitempty"`
	Title  string   `json:"title"`
}

type mark struct {
	Mark
	Rows []Row `json:"rows"`
}

// Figure adds a figure. Rows with a number that is not finite are left out, as are those that are not positive on an
// axis that is logarithmic.
func (s *Section) Figure(f *Figure) {
	p := &placed{Number: s.number(), Title: printable.Line(f.Title), Caption: printable.Line(f.Caption),
		More: printable.Line(f.More)}
	p.Spec = spec{X: f.X.printable(), Y: f.Y.printable(), Scale: f.Scale, Square: f.Square,
		Title: p.Title, Series: []string{}}
	for _, series := range f.Series {
		p.Spec.Series = append(p.Spec.Series, printable.Line(series))
	}
	for _, m := range f.Marks {
		kept := mark{Mark: m, Rows: []Row{}}
		for _, r := range m.Rows {
			r.X, r.Y = name(r.X), name(r.Y)
			if f.X.holds(r.X) && f.Y.holds(r.Y) && finite(r.X2) && finite(r.Y2) && finite(r.Value) {
				kept.Rows = append(kept.Rows, r)
			}
		}
		p.Spec.Marks = append(p.Spec.Marks, kept)
	}
	if len(f.Header) > 0 {
		p.Table = newTable(f.Title, f.Header, f.Rows)
	}
	s.add(part{Figure: p})
}

func (a *Axis) holds(v any) bool {
	number, ok := v.(float64)
	return !ok || finite(number) && (!a.Log || number > 0)
}

// printable returns the axis with its texts made safe to show.
func (a Axis) printable() Axis {
	a.Label = printable.Line(a.Label)
	a.Names = slices.Clone(a.Names)
	for i := range a.Names {
		a.Names[i] = printable.Line(a.Names[i])
	}
	return a
}

// name makes a place with a name safe to show, as the axis does.
func name(place any) any {
	if text, ok := place.(string); ok {
		return printable.Line(text)
	}
	return place
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// WhatIf are sliders of a device's numbers, and the times that a model predicts with them.
type WhatIf struct {
	Sliders []Slider `json:"sliders"`
	// Times are in seconds, Notes say what the kernel is then. The last slider varies fastest.
	Times []float64 `json:"times"`
	Notes []string  `json:"notes"`
	// Base is the place of the device itself.
	Base int `json:"base"`
	// Ask is the address that answers for numbers between the steps, up to those; empty where nobody can be asked.
	Ask string `json:"ask,omitempty"`
}

// Slider is one number of a device.
type Slider struct {
	// Name is that of the parameter, Label what people call it.
	Name   string    `json:"name"`
	Label  string    `json:"label"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	// At is the place of the device's own value.
	At int `json:"at"`
}

type placedWhatIf struct {
	Number int
	*WhatIf
}

// WhatIf adds sliders.
func (s *Section) WhatIf(w *WhatIf) {
	shown := *w
	shown.Sliders, shown.Notes = slices.Clone(w.Sliders), slices.Clone(w.Notes)
	for i := range shown.Sliders {
		shown.Sliders[i].Label = printable.Line(shown.Sliders[i].Label)
	}
	for i := range shown.Notes {
		shown.Notes[i] = printable.Line(shown.Notes[i])
	}
	s.add(part{WhatIf: &placedWhatIf{s.number(), &shown}})
}
