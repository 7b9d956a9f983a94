package builtins_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
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
	for range 48 {
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
