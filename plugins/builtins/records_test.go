package builtins_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/builtins"
)

// Twenty measured sizes of a GPU that no number was fitted on lower the error on its other sizes. On an H200, of whose
// sizes numbers were fitted, they leave it.
func TestTwentySizesOfAGPU(t *testing.T) {
	all := models.Providers(must.Get(builtins.Providers())(t))
	for _, c := range []struct {
		folder, device, kernel string
		gain                   float64 // the error with these times ÷ that without
	}{{"h100/triton", "h100", "triton", 1}, {"h100/wgmma", "h100", "wgmma", 1}, {"h200-triton", "h200", "triton", 1.01}} {
		data := must.Get(dataset.Read(c.folder, os.DirFS("../nvidia/data/"+c.folder)))(t)
		target := models.Target{Device: c.device, Arch: "sm90", Kernel: c.kernel, Timing: data.Timing(),
			Options: map[string]string{residual.Nearby: residual.None}}
		a := must.Get(target.Open(t.Context(), all))(t)
		rows := residual.Picks(t.Context(), a, data)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		corrected := residual.Beside(a, &residual.Times{Of: "times of this GPU", Term: "records", Like: a,
			Intervals: true, Rows: residual.ByKernel(rows[:20])})
		off := func(a arch.Architecture) (sum float64) {
			for _, r := range rows[20:] {
				var e [1]arch.Estimate
				must.Do(t, a.Estimate(t.Context(), e[:], r.Problem, []gemm.Config{r.Config}))
				sum += math.Abs(float64(e[0].Cycles.At(a.Describe().Clock)/r.Time) - 1)
			}
			return sum / float64(len(rows)-20)
		}
		before, after := off(a), off(corrected)
		t.Logf("%s: off by %.1f %% on %d sizes, with 20 others %.1f %%", c.folder, 100*before, len(rows)-20, 100*after)
		must.That(t, after <= c.gain*before, "%s: %.3f became %.3f", c.folder, before, after)
	}
}
