package builtins

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/costs"
)

// unnamed says which constants no term of any model names, and why.
var unnamed = map[string]string{
	"lds_width": "a roof of the roofline", "mi_missing_cycles": "for instructions that no device file has",
	"loop_slots": familys, "step_latency": familys, "mma_loop_slots": familys,
	"mma_step_latency": familys, "wgmma_loop_slots": familys, "wgmma_step_latency": familys,
}

const familys = "terms call it family_slots or family_latency"

// A constant of a model is there for its terms: formulas name it, or say in words what they do with it.
func TestTermsNameTheConstants(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Plugins {
		p, err := b.Provider()
		must.Do(t, err)
		for _, e := range p.Manifest().Archs {
			for _, model := range e.Models {
				a, err := p.Open(t.Context(), arch.OpenRequest{Arch: e.ID, Model: model})
				must.Do(t, err)
				d := a.Describe()
				var named []string
				for _, f := range formula.Of(d.Terms) {
					named = append(named, formula.Named(f)...)
				}
				stated := slices.Concat(costs.Of(d.Model, e.ID), costs.Of("pipelined", e.ID)) // fused_moe has those too
				for _, c := range d.Constants {
					ofCosts := slices.ContainsFunc(stated, func(o arch.Constant) bool { return o.Name == c.Name })
					must.That(t, ofCosts || slices.Contains(named, c.Name) || unnamed[c.Name] != "",
						"%s: no term of %s names the constant %s", e.ID, model, c.Name)
					seen[c.Name] = true
				}
			}
		}
	}
	for name := range unnamed {
		must.That(t, seen[name], "there is no %s", name)
	}
}
