package model_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A quantity has the value of the highest rung that the model stands on, for the model's generation.
func TestQuantityOnARung(t *testing.T) {
	q := model.Quantity{Value: 1, Source: "chosen", Rungs: []model.Value{
		{Of: "old", Value: 2}, {Rung: arch.RungCalibrated, Value: 3}, {Rung: arch.RungCompiled, Of: "old", Value: 4},
	}}
	for _, test := range []struct {
		rung       arch.Rung
		generation string
		want       float64
	}{
		{arch.RungSpec, "new", 1}, {arch.RungSpec, "old", 2}, {arch.RungCalibrated, "new", 3},
		{arch.RungCalibrated, "old", 3}, {arch.RungCharacterized, "old", 4}, {arch.RungCharacterized, "new", 3},
	} {
		got := q.On(test.rung, test.generation)
		must.That(t, got.Value == test.want, "%s on %s: %v, want %v", test.generation, test.rung, got.Value, test.want)
	}
	must.Equal(t, q.On(arch.RungSpec, "new").Source, "chosen")
}

// The schema has formulas on one line, with their conditions, and says which terms are inputs.
func TestSchema(t *testing.T) {
	table := model.Table([]model.Term{
		model.Input("rate", "1", "kernel", "from the data sheet", "a rate"),
		model.Row("time", "cycles", "max(\n\t\tm,\n\t\tn) / rate", "a time").If("rate > 0").Total(),
	})
	schema := model.Schema(table, "docs/model.md")
	must.Equal(t, schema[0].Formula, "rule: from the data sheet")
	must.Equal(t, schema[1].Formula, "when(rate > 0, max(m, n) / rate, 0)")
	got := schema[1]
	must.That(t, got.Kind == arch.KindTotal && got.CommonName() == arch.CommonTotal &&
		got.Source == "docs/model.md", "the total is %+v", got)
}

// area predicts that a tile takes as many cycles as it has elements, and that tiles of 64 rows cannot be used.
type area struct{ n int }

func (*area) Problem(gemm.Problem) {}
func (a *area) Config(c *gemm.Config) arch.Reason {
	if a.n = c.BlockM * c.BlockN; c.BlockM == 64 {
		return arch.ReasonRegisters
	}
	return ""
}
func (*area) Detail(*gemm.Config, arch.Reason) string { return "64 rows" }
func (a *area) Estimate() arch.Estimate               { return arch.Estimate{Cycles: unit.Cycles(a.n)} }
func (a *area) Row(dst []float64)                     { dst[0] = float64(a.n) }

func open() *model.Model {
	types := []gemm.Types{{In: gemm.FP16, Out: gemm.FP16}}
	return &model.Model{
		Description: arch.Description{
			Arch: "toy", Model: "area", Kernels: []string{"tile"}, Terms: make([]arch.Term, 1),
			Families: []arch.Family{{Name: "tile", Types: types}},
		},
		Space: func(kernel string, _ gemm.DType) arch.Space {
			return arch.Space{Kernel: kernel, BlockM: []int{32, 64}, BlockN: []int{16}, BlockK: []int{16}, NumWarps: []int{1},
				NumStages: []int{1}, SplitK: []int{1}}
		},
		New: func() model.Evaluation { return &area{} },
	}
}

// A model lists, estimates and explains what its evaluation computes.
func TestModel(t *testing.T) {
	m, p := open(), gemm.New(64, 64, 64)
	list, err := m.Candidates(t.Context(), p, arch.Space{})
	must.Need(t, err == nil && len(list.Configs) == 1 && len(list.Rejected) == 1 && list.Rejected[0].Detail == "64 rows",
		"%+v, %v", list, err)
	both := []gemm.Config{list.Rejected[0].Config, list.Configs[0]}
	estimates, rows := make([]arch.Estimate, 2), make([]float64, 2)
	must.Do(t, m.Estimate(t.Context(), estimates, p, both))
	must.That(t, estimates[0].Reject == arch.ReasonRegisters && estimates[1].Cycles == 32*16, "%+v", estimates)
	err = m.Terms(t.Context(), rows, p, both)
	must.That(t, err == nil && rows[0] == 64*16 && rows[1] == 32*16, "%v, %v", rows, err)
}

// What the model cannot predict is an error of each call.
func TestModelRefuses(t *testing.T) {
	m, good := open(), gemm.New(64, 64, 64)
	wide := good
	wide.DType = gemm.FP32
	c := gemm.Config{BlockM: 32, BlockN: 16, BlockK: 16, NumWarps: 1, NumStages: 1, SplitK: 1}
	other, zero := c, c
	other.Kernel, zero.BlockM = "mma", 0
	for _, test := range []struct {
		p    gemm.Problem
		c    gemm.Config
		want string
	}{
		{wide, c, "does not predict"}, {good, other, `the kernel family "mma"`}, {good, zero, "outside 1 to"},
		{gemm.Problem{DType: gemm.FP16, Out: gemm.FP16}, c, ""},
	} {
		estimate := m.Estimate(t.Context(), make([]arch.Estimate, 1), test.p, []gemm.Config{test.c})
		terms := m.Terms(t.Context(), make([]float64, 1), test.p, []gemm.Config{test.c})
		_, mapping := m.Mapping(t.Context(), test.p, test.c)
		for _, err := range []error{estimate, terms, mapping} {
			must.Fail(t, err, test.want)
		}
	}
	must.Fail(t, m.Estimate(t.Context(), nil, good, []gemm.Config{c}), "room for 0 results")
}
