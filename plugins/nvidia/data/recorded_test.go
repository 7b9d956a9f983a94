package data_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// recorded are the folders of measurements that are modules by themselves: the command's module lacks their 9 MB.
var recorded = []string{"grids", "h200-triton-executor", "h200-wgmma", "sweeps"}

// The recorded measurements are those that scores and fits rest on. SHA256SUMS is as `sha256sum -c` reads it.
func TestRecordedMeasurements(t *testing.T) {
	if _, err := os.Stat(recorded[0]); os.IsNotExist(err) {
		t.Skip("the module of the command does not have them")
	}
	var sums bytes.Buffer
	for _, folder := range recorded {
		must.Do(t, fs.WalkDir(os.DirFS("."), folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "go.mod" {
				return err
			}
			text, err := os.ReadFile(name)
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), name)
			return err
		}))
		if _, err := os.Stat(folder + "/go.mod"); err != nil {
			t.Errorf("%s is no module: %v", folder, err)
		}
	}
	must.File(t, "SHA256SUMS", sums.String(), *update)
}

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
