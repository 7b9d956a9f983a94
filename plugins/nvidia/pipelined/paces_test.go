package pipelined

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// Whatever a characterization holds, no pace that the model makes of it is negative.
func FuzzPaces(f *testing.F) {
	f.Add(data.TritonH200Timings[:2000])
	m := newModel(gputest.Device(f, gpu.SM90, "sm90-h200", nil), nil, nil, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := kernel.ReadTimings(data)
		if err != nil {
			return
		}
		for times := range table.All() {
			for _, blockK := range []int{1, 64, 1 << 14} {
				p := gemm.New(64, 64, 4096)
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
				row := make([]float64, len(terms.Terms))
				s := m.shape(&p)
				columns(row, &m.device, &s.sizes, &in, &k.kernelTerms, &k.variants[0], &split, &grid, &found)
				paces := 0
				for i, term := range terms.Terms {
					if term.Name == "timed_fixed" || strings.HasSuffix(term.Name, "_pace") {
						paces++
						if !(row[i] >= 0) {
							t.Errorf("%+v: %s is %v", times, term.Name, row[i])
						}
					}
				}
				if paces != 7 {
					t.Fatalf("%d paces", paces)
				}
			}
		}
	})
}
