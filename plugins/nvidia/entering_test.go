//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// What is said not to enter a total does not change it.
func TestTermsThatDoNotEnterTheTotal(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, r := range []arch.OpenRequest{
		{Arch: "sm90", Device: "h200"}, {Arch: "sm90", Device: "h200", Rung: arch.RungCompiled}, {Arch: "sm89"},
		{Arch: "sm89", Model: "reference"},
	} {
		a := nvtest.Open(t, r)
		d := a.Describe()
		left := 0
		for range 60 {
			p := nvtest.RandomProblem(rng)
			p.DType = gemm.FP16
			list := must.Get(a.Candidates(t.Context(), p, arch.Space{}))(t)
			c := list.Configs[rng.IntN(len(list.Configs))]
			row := make([]float64, len(d.Terms))
			must.Do(t, a.Terms(t.Context(), row, p, []gemm.Config{c}))
			values := formula.Values(d, p, c, row)
			entering := formula.Entering(d, values)
			for i, term := range d.Terms {
				if !entering[i] && row[i] != 0 {
					values[term.Name] = 7*row[i] + 1
					left++
				}
			}
			for i, term := range d.Terms {
				if !entering[i] || term.Kind == arch.KindIntermediate || formula.IsRule(term.Formula) {
					continue
				}
				v, err := formula.Eval(term.Formula, values)
				if err != nil || math.Abs(v-row[i]) > 1e-9*math.Abs(row[i]) {
					t.Errorf("%s %s %s: %s is %v, %v without the others", d.ID(), p, c, term.Name, row[i], v)
				}
			}
		}
		if left == 0 && d.Model == "pipelined" {
			t.Errorf("%s on %s: every term enters every total", d.ID(), d.Rung)
		}
	}
}

// The times of a kernel by itself enter its total at the rung that has them only, and a last wave only if there is one.
func TestTermsEnterWhereTheyCount(t *testing.T) {
	p := gemm.New(4096, 4096, 4096)
	c := gemm.Config{Kernel: "triton", BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, SplitK: 1}
	for rung, timed := range map[arch.Rung]bool{arch.RungCharacterized: true, arch.RungCompiled: false} {
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: rung})
		d := a.Describe()
		row := make([]float64, len(d.Terms))
		must.Do(t, a.Terms(t.Context(), row, p, []gemm.Config{c}))
		want := map[string]bool{
			"chip_pace": timed, "one_2048": timed, "ctas": true, "waves": true, "l2_hit": true,
			"spill_step": false, "tail_loop": false, // 512 CTAs are 4 on the busiest of 132 SMs, one at a time
		}
		for i, entered := range formula.Entering(d, formula.Values(d, p, c, row)) {
			name := d.Terms[i].Name
			if expected, listed := want[name]; listed && entered != expected {
				t.Errorf("%s: %s = %v enters the total: %t", rung, name, row[i], entered)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s: no term %s", rung, name)
		}
	}
}
