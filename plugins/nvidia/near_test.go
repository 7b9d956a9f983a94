//go:build !race

package nvidia_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// The times of picks that the plugin ships lower the error on the picks of other problems: with their own sizes left
// out, with all of about their N and K, and with their data set. The intervals, which they narrow, hold 90 % of the
// times but for one family. Of an H100's wgmma and an H200's triton they do not, and none are shipped: 5.7 % becomes
// 6.8, and 7.7 becomes 8.2.
func TestNear(t *testing.T) {
	for _, s := range []struct {
		device, kernel string
		sets           []string             // patterns
		before         float64              // the mean error in per cent
		after          map[string][]float64 // by what is left out: the error, and the share in intervals
	}{
		{"h200", "wgmma", []string{"h200-wgmma/*/wgmma-*"}, 5.2, map[string][]float64{
			residual.WithoutSame: {4.2, 0.95}, "without-near": {4.3, 0.95}, "set": {3.8, 0.9}}},
		{"h100", "sgemm", []string{"h100-sgemm", "sweeps/sgemm*/sgemm-*"}, 14.7, map[string][]float64{
			residual.WithoutSame: {9.8, 0.87}, "without-near": {9.8, 0.87}, "set": {10.7, 0.87}}},
		{"h100", "triton_persistent", []string{"h100-persistent/h100-*"}, 6.5, map[string][]float64{
			residual.WithoutSame: {3.2, 0.95}, "without-near": {3.2, 0.95}, "set": {3.4, 0.95}}},
	} {
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: s.device, Kernel: s.kernel})
		var all []residual.Measured
		var sets []string
		for _, pattern := range s.sets {
			for _, folder := range must.Get(filepath.Glob("data/" + pattern + "/dataset.json"))(t) {
				name := must.Get(filepath.Rel("data", filepath.Dir(folder)))(t)
				if set := readSet(t, name); set.Device == s.device && set.Kernel == s.kernel {
					for _, m := range residual.Picks(t.Context(), a, set) {
						if p := &m.Problem; p.LDA+p.LDB+p.LDC+p.Batch == 1 && p.Groups == (gemm.Groups{}) {
							all, sets = append(all, m), append(sets, name)
						}
					}
				}
			}
		}
		var text strings.Builder
		for i := range all {
			fmt.Fprintf(&text, "%s\n", must.Get(json.Marshal(all[i]))(t))
		}
		must.File(t, fmt.Sprintf("data/near/%s-%s.jsonl", s.device, s.kernel), text.String(), *update)
		if rows := data.Near(s.device, s.kernel); !*update && (rows == nil || len(rows()) < len(all)) {
			t.Errorf("the program has other times of %s", s.kernel)
		}

		// score is the mean error, and the share of times in their intervals, with the times of other sets or of all.
		score := func(without residual.Problem, bySet bool) (mean, held float64) {
			corrected := map[string]arch.Architecture{}
			for i, m := range all {
				set := ""
				if bySet {
					set = sets[i]
				}
				if corrected[set] == nil {
					var rows []residual.Measured
					for j := range all {
						if sets[j] != set {
							rows = append(rows, all[j])
						}
					}
					corrected[set] = residual.Beside(a, &residual.Times{Like: a, Without: without,
						Rows: residual.ByKernel(rows)})
				}
				b, e := corrected[set], [1]arch.Estimate{}
				must.Do(t, b.Estimate(t.Context(), e[:], m.Problem, []gemm.Config{m.Config}))
				predicted := e[0].Cycles.At(b.Describe().Clock)
				mean += 100 * math.Abs(float64(predicted/m.Time)-1) / float64(len(all))
				scope := b.Describe().Scope(s.kernel, &m.Problem, m.Config.SplitK)
				if low, high, _ := scope.Interval(e[0], predicted); low <= m.Time && m.Time <= high {
					held += 1 / float64(len(all))
				}
			}
			return mean, held
		}
		before, _ := score(residual.Problem{WithoutSame: true, Within: 1e9}, false)
		for what, want := range s.after {
			without, _ := residual.Without(what)
			after, held := score(without, what == "set")
			must.Hold(t, before <= s.before && after <= want[0] && held >= want[1],
				"%s %s, %d times, %s: off by %.2f %%, with them %.2f %%, of which intervals hold %.3f", s.device, s.kernel,
				len(all), what, before, after, held)
		}
	}
}

// inModels are times of picks in a running model: of the first layers and draws on an H100, or of sizes that were timed
// in several timings.
func inModels(t *testing.T, a arch.Architecture, kernel, files string, of timing.Timing) (all []residual.Measured) {
	t.Helper()
	for _, file := range strings.Fields(files) {
		all = append(all, inModelsOf(t, a, kernel, file, of)...)
	}
	return all
}

func inModelsOf(t *testing.T, a arch.Architecture, kernel, file string, of timing.Timing) (all []residual.Measured) {
	t.Helper()
	type row struct {
		M, N, K     int
		TransB      *bool `json:"trans_b"` // true if absent
		DType, Pick string
		Ours        float64 // µs
		Seconds     map[string]map[string]unit.Seconds
		Kernels     map[string]string
	}
	text := must.Get(os.ReadFile("../../experiments/" + file))(t)
	var rows []row
	if strings.HasSuffix(file, ".json") {
		must.Do(t, json.Unmarshal(text, &rows))
	} else {
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] { // the first has the environment
			var one row
			must.Do(t, json.Unmarshal([]byte(line), &one))
			rows = append(rows, one)
		}
	}
	for _, r := range rows {
		text, seconds := cmp.Or(r.Pick, r.Kernels[kernel]), cmp.Or(r.Seconds[kernel][string(of)], unit.Seconds(r.Ours*1e-6))
		if text == "" || seconds == 0 {
			continue
		}
		problem := gemm.Record{M: r.M, N: r.N, K: r.K, Batch: 1, TransB: r.TransB == nil || *r.TransB, DType: r.DType}
		if r.DType == "fp8" {
			problem.Out = "fp16"
		}
		all = append(all, residual.Measured{Problem: must.Get(problem.Problem())(t), Time: seconds, Timing: of,
			Config: must.Get(gemm.ParseConfig(text, gemm.Config{Kernel: kernel}, a.Describe().Axes(kernel)...))(t)})
	}
	return all
}

// moved are times as another device of the die would have them: longer or shorter as the prediction is.
func moved(t *testing.T, from, to arch.Architecture, all []residual.Measured) []residual.Measured {
	t.Helper()
	for i := range all {
		m := &all[i]
		var predicted [2]unit.Seconds
		for j, a := range []arch.Architecture{from, to} {
			var e [1]arch.Estimate
			must.Do(t, a.Estimate(t.Context(), e[:], m.Problem, []gemm.Config{m.Config}))
			predicted[j] = timing.New(a).Convert(e[0].Cycles.At(a.Describe().Clock), &m.Problem, timing.Events, m.Timing)
		}
		m.Time = unit.Seconds(must.Get(strconv.ParseFloat(fmt.Sprintf("%.5g", m.Time*predicted[1]/predicted[0]), 64))(t))
	}
	return all
}

// Times in running models lower the error, there and between events: of sizes without the times of their own, those of
// the other device included, and on layers of other models and on other draws, none of which is shipped.
func TestNearInModels(t *testing.T) {
	p, several := nvtest.Provider(t), map[string]string{"h100": "timings-on-h200/h100.jsonl",
		"h200": "timings-on-h200/again.jsonl timings-on-h200/wider.jsonl"}
	for _, s := range []struct {
		device, other, kernel string
		first                 []string                     // of an H100
		off                   map[string][2]float64        // on others, in per cent
		left                  map[timing.Timing][2]float64 // on sizes without their own times
	}{
		{"h100", "h200", "wgmma", []string{"layers-on-h100/layers.json", "layers-on-h100/drawn.json"},
			map[string][2]float64{"layers-on-h100/layers-since.json": {5.3, 3},
				"layers-on-h100/drawn-since.json": {9, 5.2}},
			map[timing.Timing][2]float64{timing.Model: {6.9, 5.9}, timing.Events: {5, 4.1}, timing.Sustained: {7.5, 3.9}}},
		{"h200", "h100", "wgmma", []string{"layers-on-h100/layers.json", "layers-on-h100/drawn.json"},
			map[string][2]float64{"timings-on-h200/wider.jsonl": {9.1, 7.6}},
			map[timing.Timing][2]float64{timing.Model: {9.2, 7}, timing.Events: {7.4, 6}, timing.Sustained: {5.6, 3.2}}},
		{"h100", "h200", "triton", nil, nil,
			map[timing.Timing][2]float64{timing.Model: {12.1, 8.7}, timing.Events: {8.1, 6.5}, timing.Sustained: {13.8, 6.1}}},
		{"h200", "h100", "triton", nil, map[string][2]float64{"timings-on-h200/wider.jsonl": {16.9, 12.4}},
			map[timing.Timing][2]float64{timing.Model: {13.8, 8.7}, timing.Events: {9.5, 6.3}, timing.Sustained: {12.9, 5.3}}},
	} {
		at := func(device string) arch.Architecture {
			return nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: device, Kernel: s.kernel})
		}
		a, other, h100 := at(s.device), at(s.other), at("h100")
		var all []residual.Measured
		for _, file := range s.first {
			all = append(all, inModels(t, a, s.kernel, file, timing.Model)...)
		}
		all = append(moved(t, h100, a, all), inModels(t, a, s.kernel, several[s.device], timing.Model)...)
		all = append(all, moved(t, other, a, inModels(t, a, s.kernel, several[s.other], timing.Model))...)
		var text strings.Builder
		for _, m := range all {
			fmt.Fprintf(&text, "%s\n", must.Get(json.Marshal(m))(t))
		}
		must.File(t, fmt.Sprintf("data/near/%s-%s-model.jsonl", s.device, s.kernel), text.String(), *update)

		score := func(file string, of timing.Timing) (off [2]float64) {
			for i, nearby := range []string{residual.None, residual.WithoutSame} {
				b := timing.In(must.Get(p.Open(t.Context(), arch.OpenRequest{Arch: "sm90", Device: s.device, Kernel: s.kernel,
					Options: map[string]string{residual.Nearby: nearby, timing.Option: string(of)}}))(t), of)
				rows := inModels(t, a, s.kernel, file, of)
				for _, m := range rows {
					var e [1]arch.Estimate
					must.Do(t, b.Estimate(t.Context(), e[:], m.Problem, []gemm.Config{m.Config}))
					off[i] += 100 * math.Abs(float64(e[0].Cycles.At(b.Describe().Clock)/m.Time)-1) / float64(len(rows))
				}
			}
			return off
		}
		hold := func(what string, off, want [2]float64) {
			must.Hold(t, off[0] <= want[0] && off[1] <= want[1], "%s %s, %s: off by %.2f %%, with times of others %.2f %%",
				s.device, s.kernel, what, off[0], off[1])
		}
		for file, want := range s.off {
			hold(file, score(file, timing.Model), want)
		}
		for of, want := range s.left {
			hold(string(of), score(strings.Fields(several[s.device])[0], of), want)
		}
	}
}
