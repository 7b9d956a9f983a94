package data_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The table of the experiment with groups says what the records give.
func TestGroupedTable(t *testing.T) {
	lines := []string{"m,n,k,dtype,groups,largest,best_us,best,torch_matmul_ratio,torch_grouped_mm_ratio"}
	ratios := map[string][]float64{}
	libraries := []string{"torch.matmul", "torch._grouped_mm"}
	for _, list := range []string{"fit", "test"} {
		folder := "sweeps/grouped/h200-" + list
		d := read(t, folder, os.DirFS(folder))
		for _, p := range d.Problems() {
			best := slices.MinFunc(d.Sweep(p), func(a, b dataset.Measurement) int { return cmp.Compare(a.Median, b.Median) })
			line := fmt.Sprintf("%d,%d,%d,%s,%d,%d,%.0f,%s w%d s%d", p.M, p.N, p.K, p.DType,
				p.Groups.Len(), slices.Max(p.Groups.List()), float64(best.Median)*1e6,
				fmt.Sprintf("%dx%dx%d", best.Config.BlockM, best.Config.BlockN, best.Config.BlockK),
				best.Config.NumWarps, best.Config.NumStages)
			for _, name := range libraries {
				m, ok := d.FindLibrary(p, name)
				if !ok {
					line += ","
					continue
				}
				ratio := float64(m.Median / best.Median)
				ratios[name] = append(ratios[name], ratio)
				line += fmt.Sprintf(",%.2f", ratio)
			}
			lines = append(lines, line)
		}
	}
	last := "geometric mean,,,,,,,"
	for _, name := range libraries {
		last += fmt.Sprintf(",%.2f", stats.QuantilesOf(ratios[name]).Geomean)
	}
	must.File(t, "../../../experiments/grouped-on-h200/groups.csv", strings.Join(append(lines, last, ""), "\n"), *update)
}
