// Package modelgen turns the table of a model into the model's Go code.
package modelgen

import (
	"bytes"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/formula/gogen"
	"github.com/origami-gemm/origami/core/tabled"
)

// Model is what the generator needs of a model.
type Model struct {
	Package string
	// Terms are the table. What its formulas name besides terms and inputs are numbers of the device: parameters,
	// constants and quantities.
	Terms []tabled.Term
	// Stages are the moments at which the model computes.
	Stages []Stage
	// Inputs are the names that no formula computes.
	Inputs []Input
	// Keep names the terms that the model's own code reads.
	Keep string
	// Columns are the parameters of the generated function that writes all terms.
	Columns string
	// Apart, if set, is a function of its own.
	Apart *Function
}

// Stage is a moment at which the model computes what it knows by then into a struct.
type Stage struct {
	Var, Type string // the variable and the type of the struct
	Args      string // the parameters of its method compute
	Doc       string
	Knows     gogen.Deps
}

// Input is a set of names that hand-written code sets.
type Input struct {
	// By is the name of the set in the table's inputs. Names are the names of the set that are no terms.
	By, Names string
	// On is what the inputs depend on.
	On gogen.Deps
	// Type is the struct that has them as fields, the struct of a stage or one of its own. Var is the variable with it.
	Type, Var string
	// Reach says where the variable can be used.
	Reach gogen.Reach
}

// Function is a formula as a function, in the stage that Args belong to.
type Function struct{ Name, Doc, Args, Formula string }

// Main writes the code of a model, or exits.
func Main(m *Model) {
	src, err := m.code()
	if err == nil {
		err = os.WriteFile(code, src, 0o644)
	}
	if err != nil {
		log.Fatal(fmt.Errorf("gen: %w", err))
	}
}

// Stale reports that the code is not what the table says. It runs in the folder of the model's package.
func Stale(m *Model) error {
	src, err := m.code()
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(code); err != nil || !bytes.Equal(have, src) {
		return fmt.Errorf("%s is not what the table says; run `make generate` (%w)", code, err)
	}
	return nil
}

// code is the file of the generated code.
const code = "zterms.go"

// plan gives all names and formulas to a new plan, and returns the fields that are set by hand, by struct.
func (m *Model) plan() (*gogen.Plan, map[string][]string, error) {
	stages := make([]gogen.Stage, len(m.Stages))
	for i, s := range m.Stages {
		stages[i] = gogen.Stage{Var: s.Var, Knows: s.Knows}
	}
	p := gogen.New(stages...)
	p.Number = func(name string) string { return fmt.Sprintf("value(%q)", name) }
	fields := map[string][]string{}
	input := func(in *Input, name string) error {
		fields[in.Type] = append(fields[in.Type], name)
		return p.Input(name, in.On, in.Var+"."+gogen.Identifier(name), in.Reach)
	}
	for i := range m.Inputs {
		for _, name := range strings.Fields(m.Inputs[i].Names) {
			if err := input(&m.Inputs[i], name); err != nil {
				return nil, nil, err
			}
		}
	}
	for i := range m.Terms {
		t := &m.Terms[i]
		var err error
		if t.By == "" {
			err = p.Define(t.Name, t.Formula, t.When)
		} else {
			by := slices.IndexFunc(m.Inputs, func(in Input) bool { return in.By == t.By })
			if by < 0 {
				return nil, nil, fmt.Errorf("%s: there are no inputs by the name %s", t.Name, t.By)
			}
			if err = input(&m.Inputs[by], t.Name); err == nil {
				err = p.Show(t.Name)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if m.Apart != nil {
		if err := p.Apart(m.Apart.Name, m.Apart.Formula); err != nil {
			return nil, nil, err
		}
	}
	return p, fields, p.Keep(strings.Fields(m.Keep)...)
}

// code writes the model as Go.
func (m *Model) code() ([]byte, error) {
	p, fields, err := m.plan()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.ContainsFunc(m.Stages, func(s Stage) bool { return s.Type == name }) {
			b.WriteString(gogen.Inputs(name, fields[name]))
		}
	}
	for i, s := range m.Stages {
		b.WriteString(p.Declare(i, s.Doc, s.Type, s.Args, fields[s.Type]))
	}
	if f := m.Apart; f != nil {
		fmt.Fprintf(&b, "\n// %s\nfunc %s(%s) float64 {\n%s}\n", f.Doc, f.Name, f.Args, p.Alone(f.Name))
	}
	b.WriteString(p.DeclareColumns(m.Columns))
	return gogen.File(m.Package, b.String())
}
