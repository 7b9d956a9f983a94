package formula

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

func TestUnused(t *testing.T) {
	d := &arch.Description{
		Params: []hw.Param{{Name: "clock"}, {Name: "l2_bytes"}, {Name: "l2"}, {Name: "dies"}, {Name: "units"}, {Name: "tdp"}},
		Terms: []arch.Term{
			{Name: "miss", Formula: "1 - min(1, l2_bytes/(m*k))"},
			{Name: "share", Formula: "rule: units/dies, since the vendor's tool says so"},
		},
	}
	// A part of a name is not the name.
	if got, want := Unused(d, "clock"), []string{"l2", "tdp"}; !slices.Equal(got, want) {
		t.Errorf("%v are unused, want %v", got, want)
	}
	if got := Unused(d, "clock", "when(l2 > 0, tdp, 0)"); len(got) > 0 {
		t.Errorf("%v are unused, want none", got)
	}
}
