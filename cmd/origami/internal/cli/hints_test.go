package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
)

func TestHints(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{diag.Inputf("unknown architecture").Do("did you mean a100?").Coded(diag.CodeUnknownDevice, ""),
			"unknown architecture; did you mean a100? `origami arch ls` lists the devices"},
		{diag.Inputf("no parameter").Coded(diag.CodeUnknownParameter, "sm89"),
			"no parameter; `origami arch show sm89` lists all"},
		{diag.Inputf("it has changed").Do("trust it").Coded(diag.CodeUntrustedPlugin, ""),
			"it has changed; trust it; `origami plugin trust PATH` trusts it"},
		{fmt.Errorf("row 3: %w", diag.Inputf("nothing fits").Coded(diag.CodeNothingFits, "")),
			"row 3: nothing fits; `origami rank --all --include-rejected` lists each with its reason"},
		{diag.Inputf("from a newer plugin").Coded("not_known_here", "x"), "from a newer plugin"},
		{errors.New("disk full"), "disk full"},
	} {
		got := withHint(c.err)
		if got.Error() != c.want || diag.KindOf(got) != diag.KindOf(c.err) {
			t.Errorf("%v becomes %v, want %s", c.err, got, c.want)
		}
	}
}
