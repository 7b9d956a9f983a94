package tensile_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/origami-gemm/origami/core/contract"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// build returns a logic of kernels with square tiles, of which the larger ones are faster at larger sizes.
func build(t testing.TB, o logic.Options) *tensile.Logic {
	t.Helper()
	table := &logic.Table{}
	for _, tile := range []int{16, 64, 256} {
		c := gemm.Config{BlockM: tile, BlockN: tile, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1, GroupM: 8,
			Kernel: "wgmma"}
		swizzle := gemm.Axis{Name: "swizzle", Type: gemm.Integer, Values: []string{"1", "2"}, Default: "1"}
		must.Do(t, c.SetAxis([]gemm.Axis{swizzle}, "swizzle", "2"))
		table.Kernels = append(table.Kernels, logic.Kernel{Name: c.String(), Config: c})
	}
	for _, m := range []int{16, 200, 500, 4096} {
		for _, n := range []int{16, 700, 4096} {
			row := make([]float64, len(table.Kernels))
			for i, tile := range []int{16, 64, 256} {
				tiles := (m + tile - 1) / tile * ((n + tile - 1) / tile)
				row[i] = 1e-9 * math.Ceil(float64(tiles)/132) * (64*float64(tile) + float64(tile*tile))
			}
			table.Sizes, table.Times = append(table.Sizes, logic.Size{n, m, 1, 64}), append(table.Times, row)
		}
	}
	built, err := logic.Build(table, o)
	must.Do(t, err)
	p := gemm.New(1, 1, 1)
	l := &tensile.Logic{Logic: built}
	l.Arch, l.Device, l.Family, l.Source = "sm90", "h200", "wgmma", "a formula"
	if l.Type, err = tensile.TypeOf(&p); err != nil {
		t.Fatal(err)
	}
	return l
}

// What is written reads back equal, in every form.
func TestRoundTrips(t *testing.T) {
	built := build(t, logic.Options{Ranges: true, Loss: 0.05, Fallback: logic.Nearest})
	imported := read(t, classic)
	for name, l := range map[string]*tensile.Logic{"built": built, "imported": imported, "unbatched": read(t, unbatched)} {
		for form, write := range map[string]func() ([]byte, error){"classic": l.Classic, "map": l.Map} {
			text, err := write()
			must.Do(t, err)
			back, err := tensile.Read("back", text)
			if err != nil {
				t.Errorf("%s as %s: %v\n%s", name, form, err, text)
				continue
			}
			ignored := cmp.Options{cmpopts.IgnoreFields(logic.Logic{}, "Source", "Order"),
				cmpopts.IgnoreFields(tensile.Logic{}, "Parts")}
			must.Equal(t, cmp.Diff(l, back, cmpopts.IgnoreUnexported(logic.Logic{}), ignored, cmpopts.EquateEmpty(),
				cmp.Comparer(func(a, b gemm.Axes) bool { return a == b })), "", name, form)
			back.Source = l.Source
			again, err := map[string]func() ([]byte, error){"classic": back.Classic, "map": back.Map}[form]()
			must.That(t, err == nil && string(again) == string(text), "%s as %s is written differently: %v", name, form, err)
		}
	}
}

func read(t testing.TB, text string) *tensile.Logic {
	t.Helper()
	l := must.Get(tensile.Read("logic.yaml", []byte(text)))(t)
	return l
}

func TestAnswers(t *testing.T) {
	p := gemm.New(64, 32, 16)
	l := build(t, logic.Options{})
	must.Do(t, l.Type.Answers(&p))
	p.SetTrans(true, false)
	const want = "for Cijk_Ailk_Bljk_HHS_BH, and the problem is Cijk_Ailk_Bjlk_HHS_BH"
	must.Fail(t, l.Type.Answers(&p), want)
	p.SetTrans(false, true)
	if n, err := tensile.TypeOf(&p); err != nil || n.String() != "Cijk_Alik_Bljk_HHS_BH" {
		t.Error(n, err)
	}
	p.DType = gemm.BF16
	if n, err := tensile.TypeOf(&p); err != nil || n.String() != "Cijk_Alik_Bljk_BBS_BH" {
		t.Error(n, err)
	}
	p = gemm.New(64, 32, 16)
	p.LDA = 999
	must.Fail(t, must.Err(tensile.TypeOf(&p)), "is no plain GEMM")
	// The contraction of the type is the problem: the GEMM of the plan has its layout.
	for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		p := gemm.New(64, 32, 16)
		p.Batch = 4
		p.SetTrans(trans[0], trans[1])
		n := must.Get(tensile.TypeOf(&p))(t)
		s := logic.SizeOf(&p)
		shape := must.Get(n.Shape(contract.Sizes{'i': s[0], 'j': s[1], 'k': s[2], 'l': s[3]}, nil, nil, nil))(t)
		plans, err := shape.Plans(p.Types(), false)
		must.That(t, err == nil && plans[0].Problem == p.Canonical(), "%s is %v, %v", p, plans, err)
	}
}
