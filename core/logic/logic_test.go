package logic_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// measured is a table of kernels with square tiles: a large tile is fast at large sizes, and wastes small ones.
func measured(t testing.TB) *logic.Table {
	t.Helper()
	table := &logic.Table{}
	for _, tile := range []int{16, 32, 64, 128, 256} {
		c := gemm.Config{BlockM: tile, BlockN: tile, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1, GroupM: 8,
			Kernel: "triton"}
		table.Kernels = append(table.Kernels, logic.Kernel{Name: c.String(), Config: c})
	}
	for _, m := range []int{16, 48, 200, 500, 1000, 4096} {
		for _, n := range []int{16, 100, 700, 4096} {
			for _, k := range []int{64, 1024} {
				row := make([]float64, len(table.Kernels))
				for i, kernel := range table.Kernels {
					tile := kernel.Config.BlockM
					tiles := float64((m+tile-1)/tile) * float64((n+tile-1)/tile)
					row[i] = 1e-9 * float64(k) * math.Ceil(tiles/132) * (float64(tile) + float64(tile*tile)/64)
				}
				table.Sizes, table.Times = append(table.Sizes, logic.Size{n, m, 1, k}), append(table.Times, row)
			}
		}
	}
	return table
}

func build(t testing.TB, o logic.Options) *logic.Logic {
	t.Helper()
	l := must.Get(logic.Build(measured(t), o))(t)
	l.Arch, l.Device, l.Family, l.Source = "sm90", "h200", "triton", "a formula"
	return l
}

func TestLayers(t *testing.T) {
	l := build(t, logic.Options{Ranges: true, Fallback: logic.Nearest})
	table := measured(t)
	for i, s := range table.Sizes {
		k, layer := l.Lookup(s)
		must.That(t, layer == logic.LayerExact && l.Kernels[k].Name == fastest(table, i),
			"%v is answered by %s of %s", s, l.Kernels[k].Name, layer)
		if k, layer := l.LookupOther(s); layer != logic.LayerRange || l.Kernels[k].Name != fastest(table, i) {
			t.Errorf("%v is answered by %s of %s", s, l.Kernels[k].Name, layer)
		}
	}
	if k, layer := l.Lookup(logic.Size{5000, 5000, 1, 1024}); layer != logic.LayerNearest ||
		l.Kernels[k].Config.BlockM != 256 {
		t.Error(k, layer)
	}
	l.Fallback = logic.Model
	if k, layer := l.Lookup(logic.Size{5000, 5000, 1, 1024}); layer != logic.LayerModel || k != -1 {
		t.Error(k, layer)
	}
	if k, layer := l.Lookup(logic.Size{99, 15, 1, 60}); layer != logic.LayerRange || l.Kernels[k].Config.BlockM != 16 {
		t.Error(k, layer)
	}
}

func fastest(table *logic.Table, i int) string {
	best := 0
	for k, v := range table.Times[i] {
		if v < table.Times[i][best] {
			best = k
		}
	}
	return table.Kernels[best].Name
}

// losses are the geometric mean and the largest of the times of the kernels that look answers with ÷ the fastest, − 1.
// Each size has an answer.
func losses(t *testing.T, l *logic.Logic, table *logic.Table, look func(logic.Size) (int, logic.Layer)) (
	mean, worst float64,
) {
	t.Helper()
	sum := 0.0
	for i, s := range table.Sizes {
		k, _ := look(s)
		must.Need(t, k >= 0, "%v has no answer", s)
		at := slices.IndexFunc(table.Kernels, func(x logic.Kernel) bool { return x.Name == l.Kernels[k].Name })
		ratio := table.Times[i][at] / slices.Min(table.Times[i])
		sum, worst = sum+math.Log(ratio), max(worst, ratio-1)
	}
	return math.Expm1(sum / float64(len(table.Sizes))), worst
}

// A tolerated loss saves leaves and costs no more than itself, a cap leaves the kernels that save the most.
func TestLossAndCap(t *testing.T) {
	table := measured(t)
	last := math.MaxInt
	for _, loss := range []float64{0, 0.1, 0.5, 10} {
		l := build(t, logic.Options{Ranges: true, Loss: loss, Fallback: logic.Model})
		_, worst := losses(t, l, table, l.LookupOther)
		if worst > loss+1e-12 || l.Leaves() > last || loss == 10 && l.Leaves() != 1 {
			t.Errorf("loss %g: %g, %d leaves after %d", loss, worst, l.Leaves(), last)
		}
		last = l.Leaves()
	}
	regret := -1.0
	for _, most := range []int{5, 4, 3, 2, 1} {
		l := build(t, logic.Options{Most: most, Fallback: logic.Nearest})
		mean, _ := losses(t, l, table, l.Lookup)
		must.That(t, len(l.Kernels) <= most && mean >= regret, "%d kernels: %g after %g", most, mean, regret)
		regret = mean
	}
	must.That(t, regret >= 0.3, "one kernel loses %g", regret)
	trials := must.Get(logic.Trials(table, []int{0}, logic.Options{}, logic.Folds, func(int) {}))(t)
	best, ok := logic.Best(trials)
	r := best.Regret
	must.That(t, ok && r.Sizes != 0 && r.Mean <= 0.2, "%v", trials)
	for _, other := range trials {
		must.That(t, other.Way == logic.BySize || other.Mean >= best.Mean, "%+v loses less than %+v", other, best)
	}
}

// The only kernel that works at a size stays.
func TestOnlyKernelStays(t *testing.T) {
	table := measured(t)
	for k := 1; k < len(table.Kernels); k++ {
		table.Times[0][k] = math.Inf(1)
	}
	l, err := logic.Build(table, logic.Options{Most: 1, Fallback: logic.Model})
	must.That(t, err == nil && l.Kernels[0].Config.BlockM == 16, "%v %v", l, err)
	table.Times[1][0] = math.Inf(1)
	for k := 2; k < len(table.Kernels); k++ {
		table.Times[1][k] = math.Inf(1)
	}
	must.Fail(t, must.Err(logic.Build(table, logic.Options{Most: 1})), "1 kernels do not reach")
	table.Times[1][1] = math.Inf(1)
	must.Fail(t, must.Err(logic.Build(table, logic.Options{})), "no kernel has a time")
}

// The slides' 27 × 27 winners make 27 rules with 477 leaves if nothing may change. Only winners are known, so a changed
// cell is a loss of 1.
func TestWinnersOfTheSlides(t *testing.T) {
	file, err := os.Open("testdata/vega10-winners.csv")
	must.Do(t, err)
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows := must.Get(reader.ReadAll())(t)
	table := &logic.Table{Kernels: make([]logic.Kernel, 31)}
	for _, row := range rows[1:] {
		for i, cell := range row[1:] {
			m, _ := strconv.Atoi(row[0])
			n, _ := strconv.Atoi(rows[0][1+i])
			winner, err := strconv.Atoi(cell)
			if err != nil {
				continue
			}
			times := make([]float64, len(table.Kernels))
			for k := range times {
				times[k] = 2
			}
			times[winner] = 1
			table.Sizes, table.Times = append(table.Sizes, logic.Size{m, n, 1, 3104}), append(table.Times, times)
		}
	}
	l := must.Get(logic.Build(table, logic.Options{Ranges: true, Fallback: logic.Model}))(t)
	if n := len(l.Ranges[0].Rules[0].Rules); n != 27 || l.Leaves() != 477 {
		t.Errorf("%d rows, %d leaves, want 27 and 477", n, l.Leaves())
	}
	if l, err = logic.Build(table, logic.Options{Ranges: true, Loss: 1}); err != nil || l.Leaves() != 1 {
		t.Error(l.Leaves(), err)
	}
}
