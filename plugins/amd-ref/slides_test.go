//go:build !race

package amdref_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// cell is a size of the slides' table, or of DeepBench.
type cell struct {
	problem gemm.Problem
	gflops  float64 // 0 if it cannot be read
	tile    string  // of the winner, the shorter side first; empty if unknown
	splits  bool    // the winner splits K
	legible bool    // whether it does can be read
}

// readCells reads a table of the folder of the data.
func readCells(t *testing.T, name string, cellOf func(line map[string]string) cell) (cells []cell) {
	t.Helper()
	for _, line := range csvtest.Named(t, "data/"+name) {
		c := cellOf(line)
		p := &c.problem
		p.M, p.N, p.K = csvtest.Int(t, line, "m"), csvtest.Int(t, line, "n"), csvtest.Int(t, line, "k")
		cells = append(cells, c)
	}
	return cells
}

func sgemm(transA, transB bool) gemm.Problem {
	p := gemm.New(1, 1, 1)
	p.DType = gemm.FP32
	p.SetTrans(transA, transB)
	return p
}

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // an empty cell is 0
	return v
}

// slides is the table of 27 × 27 sizes that AMD showed in 2017: SGEMM on Vega 10, K = 3104.
func slides(t *testing.T) []cell {
	return readCells(t, "vega10-slides.csv", func(line map[string]string) cell {
		return cell{
			problem: sgemm(true, true), gflops: number(line["gflops"]), tile: line["tile"], splits: number(line["split"]) > 1,
			legible: line["split"] != "",
		}
	})
}

// deepbench is 160 sizes of DeepBench with kernels that were tuned for them.
func deepbench(t *testing.T) []cell {
	return readCells(t, "vega10-deepbench.csv", func(line map[string]string) cell {
		letters := line["index_notation"] // Ailk_Bljk is NN
		return cell{
			problem: sgemm(letters[1] == 'i', letters[6] == 'l'), gflops: number(line["gflops_tuned"]),
			splits: number(line["global_split_u"]) > 1,
		}
	})
}

// rocblas is the sizes of a type that rocBLAS's tables have for a device.
func rocblas(t *testing.T, device string, dtype gemm.DType) (cells []cell) {
	t.Helper()
	for _, time := range published.Times() {
		if time.Source.ID != "rocblas" || time.Device != device || time.DType != dtype.String() || time.Doubt != "" {
			continue
		}
		p := must.Get(time.Problem())(t)
		cells = append(cells, cell{problem: p, gflops: flops(p) / float64(time.Median) / 1e9})
	}
	return cells
}

// longSlides are the slides' sizes without those that take as long as the smallest, 50 to 58 µs whatever the size: that
// is what their stopwatch counted.
func longSlides(t *testing.T) []cell {
	return slices.DeleteFunc(slides(t), func(c cell) bool { return c.gflops > 0 && flops(c.problem)/c.gflops < 60e3 })
}

func openVega(t *testing.T) arch.Architecture {
	t.Helper()
	provider := must.Get(amdref.Provider())(t)
	return must.Get(provider.Open(t.Context(), arch.OpenRequest{Arch: "gfx900", Kernel: kernel.Name}))(t)
}

// The speed of the model's pick is that of the tuned kernel, to 15 % at the median. No number was fitted to these
// sizes. The smallest take microseconds in the model and 54 µs on the slides, whatever the size: they are left in.
func TestVegaSpeeds(t *testing.T) {
	a := openVega(t)
	s := selector.New(a, arch.Space{})
	for name, cells := range map[string][]cell{"slides": slides(t), "DeepBench": deepbench(t)} {
		var errors, large []float64
		for _, c := range cells {
			if c.gflops == 0 {
				continue
			}
			e := math.Abs(flops(c.problem)/pickTime(t, a, s, c.problem)/1e9/c.gflops - 1)
			if errors = append(errors, e); flops(c.problem) > 1e9 {
				large = append(large, e)
			}
		}
		slices.Sort(errors)
		slices.Sort(large)
		must.Hold(t, stats.Median(errors) <= 0.15, "%s: %d sizes, GFLOPS off by %.1f %% at the median; %d of at least 1 "+
			"GFLOP: %.1f %%, 90 %% within %.0f %%", name, len(errors), 100*stats.Median(errors), len(large),
			100*stats.Median(large), 100*stats.Quantile(large, 0.9))
	}
}

// pickTime is the predicted time of the pick for a problem, in s.
func pickTime(t *testing.T, a arch.Architecture, s *selector.Selector, p gemm.Problem) float64 {
	t.Helper()
	var result selector.Result
	must.Do(t, s.Select(t.Context(), p, &result))
	return float64(result.Entries[0].Estimate.Cycles.At(a.Describe().Clock))
}

// slideKernels are the kernels of the slides' experiment: thread tiles and work-groups, crossed with splits of K.
func slideKernels() (list []gemm.Config) {
	sides := []int{8, 4, 2}
	for _, group := range [][3]int{{16, 16, 1}, {16, 8, 2}, {8, 16, 2}, {8, 8, 4}} {
		for _, m := range sides {
			for _, n := range sides {
				for _, split := range []int{1, 2, 4, 6, 8} {
					c := gemm.Config{
						Kernel: kernel.Name, BlockM: group[0] * m, BlockN: group[1] * n, BlockK: 8,
						NumWarps: 4, NumStages: 2, SplitK: split, GroupM: 8,
					}
					if err := kernel.LocalSplit.Set(&c, strconv.Itoa(group[2])); err == nil {
						list = append(list, c)
					}
				}
			}
		}
	}
	return list
}

// Among the kernels of the experiment, the model's winner has the tile of the slides' winner, or the next smaller or
// larger one. The slides do not say which is right, since they have no times of losers: the model is 13 % off, and
// predicts the slides' tile less than that slower. Where the split of K can be read, it agrees.
func TestSlideWinners(t *testing.T) {
	a, kernels := openVega(t), slideKernels()
	estimates := make([]arch.Estimate, len(kernels))
	var same, near, known, splits, legible int
	var slower []float64 // the fastest kernel of the slides' tile, predicted ÷ the model's winner
	cells := slides(t)
	winners := make([]string, len(cells))
	for i, c := range cells {
		must.Do(t, a.Estimate(t.Context(), estimates, c.problem, kernels))
		best, ofTile := -1, math.Inf(1)
		for j, e := range estimates {
			if e.Reject != "" {
				continue
			}
			if best < 0 || e.Cycles < estimates[best].Cycles {
				best = j
			}
			if tileOf(&kernels[j]) == c.tile {
				ofTile = min(ofTile, float64(e.Cycles))
			}
		}
		w := kernels[best]
		winners[i] = tileOf(&w)
		if c.tile == "" {
			continue
		}
		slower = append(slower, ofTile/float64(estimates[best].Cycles))
		known++
		switch ratio := area(winners[i]) / area(c.tile); {
		case winners[i] == c.tile:
			same++
			near++
		case ratio >= 0.5 && ratio <= 2:
			near++
		}
		if c.legible {
			if legible++; c.splits == (w.SplitK > 1) {
				splits++
			}
		}
	}
	slices.Sort(slower)
	median := slower[len(slower)/2]
	must.Hold(t, share(same, known) >= 0.2 && share(near, known) >= 0.85 && median <= 1.1 && legible >= 100 &&
		splits >= legible-5, "of %d winners, %.0f %% have the same tile, %.0f %% an area within a factor of 2; the slides' "+
		"tile is predicted %.3f times as long at the median, %.3f for one in ten; %d of %d agree on splitting K", known,
		100*share(same, known), 100*share(near, known), median, slower[len(slower)*9/10], splits, legible)
}

// tileOf is the tile of a configuration as the slides' table has it, the shorter side first.
func tileOf(c *gemm.Config) string {
	return fmt.Sprintf("%dx%d", min(c.BlockM, c.BlockN), max(c.BlockM, c.BlockN))
}

func area(tile string) float64 {
	m, n, _ := strings.Cut(tile, "x")
	return number(m) * number(n)
}
