package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/catalog"
	"github.com/origami-gemm/origami/sdk/declare"
)

const clusteredDevice = `arch: chip
device: one
name: A Chip
vendor: Ours
default: true
derived:
  units: {value: 12, unit: "1", source: data sheet, method: datasheet, date: 2026-01-02}
  clock: {value: 1, unit: GHz, source: data sheet, method: datasheet, date: 2026-01-02}
atoms:
  - {type: fp16, m: 16, n: 16, k: 16, cycles: 20, source: manual, method: isa, date: 2026-01-02}
`

// clustered opens a model whose kernel family has two named axes: a larger cluster is faster.
func clustered(t *testing.T) arch.Architecture {
	t.Helper()
	provider, err := declare.Provider(catalog.Definition{
		Name: "test", Version: "1", Vendor: "Ours", Files: fstest.MapFS{"one.yaml": {Data: []byte(clusteredDevice)}},
		Specs: []hw.Spec{{Name: "units", Unit: "1", Integer: true}, {Name: "clock", Unit: "Hz"}},
	}, declare.Model{
		Name: "roofline", UnitName: "unit", Units: "units", Clock: "clock", SharedMemory: "65536",
		Kernels: []declare.Kernel{{
			Name: "tiled",
			Axes: []gemm.Axis{
				{Name: "cluster", Doc: "CTAs per cluster", Type: gemm.Integer, Values: []string{"1", "2",
					"4"}, Default: "1"},
				{Name: "schedule", Doc: "order of the loop", Type: gemm.Enumeration, Values: []string{"simple", "ping"},
					Default: "simple"},
			},
			Space: arch.Space{BlockM: []int{64}, BlockN: []int{64}, BlockK: []int{32},
				Axes: []arch.AxisValues{{Name: "cluster", Values: []string{"1", "2"}}}},
		}},
		Terms: []declare.Term{
			{Name: "step", Unit: "cycles", Formula: "block_m*block_n*block_k/cluster + schedule", Kind: arch.KindStep,
				Bound: arch.BoundCompute, Doc: "one K step"},
			{Name: "total", Unit: "cycles", Formula: "cdiv(m, block_m)*cdiv(n, block_n)*cdiv(k, block_k)*step*batch",
				Kind: arch.KindTotal, Doc: "predicted time"},
		},
		Levels: []arch.Level{{Name: "DRAM", Bound: arch.BoundDRAM, Names: arch.LevelNames{Bandwidth: "32"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := provider.Open(t.Context(), arch.OpenRequest{Arch: "chip"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A space in a request may have values on the axes that a kernel family declares. A pick has its values.
func TestNamedAxes(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                          "cluster=2", // the fastest of the model's space
		`{"space":{"cluster":["1"]}}`: "",
		`{"space":{"cluster":["4","1"],"block_m":[128]}}`:                    "cluster=4",
		`{"space":{"schedule":["ping"],"cluster":["1","4"]}}`:                "cluster=4,schedule=ping",
		`{"space":{"schedule":["simple","ping"],"cluster":["2"]}}`:           "cluster=2",
		`{"space":{"colour":["red"]}}`:                                       `unknown axis "colour"`,
		`{"space":{"cluster":["3"]}}`:                                        `no value "3"; use one of 1, 2, 4`,
		`{"space":{"schedule":["pong"],"cluster":["4"],"num_warps":[1, 2]}}`: `no value "pong"`,
	} {
		var r models.Target
		err := json.Unmarshal([]byte(text), &r)
		got := ""
		if err == nil {
			var m *model
			if m, err = newModel(clustered(t), &r); err == nil {
				e, pickErr := m.selectOne(gemm.New(256, 256, 256))
				got, err = e.Config.Axes.String(), pickErr
			}
		}
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) || err != nil && want == "" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
