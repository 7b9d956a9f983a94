package report

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/core/printable"
)

// placed is a figure on a page.
type placed struct {
	Number         int
	Title, Caption string
	More           string
	Table          *grid
	Drawn          markup
}

// Figure adds a figure, and the table behind it.
func (s *Section) Figure(f *figure.Figure) {
	p := &placed{Number: s.number(), Title: printable.Line(f.Title), Caption: printable.Line(f.Caption),
		More: printable.Line(f.More)}
	p.Drawn = markup(f.Inline(fmt.Sprintf("caption-%d", p.Number))) // which escapes all texts
	if len(f.Header) > 0 {
		p.Table = newTable(f.Title, f.Header, f.Rows)
	}
	s.add(part{Figure: p})
}

// WhatIf are sliders of a device's numbers, and the times that a model predicts with them. A time of 0 is asked for.
type WhatIf struct {
	Sliders []Slider `json:"sliders"`
	// Times are in seconds, Notes say what the kernel is then. The last slider varies fastest.
	Times []float64 `json:"times"`
	Notes []string  `json:"notes"`
	// Base is the place of the device itself.
	Base int `json:"base"`
	// Scale is what times of that address are multiplied by.
	Scale float64 `json:"scale"`
	// Ask is the address that answers for numbers between the steps, up to those; empty where nobody can be asked.
	Ask string `json:"ask,omitempty"`
}

// Slider is one number of a device.
type Slider struct {
	// Name is the parameter's name, Label what people call it.
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
