package tabled

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
)

// Quantity is an empirical number of a model: fitted to measurements, or chosen.
type Quantity struct {
	Name, Unit, Doc string
	// Value and Source hold on every rung that Rungs lacks. Source says how the value was found.
	Value  float64
	Source string
	// Low and High are the bounds of the fit. For a chosen quantity they are the range in which the scores are flat.
	Low, High float64
	// Without is the value that removes the effect of the quantity from the model.
	Without float64
	// Rungs are the values for models that know more, or that are of some generation of devices.
	Rungs []Value
}

// Value is the value of a quantity from a rung on.
type Value struct {
	// Rung is the lowest rung that the value holds on, empty for all. Of is the generation of devices that it was found
	// for, empty for all.
	Rung   arch.Rung
	Of     string
	Value  float64
	Source string // how it was found
}

// On returns the value of a quantity for a model of a generation of devices that stands on a rung: of those that hold,
// the value of the highest rung, and among these the first.
func (q *Quantity) On(rung arch.Rung, generation string) Value {
	best, height := Value{Value: q.Value, Source: q.Source}, -1
	ladder := append([]arch.Rung{""}, arch.Rungs()...)
	stands := slices.Index(ladder, rung)
	for _, v := range q.Rungs {
		at := slices.Index(ladder, v.Rung)
		if at <= stands && at > height && (v.Of == "" || v.Of == generation) {
			best, height = v, at
		}
	}
	return best
}

// Constant returns the quantity with one of its values as a description has it.
func (q *Quantity) Constant(v Value) arch.Constant {
	return arch.Constant{Name: q.Name, Value: v.Value, Unit: q.Unit, Doc: q.Doc, Source: v.Source}
}

// Override gives constants other values, by name.
func Override(constants []arch.Constant, values map[string]float64) {
	for i := range constants {
		if v, ok := values[constants[i].Name]; ok {
			constants[i].Value = v
		}
	}
}

// Numbers returns a function that finds the parameters and constants of a description by name. It panics for a name
// that is none: the names are those of formulas.
func Numbers(d *arch.Description) func(name string) float64 {
	values := make(map[string]float64, len(d.Params)+len(d.Constants))
	for i := range d.Params {
		values[d.Params[i].Name] = d.Params[i].Value
	}
	for i := range d.Constants {
		values[d.Constants[i].Name] = d.Constants[i].Value
	}
	return func(name string) float64 {
		v, ok := values[name]
		if !ok {
			panic("tabled: " + d.Arch + " has no number " + name)
		}
		return v
	}
}
