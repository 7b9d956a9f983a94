package arch

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// MinTotal and MaxTotal bound the total of a prediction. They lie far outside of what any kernel takes. A time or a
// rate that is computed from a total between them is neither infinite nor zero.
const (
	MinTotal unit.Cycles = 1e-100
	MaxTotal unit.Cycles = 1e100
)

// IsTotal reports whether a total can be a prediction.
func IsTotal(c unit.Cycles) bool { return c >= MinTotal && c <= MaxTotal }

// Implausible is the error about a total for which IsTotal is false. A model that the user has not changed is at fault
// itself. Otherwise the user's numbers are the likely cause.
func (d *Description) Implausible(c unit.Cycles, of string) *diag.Error {
	what := fmt.Sprintf("the %s model predicts %v cycles for %s", d.Model, float64(c), of)
	if names := d.Overridden(); len(names) > 0 {
		return diag.Inputf("%s with other values of %s", what, strings.Join(names, ", ")).At("%s", d.ID()).
			Do("give values that the hardware can have")
	}
	return &diag.Error{Kind: diag.Plugin, Where: d.ID(), What: what, Fix: "report it to the model's author"}
}

// Overridden returns the names of the parameters whose values the user has replaced.
func (d *Description) Overridden() []string {
	var names []string
	for i := range d.Params {
		if d.Params[i].Tier == hw.Override {
			names = append(names, d.Params[i].Name)
		}
	}
	return names
}
