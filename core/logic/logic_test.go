package logic_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
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
	l, err := logic.Build(measured(t), o)
	if err != nil {
		t.Fatal(err)
	}
	p := gemm.New(1, 1, 1)
	l.Arch, l.Device, l.Family, l.Source = "sm90", "h200", "triton", "a formula"
	if l.Type, err = logic.TypeOf(&p); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLayers(t *testing.T) {
	l := build(t, logic.Options{Ranges: true, Fallback: logic.Nearest})
	table := measured(t)
	for i, s := range table.Sizes {
		k, layer := l.Lookup(s)
		if layer != logic.LayerExact || l.Kernels[k].Name != fastest(table, i) {
			t.Errorf("%v is answered by %s of %s", s, l.Kernels[k].Name, layer)
		}
		if k, layer := l.LookupRange(s); layer != logic.LayerRange || l.Kernels[k].Name != fastest(table, i) {
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

// A tolerated loss saves leaves and costs no more than itself, a cap leaves the kernels that save the most.
func TestLossAndCap(t *testing.T) {
	table := measured(t)
	last := math.MaxInt
	for _, loss := range []float64{0, 0.1, 0.5, 10} {
		l := build(t, logic.Options{Ranges: true, Loss: loss, Fallback: logic.Model})
		r := l.Regret(table, logic.RangesOnly)
		if r.Unanswered > 0 || r.Worst > loss+1e-12 || l.Leaves() > last || loss == 10 && l.Leaves() != 1 {
			t.Errorf("loss %g: %+v, %d leaves after %d", loss, r, l.Leaves(), last)
		}
		last = l.Leaves()
	}
	regret := -1.0
	for _, most := range []int{5, 4, 3, 2, 1} {
		l := build(t, logic.Options{Most: most, Fallback: logic.Nearest})
		r := l.Regret(table, logic.Whole)
		if len(l.Kernels) > most || r.Mean < regret || r.Sizes != len(table.Sizes) {
			t.Errorf("%d kernels: %+v after %g", most, r, regret)
		}
		regret = r.Mean
	}
	if regret < 0.3 {
		t.Errorf("one kernel loses %g", regret)
	}
	if l := build(t, logic.Options{Importance: 1.1}); len(l.Kernels) != 1 {
		t.Errorf("%d kernels are more important than all together", len(l.Kernels))
	}
	r, err := logic.LeftOut(table, logic.Options{Fallback: logic.Nearest}, func(int) {})
	if err != nil || r.Sizes != len(table.Sizes) || r.Mean <= 0 || r.Mean > 2 {
		t.Error(r, err)
	}
}

// The only kernel that works at a size stays.
func TestOnlyKernelStays(t *testing.T) {
	table := measured(t)
	for k := 1; k < len(table.Kernels); k++ {
		table.Times[0][k] = math.Inf(1)
	}
	l, err := logic.Build(table, logic.Options{Most: 1, Fallback: logic.Model})
	if err != nil || l.Kernels[0].Config.BlockM != 16 {
		t.Error(l, err)
	}
	table.Times[1][0] = math.Inf(1)
	for k := 2; k < len(table.Kernels); k++ {
		table.Times[1][k] = math.Inf(1)
	}
	if _, err := logic.Build(table, logic.Options{Most: 1}); err == nil ||
		!strings.Contains(err.Error(), "1 kernels do not reach") {
		t.Error(err)
	}
	table.Times[1][1] = math.Inf(1)
	if _, err := logic.Build(table, logic.Options{}); err == nil ||
		!strings.Contains(err.Error(), "no kernel has a time") {
		t.Error(err)
	}
}

// The slides' 27 × 27 winners make 27 rules with 477 leaves if nothing may change. Only winners are known, so a changed
// cell is a loss of 1.
func TestWinnersOfTheSlides(t *testing.T) {
	file, err := os.Open("testdata/vega10-winners.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
	l, err := logic.Build(table, logic.Options{Ranges: true, Fallback: logic.Model})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.Ranges[0].Rules[0].Rules); n != 27 || l.Leaves() != 477 {
		t.Errorf("%d rows, %d leaves, want 27 and 477", n, l.Leaves())
	}
	if l, err = logic.Build(table, logic.Options{Ranges: true, Loss: 1}); err != nil || l.Leaves() != 1 {
		t.Error(l.Leaves(), err)
	}
}

// What is written reads back equal, in every form.
func TestRoundTrips(t *testing.T) {
	built := build(t, logic.Options{Ranges: true, Loss: 0.05, Fallback: logic.Nearest})
	imported := read(t, classic)
	for name, l := range map[string]*logic.Logic{"built": built, "imported": imported, "unbatched": read(t, unbatched)} {
		for form, write := range map[string]func() ([]byte, error){"json": l.JSON, "classic": l.Classic, "map": l.Map} {
			text, err := write()
			if err != nil {
				t.Fatal(name, form, err)
			}
			back, err := logic.Read("back", text)
			if err != nil {
				t.Errorf("%s as %s: %v\n%s", name, form, err, text)
				continue
			}
			ignored := cmpopts.IgnoreFields(logic.Logic{}, "Source", "Tensile", "Fallback", "Order")
			if form == "json" {
				ignored = cmpopts.IgnoreFields(logic.Logic{}, "Unit")
				if back.Unit != l.Unit {
					t.Errorf("%s: unit %q", name, back.Unit)
				}
			}
			if diff := cmp.Diff(l, back, cmpopts.IgnoreUnexported(logic.Logic{}), ignored, cmpopts.EquateEmpty(),
				cmp.Comparer(func(a, b gemm.Axes) bool { return a == b })); diff != "" {
				t.Errorf("%s as %s: %s", name, form, diff)
			}
			again, err := map[string]func() ([]byte, error){"json": back.JSON, "classic": back.Classic, "map": back.Map}[form]()
			if err != nil || form == "json" && string(again) != string(text) {
				t.Errorf("%s as %s is written differently: %v", name, form, err)
			}
		}
	}
}

func read(t testing.TB, text string) *logic.Logic {
	t.Helper()
	l, err := logic.Read("logic.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnswers(t *testing.T) {
	p := gemm.New(64, 32, 16)
	l := build(t, logic.Options{})
	if err := l.Answers(&p); err != nil {
		t.Error(err)
	}
	p.SetTrans(true, false)
	if err := l.Answers(&p); err == nil || !strings.Contains(err.Error(), "for Cijk_Ailk_Bljk_HHS_BH, and the problem is "+
		"Cijk_Ailk_Bjlk_HHS_BH") {
		t.Error(err)
	}
	p.SetTrans(false, true)
	if n, err := logic.TypeOf(&p); err != nil || n.String() != "Cijk_Alik_Bljk_HHS_BH" {
		t.Error(n, err)
	}
	p.DType = gemm.BF16
	if n, err := logic.TypeOf(&p); err != nil || n.String() != "Cijk_Alik_Bljk_BBS_BH" {
		t.Error(n, err)
	}
	p = gemm.New(64, 32, 16)
	p.LDA = 999
	if _, err := logic.TypeOf(&p); err == nil {
		t.Error("a leading dimension is taken")
	}
	// The contraction of the type is the problem: the GEMM of the plan has its layout.
	for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		p := gemm.New(64, 32, 16)
		p.Batch = 4
		p.SetTrans(trans[0], trans[1])
		n, err := logic.TypeOf(&p)
		if err != nil {
			t.Fatal(err)
		}
		s := logic.SizeOf(&p)
		shape, err := n.Shape(contract.Sizes{'i': s[0], 'j': s[1], 'k': s[2], 'l': s[3]}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		plans, err := shape.Plans(p.Types(), false)
		if err != nil || plans[0].Problem != p.Canonical() {
			t.Errorf("%s is %v, %v", p, plans, err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	l := build(b, logic.Options{Ranges: true, Loss: 0.05, Fallback: logic.Nearest})
	for name, s := range map[string]logic.Size{"exact": {700, 500, 1, 1024}, "range": {701, 501, 1, 1000},
		"nearest-of-48": {9000, 9000, 1, 9000}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if k, _ := l.Lookup(s); k < 0 {
					b.Fatal(k)
				}
			}
		})
	}
}
