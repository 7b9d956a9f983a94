package library

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Machine is a GPU as a vendor's plugin describes it to the model.
type Machine struct {
	Generation terms.Generation
	// Description has the identity of the device, its units, limits and peak rates, and its parameters.
	Description arch.Description
	// Numbers are formulas over the parameters, by the names of terms.Machine. A parameter that the device lacks is 0.
	Numbers map[string]string
}

// Vendor is a plugin that has the model.
type Vendor struct {
	// Numbers are those of Machine. Needs are other parameters that Machine reads.
	Numbers map[string]string
	Needs   []string
	// Machine describes the device of a selection. Its Numbers are not set.
	Machine func(catalog.Selection) Machine
}

// Model returns the model for a catalogue.
func (v *Vendor) Model() catalog.Model {
	needs := slices.Clone(v.Needs)
	for _, f := range v.Numbers {
		needs = append(needs, formula.Named(f)...)
	}
	return catalog.Model{
		Name: Name, Class: arch.ClassRefined, Kernels: []string{Family}, Options: Options, Needs: needs,
		Open: func(s catalog.Selection) (arch.Architecture, error) {
			if s.Compiled != nil || s.Characterization != nil {
				return nil, diag.Inputf("the kernels of the family %s are the vendor's, and no report or times of them count",
					Family).Do("leave the files about kernels out")
			}
			return v.On(s, s.Options)
		},
	}
}

// On returns the model on the device of a selection, with the given options of the family.
func (v *Vendor) On(s catalog.Selection, given map[string]string) (*Model, error) {
	machine := v.Machine(s)
	machine.Numbers = v.Numbers
	return New(machine, given)
}

// numbers computes the numbers of the machine. A number that is a parameter of the same name is not repeated.
func (m *Machine) numbers() ([]arch.Constant, error) {
	if !slices.Contains(terms.Generations(), m.Generation) {
		return nil, fmt.Errorf("library: %s is of the generation %q, which is unknown", m.Description.ID(), m.Generation)
	}
	program := formula.NewProgram()
	params := hw.Set(m.Description.Params)
	for i := range params {
		if err := program.Constant(params[i].Name, params[i].Value); err != nil {
			return nil, err
		}
	}
	var all []arch.Constant
	for _, n := range terms.Machine {
		text, ok := m.Numbers[n.Name]
		if !ok {
			return nil, fmt.Errorf("library: the plugin does not say what %s is", n.Name)
		}
		if _, is := params.Lookup(n.Name); is && text == n.Name {
			continue
		}
		for _, name := range formula.Named(text) { // those that are optional
			if _, has := params.Lookup(name); !has {
				_ = program.Constant(name, 0) // it may be there already
			}
		}
		slot, err := program.Compile(text)
		if err != nil {
			return nil, err
		}
		all = append(all, arch.Constant{
			Name: n.Name, Value: program.Frame()[slot], Unit: n.Unit, Doc: n.Doc, Source: "of the device: " + text,
		})
	}
	return all, nil
}

// unused returns the parameters that no prediction depends on. A peak of 0 stands for a type that the device lacks.
func (m *Machine) unused() []string {
	var used []string
	for _, f := range m.Numbers {
		used = append(used, f)
	}
	for _, t := range gemm.DTypes() {
		used = append(used, "peak_"+t.String())
	}
	unused := formula.Unused(m.Description.Params, used)
	for _, p := range m.Description.Params {
		if p.Value == 0 && p.Unit == "FLOP/s" && !slices.Contains(unused, p.Name) {
			unused = append(unused, p.Name)
		}
	}
	return unused
}
