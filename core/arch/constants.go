package arch

import (
	"slices"
	"strings"
)

// Reader names what reads a constant that no term reads. It is the part of the constant's name before the first "_".
type Reader string

// The readers. A model states the constants of a reader with their source, as far as its author knows them. A cost that
// it does not state is none, and a choice that depends on it is made without: the prediction stays the model's own.
const (
	// ReadByTiming: what else a time has in it (core/timing).
	ReadByTiming Reader = "timing"
	// ReadByBesides: what a kernel does besides A·B (Besides).
	ReadByBesides Reader = "besides"
	// ReadByBands: the margin that kernels need to take the place of the vendor's library.
	ReadByBands Reader = "bands"
	// ReadByContract: the copies of a contraction.
	ReadByContract Reader = "contract"
	// ReadByAdvice: how likely a change must be to save time.
	ReadByAdvice Reader = "advice"
	// ReadByLadder: how far off predicted gains are.
	ReadByLadder Reader = "ladder"
	// ReadByTune: how errors of predictions go together.
	ReadByTune Reader = "tune"
)

// Reader returns what reads the constant by its name. It is empty for a constant of terms.
func (c *Constant) Reader() Reader {
	before, _, _ := strings.Cut(c.Name, "_")
	switch r := Reader(before); r {
	case ReadByTiming, ReadByBesides, ReadByBands, ReadByContract, ReadByAdvice, ReadByLadder, ReadByTune:
		return r
	}
	return ""
}

// Constant returns the value of the constant of a reader and a name, and otherwise if the model does not state it.
func (d *Description) Constant(r Reader, name string, otherwise float64) float64 {
	name = string(r) + "_" + name
	i := slices.IndexFunc(d.Constants, func(c Constant) bool { return c.Name == name })
	if i < 0 {
		return otherwise
	}
	return d.Constants[i].Value
}
