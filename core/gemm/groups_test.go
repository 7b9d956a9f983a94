package gemm_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func grouped(t interface{ Fatal(args ...any) }, rows ...int) gemm.Problem {
	p := gemm.New(1, 256, 512)
	g, err := gemm.NewGroups(rows...)
	if err != nil {
		t.Fatal(err)
	}
	p.SetGroups(g)
	return p
}

func TestGroupsOfAProblem(t *testing.T) {
	p := grouped(t, 120, 33, 0, 512)
	must.Do(t, p.Validate())
	must.Equal(t, p.String(), "665x256x512 fp16 groups 120,33,0,512")
	count, rows := p.Products()
	must.That(t, count == 3 && rows == 665.0/3, "%d products of %v rows", count, rows)
	batch := gemm.New(65, 8, 8)
	batch.Batch = 3
	got, of := p.TilesM(64), batch.TilesM(64)
	must.That(t, got == 2+1+0+8 && of == 3*2, "%d rows of tiles, and %d of a batch", got, of)
	a, b := p.Matrices(gemm.A), p.Matrices(gemm.B)
	must.That(t, a == 1 && b == 4, "%d A and %d B", a, b)
	if p.Plain() || p.Flops() != 2*665*256*512 {
		t.Errorf("plain: %v, %v FLOP", p.Plain(), p.Flops())
	}
	many := grouped(t, make([]int, 300)...)
	must.That(t, many.String() == "0x256x512 fp16 in 300 groups", "%q", many)
	must.Equal(t, grouped(t, 64).Canonical(), gemm.New(64, 256, 512))
}

func TestGroupsAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                          "no number of rows",
		"1,,2":                      "no number of rows",
		"1,-2":                      `"-2" is no number of rows`,
		"1,2.5":                     "write the rows of each group, as in 120,33,0,512",
		"1,9223372036854775807":     "2^52",
		strings.Repeat("1,", 1024):  "there are 1025 groups; give at most 1024",
		strings.Repeat("1,", 1<<20): "give at most 1024",
	} {
		if g, err := gemm.ParseGroups(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q is read as %.40q, %v, want %q", text, g, err, says)
		}
	}
	must.Fail(t, must.Err(gemm.NewGroups(make([]int, gemm.MaxGroups+1)...)), "there are 1025 groups")
	for _, c := range []struct {
		says   string
		change func(*gemm.Problem)
	}{
		{"the groups have 96 rows, and m is 95; let m be the rows of all groups", func(p *gemm.Problem) { p.M = 95 }},
		{"a batch of 2 has groups", func(p *gemm.Problem) { p.Batch = 2 }},
		{"let A be contiguous along k", func(p *gemm.Problem) { p.SetTrans(true, false) }},
		{"m is missing", func(p *gemm.Problem) { *p = grouped(t, 0, 0) }},
		{"once each group is padded", func(p *gemm.Problem) { // 2^38 without groups, 2^48 with
			*p = grouped(t, slices.Repeat([]int{1}, 1024)...)
			p.N, p.K = 1<<19, 1<<19
		}},
		{"overflows", func(p *gemm.Problem) { *p = grouped(t, 1<<51, 1<<51) }},
	} {
		p := grouped(t, 32, 64)
		c.change(&p)
		must.Fail(t, p.Validate(), c.says)
	}
}

// Equal lists are equal values, and a list comes back as it was.
func TestGroupsAreValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 60).Draw(t, "rows")
		block := rapid.IntRange(1, 300).Draw(t, "block")
		g, err := gemm.NewGroups(rows...)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := gemm.ParseGroups(strings.ReplaceAll(g.String(), ",", ", ")); err != nil || again != g {
			t.Errorf("%q is read as %q, %v", g, again, err)
		}
		sum, tiles, filled := 0, 0, 0
		for _, v := range rows {
			sum, tiles = sum+v, tiles+int(math.Ceil(float64(v)/float64(block)))
			if v > 0 {
				filled++
			}
		}
		if !slices.Equal(g.List(), rows) || g.Len() != len(rows) || g.Rows() != sum || g.Tiles(block) != tiles ||
			g.Filled() != filled {
			t.Errorf("%v: %v, %d groups, %d filled, %d rows, %d tiles of %d",
				rows, g.List(), g.Len(), g.Filled(), g.Rows(), g.Tiles(block), block)
		}
	})
}

func TestGroupsAllocateNothing(t *testing.T) {
	p := grouped(t, 120, 33, 0, 512)
	n := testing.AllocsPerRun(100, func() {
		must.Need(t, p.Validate() == nil && p.Canonical().Groups.Tiles(128) == 6, "wrong")
	})
	must.That(t, n <= 0, "%v allocations", n)
}
