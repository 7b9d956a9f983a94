package pipelined

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// Whatever a characterization holds, no pace that the model makes of it is negative.
func FuzzPaces(f *testing.F) {
	some := data.TritonH200Timings[:300]
	some = some[:bytes.LastIndexByte(some, '\n')+1]
	if table, err := kernel.ReadTimings(some); err != nil || len(table) == 0 {
		f.Fatalf("%q: %v", some, err)
	}
	f.Add(some)
	var paces []int
	for i, term := range terms.Terms {
		if term.Name == "timed_fixed" || strings.HasSuffix(term.Name, "_pace") {
			paces = append(paces, i)
		}
	}
	must.Need(f, len(paces) == 7, "%d paces", len(paces))
	row := make([]float64, len(terms.Terms))
	p := gemm.New(64, 64, 4096)
	m := newModel(gputest.Device(f, gpu.SM90, "sm90-h200", nil), nil, nil, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := kernel.ReadTimings(data)
		if err != nil {
			return
		}
		for times := range table.All() {
			for _, blockK := range []int{1, 64, 1 << 14} {
				c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: blockK, NumWarps: 4, SplitK: 1}
				var (
					in    inputs
					k     preparedKernel
					split splitTerms
					grid  gridTerms
					found timing
				)
				setInputs(&in.kernelInputs, &p, &c)
				setTiming(&in.kernelInputs, &times)
				k.compute(&in, &m.device)
				s := m.shape(&p)
				columns(row, &in, &m.device, &s.sizes, &k.kernelTerms, &k.variants[0], &split, &grid, &found)
				for _, i := range paces {
					if !(row[i] >= 0) {
						t.Errorf("%+v: %s is %v", times, terms.Terms[i].Name, row[i])
					}
				}
			}
		}
	})
}

// A device whose power limit is unknown has none, and explain can still put a value in for tdp.
func TestUnknownPowerLimit(t *testing.T) {
	p := gemm.New(16384, 16384, 16384)
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, SplitK: 1, Kernel: "triton"}
	power := slices.IndexFunc(terms.Terms, func(t model.Term) bool { return t.Name == "power" })
	for _, known := range []bool{true, false} {
		g := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
		if !known {
			g.Params = slices.DeleteFunc(slices.Clone(g.Params), func(p hw.Param) bool { return p.Name == "tdp" })
		}
		m := newModel(g, []*family{{Family: triton.Family{}}}, nil, nil)
		row := make([]float64, len(terms.Terms))
		must.Do(t, m.Terms(t.Context(), row, p, []gemm.Config{c}))
		shown := slices.ContainsFunc(m.Describe().Constants, func(c arch.Constant) bool { return c.Name == "tdp" })
		if (row[power] > 0) != known || !(row[len(row)-1] > 0) || shown == known {
			t.Errorf("tdp known %v: power %v, total %v, a constant %v", known, row[power], row[len(row)-1], shown)
		}
	}
}
