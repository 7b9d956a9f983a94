package builtins_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/library"
)

// For every device, kernel family and timing, a time lies in its own interval, and what a timing counts besides another
// takes no time off. A family that recorded times correct is asked about sizes of all kinds, in all storage orders.
func TestTimings(t *testing.T) {
	all := models.Providers(must.Get(builtins.Providers())(t))
	rng := rand.New(rand.NewPCG(7, 8))
	size := func() int { return 64 * int(math.Exp(rng.Float64()*math.Log(224))) }
	var problems []gemm.Problem
	for range 8 {
		p := gemm.New(int(math.Exp(rng.Float64()*9)), size(), size())
		p.SetTrans(false, true)
		problems = append(problems, p)
	}
	// Of sizes from layers, one in 15 showed running models that took longer than one launch.
	for range 20 {
		p := gemm.New(int(math.Exp(rng.Float64()*9.5)), size(), size())
		if rng.IntN(4) == 0 {
			p = gemm.New(p.M, 1+p.N/8, 1+p.K/8)
		}
		p.SetTrans(rng.IntN(4) == 0, rng.IntN(3) > 0)
		problems = append(problems, p)
	}
	outside, compared := 0, 0
	for _, provider := range all {
		for _, a := range provider.Manifest().Archs {
			for _, target := range targets(&a) {
				times := map[timing.Timing][]unit.Seconds{}
				for _, of := range timing.All() {
					target.Timing = of
					opened, err := target.Open(t.Context(), all)
					if err != nil {
						continue // the model does not say what its times are of
					}
					asked := problems
					if d := opened.Describe(); d.Model == library.Name {
						asked = problems[:20]
					} else if !slices.ContainsFunc(d.Options, func(o arch.OptionValue) bool { return o.Key == residual.Nearby }) {
						asked = problems[:8]
					}
					rows, bad, err := score.Fastest(t.Context(), opened, target.Kernel, asked)
					must.Do(t, err)
					for i := range rows {
						r := &rows[i]
						scope := opened.Describe().Scope(target.Kernel, &r.Problem, r.Config.SplitK)
						d, ok := scope.Distribution(r.Estimate(), r.Predicted)
						if bad[i] == nil && ok && (r.Predicted < d.Low || r.Predicted > d.High) {
							outside++
						}
						times[of] = append(times[of], r.Predicted)
					}
				}
				for _, order := range [][2]timing.Timing{
					{timing.Cold, timing.Events}, {timing.Model, timing.Events}, {timing.Events, timing.Host},
					{timing.Warm, timing.Alone}, {timing.Model, timing.Sustained},
				} {
					for i, less := range times[order[0]] {
						if more := times[order[1]]; len(more) > i && less > more[i]*(1+1e-6) {
							t.Errorf("%s %s of %v: %v in %s, %v in %s", target.Name(), target.Kernel, problems[i], less, order[0],
								more[i], order[1])
						}
						compared++
					}
				}
			}
		}
	}
	must.That(t, outside <= 0 && compared >= 4000,
		"%d times are outside of their intervals; %d were compared", outside, compared)
}

func targets(a *arch.ArchEntry) (list []models.Target) {
	for _, kernel := range a.Kernels {
		for _, d := range a.Devices {
			list = append(list, models.Target{Arch: a.ID, Device: d.ID, Kernel: kernel})
		}
	}
	return list
}

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
