//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Of the persistent kernel, one BLOCK_K for all M of a layer is what serving needs, so that a token's bits do not
// depend on the batch. The model chooses it and the tile of each M for layers that nothing was fitted to: of all tiles,
// as a table for vLLM does, and of those that --invariant leaves, which all run wgmma. The floors are just below what
// it reached at its last change, and the intervals hold.
func TestPersistentWithOneBlockK(t *testing.T) {
	for _, set := range []struct {
		name   string
		all    floor
		wgmma  floor
		points int
	}{
		{"h100-test", floor{0.984, 0.88, 9}, floor{0.984, 0.88, 9}, 10_000},
		{"h100-unseen-test", floor{0.982, 0.89, 9}, floor{0.983, 0.89, 9}, 10_000},
	} {
		t.Run(set.name, func(t *testing.T) {
			a, data := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h100"}), readSet(t, "h100-persistent/"+set.name)
			set.all.check(t, layersOf(t, a, data, func(gemm.Config) bool { return true }))
			set.wgmma.check(t, layersOf(t, a, data, func(c gemm.Config) bool { return c.BlockM >= gpu.WGMMAM }))
			heldBy(t, a, data, set.points)
		})
	}
}

const family = "triton_persistent"

// layersOf are the candidates of each size of a layer, as far as they are wanted.
func layersOf(
	t *testing.T, a arch.Architecture, data *dataset.Dataset, wanted func(gemm.Config) bool,
) map[layer][]times {
	t.Helper()
	layers := map[layer][]times{}
	for _, p := range data.Problems() {
		if a.Describe().InSample(p, family) {
			t.Errorf("%s was fitted", p)
		}
		of := layer{p.N, p.K}
		layers[of] = append(layers[of], timesOf(t, a, data, p, wanted))
	}
	return layers
}

// floor is what picks with one BLOCK_K reach of the speed of the best ones with one: at the geometric mean, at worst,
// and for how many layers the BLOCK_K is the same.
type floor struct {
	geomean, worst float64
	same           int
}

func (f floor) check(t *testing.T, layers map[layer][]times) {
	t.Helper()
	sum, got, n := 0.0, floor{worst: 1}, 0
	for _, sizes := range layers {
		predicted := oneBlockK(sizes, func(c candidate) float64 { return c.predicted })
		fastest := oneBlockK(sizes, func(c candidate) float64 { return c.measured })
		if predicted == fastest {
			got.same++
		}
		for _, size := range sizes {
			pick := size.best(predicted, func(c candidate) float64 { return c.predicted })
			best := size.best(fastest, func(c candidate) float64 { return c.measured })
			efficiency := best.measured / pick.measured
			sum, got.worst, n = sum+math.Log(efficiency), min(got.worst, efficiency), n+1
		}
	}
	got.geomean = math.Exp(sum / float64(n))
	t.Logf("%d sizes: geometric mean %.4f, worst %.3f, the same BLOCK_K for %d of %d layers", n, got.geomean, got.worst,
		got.same, len(layers))
	if n != 54 || got.geomean < f.geomean || got.worst < f.worst || got.same < f.same {
		t.Errorf("%d sizes: %+v, want at least %+v", n, got, f)
	}
}

// heldBy checks that the 90 % intervals hold 85 % of at least so many times.
func heldBy(t *testing.T, a arch.Architecture, data *dataset.Dataset, least int) {
	t.Helper()
	s := score.SubsetOf(data)
	rows, held, of := evaluated(t, a, s), 0, 0
	for i := range rows {
		h, n := score.Held(rows[i].Rows, func(p *gemm.Problem, split int) arch.Scope {
			return a.Describe().Scope(family, p, split)
		})
		held, of = held+h, of+n
	}
	share := float64(held) / float64(of)
	t.Logf("the 90 %% intervals hold %.3f of %d times", share, of)
	if of < least || share < 0.85 {
		t.Errorf("the 90 %% intervals hold %.3f of %d times", share, of)
	}
}

// layer is the weights of a layer, N × K.
type layer struct{ n, k int }

// candidate is a configuration with its times in seconds.
type candidate struct {
	blockK              int
	predicted, measured float64
}

// times are the candidates of a size.
type times []candidate

func timesOf(
	t *testing.T, a arch.Architecture, data *dataset.Dataset, p gemm.Problem, wanted func(gemm.Config) bool,
) (size times) {
	t.Helper()
	sweep := data.Sweep(p)
	configs := make([]gemm.Config, len(sweep))
	for i := range sweep {
		configs[i] = sweep[i].Config
	}
	estimates := make([]arch.Estimate, len(configs))
	must.Do(t, a.Estimate(t.Context(), estimates, p, configs))
	for i := range sweep {
		if sweep[i].Library == "" && estimates[i].Reject == "" && wanted(configs[i]) {
			size = append(size, candidate{
				configs[i].BlockK, float64(estimates[i].Cycles.At(a.Describe().Clock)), float64(sweep[i].Median),
			})
		}
	}
	return size
}

// best returns the fastest candidate with a BLOCK_K, by a time. 0 is any.
func (s times) best(blockK int, by func(candidate) float64) (best candidate) {
	for _, c := range s {
		if (blockK == 0 || c.blockK == blockK) && (best.blockK == 0 || by(c) < by(best)) {
			best = c
		}
	}
	return best
}

// oneBlockK returns the BLOCK_K with which all sizes together lose least, as a geometric mean, against any.
func oneBlockK(sizes []times, by func(candidate) float64) (blockK int) {
	least := math.Inf(1)
	for _, k := range []int{64, 128, 256} {
		loss := 0.0
		for _, s := range sizes {
			loss += math.Log(by(s.best(k, by)) / by(s.best(0, by)))
		}
		if loss < least {
			blockK, least = k, loss
		}
	}
	return blockK
}
