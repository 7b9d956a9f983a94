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
func parseOptions(given map[string]string, sheet *hw.Sheet) (o options, values []arch.OptionValue, err error) {
	for _, opt := range optionList {
		value, ok := given[opt.Key]
		if !ok {
			value = opt.Default
		}
		if wrong, fix := o.set(&opt, value, sheet); wrong != "" {
			return o, nil, diag.Inputf("%s=%s %s", opt.Key, value, wrong).At("option").Do("%s", fix)
		}
		values = append(values, arch.OptionValue{Key: opt.Key, Value: value})
	}
	return o, values, nil
}

// set sets one option. It returns what is wrong with the value, if anything is, and what to do.
func (o *options) set(opt *arch.Option, value string, sheet *hw.Sheet) (wrong, fix string) {
	i := slices.Index(opt.Values, value)
	n, err := strconv.ParseUint(value, 10, 32)
	switch fix = fmt.Sprintf("give %s=N", opt.Key); {
	case opt.Values != nil && i < 0:
		if wrong = "is unknown"; opt.Key == "grid" && value == "analytical" {
			wrong = "cannot be ranked: the library's analytical grid needs the ranking that it is part of"
		}
		return wrong, "use one of " + strings.Join(opt.Values, ", ")
	case opt.Key == "grid":
		o.grid = gridMode(i)
	case opt.Key == "mapping":
		o.februaryMapping = value == "feb"
	case opt.Key == "occ":
		if o.occupancy = n; err != nil || n < 1 || n > maxOccupancy {
			return fmt.Sprintf("is not a whole number from 1 to %d, the number of wavefronts that a compute unit holds",
				maxOccupancy), fix
		}
	case value == auto:
	case opt.Key == "mi":
		at := slices.IndexFunc(sheet.Atoms, func(a hw.Atom) bool { return shape{a.M, a.N, a.K}.String() == value })
		if at < 0 {
			return "is not a matrix instruction of " + sheet.Arch, "use " + auto + " or one of " + shapes(sheet.Atoms, "")
		}
		o.mi = &shape{sheet.Atoms[at].M, sheet.Atoms[at].N, sheet.Atoms[at].K}
	default:
		if o.workgroups = n; err != nil || n < 1 || n > maxWorkgroups {
			return fmt.Sprintf("is neither %s nor a whole number from 1 to %d", auto, maxWorkgroups), fix
		}
	}
	return "", ""
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
