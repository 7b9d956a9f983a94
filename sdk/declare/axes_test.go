package declare_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/declare"
)

// clustered is the full model with two named axes in one family. Its formulas use them.
func clustered() declare.Model {
	m := full()
	m.Name = "clustered"
	m.Kernels[0].Axes = []gemm.Axis{
		{Name: "cluster", Doc: "CTAs that share their loads", Type: gemm.Integer, Values: []string{"1", "2", "4"},
			Default: "1"},
		{Name: "schedule", Doc: "order of the K loop", Type: gemm.Enumeration, Values: []string{"simple", "overlapped"},
			Default: "simple"},
	}
	m.Kernels[0].Space.Axes = []arch.AxisValues{{Name: "cluster", Values: []string{"1", "2"}}}
	m.Kernels[0].Rules = append(m.Kernels[0].Rules,
		declare.Rule{Reason: "cluster", When: "cluster > 1 && block_m < 64",
			Detail: "a cluster of {cluster} of {block_m} rows"})
	last := len(m.Terms) - 1
	m.Terms[last].Formula += "/cluster + schedule"
	return m
}

// The model's own space has the values that it lists, and a rule over an axis rejects some of them. That a plugin
// honours named axes, and refuses others, is what the conformance checks say.
func TestOwnValuesOfAxes(t *testing.T) {
	a := open(t, arch.OpenRequest{}, clustered())
	n := map[string]int{}
	list := must.Get(a.Candidates(t.Context(), gemm.New(4096, 4096, 4096), arch.Space{}))(t)
	for _, c := range list.Configs {
		n[c.Axes.String()]++
	}
	must.That(t, n[""] != 0 && n["cluster=2"] != 0 && n["cluster=2"] < n[""] && len(n) == 2,
		"the candidates have the axes %v", n)
}

func TestMistakesInAxes(t *testing.T) {
	for want, change := range map[string]func(*declare.Kernel){
		`kernel family tiled: the axis cluster is declared twice`: func(k *declare.Kernel) { k.Axes[1].Name = "cluster" },
		`axis units: the name "units" is taken`:                   func(k *declare.Kernel) { k.Axes[0].Name = "units" },
		`kernel tiled: the axis cluster has no value "8"`: func(k *declare.Kernel) {
			k.Space.Axes[0].Values = []string{"8"}
		},
		`kernel tiled: the kernel family has no axis "x"`: func(k *declare.Kernel) { k.Space.Axes[0].Name = "x" },
	} {
		m := clustered()
		change(&m.Kernels[0])
		_, err := declare.Provider(definition(), m)
		must.That(t, err != nil && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
	m := clustered()
	m.Kernels[1].Axes = []gemm.Axis{{Name: "cluster", Doc: "another", Type: gemm.Integer, Default: "2"}}
	if _, err := declare.Provider(definition(), m); err == nil || !strings.Contains(err.Error(),
		"another family declares the axis cluster otherwise") {
		t.Errorf("%v", err)
	}
}
