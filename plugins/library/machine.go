package library

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/library/terms"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Machine is a GPU as a vendor's plugin describes it to the model.
type Machine struct {
	Generation terms.Generation
	// Description has the identity of the device, its units, limits and peak rates, and its parameters.
	Description arch.Description
	// Memory are the levels of the device: L2, MALL if it has one, and DRAM.
	Memory []arch.Level

	reads  []string // the parameters, but for peaks
	narrow bool     // Vendor.Narrow
}

// Vendor is a plugin that has the model.
type Vendor struct {
	// Units is the parameter that counts SMs or CUs, Levels are the memory of the devices.
	Units  string
	Levels []arch.Level
	// Narrow says that times were recorded with loads and stores of less than 16 bytes.
	Narrow bool
	// Needs are other parameters that Machine reads.
	Needs []string
	// Machine describes the device of a selection.
	Machine func(catalog.Selection) Machine
}

// reads are the parameters that predictions depend on, but for peaks.
func (v *Vendor) reads() []string {
	names := []string{v.Units, "clock", "clock_loaded", "tdp", "dram_ecc"}
	for i := range v.Levels {
		n := &v.Levels[i].Names
		names = append(names, n.Capacity, n.Partitions, n.DataSheet)
	}
	return names
}

// Model returns the model for a catalogue.
func (v *Vendor) Model() catalog.Model {
	return catalog.Model{
		Name: Name, Class: arch.ClassRefined, Kernels: []string{Family}, Options: Options,
		Needs: append(v.reads(), v.Needs...),
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
	machine.reads, machine.narrow = v.reads(), v.Narrow
	return New(machine, given)
}

// numbers are the numbers of the machine. A number that is a parameter of the same name is not repeated.
func (m *Machine) numbers() (all []arch.Constant) {
	params := hw.Set(m.Description.Params)
	param := func(name string) float64 { p, _ := params.Lookup(name); return p.Value }
	size := func(b arch.Bound) float64 {
		l := arch.LevelOf(m.Memory, b)
		return float64(l.Capacity) * float64(l.Partitions)
	}
	values := map[string]float64{
		"units":      float64(m.Description.Units),
		"l2_count":   float64(arch.LevelOf(m.Memory, arch.BoundL2).Partitions),
		"l2_size":    size(arch.BoundL2),
		"mall_size":  size(arch.BoundMALL),
		"dram_speed": float64(arch.LevelOf(m.Memory, arch.BoundDRAM).DataSheet),
		"unit_watts": terms.UnitWatts[m.Generation],
		"clock_gain": max(1, param("clock_loaded")/param("clock")),
	}
	for _, n := range terms.Machine {
		if _, is := params.Lookup(n.Name); !is {
			all = append(all, arch.Constant{Name: n.Name, Value: values[n.Name], Unit: n.Unit, Doc: n.Doc,
				Source: "of the device"})
		}
	}
	return all
}

// unused returns the parameters that no prediction depends on. A peak of 0 stands for a type that the device lacks.
func (m *Machine) unused() (names []string) {
	for _, p := range m.Description.Params {
		if used := slices.Contains(m.reads, p.Name) || p.Unit == "FLOP/s" && p.Value > 0; !used {
			names = append(names, p.Name)
		}
	}
	return names
}
