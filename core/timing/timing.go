// Package timing says what a time is of: what starts and stops the clock, what the caches hold when a kernel begins,
// and whether the board is rested. One law converts times of one kernel between timings. A model states its constants
// for a device.
package timing

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Timing is what a time is of. Its text is its name.
type Timing string

// The timings. Meaning says what each is.
const (
	Model     Timing = "model"
	Events    Timing = "events"
	Alone     Timing = "alone"
	Warm      Timing = "warm"
	Cold      Timing = "cold"
	Layers    Timing = "layers"
	Layers5   Timing = "layers5"
	Sustained Timing = "sustained"
	Host      Timing = "host"
)

var meanings = []struct {
	timing  Timing
	meaning string
}{
	{Model, "kernels back to back inside a running model: weights from DRAM, activations from caches that fit them"},
	{Events, "one launch between two events, with an L2 full of dirty lines, as do_bench times it"},
	{Alone, "one kernel at a time under a profiler, with the operands of the run before in the caches"},
	{Warm, "the same operands again and again, back to back"},
	{Cold, "operands that no cache holds, back to back"},
	{Layers, "six layers in turn, back to back, so that small weights stay in the L2"},
	{Layers5, "the same of five layers"},
	{Sustained, "model, once the board has reached its power limit"},
	{Host, "the host's clock around one call, launch and synchronising included"},
}

// All lists the timings, Model first.
func All() []Timing {
	all := make([]Timing, len(meanings))
	for i, m := range meanings {
		all[i] = m.timing
	}
	return all
}

// Names are the texts of All.
func Names() []string {
	all := make([]string, len(meanings))
	for i, m := range meanings {
		all[i] = string(m.timing)
	}
	return all
}

// Parse returns the timing of a name. The error lists the names.
func Parse(name string) (Timing, error) {
	for _, m := range meanings {
		if string(m.timing) == name {
			return m.timing, nil
		}
	}
	return "", diag.Inputf("the timing %q is unknown", name).Do("use one of %s", strings.Join(Names(), ", "))
}

// Meaning says in a sentence what is timed. It is empty for an unknown timing.
func (t Timing) Meaning() string {
	for _, m := range meanings {
		if m.timing == t {
			return m.meaning
		}
	}
	return ""
}

// Base is the timing of the same kernels back to back: Warm for Alone, Model for Events, Sustained and Host, and of the
// others itself.
func (t Timing) Base() Timing {
	switch t {
	case Events, Sustained, Host:
		return Model
	case Alone:
		return Warm
	default:
		return t
	}
}

// UnmarshalText reads a name, in JSON too. An unknown name is an error.
func (t *Timing) UnmarshalText(text []byte) (err error) {
	*t, err = Parse(string(text))
	return err
}

// MarshalText writes the name. An unknown timing is an error, the empty one too.
func (t Timing) MarshalText() ([]byte, error) {
	if t.Meaning() == "" {
		return nil, fmt.Errorf("timing: %q is no timing", string(t))
	}
	return []byte(t), nil
}
