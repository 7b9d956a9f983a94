package ask_test

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// served are the sizes M of a table of configurations as servers of language models keep them.
var served = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096}

// fastest is the time of the fastest kernel of a space for one M, by a ranking of its own.
func fastest(t *testing.T, a arch.Architecture, space arch.Space, p gemm.Problem) float64 {
	t.Helper()
	e := must.Get(selector.RankOne(t.Context(), a, p, selector.Request{Space: space, Top: 1}))(t)
	return float64(e[0].Estimate.Cycles.At(a.Describe().Clock))
}

// TestSameOfAList compares the choice and its prices with what rankings of each value's own space say.
func TestSameOfAList(t *testing.T) {
	triton := openH200(t, "triton")
	splits := []int{1}
	space := arch.Space{Kernel: "triton", SplitK: splits}
	for _, nk := range [][2]int{{4096, 14336}, {1024, 4096}, {152064, 896}} {
		got := must.Get(ask.BandsOf(t.Context(), triton, space, layer(1, nk[0], nk[1]),
			ask.Range{List: served, Same: []string{"block_k"}}, nil))(t)
		mean := map[int]float64{}
		for _, k := range []int{16, 32, 64, 128, 256, 512} {
			of := arch.Space{Kernel: "triton", SplitK: splits, BlockK: []int{k}}
			for _, m := range served {
				p := layer(m, nk[0], nk[1])
				mean[k] += (fastest(t, triton, of, p)/fastest(t, triton, space, p) - 1) / float64(len(served))
			}
		}
		best := 16
		for k, price := range mean {
			if price < mean[best] {
				best = k
			}
		}
		if len(got.Same.Choices) != len(mean) || math.Abs(got.Same.MeanPrice-mean[best]) > 1e-9 ||
			math.Abs(got.Same.Choices[0].MeanPrice-mean[best]) > 1e-9 {
			t.Errorf("%v: %+v, want %d for %v", nk, got.Same, best, mean[best])
		}
		for i, b := range got.Bands {
			p := layer(served[i], nk[0], nk[1])
			own := fastest(t, triton, arch.Space{Kernel: "triton", SplitK: splits, BlockK: []int{best}}, p)
			must.That(t, b.MLow == served[i] && b.MHigh == served[i] && b.Config.BlockK == best && b.Config.GroupM != 0 &&
				math.Abs(b.SecondsLow/own-1) <= 1e-9 && b.Price.Same == b.MeanRegret && b.Price.Same <= *b.Price.One,
				"%v: %+v %+v, want block_k=%d and %v s", nk, b, b.Config, best, own)
		}
		one := got.Same.One
		for _, c := range []gemm.Config{one.Config, *got.Bands[0].Config, *got.Bands[9].Config, *got.Bands[17].Config} {
			price := 0.0
			for _, m := range served {
				p := layer(m, nk[0], nk[1])
				r, err := ask.RankAmong(t.Context(), triton, "triton", p, []gemm.Config{c})
				must.Need(t, err == nil && r.Err == nil, "%v %v", err, r.Err)
				price += (float64(r.Seconds(&r.Entries[0]))/fastest(t, triton, space, p) - 1) / float64(len(served))
			}
			must.That(t, (c != one.Config || math.Abs(price-one.MeanPrice) <= 1e-9) && price >= one.MeanPrice-1e-9,
				"%v: %s for all M costs %v, and %s is said to cost the least, %v", nk, c, price, one.Config, one.MeanPrice)
		}
	}
}

// TestSameOfARange checks that the bands have one value on each axis, that more axes cost more, and that the bands are
// about as good as the values allow.
func TestSameOfARange(t *testing.T) {
	wgmma := openH200(t, "wgmma")
	before := 0.0
	for _, same := range [][]string{{"block_k"}, {"block_k", "stages"}, {"block_k", "num_stages", "cluster"}} {
		got, err := ask.BandsOf(t.Context(), wgmma, arch.Space{Kernel: "wgmma", SplitK: []int{1}}, layer(4096, 4608, 3584),
			ask.Range{Low: 1, Same: same}, nil)
		must.Do(t, err)
		next := 1
		for _, b := range got.Bands {
			must.That(t, b.MLow == next && b.Kernel == "wgmma" && b.Config.BlockK == got.Bands[0].Config.BlockK &&
				(len(same) <= 1 || b.Config.NumStages == got.Bands[0].Config.NumStages) &&
				(len(same) <= 2 || b.Config.Axes == got.Bands[0].Config.Axes), "%v: %+v %s", same, b, b.Config)
			next = b.MHigh + 1
		}
		must.That(t, next == 4097 && got.Same.MeanPrice >= before-1e-3 && got.MeanRegret >= got.Same.MeanPrice-1e-9 &&
			got.MeanRegret <= got.Same.MeanPrice+0.02 && got.Same.One.MeanPrice >= got.Same.MeanPrice,
			"%v: up to %d, regret %v, %+v after %v", same, next-1, got.MeanRegret, got.Same, before)
		before = got.Same.MeanPrice
		t.Log(got.Same.Text(), got.Same.MeanPrice, got.MeanRegret, len(got.Bands))
	}
}

func TestSameRefused(t *testing.T) {
	triton := openH200(t, "triton")
	for want, r := range map[string]ask.Range{
		`unknown axis "blockk"`:        {Low: 1, Same: []string{"blockk"}},
		"group_m is not searched":      {Low: 1, Same: []string{"group_m"}},
		"the axis block_k is given tw": {Low: 1, Same: []string{"block_k", "num_warps", "block_k"}},
		"a list of 2 sizes M from 0":   {List: []int{5, 0}},
	} {
		_, err := ask.BandsOf(t.Context(), triton, arch.Space{Kernel: "triton"}, layer(64, 512, 512), r, nil)
		must.Fail(t, err, want)
	}
}

// A list has a pick for each M, and the library where that is faster.
func TestBandsOfAList(t *testing.T) {
	wgmma, library := openH200(t, "wgmma"), openH200(t, "library")
	list := []int{4096, 16, 16, 1}
	got, err := ask.BandsOf(t.Context(), wgmma, arch.Space{Kernel: "wgmma"}, layer(1, 1024, 8192), ask.Range{List: list},
		library)
	must.Do(t, err)
	var sizes []int
	for _, b := range got.Bands {
		sizes = append(sizes, b.MLow)
		if b.WorstRegret != 0 || b.MLow != b.MHigh || b.Price != nil || b.Kernel == "wgmma" && b.Config.GroupM == 0 {
			t.Errorf("%+v", b)
		}
	}
	must.That(t, slices.Equal(sizes, []int{1, 16, 4096}) && got.Problem.M == 4096 && got.Same == nil,
		"%v, %+v", sizes, got)
}

// TestInvariantBands: bands of invariant kernels have one order of sums, and their prices are against all kernels.
func TestInvariantBands(t *testing.T) {
	for _, kernel := range []string{"wgmma", "triton", "mma"} {
		a := openH200(t, kernel)
		d, all := a.Describe(), arch.Space{Kernel: kernel}
		space, order := must.Two(d.Invariant(all))(t)
		sums := must.Get(d.SumsOf(kernel))(t)
		r := ask.Range{List: served}.Ordered(ask.Kernels{Model: a, Space: all}, order)
		got := must.Get(ask.BandsOf(t.Context(), a, space, layer(1, 4096, 4096), r, nil))(t)
		mean := 0.0
		for i, b := range got.Bands {
			p := layer(served[i], 4096, 4096)
			own := space
			own.BlockK = []int{got.Bands[0].Config.BlockK}
			price := fastest(t, a, own, p)/fastest(t, a, all, p) - 1
			mean += price / float64(len(served))
			must.That(t, sums.Has(b.Config, d.Axes(kernel)) && b.Config.BlockK == own.BlockK[0] &&
				math.Abs(b.Price.Same-price) <= 1e-9,
				"%s, M = %d: %s costs %v, want %v", kernel, b.MLow, b.Config, b.Price.Same, price)
		}
		must.That(t, math.Abs(got.Same.MeanPrice-mean) <= 1e-9 && mean >= 0,
			"%s: %v, want %v", kernel, got.Same.MeanPrice, mean)
		t.Logf("%s: %s costs %.4f", kernel, got.Same.Text(), mean)
	}
}
