package tritonblas_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

func problem(t testing.TB, row map[string]string) gemm.Problem {
	return gemm.New(csvtest.Int(t, row, "M"), csvtest.Int(t, row, "N"), csvtest.Int(t, row, "K"))
}

// goldenTerms are the model outputs in the candidate files. Each is a term of the same name in lower case.
var goldenTerms = []string{
	"WGM", "N_MMA", "L_compute", "grid_m", "grid_n", "active_SMs", "num_waves", "l2_hit", "L_mem", "utilization",
	"L_prologue", "L_epilogue", "num_iter", "L_tile", "L_total",
}

func TestGoldenCandidates(t *testing.T) {
	ctx := context.Background()
	for _, id := range []string{"sm89", "sm86"} {
		t.Run(id, func(t *testing.T) {
			a := nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: id})
			column := map[string]int{}
			for i, term := range a.Describe().Terms {
				column[term.Name] = i
			}
			rows := csvtest.Named(t, "testdata/golden/"+id+"_candidates.csv.gz")
			must.Need(t, len(rows) == 2806, "%d rows, want 23 sizes × 122 configurations", len(rows))
			width := len(a.Describe().Terms)
			for first := 0; first < len(rows); first += 122 {
				p := problem(t, rows[first])
				candidates := must.Get(a.Candidates(ctx, p, arch.Space{}))(t)
				must.Need(t, len(candidates.Configs) == 122 && len(candidates.Rejected) == 28,
					"%d candidates and %d rejected, want 122 and 28", len(candidates.Configs), len(candidates.Rejected))
				terms := make([]float64, 122*width)
				must.Do(t, a.Terms(ctx, terms, p, candidates.Configs))
				estimates := archtest.Estimates(t, a, p, candidates.Configs...)
				for i, c := range candidates.Configs {
					row := rows[first+i]
					if problem(t, row) != p || c.BlockM != csvtest.Int(t, row, "BM") || c.BlockN != csvtest.Int(t, row, "BN") ||
						c.BlockK != csvtest.Int(t, row, "BK") {
						t.Fatalf("row %d is %v, candidate %d is %s", first+i, row, i, c)
					}
					for _, name := range goldenTerms {
						want := csvtest.Float(t, row, name)
						j, ok := column[strings.ToLower(name)]
						if !ok {
							t.Fatalf("no term %s", strings.ToLower(name))
						}
						got := terms[i*width+j]
						must.That(t, math.Float64bits(got) == math.Float64bits(want), "%s %s: %s = %v, want %v", p, c, name, got, want)
					}
					if want := csvtest.Float(t, row, "L_total"); float64(estimates[i].Cycles) != want {
						t.Errorf("%s %s: estimate %v, want %v", p, c, estimates[i].Cycles, want)
					}
				}
			}
		})
	}
}

func TestGoldenPicks(t *testing.T) {
	for _, id := range []string{"sm89", "sm86"} {
		t.Run(id, func(t *testing.T) {
			s := selector.New(nvtest.Open(t, arch.OpenRequest{Model: "reference", Arch: id}), arch.Space{})
			rows := csvtest.Named(t, "testdata/golden/"+id+"_selected.csv")
			must.Need(t, len(rows) == 23, "%d rows, want 23", len(rows))
			var result selector.Result
			for _, row := range rows {
				p := problem(t, row)
				must.Do(t, s.Select(context.Background(), p, &result))
				got := result.Entries[0]
				want := [4]int{
					csvtest.Int(t, row, "doc_BM"), csvtest.Int(t, row, "doc_BN"), csvtest.Int(t, row, "doc_BK"),
					csvtest.Int(t, row, "doc_group_size_m"),
				}
				c := &got.Config
				tile := [4]int{c.BlockM, c.BlockN, c.BlockK, c.GroupM}
				must.That(t, tile == want, "%s: picked %v, published %v", p, tile, want)
				latency := csvtest.Float(t, row, "predicted_latency")
				must.That(t, float64(got.Estimate.Cycles) == latency, "%s: predicted %v, want %v", p, got.Estimate.Cycles, latency)
			}
		})
	}
}
