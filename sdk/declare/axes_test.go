package declare_test

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/declare"
)

// clustered is the full model with two named axes in one family. Its formulas use them.
func clustered() declare.Model {
	m := full()
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

func TestNamedAxes(t *testing.T) {
	a := open(t, arch.OpenRequest{}, clustered())
	d := a.Describe()
	axes := d.Axes("tiled")
	if len(axes) != 2 || len(d.Axes("plain")) != 0 {
		t.Fatalf("the families are %+v", d.Families)
	}
	p := gemm.New(4096, 4096, 4096)
	count := func(s arch.Space) map[string]int {
		list := must.Get(a.Candidates(t.Context(), p, s))(t)
		n := map[string]int{"all": len(list.Configs) + len(list.Rejected), "rejected": len(list.Rejected)}
		for _, c := range list.Configs {
			n[c.Axes.String()]++
		}
		return n
	}
	plain, both := count(arch.Space{Axes: []arch.AxisValues{{Name: "cluster",
		Values: []string{"1"}}}}), count(arch.Space{})
	if both["all"] != 2*plain["all"] || both["cluster=2"] == 0 || both["cluster=2"] >= both[""] || both[""] != plain[""] {
		t.Errorf("the model's own space has %v, with clusters of one %v", both, plain)
	}
	asked := count(arch.Space{Axes: []arch.AxisValues{{Name: "schedule", Values: []string{"overlapped"}},
		{Name: "cluster", Values: []string{"4"}}}})
	if asked["cluster=4,schedule=overlapped"]+asked["rejected"] != asked["all"] || asked["all"] != plain["all"] {
		t.Errorf("one value on each axis gives %v", asked)
	}

	// Formulas use the axes as numbers, both in the plugin and for a reader of the description.
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "tiled"}
	named := c
	for _, set := range [][2]string{{"cluster", "4"}, {"schedule", "overlapped"}} {
		must.Do(t, named.SetAxis(axes, set[0], set[1]))
	}
	rows := make([]float64, 2*len(d.Terms))
	must.Do(t, a.Terms(t.Context(), rows, p, []gemm.Config{c, named}))
	total := len(d.Terms) - 1
	if got, want := rows[len(d.Terms)+total], rows[total]/4+1; got != want {
		t.Errorf("the total is %v, want %v", got, want)
	}
	values := formula.Values(d, p, named, rows[len(d.Terms):])
	if v, err := formula.Eval(d.Terms[total].Formula, values); err != nil || v != rows[len(d.Terms)+total] {
		t.Errorf("the formula gives %v, %v", v, err)
	}

	other := named
	other.Kernel = "plain"
	for says, err := range map[string]error{
		"the kernel family has no axis": a.Estimate(t.Context(), make([]arch.Estimate, 1), p, []gemm.Config{other}),
		`the axis cluster has no value "3"; use one of 1, 2, 4`: second(a.Candidates(t.Context(), p,
			arch.Space{Axes: []arch.AxisValues{{Name: "cluster", Values: []string{"3"}}}})),
		`no axis "colour"; its axes are cluster, schedule`: second(a.Candidates(t.Context(), p,
			arch.Space{Axes: []arch.AxisValues{{Name: "colour", Values: []string{"red"}}}})),
	} {
		if diag.KindOf(err) != diag.Input || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func second(_ any, err error) error { return err }

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
		if _, err := declare.Provider(definition(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	m := clustered()
	m.Kernels[1].Axes = []gemm.Axis{{Name: "cluster", Doc: "another", Type: gemm.Integer, Default: "2"}}
	if _, err := declare.Provider(definition(), m); err == nil || !strings.Contains(err.Error(),
		"another family declares the axis cluster otherwise") {
		t.Errorf("%v", err)
	}
}
