//go:build !race

package tablecmd

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// product is M×N×K.
type product struct{ m, n, k int }

// The kernels that the table has for nine layers are faster than vLLM's fixed tile on an H100, and near the best ones
// with one BLOCK_K for all M, where 384 configurations were measured at six M. docs/serving.md has the figures.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name                               string
		gain, leastGain, share, leastShare float64
		agree                              int
	}{
		{"h100-test", 1.5, 1, 0.97, 0.88, 9},
		{"h100-unseen-test", 1.45, 1, 0.97, 0.89, 9},
	} {
		t.Run(set.name, func(t *testing.T) {
			gains, shares, agree := worth(t, measured(t, set.name))
			gain, share := stats.Geomean(gains), stats.Geomean(shares)
			t.Logf("gain %.3f, at worst %.3f; share of the best %.3f, at worst %.3f; BLOCK_K of %d of %d layers", gain,
				slices.Min(gains), share, slices.Min(shares), agree, len(gains)/len(rows))
			must.That(t, len(gains) == 54 && gain >= set.gain && slices.Min(gains) >= set.leastGain && share >= set.share &&
				slices.Min(shares) >= set.leastShare && agree >= set.agree, "the table is worth less than docs/serving.md says")
		})
	}
}

var rows = []int{1, 16, 64, 256, 1024, 4096}

// worth returns what the table's kernels gain over the fixed tile and what they reach of the speed of the best ones,
// for each layer and M, and for how many layers the BLOCK_K is the best.
func worth(t *testing.T, times map[product]map[gemm.Config]float64) (gains, shares []float64, agree int) {
	t.Helper()
	a := open(t, "sm90", "h100", timing.Model)
	name, value, _ := strings.Cut(flatten, "=")
	fit := must.Get(a.Candidates(t.Context(), linear(1, 4096, 4096), arch.Space{Kernel: family, SplitK: []int{1},
		Axes: []arch.AxisValues{{Name: name, Values: []string{value}}}}))(t)
	var shapes []product
	for p := range times {
		if p.m == 1 {
			shapes = append(shapes, p)
		}
	}
	byRows := map[int][]float64{}
	for _, p := range shapes {
		configs := slices.DeleteFunc(slices.Clone(fit.Configs), func(c gemm.Config) bool {
			c.Kernel, c.Axes, c.GroupM = "", gemm.Axes{}, group
			return times[p][c] == 0
		})
		bands := must.Get(ask.BandsOf(t.Context(), arch.WithCandidates(a, configs), arch.Space{Kernel: family},
			linear(1, p.n, p.k), ask.Range{List: rows, Same: []string{"block_k"}}, nil))(t)
		best, depth := bestOf(times, p)
		for i, m := range rows {
			p.m = m
			c := *bands.Bands[i].Config
			c.Kernel, c.Axes, c.GroupM = "", gemm.Axes{}, group
			gain := times[p][fixed] / times[p][c]
			gains, byRows[m] = append(gains, gain), append(byRows[m], gain)
			shares = append(shares, best[i]/times[p][c])
			if i == 0 && c.BlockK == depth {
				agree++
			}
		}
	}
	for _, m := range rows {
		t.Logf("M = %d: gain %.3f", m, stats.Geomean(byRows[m]))
	}
	return gains, shares, agree
}

// bestOf returns the times of the fastest kernels that have one BLOCK_K for all numbers of rows, and that BLOCK_K.
func bestOf(times map[product]map[gemm.Config]float64, p product) (best []float64, depth int) {
	least := math.Inf(1)
	for _, k := range []int{64, 128, 256} {
		list, sum := make([]float64, len(rows)), 0.0
		for i, m := range rows {
			p.m, list[i] = m, math.Inf(1)
			for c, seconds := range times[p] {
				if c.BlockK == k {
					list[i] = min(list[i], seconds)
				}
			}
			sum += math.Log(list[i])
		}
		if sum < least {
			least, best, depth = sum, list, k
		}
	}
	return best, depth
}

// measured reads the times of the kernel of vLLM's order of sums.
func measured(t *testing.T, name string) map[product]map[gemm.Config]float64 {
	t.Helper()
	set := must.Get(dataset.Read(name, os.DirFS("../../../../../plugins/nvidia/data/h100-persistent/"+name)))(t)
	times := map[product]map[gemm.Config]float64{}
	for _, p := range set.Problems() {
		of := map[gemm.Config]float64{}
		for _, m := range set.Sweep(p) {
			if c := m.Config; m.Library == "" {
				c.Kernel, c.Axes, c.GroupM = "", gemm.Axes{}, group
				of[c] = float64(m.Median)
			}
		}
		times[product{p.M, p.N, p.K}] = of
	}
	return times
}
