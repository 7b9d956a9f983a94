package pipelined_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// grouped is an n×k problem with the rows in groups.
func grouped(t testing.TB, n, k int, rows ...int) gemm.Problem {
	t.Helper()
	g := must.Get(gemm.NewGroups(rows...))(t)
	p := gemm.New(1, n, k)
	p.DType = gemm.BF16
	p.SetGroups(g)
	must.Do(t, p.Validate())
	return p
}

// estimates are the times of the Triton family's candidates, with the rows of their terms.
func estimates(t *testing.T, a arch.Architecture, p gemm.Problem) ([]arch.Estimate, []float64) {
	t.Helper()
	list := must.Get(a.Candidates(t.Context(), p, arch.Space{Kernel: "triton", SplitK: []int{1, 4}}))(t)
	n := len(list.Configs)
	out, rows := make([]arch.Estimate, n), make([]float64, n*len(a.Describe().Terms))
	must.Do(t, a.Estimate(t.Context(), out, p, list.Configs))
	must.Do(t, a.Terms(t.Context(), rows, p, list.Configs))
	total := nvtest.TotalColumn(a)
	totals := make([]float64, n)
	for i := range totals {
		totals[i] = rows[i*len(a.Describe().Terms)+total]
	}
	return out, totals
}

// Equal groups take as long as a batch, whatever empty ones are among them. The order of groups does not matter.
func TestRefinedGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, request := range nvtest.Devices(t, "refined", "mma") {
		a := nvtest.Open(t, request)
		if !slices.Contains(a.Describe().Kernels, "triton") {
			continue
		}
		for range 4 {
			n, k, each := 8*(1+rng.IntN(600)), 8*(1+rng.IntN(600)), 1+rng.IntN(700)
			batch := gemm.New(each, n, k)
			batch.DType, batch.Batch = gemm.BF16, 2+rng.IntN(100)
			equal := slices.Repeat([]int{each}, batch.Batch)
			want, _ := estimates(t, a, batch)
			for _, p := range []gemm.Problem{
				grouped(t, n, k, equal...), grouped(t, n, k, append([]int{0, 0}, append(equal, 0)...)...),
			} {
				if got, _ := estimates(t, a, p); !slices.Equal(got, want) {
					t.Errorf("%s: %s is predicted otherwise than %s", a.Describe().ID(), p, batch)
				}
			}
			rows := make([]int, 2+rng.IntN(40))
			for i := range rows {
				rows[i] = rng.IntN(400)
			}
			rows[0]++
			want, totals := estimates(t, a, grouped(t, n, k, rows...))
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			got, _ := estimates(t, a, grouped(t, n, k, rows...))
			if !slices.Equal(got, want) {
				t.Errorf("%s: the order of the groups %v changes the times", a.Describe().ID(), rows)
			}
			for i := range got {
				if got[i].Reject == "" && float64(got[i].Cycles) != totals[i] {
					t.Errorf("%s: groups %v: an estimate of %v, and the terms give %v",
						a.Describe().ID(), rows, got[i].Cycles, totals[i])
				}
			}
		}
	}
}

// Tiles do not reach from one group into the next, and each group reads a B of its own.
func TestRefinedGroupsCost(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Model: "refined"})
	c := gemm.Config{
		BlockM: 64, BlockN: 128, BlockK: 64, NumWarps: 4, NumStages: 3, SplitK: 1, GroupM: 8, Kernel: "triton",
	}
	value := func(p gemm.Problem, name string) float64 {
		d := a.Describe()
		row := make([]float64, len(d.Terms))
		must.Do(t, a.Terms(t.Context(), row, p, []gemm.Config{c}))
		return row[slices.IndexFunc(d.Terms, func(x arch.Term) bool { return x.Name == name })]
	}
	p := grouped(t, 4096, 2048, 1, 0, 64, 65, 130)
	got, want := value(p, "ctas"), float64((1+0+1+2+3)*4096/128)
	must.That(t, got == want, "%v CTAs, want %v", got, want)
	got, least := value(p, "dram_bytes"), float64(2*2048*(p.M+4*4096))
	must.That(t, got >= least, "%v B from DRAM, and the operands have %v", got, least)
	skewed, even := value(grouped(t, 4096, 4096, 4096, 1, 1, 1, 1, 1, 1, 1), "total"),
		value(grouped(t, 4096, 4096, slices.Repeat([]int{4103 / 8}, 8)...), "total")
	must.That(t, skewed >= even, "seven tiles of one row each cost nothing: %v cycles, %v without", skewed, even)
}

func TestModelsRefuseGroups(t *testing.T) {
	p := grouped(t, 4096, 4096, 100, 200)
	for _, c := range []struct{ model, kernel, says string }{
		{"refined", "mma", "does not predict mma kernels for problems in groups; use triton kernels"},
		{"reference", "", "for problems in groups; use another model, or ask about each group by itself"},
	} {
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Model: c.model})
		_, err := selector.RankOne(t.Context(), a, p, selector.Request{Space: arch.Space{Kernel: c.kernel}})
		must.That(t, err != nil && strings.Contains(err.Error(), c.says) && diag.KindOf(err) == diag.Input,
			"%s: %v, want %q", c.model, err, c.says)
	}
}
