package formula

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

func TestUnused(t *testing.T) {
	params := hw.Set{{Name: "clock"}, {Name: "l2_bytes"}, {Name: "l2"}, {Name: "dies"}, {Name: "units"}, {Name: "tdp"}}
	formulas := Of([]arch.Term{
		{Name: "miss", Formula: "1 - min(1, l2_bytes/(m*k))"},
		{Name: "share", Formula: "rule: units/dies, since the vendor's tool says so"},
	})
	// A part of a name is not the name.
	if got, want := Unused(params, append(formulas, "clock")), []string{"l2", "tdp"}; !slices.Equal(got, want) {
		t.Errorf("%v are unused, want %v", got, want)
	}
	if got := Unused(params, append(formulas, "clock", "when(l2 > 0, tdp, 0)")); len(got) > 0 {
		t.Errorf("%v are unused, want none", got)
	}
}
