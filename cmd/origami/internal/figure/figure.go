// Package figure describes pictures of numbers as plain data, and draws them: into a page as SVG in the colours of its
// style, and into files as SVG and PNG. There is one drawing, so a page and a file show the same.
package figure

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/core/printable"
)

// Figure is a picture of numbers, with the table behind it. Its texts may be foreign.
type Figure struct {
	// Title names it, Caption says how to read it.
	Title   string `json:"title"`
	Caption string `json:"caption,omitempty"`
	X       Axis   `json:"x"`
	Y       Axis   `json:"y"`
	// Series are the names of the colours and shapes, in their order.
	Series []string `json:"series,omitempty"`
	Marks  []Mark   `json:"marks"`
	// Scale is for marks that are coloured by a number, nil without.
	Scale *Scale `json:"scale,omitempty"`
	// Ordered says that cells have steps of one colour, from the first series to the last.
	Ordered bool `json:"ordered,omitempty"`
	// Square says that both axes have the same scale.
	Square bool `json:"square,omitempty"`
	// Header and Rows are the table, More says what it leaves out.
	Header []string   `json:"header,omitempty"`
	Rows   [][]string `json:"rows,omitempty"`
	More   string     `json:"more,omitempty"`
}

// Axis is one of the two axes.
type Axis struct {
	Label string `json:"label"`
	// Unit is behind the numbers, with a prefix: "s" makes 1e-6 "1 µs". "%" makes 0.5 "50 %", "÷" makes it "0.5×".
	Unit string `json:"unit,omitempty"`
	Log  bool   `json:"log,omitempty"`
	// Low and High are the ends, or both 0 to take them from the marks.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Names are the places of an axis without numbers, in their order.
	Names []string `json:"names,omitempty"`
	// Reference is a number with a dashed line through it, 0 for none.
	Reference float64 `json:"reference,omitempty"`
}

// Scale says what the colours of numbers mean: dark is the smallest, or the largest with Reversed.
type Scale struct {
	Label string `json:"label"`
	// Unit is as for an axis.
	Unit     string `json:"unit,omitempty"`
	Log      bool   `json:"log,omitempty"`
	Reversed bool   `json:"reversed,omitempty"`
	// Low and High are the ends, or both 0 to take them from the marks. Numbers beyond have the colour of the end.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// Kind is what a mark looks like.
type Kind string

// The kinds of marks. A row of Dots, Line and Texts is a point. A row of Bars reaches from X to X2 at the place Y, a
// row of Groups from 0 to X, beside the bars of other series at Y. A row of Band reaches from Y to Y2 at X. A row of
// Cells is the place X, Y. A row of Boxes is the rectangle from X, Y to X2, Y2.
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
	Rows   []Row `json:"rows"`
	// Name is its name in the legend, if that is not the name of its series. A mark without rows is in the legend alone.
	Name string `json:"name,omitempty"`
	// Label is written along a line.
	Label string `json:"label,omitempty"`
	// Dash is the pattern of a line, 0 for none.
	Dash int `json:"dash,omitempty"`
	// Shape is the shape of dots: 1 for the shape of the first series and so on, 0 for the shape of their own.
	Shape int `json:"shape,omitempty"`
	// Large dots stand out, Hollow ones let others be seen.
	Large  bool `json:"large,omitempty"`
	Hollow bool `json:"hollow,omitempty"`
}

// Row is one point, bar or cell. X and Y are numbers (float64), or names of the axis.
type Row struct {
	X  any     `json:"x"`
	Y  any     `json:"y"`
	X2 float64 `json:"x2,omitempty"`
	Y2 float64 `json:"y2,omitempty"`
	// Value chooses the colour of a cell or box.
	Value float64 `json:"value,omitempty"`
	// Text is written into a cell, behind a bar, or at a point.
	Text string `json:"text,omitempty"`
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

// shown returns the figure without the rows that cannot be drawn: a number that is not finite, or not positive on a
// logarithmic axis.
func (f *Figure) shown() *Figure {
	out := *f
	out.Marks = make([]Mark, len(f.Marks))
	for i, m := range f.Marks {
		rows := m.Rows
		m.Rows = nil
		for _, r := range rows {
			if f.X.holds(r.X) && f.Y.holds(r.Y) && finite(r.X2) && finite(r.Y2) && finite(r.Value) {
				m.Rows = append(m.Rows, r)
			}
		}
		out.Marks[i] = m
	}
	return &out
}

func (a *Axis) holds(v any) bool {
	number, ok := v.(float64)
	return !ok || finite(number) && (!a.Log || number > 0)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// has reports whether the figure has marks of a kind.
func (f *Figure) has(k Kind) bool {
	for i := range f.Marks {
		if f.Marks[i].Kind == k {
			return true
		}
	}
	return false
}
