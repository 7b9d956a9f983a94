package model

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
)

// Quantity is an empirical number of a model: fitted to measurements, or chosen.
type Quantity struct {
	Name, Unit, Doc string
	// Value holds on every rung that Rungs lacks. Source says how it was found, DataSet on which data set if measurements
	// may move it, and Folds is the range of the values that were fitted without some of the sizes.
	Value           float64
	Source, DataSet string
	Folds           *[2]float64
	// Low and High are the bounds of the fit. For a chosen quantity they are the range in which the scores are flat.
	Low, High float64
	// Kernel is the one family whose predictions the quantity enters, empty for all.
	Kernel string
	// Without is the value that removes the effect of the quantity from the model.
	Without float64
	// Rungs are the values for models that know more, or that are of some generation of devices.
	Rungs []Value
}

// Bounded returns a quantity within bounds. Its source and data set are for From to say.
func Bounded(name, unit string, value, low, high float64, doc string) Quantity {
	return Quantity{Name: name, Unit: unit, Value: value, Low: low, High: high, Doc: doc}
}

// Over gives a quantity the range of its values over folds.
func (q Quantity) Over(low, high float64) Quantity {
	q.Folds = &[2]float64{low, high}
	return q
}

// Off gives a quantity the value that removes its effect, if that is not 0.
func (q Quantity) Off(value float64) Quantity {
	q.Without = value
	return q
}

// From says on which data set a quantity was fitted, and how.
func (q Quantity) From(dataSet, source string) Quantity {
	q.DataSet, q.Source = dataSet, source
	return q
}

// Value is the value of a quantity from a rung on.
type Value struct {
	// Rung is the lowest rung that the value holds on, empty for all. Of is the generation of devices that it was found
	// for, empty for all.
	Rung arch.Rung
	Of   string
	// Value, Source, DataSet and Folds are as in Quantity.
	Value           float64
	Source, DataSet string
	Folds           *[2]float64
}

// On returns the value of a quantity for a model of a generation of devices that stands on a rung: of those that hold,
// the value of the highest rung, and among these the first.
func (q *Quantity) On(rung arch.Rung, generation string) Value {
	best, height := Value{Value: q.Value, Source: q.Source, DataSet: q.DataSet, Folds: q.Folds}, -1
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

// Constant returns the quantity with one of its values as a description has it. A value of a data set can be fitted
// again.
func (q *Quantity) Constant(v Value) arch.Constant {
	c := arch.Constant{Name: q.Name, Value: v.Value, Unit: q.Unit, Doc: q.Doc, Source: v.Source}
	if v.Folds != nil {
		c.Source += "; bounds " + q.Range(q.Low, q.High) + "; over folds " + q.Range(v.Folds[0], v.Folds[1])
	}
	if v.DataSet != "" {
		c.Low, c.High = q.Low, q.High
	}
	return c
}

// Range writes two values of the quantity, with a prefix for the unit if they are small.
func (q *Quantity) Range(low, high float64) string {
	scale, unit := 1.0, ""
	if q.Unit == "s" || q.Unit == "J" {
		for _, prefix := range []string{"m", "µ", "n", "p"} {
			if high*scale >= 0.5 {
				break
			}
			scale, unit = scale*1000, " "+prefix+q.Unit
		}
	}
	return fmt.Sprintf("%.4g–%.4g%s", low*scale, high*scale, unit)
}

// Override gives constants other values, by name.
func Override(constants []arch.Constant, values map[string]float64) {
	for i := range constants {
		if v, ok := values[constants[i].Name]; ok {
			constants[i].Value = v
		}
	}
}
