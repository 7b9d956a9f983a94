package declare_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/catalog"
	"github.com/origami-gemm/origami/sdk/declare"
)

// What is asked for wrongly in a way that the conformance checks do not try.
func TestBadInput(t *testing.T) {
	a := open(t, arch.OpenRequest{}, full())
	p := gemm.New(64, 64, 64)
	for _, s := range []arch.Space{{SplitK: []int{1 << 13}}, {BlockM: make([]int, 1<<21)}} {
		_, err := a.Candidates(t.Context(), p, s)
		must.That(t, err != nil && diag.KindOf(err) == diag.Input, "%v", err)
	}
	c := []gemm.Config{{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}}
	must.That(t, a.Estimate(t.Context(), nil, p, c) != nil && a.Terms(t.Context(), nil, p, c) != nil,
		"an answer without a slice for it")
	p.DType = gemm.BF16
	_, err := a.Candidates(t.Context(), p, arch.Space{})
	must.That(t, err != nil && strings.Contains(err.Error(), "chip does not model bf16; use fp16, int8"), "%v", err)
}

// term returns a term of a model, in a copy of its list of terms.
func term(m *declare.Model, name string) *declare.Term {
	i := slices.IndexFunc(m.Terms, func(t declare.Term) bool { return t.Name == name })
	m.Terms = slices.Clone(m.Terms)
	return &m.Terms[i]
}

// rules replaces the rules of the first kernel family.
func rules(m *declare.Model, r ...declare.Rule) { m.Kernels[0].Rules = r }

// mistakes are changes to a model, by the error that they cause.
var mistakes = map[string]func(*declare.Model){
	`model full: Units is missing`: func(m *declare.Model) {
		m.Units = ""
	},
	`model full: Clock: formula "clock +"`: func(m *declare.Model) {
		m.Clock = "clock +"
	},
	`SharedMemory: formula "block_m" depends on more than parameters and constants`: func(m *declare.Model) {
		m.SharedMemory = "block_m"
	},
	`term tiles: formula "cdiv(q, block_m)": unknown name "q"`: func(m *declare.Model) {
		term(m, "tiles").Formula = "cdiv(q, block_m)"
	},
	`term active: formula "min(total, units)": unknown name "total"`: func(m *declare.Model) {
		term(m, "active").Formula = "min(total, units)"
	},
	`term block_m: the name "block_m" is taken`: func(m *declare.Model) {
		term(m, "layout").Name = "block_m"
	},
	`constant units: the name "units" is taken`: func(m *declare.Model) {
		m.Constants = []arch.Constant{{Name: "units"}}
	},
	`term 4 is named "Lay Out": use snake_case`: func(m *declare.Model) {
		term(m, "layout").Name = "Lay Out"
	},
	`term compute: a step needs a Bound`: func(m *declare.Model) {
		term(m, "compute").Bound = 0
	},
	`term layout: only a step has a Bound`: func(m *declare.Model) {
		term(m, "layout").Bound = arch.BoundL2
	},
	`term total: step is already the total`: func(m *declare.Model) {
		term(m, "step").Kind = arch.KindTotal
	},
	`no term is the total`: func(m *declare.Model) {
		term(m, "total").Kind = arch.KindShare
	},
	`term hit: it has a function, so its formula is prose`: func(m *declare.Model) {
		term(m, "hit").Formula = "1"
	},
	`term hit: unknown name "cash"`: func(m *declare.Model) {
		term(m, "hit").Args = []string{"cash"}
	},
	`the model has no kernels`: func(m *declare.Model) {
		m.Kernels = nil
	},
	`a kernel has no name`: func(m *declare.Model) {
		m.Kernels = []declare.Kernel{{}}
	},
	`kernel k: config`: func(m *declare.Model) {
		m.Kernels = []declare.Kernel{{Name: "k", Space: arch.Space{BlockM: []int{0}}}}
	},
	`rule bad: When: formula "n >": `: func(m *declare.Model) {
		rules(m, declare.Rule{Reason: "bad", When: "n >"})
	},
	`a rule has the reason "Bad"`: func(m *declare.Model) {
		rules(m, declare.Rule{Reason: "Bad", When: "1"})
	},
	`rule bad: When is missing`: func(m *declare.Model) {
		rules(m, declare.Rule{Reason: "bad"})
	},
	`lacks a closing brace`: func(m *declare.Model) {
		rules(m, declare.Rule{Reason: "bad", When: "1", Detail: "{n"})
	},
	`{m} depends on the problem's sizes, but the rule does not`: func(m *declare.Model) {
		rules(m, declare.Rule{Reason: "bad", When: "block_m > 9", Detail: "{m}"})
	},
	`the model has no memory levels`: func(m *declare.Model) {
		m.Levels = nil
	},
	`a level has no name`: func(m *declare.Model) {
		m.Levels = []arch.Level{{}}
	},
	`level x: Bandwidth is missing`: func(m *declare.Model) {
		m.Levels = []arch.Level{{Name: "x"}}
	},
	`GroupM: formula "rows": unknown name "rows"`: func(m *declare.Model) {
		m.GroupM = "rows"
	},
	`model 1 has no unique name`: func(m *declare.Model) {
		m.Name = ""
	},
}

// Provider reports a mistake in a declaration, with its place.
func TestMistakes(t *testing.T) {
	for want, change := range mistakes {
		m := full()
		m.Kernels = slices.Clone(m.Kernels)
		change(&m)
		_, err := declare.Provider(definition(), m)
		must.That(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %q", err, want)
	}
	other := full()
	other.Name, other.Kernels = "other", other.Kernels[:1]
	const differ = "model other has the kernels tiled, but full has tiled, plain"
	if _, err := declare.Provider(definition(), full(), other); err == nil || !strings.Contains(err.Error(), differ) {
		t.Errorf("%v", err)
	}
	if _, err := declare.Provider(definition()); err == nil {
		t.Error("a plugin without a model")
	}
}

// Open reports mistakes in the numbers of a device.
func TestDevicesThatCannotBeOpened(t *testing.T) {
	set := func(change func(m *declare.Model)) func(*catalog.Definition, *declare.Model) {
		return func(_ *catalog.Definition, m *declare.Model) { change(m) }
	}
	file := func(text string) func(*catalog.Definition, *declare.Model) {
		return func(d *catalog.Definition, _ *declare.Model) {
			d.Files = fstest.MapFS{"one.yaml": {Data: []byte(text)}}
		}
	}
	withoutAtoms, _, _ := strings.Cut(device, "atoms:")
	for want, change := range map[string]func(*catalog.Definition, *declare.Model){
		`one.yaml: Units of model full is 0.5, which is not a whole number from 1`: set(func(m *declare.Model) {
			m.Units = "units/24"
		}),
		`one.yaml: Clock of model full is +Inf`: set(func(m *declare.Model) {
			m.Clock = "1/(units - 12)"
		}),
		`one.yaml: SharedMemory of model full is NaN`: set(func(m *declare.Model) {
			m.SharedMemory = "(units - 12)/(units - 12)"
		}),
		`one.yaml: L2 Bandwidth of model full is 0`: set(func(m *declare.Model) {
			m.Levels[0].Names.Bandwidth = "units - 12"
		}),
		`unknown name "peak_int8"`: set(func(m *declare.Model) {
			m.Terms[3].Formula = "peak_int8"
		}),
		`the device has no atoms`:                  file(withoutAtoms),
		`one.yaml: atoms[0]: unknown dtype "fp33"`: file(strings.Replace(device, "type: fp16", "type: fp33", 1)),
	} {
		def, m := definition(), full()
		change(&def, &m)
		p, err := declare.Provider(def, m)
		must.Do(t, err)
		_, err = p.Open(t.Context(), arch.OpenRequest{Arch: "chip"})
		must.That(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n") &&
			diag.KindOf(err) == diag.Input, "got %v, want %q", err, want)
	}
}

// A rejected configuration need not have a value, and an impossible launch order is an error.
func TestImpossibleValues(t *testing.T) {
	ctx := t.Context()
	p := gemm.New(64, 64, 64)
	c := []gemm.Config{{BlockM: 64, BlockN: 64, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1}}
	for _, value := range []string{"0/(m - 64)", "1/(m - 64)", "0", "m - 65"} {
		m := full()
		term(&m, "total").Formula = value
		m.Kernels = []declare.Kernel{{Name: "tiled", Rules: []declare.Rule{{Reason: "never", When: "m"}}}}
		a := open(t, arch.OpenRequest{}, m)
		est, row := make([]arch.Estimate, 1), make([]float64, len(m.Terms))
		err := a.Estimate(ctx, est, p, c)
		must.That(t, err == nil && est[0] == (arch.Estimate{Reject: "never"}), "%s: %+v, %v", value, est, err)
		if err := a.Terms(ctx, row, p, c); err != nil || math.IsNaN(row[len(row)-1]) || math.IsInf(row[len(row)-1], 0) {
			t.Errorf("%s: %v, %v", value, row, err)
		}
	}
	for what, change := range map[string]func(*declare.Model){
		"GroupM of the full model is 0.5": func(m *declare.Model) { m.GroupM = "m/128" },
		"XCDs of the full model is -1":    func(m *declare.Model) { m.XCDs = "m - 65" },
		"Chunk of the full model is NaN":  func(m *declare.Model) { m.Chunk = "0/(m - 64)" },
	} {
		m := full()
		change(&m)
		a := open(t, arch.OpenRequest{}, m)
		_, err := a.Mapping(ctx, p, c[0])
		must.That(t, diag.KindOf(err) == diag.Plugin && strings.Contains(err.Error(), what), "%v, want %s", err, what)
	}
}
