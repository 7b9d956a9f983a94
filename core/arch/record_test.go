package arch_test

import (
	"encoding/json"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// What a command writes for a model to ship is what the model reads.
func TestUncertaintyRecord(t *testing.T) {
	p := gemm.New(16, 4096, 4096)
	p.DType, p.Out = gemm.FP8, gemm.BF16
	p.SetTrans(false, true)
	u := arch.Uncertainty{
		Kernel: "tiled", Level: 0.9, Sigma: 0.1, PlanSigma: 0.2, Source: "a sweep", MedianError: 0.05, Widening: 1.5,
		Ranges: []arch.ErrorRange{{Bound: arch.BoundDRAM, Below: 2e-5, Low: 0.9, High: 1.1}, {Low: 0.8, High: 1.25}},
	}
	u.Checked = arch.Checked{DataSet: "eights", Sizes: 1, Times: 3}
	u.Checked.Add(&p, 4)
	for name, want := range map[string]arch.Uncertainty{"full": u, "empty": {Kernel: "tiled"}} {
		text := must.Get(json.Marshal(&want))(t)
		var r arch.Uncertainty
		must.Do(t, json.Unmarshal(text, &r))
		must.Alike(t, r, want, name)
	}
	u = arch.Uncertainty{Ranges: []arch.ErrorRange{{Low: 2.3, High: 3.2}, {Low: 0.5, High: 0.9}}}
	u.Contain()
	must.Alike(t, u.Ranges, []arch.ErrorRange{{Low: 1, High: 3.2}, {Low: 0.5, High: 1}}, "ranges without the time")
	must.Fail(t, json.Unmarshal([]byte(`{"ranges":[{"bound":"heat"}]}`), &u), "unknown bound \"heat")
}
