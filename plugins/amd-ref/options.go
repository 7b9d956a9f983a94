package amdref

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// options are the plugin's own settings.
type options struct {
	grid            gridMode
	occupancy       uint64
	mi              *shape // nil: the device file's first instruction of the type
	februaryMapping bool
}

// autoMI is the value of the option "mi" that leaves the choice to the device file.
const autoMI = "auto"

// shape is the shape of a matrix instruction.
type shape struct{ m, n, k int }

func (s shape) String() string { return fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k) }

// optionList declares the options. Their order is that of Description.Options.
var optionList = []arch.Option{
	{Key: "grid", Default: gridModes[dataParallel], Values: gridModes,
		Doc: "how the number of workgroups is chosen; data_parallel is one per output tile, as tritonBLAS launches"},
	{Key: "occ", Default: "1", Doc: fmt.Sprintf("workgroups that share a compute unit, 1 to %d", maxOccupancy)},
	{Key: "mi", Default: autoMI,
		Doc: "matrix instruction MxNxK; auto depends on architecture and dtype (fp16: 16x16x16, on gfx950 16x16x32) and is shown with the matrix instructions"},
	{Key: "mapping", Default: "jan", Values: []string{"jan", "feb"},
		Doc: "workgroup mapping of the library in January 2026 (what tritonBLAS ran on then) or February 2026"},
}

// parseOptions checks the values of options, all of them declared, against the declaration and the device's instructions.
func parseOptions(given map[string]string, sheet *hw.Sheet) (options, []arch.OptionValue, error) {
	o := options{}
	values := make([]arch.OptionValue, len(optionList))
	for i, opt := range optionList {
		values[i] = arch.OptionValue{Key: opt.Key, Value: opt.Default}
		if value, ok := given[opt.Key]; ok {
			values[i].Value = value
		}
	}

	for _, v := range values {
		bad := func(format string, args ...any) error {
			return diag.Inputf("%s=%s %s", v.Key, v.Value, fmt.Sprintf(format, args...)).At("option").Do("%s", alternatives(v.Key, sheet))
		}
		switch v.Key {
		case "grid":
			i := slices.Index(gridModes, v.Value)
			if v.Value == "analytical" {
				return o, nil, bad("cannot be ranked: the library's analytical grid asks for the ranking that it is part of, without end")
			}
			if i < 0 {
				return o, nil, bad("is unknown")
			}
			o.grid = gridMode(i)
		case "occ":
			n, err := strconv.Atoi(v.Value)
			if err != nil || n < 1 || n > maxOccupancy {
				return o, nil, bad("is not a whole number from 1 to %d, which is how many wavefronts a compute unit holds", maxOccupancy)
			}
			o.occupancy = uint64(n)
		case "mi":
			if v.Value == autoMI {
				continue
			}
			i := slices.IndexFunc(sheet.Atoms, func(a hw.Atom) bool { return shape{a.M, a.N, a.K}.String() == v.Value })
			if i < 0 {
				return o, nil, bad("is no matrix instruction of %s", sheet.Arch)
			}
			a := sheet.Atoms[i]
			o.mi = &shape{a.M, a.N, a.K}
		case "mapping":
			if v.Value != "jan" && v.Value != "feb" {
				return o, nil, bad("is unknown")
			}
			o.februaryMapping = v.Value == "feb"
		}
	}
	return o, values, nil
}

// alternatives says what an option accepts.
func alternatives(key string, sheet *hw.Sheet) string {
	if key == "mi" {
		return "use " + autoMI + " or one of " + shapes(sheet.Atoms, "")
	}
	for _, opt := range optionList {
		if opt.Key == key && len(opt.Values) > 0 {
			return "use one of " + strings.Join(opt.Values, ", ")
		}
	}
	return fmt.Sprintf("give %s=N", key)
}

// shapes lists the instruction shapes of a type, or of all types.
func shapes(atoms []hw.Atom, atomType string) string {
	var list []string
	for _, a := range atoms {
		if s := (shape{a.M, a.N, a.K}).String(); (atomType == "" || a.Type == atomType) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", ")
}
