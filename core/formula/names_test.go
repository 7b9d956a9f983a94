package formula

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestUnused(t *testing.T) {
	params := hw.Set{{Name: "clock"}, {Name: "l2_bytes"}, {Name: "l2"}, {Name: "dies"}, {Name: "units"}, {Name: "tdp"}}
	formulas := Of([]arch.Term{
		{Name: "miss", Formula: "1 - min(1, l2_bytes/(m*k))"},
		{Name: "share", Formula: "rule: units/dies, since the vendor's tool says so"},
	})
	// A part of a name is not the name.
	got, want := Unused(params, append(formulas, "clock")), []string{"l2", "tdp"}
	must.That(t, slices.Equal(got, want), "%v are unused, want %v", got, want)
	got = Unused(params, append(formulas, "clock", "when(l2 > 0, tdp, 0)"))
	must.That(t, len(got) <= 0, "%v are unused, want none", got)
}
