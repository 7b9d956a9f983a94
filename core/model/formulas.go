package model

import (
	"fmt"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
)

// Formulas evaluates the terms of a description by their formulas, for models whose Estimate is code of its own.
type Formulas struct {
	program *formula.Program
	steps   formula.Steps
	given   []int // the slots of the inputs
	terms   []int
	frames  sync.Pool // of *[]float64
}

// NewFormulas compiles the terms. The inputs are the names of the terms that the caller computes. It panics if a
// formula names something unknown.
func NewFormulas(m *Model, inputs ...string) *Formulas {
	d, f := &m.Description, &Formulas{program: formula.NewProgram(), given: make([]int, len(inputs))}
	check := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("model: %s of %s: %v", d.Model, d.Arch, err))
		}
	}
	for name, value := range m.numbers() {
		check(f.program.Constant(name, value))
	}
	for i := range d.Terms {
		t, slot, err := &d.Terms[i], 0, error(nil)
		if input := slices.Index(inputs, t.Name); input >= 0 {
			slot, err = f.program.Input(t.Name, formula.OnConfig)
			f.given[input] = slot
		} else {
			slot, err = f.program.Define(t.Name, t.Formula)
		}
		check(err)
		f.terms = append(f.terms, slot)
	}
	f.steps = f.program.Steps(func(formula.Deps) bool { return true })
	f.frames.New = func() any { frame := f.program.Frame(); return &frame }
	return f
}

// Row writes the terms of a configuration. Given are the values of the inputs, in the order of NewFormulas.
func (f *Formulas) Row(dst []float64, p gemm.Problem, c *gemm.Config, given ...float64) {
	held := f.frames.Get().(*[]float64)
	defer f.frames.Put(held)
	frame := *held
	f.program.PutProblem(frame, p, &arch.Atom{})
	f.program.PutConfig(frame, c)
	for i, slot := range f.given {
		frame[slot] = given[i]
	}
	f.steps.Run(frame)
	for i, slot := range f.terms {
		dst[i] = frame[slot]
	}
}
