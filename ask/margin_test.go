package ask

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// The margins of the H100 on products that they were not chosen on, with the predictions of that day: cuBLAS's time ÷
// the time of what is taken, as measured, at the geometric mean and at worst, and the worst without margins
// (docs/decisions/python-and-serving.md).
func TestMarginsReplayed(t *testing.T) {
	p := must.Get(nvidia.Provider())(t)
	h100 := must.Get(p.Open(t.Context(), arch.OpenRequest{Arch: "sm90", Device: "h100"}))(t)
	for _, set := range []struct {
		file                 string
		products             int
		mean, worst, without float64
	}{{"layers-since.json", 236, 1.026, 0.949, 0.89}, {"drawn-since.json", 126, 1.001, 0.88, 0.72}} {
		text, err := os.ReadFile("../experiments/layers-on-h100/" + set.file)
		must.Do(t, err)
		var list []struct {
			M, N, K                          int
			DType                            string
			Predicted, Library, Ours, CuBLAS float64
		}
		if err := json.Unmarshal(text, &list); err != nil || len(list) != set.products {
			t.Fatal(len(list), err)
		}
		// replayed returns the mean and the worst of what is taken by the margins that a model states.
		replayed := func(d *arch.Description) (mean, worst float64) {
			worst = 1
			for _, x := range list {
				p := gemm.New(x.M, x.N, x.K)
				if p.DType, err = gemm.ParseDType(x.DType); err != nil {
					t.Fatal(err)
				}
				if p.SetTrans(false, true); x.Predicted < x.Library*float64(margin(d, &p)) {
					mean += math.Log(x.CuBLAS/x.Ours) / float64(len(list))
					worst = min(worst, x.CuBLAS/x.Ours)
				}
			}
			return math.Exp(mean), worst
		}
		mean, worst := replayed(h100.Describe())
		_, without := replayed(&arch.Description{})
		t.Logf("%s: %.4f, at worst %.3f, without margins %.3f", set.file, mean, worst, without)
		must.That(t, mean >= set.mean && worst >= set.worst && without <= set.without,
			"%s: %.4f, at worst %.3f, without margins %.3f; want %+v", set.file, mean, worst, without, set)
	}
}
