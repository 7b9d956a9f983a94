package main

import (
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// A prediction that is not finite is an error of the model, whatever led to it.
func TestAnswersAreFinite(t *testing.T) {
	for name, spoil := range map[string]func(*model){
		"no clock": func(m *model) { m.description.Clock = 0 },
		"an interval": func(m *model) {
			p := gemm.New(256, 256, 256)
			u := arch.Uncertainty{Kernel: m.kernel, Level: 0.9, Sigma: 0.1, PlanSigma: 0.1,
				Ranges: []arch.ErrorRange{{Low: 0.9, High: math.Inf(1)}}}
			u.Checked.Add(&p, 1)
			m.description.Uncertainty = []arch.Uncertainty{u}
		},
	} {
		a := clustered(t)
		m, err := newModel(a, &models.Target{})
		if err != nil {
			t.Fatal(err)
		}
		d := *m.description
		m.description = &d
		spoil(m)
		p := gemm.New(256, 256, 256)
		_, one := m.selectOne(p)
		several := m.rank(p, 2, func([]selector.Entry) { t.Error("it was answered") })
		_, regret := m.expectedRegret(p)
		for call, err := range map[string]error{"select": one, "rank": several, "regret": regret} {
			if diag.KindOf(err) != diag.Plugin || !strings.Contains(err.Error(), "the prediction for 64x64x32") {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
	}
	e := selector.Entry{Estimate: arch.Estimate{Cycles: unit.Cycles(math.NaN())}}
	m := &model{description: &arch.Description{Arch: "chip", Device: "one", Clock: 1e9}}
	p := gemm.New(256, 256, 256)
	if err := m.finite(&p, &e); diag.KindOf(err) != diag.Plugin {
		t.Error(err)
	}
}
