package arch

import (
	"slices"
	"strings"
)

// readers read constants besides the terms, each those whose names begin with its own. A model states them with their
// source, as far as its author knows them. A cost that it does not state is none: the prediction stays the model's own.
//
//	timing    what else a time has in it (core/timing)
//	besides   what a kernel does besides A·B (Besides)
//	bands     the margin that kernels need to take the place of the vendor's library
//	contract  the copies of a contraction
//	advice    how likely a change must be to save time
//	ladder    how far off predicted gains are
//	tune      how errors of predictions go together
var readers = []string{"timing", "besides", "bands", "contract", "advice", "ladder", "tune"}

// Reader returns what reads the constant besides the terms, empty if only they do.
func (c *Constant) Reader() string {
	if first, _, _ := strings.Cut(c.Name, "_"); slices.Contains(readers, first) {
		return first
	}
	return ""
}

// Constant returns the value of a constant, and otherwise if the model does not state it.
func (d *Description) Constant(name string, otherwise float64) float64 {
	i := slices.IndexFunc(d.Constants, func(c Constant) bool { return c.Name == name })
	if i < 0 {
		return otherwise
	}
	return d.Constants[i].Value
}
