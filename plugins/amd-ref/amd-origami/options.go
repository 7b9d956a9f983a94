package amdorigami

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// options are the settings of the model.
type options struct {
	grid            gridMode
	occupancy       uint64
	mi              *shape // nil: the first instruction of the type in the device file
	februaryMapping bool
	workgroups      uint64 // that the mapping is chosen for; 0: one per compute unit
}

// auto is the value of the option "mi" that selects the first instruction of the type in the device file, and of
// "workgroups" for one per compute unit.
const auto = "auto"

// maxWorkgroups is the largest grid of a launch.
const maxWorkgroups = 1<<31 - 1

// shape is the size of a matrix instruction.
type shape struct{ m, n, k int }

func (s shape) String() string { return fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k) }

// optionList declares the options, in the order of Description.Options.
var optionList = []arch.Option{
	{
		Key: "grid", Default: gridModes[dataParallel], Values: gridModes,
		Doc: "rule for the number of workgroups; data_parallel launches one per output tile, as tritonBLAS does",
	},
	{
		Key: "occ", Default: "1",
		Doc: fmt.Sprintf("workgroups that share a compute unit, 1 to %d", maxOccupancy),
	},
	{
		Key: "mi", Default: auto,
		Doc: "matrix instruction MxNxK; auto depends on architecture and dtype (fp16: 16x16x16, on gfx950 16x16x32)" +
			" and is shown with the matrix instructions",
	},
	{
		Key: "mapping", Default: "jan", Values: []string{"jan", "feb"},
		Doc: "workgroup mapping of the library in January 2026 (which tritonBLAS then used) or February 2026",
	},
	{
		Key: "workgroups", Default: auto,
		Doc: fmt.Sprintf("workgroups that the workgroup mapping is chosen for, 1 to %d; auto is one per compute unit,"+
			" as tritonBLAS launches", maxWorkgroups),
	},
}

// parseOptions reads the values of declared options and checks them against the declaration and the device's
// instructions.
func parseOptions(given map[string]string, sheet *hw.Sheet) (options, []arch.OptionValue, error) {
	o := options{}
	values := make([]arch.OptionValue, len(optionList))
	for i, opt := range optionList {
		values[i] = arch.OptionValue{Key: opt.Key, Value: opt.Default}
		if value, ok := given[opt.Key]; ok {
			values[i].Value = value
		}
		if wrong := o.set(opt.Key, values[i].Value, sheet); wrong != "" {
			return o, nil, diag.Inputf("%s=%s %s", opt.Key, values[i].Value, wrong).
				At("option").Do("%s", alternatives(opt.Key, sheet))
		}
	}
	return o, values, nil
}

// set sets one option. It returns what is wrong with the value, or an empty string.
func (o *options) set(key, value string, sheet *hw.Sheet) string {
	switch key {
	case "grid":
		i := slices.Index(gridModes, value)
		if value == "analytical" {
			return "cannot be ranked: the library's analytical grid needs the ranking that it is part of"
		}
		if i < 0 {
			return "is unknown"
		}
		o.grid = gridMode(i)
	case "occ":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxOccupancy {
			return fmt.Sprintf("is not a whole number from 1 to %d, the number of wavefronts that a compute unit holds",
				maxOccupancy)
		}
		o.occupancy = uint64(n)
	case "mi":
		if value == auto {
			return ""
		}
		i := slices.IndexFunc(sheet.Atoms, func(a hw.Atom) bool { return shape{a.M, a.N, a.K}.String() == value })
		if i < 0 {
			return fmt.Sprintf("is not a matrix instruction of %s", sheet.Arch)
		}
		a := sheet.Atoms[i]
		o.mi = &shape{a.M, a.N, a.K}
	case "mapping":
		if value != "jan" && value != "feb" {
			return "is unknown"
		}
		o.februaryMapping = value == "feb"
	case "workgroups":
		if value == auto {
			return ""
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n < 1 || n > maxWorkgroups {
			return fmt.Sprintf("is neither %s nor a whole number from 1 to %d", auto, maxWorkgroups)
		}
		o.workgroups = n
	}
	return ""
}

// alternatives lists the values that an option accepts.
func alternatives(key string, sheet *hw.Sheet) string {
	if key == "mi" {
		return "use " + auto + " or one of " + shapes(sheet.Atoms, "")
	}
	for _, opt := range optionList {
		if opt.Key == key && len(opt.Values) > 0 {
			return "use one of " + strings.Join(opt.Values, ", ")
		}
	}
	return fmt.Sprintf("give %s=N", key)
}

// shapes lists the instruction shapes of an operand type, or of all types if atomType is empty.
func shapes(atoms []hw.Atom, atomType string) string {
	var list []string
	for _, a := range atoms {
		if s := (shape{a.M, a.N, a.K}).String(); (atomType == "" || a.Type == atomType) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}
