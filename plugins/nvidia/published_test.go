//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// leastPublished is the measured time from which on kernels count. The published times have a fixed part that is not
// the kernel's: 512x512x512 takes 65 µs on the RTX 4090, and 24 µs on the RTX 3090.
const leastPublished = 150 * unit.Seconds(1e-6)

// says fails a test if a document has other figures than the test found.
func says(t testing.TB, file, figures string) {
	t.Helper()
	if !strings.Contains(string(must.Get(os.ReadFile(file))(t)), figures) {
		t.Errorf("%s does not say %q", file, figures)
	}
}

// On GPUs that no quantity was fitted on, published times of kernels are predicted within 10 % at the median, also of
// kernels that spill, and no kernel is predicted 1.5 times too fast. A compiler's report on the kernels alone makes those
// that spill worse, so that the model refuses the rung compiled there (compiledWorse).
func TestPublishedTimes(t *testing.T) {
	for _, f := range []struct {
		arch, name, folder string
		kernels, spill     int
	}{{"sm89", "RTX 4090", "rtx4090-triton-published", 15, 7}, {"sm86", "RTX 3090", "rtx3090-triton-published", 17, 5}} {
		s := score.SubsetOf(readSet(t, f.folder))
		if !s.OnePerProblem() {
			t.Fatalf("%s has several kernels of a problem", f.folder)
		}
		all, err := s.Rows(t.Context(), nvtest.Open(t, arch.OpenRequest{Arch: f.arch}), s.Problems...)
		if err != nil {
			t.Fatal(err)
		}
		counts := func(s *score.Row) bool { return s.Measured >= leastPublished }
		spills := func(s *score.Row) bool { return counts(s) && s.Resources.SpillBytes > 0 }
		for _, g := range []struct {
			name   string
			of     func(*score.Row) bool
			count  int
			median float64
		}{{"all", counts, f.kernels, 0.1}, {"with spills", spills, f.spill, 0.15}} {
			r := score.RatiosOf(all, g.of)
			t.Logf("%s %s: predicted ÷ measured of %d kernels: median %.3f, %.3f to %.3f", f.arch, g.name, r.Count, r.Median,
				r.Least, r.Large)
			if r.Count != g.count || r.Median < 1-g.median || r.Median > 1+g.median || r.Least < 1/1.5 || r.Large > 1.5 {
				t.Errorf("%s %s: predicted ÷ measured of %d kernels: median %.3f, %.3f to %.3f", f.arch, g.name, r.Count,
					r.Median, r.Least, r.Large)
			}
		}
		table := must.Get(data.Compiled.ReadFile("compiled/triton.csv"))(t)
		reported := must.Get(s.Rows(t.Context(), nvtest.Open(t, arch.OpenRequest{Arch: f.arch, Compiled: table}),
			s.Problems...))(t)
		own, withTable := score.RatiosOf(all, spills), score.RatiosOf(reported, spills)
		says(t, "data/README.md", fmt.Sprintf("|%s, published, %d kernels that spill|%.2f (%.2f–%.2f)|%.2f (%.2f–%.2f)|", f.name,
			own.Count, own.Median, own.Least, own.Large, withTable.Median, withTable.Least, withTable.Large))
		why := nvtest.Open(t, arch.OpenRequest{Arch: f.arch, Rung: arch.RungCompiled}).Describe().RungReason
		if want := fmt.Sprintf("RTX 4090: predicted %.2f of the measured times with it, %.2f without", withTable.Median,
			own.Median); f.arch == "sm89" && !strings.Contains(why, want) {
			t.Errorf("rung compiled is refused %q, want %q", why, want)
		}
	}
}

// The two reports on tritonBLAS's port give the fastest measured of 122 kernels for 23 sizes each. What the refined
// model predicts for its own fastest of them is off by 8 and 9 % at the median from 4 GFLOP on; below, their times are
// of launches. experiments/reference-on-h200 has the reports' summaries beside an H200's.
func TestPublishedBests(t *testing.T) {
	lines := csvtest.Read(t, "../../experiments/reference-on-h200/published.csv")
	column := func(line []string, name string) float64 {
		v, err := strconv.ParseFloat(line[slices.Index(lines[0], name)], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	opened, names := map[string]arch.Architecture{}, map[string]string{"sm89": "RTX 4090", "sm86": "RTX 3090"}
	of := map[string][]float64{} // best rate that is predicted ÷ measured
	for _, line := range lines[1:] {
		id := line[0]
		if opened[id] == nil {
			opened[id] = nvtest.Open(t, arch.OpenRequest{Arch: id})
		}
		p := gemm.New(int(column(line, "m")), int(column(line, "n")), int(column(line, "k")))
		if p.Flops() < 4e9 {
			continue
		}
		space := arch.Space{
			BlockM: []int{16, 32, 64, 128, 256}, BlockN: []int{16, 32, 64, 128, 256},
			BlockK: []int{16, 32, 64, 128, 256, 512}, NumWarps: []int{8}, NumStages: []int{2}, SplitK: []int{1},
		}
		var r selector.Result
		if err := selector.New(opened[id], space).Select(t.Context(), p, &r); err != nil {
			t.Fatal(err)
		}
		seconds := float64(r.Entries[0].Estimate.Cycles) / float64(opened[id].Describe().Clock)
		of[id] = append(of[id], float64(p.Flops())/seconds/1e12/column(line, "best_tflops"))
	}
	for id, ratios := range of {
		errors := make([]float64, len(ratios))
		product := 1.0
		for i, r := range ratios {
			errors[i] = math.Abs(r - 1)
			product *= math.Pow(r, 1/float64(len(ratios)))
		}
		slices.Sort(ratios)
		slices.Sort(errors)
		median := errors[len(errors)/2]
		t.Logf("%s: best rate predicted ÷ measured of %d sizes: %.2f at the geometric mean, %.2f to %.2f, off by %.0f %% at "+
			"the median", id, len(ratios), product, ratios[0], ratios[len(ratios)-1], 100*median)
		says(t, "../../experiments/README.md", fmt.Sprintf("%.2f (%.2f to %.2f, %s)", product, ratios[0],
			ratios[len(ratios)-1], names[id]))
		if len(ratios) < 18 || median > 0.12 || math.Abs(product-1) > 0.1 {
			t.Errorf("%s: %d sizes, geometric mean %.2f, median error %.2f", id, len(ratios), product, median)
		}
	}
}
