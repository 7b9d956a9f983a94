package ask

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// The margins of the H100 on products that neither they nor the times near the problems are of, with today's
// predictions: cuBLAS's time ÷ the time of what is taken, as measured, at the geometric mean and at worst, and the
// worst without margins (docs/decisions/python-and-serving.md).
func TestMarginsReplayed(t *testing.T) {
	providers := models.Providers([]arch.Provider{must.Get(nvidia.Provider())(t)})
	open := func(kernel string) arch.Architecture {
		target := models.Target{Arch: "sm90", Device: "h100", Kernel: kernel, Timing: timing.Model}
		return must.Get(target.Open(t.Context(), providers))(t)
	}
	ours, library := open("wgmma"), open("library")
	for _, set := range []struct {
		file                 string
		products             int
		mean, worst, without float64
	}{{"layers-since.json", 236, 1.025, 0.96, 0.93}, {"drawn-since.json", 126, 1, 0.91, 0.9}} {
		var list []struct {
			M, N, K      int
			DType, Pick  string
			Ours, CuBLAS float64
		}
		text := must.Get(os.ReadFile("../experiments/layers-on-h100/" + set.file))(t)
		if err := json.Unmarshal(text, &list); err != nil || len(list) != set.products {
			t.Fatal(len(list), err)
		}
		mean, worst, without := 0., 1., 1.
		for _, x := range list {
			p := gemm.New(x.M, x.N, x.K)
			p.DType = must.Get(gemm.ParseDType(x.DType))(t)
			p.SetTrans(false, true)
			d := ours.Describe()
			c := must.Get(gemm.ParseConfig(x.Pick, gemm.Config{Kernel: "wgmma"}, d.Axes("wgmma")...))(t)
			var e [1]arch.Estimate
			must.Do(t, ours.Estimate(t.Context(), e[:], p, []gemm.Config{c}))
			rows, _, err := score.Fastest(t.Context(), library, "library", []gemm.Problem{p})
			must.Do(t, err)
			time := e[0].Cycles.At(d.Clock)
			if time < rows[0].Predicted {
				without = min(without, x.CuBLAS/x.Ours)
			}
			if time < rows[0].Predicted*margin(d, &p) {
				mean += math.Log(x.CuBLAS/x.Ours) / float64(len(list))
				worst = min(worst, x.CuBLAS/x.Ours)
			}
		}
		mean = math.Exp(mean)
		must.Hold(t, mean >= set.mean && worst >= set.worst && without <= set.without,
			"%s: %.4f, at worst %.3f, without margins %.3f; want %+v", set.file, mean, worst, without, set)
	}
}
