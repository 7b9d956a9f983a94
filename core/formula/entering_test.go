package formula

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestEntering(t *testing.T) {
	d := &arch.Description{Terms: []arch.Term{
		{Name: "tensor", Formula: "rule: given"},
		{Name: "copies", Formula: "rule: given"},
		{Name: "step", Formula: "max(tensor, copies)"},
		{Name: "pace", Formula: "rule: given"},
		{Name: "loop", Formula: "when(timed > 0, pace, step)"},
		{Name: "last", Formula: "2 * tensor"},
		{Name: "rest", Formula: "tails * last"},
		{Name: "tails", Formula: "rule: given"},
		{Name: "slack", Formula: "step - tensor"}, // for the reader
		{Name: "waves", Common: arch.CommonWaves, Formula: "step / 2"},
		{Name: "fill", Kind: arch.KindShare, Formula: "3"},
		{Name: "total", Kind: arch.KindTotal, Formula: "fill + loop + rest"},
	}}
	values := func(timed, tails float64) map[string]float64 {
		return map[string]float64{
			"tensor": 5, "copies": 7, "step": 7, "pace": 6, "loop": 6, "last": 10, "rest": 10 * tails, "tails": tails,
			"timed": timed, "fill": 3, "total": 9,
		}
	}
	for _, c := range []struct {
		timed, tails float64
		want         string
	}{
		{1, 0, "pace loop waves fill total"},
		{0, 0, "tensor copies step loop slack waves fill total"},
		{1, 2, "tensor pace loop last rest tails waves fill total"},
	} {
		var got []string
		for i, entered := range Entering(d, values(c.timed, c.tails)) {
			if entered {
				got = append(got, d.Terms[i].Name)
			}
		}
		must.Equal(t, strings.Join(got, " "), c.want, c.timed, c.tails, got)
	}
	d.Terms[len(d.Terms)-1].Formula = "rule: as measured"
	if got := Entering(d, values(0, 0)); got != nil {
		t.Errorf("a total in prose: %v", got)
	}
}
