package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A configuration that cannot win keeps its first samples. A steady one is measured the least number of times, a noisy
// one until the budget is spent.
func TestEnough(t *testing.T) {
	samples := func(times ...float64) []exec.Sample {
		var out []exec.Sample
		for _, v := range times {
			out = append(out, exec.Sample{Time: unit.Seconds(v)})
		}
		return out
	}
	ragged := []float64{1e-6, 2e-6, 3e-6, 4e-6}
	for name, c := range map[string]struct {
		samples []exec.Sample
		best    unit.Seconds
		want    bool
	}{
		"none":               {nil, 1, false},
		"two, hopeless":      {samples(26e-6, 27e-6), 10e-6, true},
		"two, a hiccup":      {samples(16e-6, 90e-6), 10e-6, false},
		"three, a hiccup":    {samples(16e-6, 90e-6, 17e-6), 10e-6, true},
		"two, one in reach":  {samples(26e-6, 14e-6), 10e-6, false},
		"one, hopeless":      {samples(26e-6), 10e-6, false},
		"one, long":          {samples(26e-3), 10e-3, true},
		"one, long, near":    {samples(14e-3), 10e-3, false},
		"two, no best":       {samples(26e-6, 27e-6), 0, false},
		"three, steady":      {samples(1e-6, 1.001e-6, 1.002e-6), 1e-6, true},
		"three, not steady":  {samples(1e-6, 1.1e-6, 1.2e-6), 1e-6, false},
		"three, long":        {samples(10e-3, 11e-3, 12e-3), 1e-6, true},
		"an outlier":         {samples(1e-6, 1.001e-6, 1.002e-6, 9e-6), 1e-6, true},
		"49, not steady":     {samples(slices.Repeat(ragged, 13)[:49]...), 1e-6, false},
		"50, not steady yet": {samples(slices.Repeat(ragged, 13)[:50]...), 1e-6, true},
	} {
		must.Equal(t, enough(c.samples, c.best), c.want, name)
	}
}

func TestTritonBLASProblems(t *testing.T) {
	seen := map[gemm.Problem]bool{}
	for _, p := range TritonBLASProblems() {
		if err := p.Validate(); err != nil || seen[p] {
			t.Errorf("%s: %v", p, err)
		}
		seen[p] = true
	}
	must.Equal(t, len(seen), 23)
}

func TestChoose(t *testing.T) {
	const none = 0
	for name, tc := range map[string]struct {
		times []unit.Seconds // of the candidates and the null arm
		want  int
		noise float64
	}{
		"the fastest":                     {[]unit.Seconds{1.2, 1.1, 1, 1.25}, 2, 1.25/1.2 - 1},
		"within the noise the first":      {[]unit.Seconds{1.02, 1.1, 1, 1.05}, 0, 1.05/1.02 - 1},
		"the null arm may be the faster":  {[]unit.Seconds{1.05, 1.1, 1.02, 1}, 0, 0.05},
		"the first has no time":           {[]unit.Seconds{none, 1.1, 1.2, none}, 1, math.NaN()},
		"the null arm has none":           {[]unit.Seconds{1.001, 1, 1.2, none}, 1, math.NaN()},
		"nobody has":                      {[]unit.Seconds{none, none, none}, -1, math.NaN()},
		"the first alone":                 {[]unit.Seconds{1, 1.5}, 0, 0.5},
		"never the null arm for another":  {[]unit.Seconds{1.5, 1.4, 1}, 0, 0.5},
		"equal times leave the first one": {[]unit.Seconds{1, 1, 1}, 0, 0},
	} {
		block := make([]dataset.Measurement, len(tc.times))
		for i, time := range tc.times {
			block[i] = dataset.Measurement{Status: dataset.OK, Median: time, Null: i == len(tc.times)-1}
			if time == none {
				block[i].Status = dataset.Failed
			}
		}
		got, noise := Choose(block)
		must.That(t, got == tc.want && !(math.Abs(noise-tc.noise) > 1e-12) && math.IsNaN(noise) == math.IsNaN(tc.noise),
			"%s: %d with noise %v, want %d with %v", name, got, noise, tc.want, tc.noise)
	}
}
