package data_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var update = flag.Bool("update", false,
	"write the table of experiments/triton-on-h200/agreement.csv, and zproblems.go")

func read(t *testing.T, name string, files fs.FS) *dataset.Dataset {
	t.Helper()
	return must.Get(dataset.Read(name, files))(t)
}

// The same kernels on two machines of one kind, timed by two programs: the table in docs says how far they agree.
func TestTritonExecutorAgreesWithTheSweep(t *testing.T) {
	sweep := read(t, "h200-triton", os.DirFS("h200-triton"))
	executor := read(t, "h200-triton-executor", os.DirFS("h200-triton-executor"))

	var table bytes.Buffer
	fmt.Fprintln(&table, "m,n,k,shared_configs,ratio_p5,ratio_median,ratio_p95,ratio_of_fastest,tau")
	for _, p := range executor.Problems() {
		var ratios, before, now []float64
		for _, m := range executor.Sweep(p) {
			if old, ok := sweep.Find(p, m.Config); ok && old.Status == dataset.OK && m.Status == dataset.OK {
				ratios = append(ratios, float64(m.Median/old.Median))
				before, now = append(before, float64(old.Median)), append(now, float64(m.Median))
			}
		}
		if len(ratios) < 100 {
			t.Errorf("%s: only %d configurations in common", p, len(ratios))
			continue
		}
		tau := must.Get(stats.TauB(before, now))(t)
		slices.Sort(ratios)
		fmt.Fprintf(&table, "%d,%d,%d,%d,%.3f,%.3f,%.3f,%.3f,%.3f\n", p.M, p.N, p.K, len(ratios),
			stats.Quantile(ratios, 0.05), stats.Quantile(ratios, 0.5), stats.Quantile(ratios, 0.95),
			slices.Min(now)/slices.Min(before), tau)
	}
	must.File(t, "../../../experiments/triton-on-h200/agreement.csv", table.String(), *update)
}
