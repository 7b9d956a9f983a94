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
	"github.com/origami-gemm/origami/core/model"
)

// Model is what the generator needs of a model.
type Model struct {
	Package string
	// Terms are the table. What its formulas name besides terms and inputs are numbers of the device: parameters,
	// constants and quantities.
	Terms []model.Term
	// Stages are the moments at which the model computes. The first stage computes for the device.
	Stages []Stage
	// Inputs are the names that no formula computes.
	Inputs []Input
	// Keep names the terms that the model's own code reads.
	Keep string
	// Apart, if set, is a function of its own.
	Apart *Function
}

// Stage is a moment at which the model computes what it knows by then into a struct. The parameters of its method
// compute are the structs of inputs that it reads, then the structs of earlier stages.
type Stage struct {
	Var, Type string // the variable and the type of the struct
	Knows     gogen.Deps
}

// Input is a set of names that hand-written code sets.
type Input struct {
	// By is the name of the set in the table's inputs. Names are the names of the set that are no terms.
	By, Names string
	// On is what the inputs depend on.
	On gogen.Deps
	// Type is the struct that has them as fields, the struct of a stage or one of its own. Var is the variable with it.
	// Structs with one variable are embedded in a struct inputs.
	Type, Var string
	// Own says that only the first stage that knows the inputs has the variable. Otherwise later ones have it too.
	Own bool
}

// Function is a formula as a function, of what the last stage is computed from.
type Function struct{ Name, Doc, Formula string }

// Main writes the code of the model that go generate runs for, or exits.
func Main(models ...*Model) {
	for _, m := range models {
		if m.Package != os.Getenv("GOPACKAGE") {
			continue
		}
		src, err := m.code()
		if err == nil {
			err = os.WriteFile(code, src, 0o644)
		}
		if err != nil {
			log.Fatal(fmt.Errorf("gen: %w", err))
		}
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
		reach := gogen.Everywhere
		if in.Own {
			reach = gogen.Own
		}
		return p.Input(name, in.On, in.Var+"."+gogen.Identifier(name), reach)
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
	for i := range m.Stages {
		s := &m.Stages[i]
		b.WriteString(p.Declare(i, s.Type, m.args(i), fields[s.Type]))
	}
	if f := m.Apart; f != nil {
		fmt.Fprintf(&b, "\n// %s\nfunc %s(%s) float64 {\n%s}\n", f.Doc, f.Name, m.args(len(m.Stages)-1), p.Alone(f.Name))
	}
	b.WriteString(p.DeclareColumns(m.args(len(m.Stages))))
	return gogen.File(m.Package, b.String())
}

// args are the parameters of a stage. Behind the last stage, they are the parameters of the function columns.
func (m *Model) args(stage int) string {
	if stage == 0 {
		return "value func(name string) float64"
	}
	all := stage == len(m.Stages)
	knows := func(i int, on gogen.Deps) bool { return all || on&^m.Stages[i].Knows == 0 }
	types := map[string]string{} // of variables with inputs
	var args, vars []string
	for i := range m.Inputs {
		in := &m.Inputs[i]
		of := slices.ContainsFunc(m.Stages, func(s Stage) bool { return s.Type == in.Type })
		first := slices.IndexFunc(m.Stages, func(s Stage) bool { return in.On&^s.Knows == 0 })
		if of {
			continue
		}
		if t := types[in.Var]; t == "" || t == in.Type {
			types[in.Var] = in.Type
		} else {
			types[in.Var] = "inputs"
		}
		if knows(stage, in.On) && (all || !in.Own || first == stage) && !slices.Contains(vars, in.Var) {
			vars = append(vars, in.Var)
		}
	}
	for _, name := range vars {
		args = append(args, name+" *"+types[name])
	}
	for i, s := range m.Stages[:stage] {
		if knows(stage, s.Knows) || slices.ContainsFunc(m.Inputs, func(in Input) bool {
			return in.Type == s.Type && knows(stage, in.On)
		}) || i == 0 {
			args = append(args, s.Var+" *"+s.Type)
		}
	}
	return strings.Join(args, ", ")
}
