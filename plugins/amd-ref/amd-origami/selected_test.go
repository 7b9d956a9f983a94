package amdorigami

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// TestGoldenSelected compares the selector's results: the five best candidates before and after the tie-break, the size
// of the leading group, and both mappings.
func TestGoldenSelected(t *testing.T) {
	ctx := context.Background()
	opened := opener{}
	var result selector.Result
	each(t, "amd_selected.csv", func(r record) {
		opts := []string{"occ=" + r.text("occupancy"), "grid=" + r.text("grid_mode")}
		if r.text("set") == "mi" {
			opts = append(opts, "mi=32x32x8")
		}
		a := opened.open(t, r.text("arch"), opts...)
		p := r.problem(r.text("dtype"))
		rank := r.int("rank") - 1
		if rank == 0 {
			s := selector.New(a, arch.Space{})
			var full selector.Result
			must.Do(t, s.Rank(ctx, p, 0, &full))
			must.Do(t, s.Rank(ctx, p, 5, &result))
			for i, e := range result.Entries {
				if e != full.Entries[i] {
					t.Errorf("rank %d of five is %v, of all %v", i+1, e, full.Entries[i])
				}
			}
		}
		if result.Feasible != r.int("n_valid") || result.Feasible+result.RejectedTotal() != 150 {
			t.Errorf("%d candidates of %d, want %s", result.Feasible, result.Feasible+result.RejectedTotal(),
				r.text("n_valid"))
		}
		e := result.Entries[rank]
		r.want("MT_M", float64(e.Config.BlockM))
		r.want("MT_N", float64(e.Config.BlockN))
		r.want("MT_K", float64(e.Config.BlockK))
		r.want("latency", float64(e.Estimate.Cycles))
		r.want("arith_intensity", e.Config.Intensity())
		r.want("wgm_jan_xcc", float64(e.Mapping.XCDs))
		r.want("wgm_jan", float64(e.Mapping.GroupM))
		feb := must.Get(opened.open(t, r.text("arch"), append(opts, "mapping=feb")...).Mapping(ctx, p, e.Config))(t)
		r.want("wgm_feb_chunk", float64(feb.Chunk))
		r.want("wgm_feb_xcc", float64(feb.XCDs))
		r.want("wgm_feb", float64(feb.GroupM))

		list := must.Get(a.Candidates(ctx, p, arch.Space{}))(t)
		estimates := make([]arch.Estimate, len(list.Configs))
		must.Do(t, a.Estimate(ctx, estimates, p, list.Configs))
		order := make([]int, 0, len(estimates))
		for i := range estimates {
			if estimates[i].Reject == "" {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(i, j int) int {
			return cmp.Compare(estimates[i].Cycles, estimates[j].Cycles)
		})
		pure := order[rank]
		r.want("pure_order_MT_M", float64(list.Configs[pure].BlockM))
		r.want("pure_order_MT_N", float64(list.Configs[pure].BlockN))
		r.want("pure_order_MT_K", float64(list.Configs[pure].BlockK))
		r.want("pure_order_latency", float64(estimates[pure].Cycles))
		best, within := float64(estimates[order[0]].Cycles), 0
		for _, i := range order {
			if math.Abs(float64(estimates[i].Cycles)-best)/best < 0.01 {
				within++
			}
		}
		r.want("n_within_1pct", float64(within))
	})
}
