package measure

import (
	"fmt"
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
		err := p.Validate()
		must.That(t, err == nil && !seen[p], "%s: %v", p, err)
		seen[p] = true
	}
	must.Equal(t, len(seen), 23)
}

// A kernel is tied whose time two runs of it cannot tell from the pick's. The fastest comes first.
func TestTies(t *testing.T) {
	timed := func(tile int, samples ...unit.Seconds) dataset.Measurement {
		return dataset.Measurement{Config: gemm.Config{BlockM: tile}, Status: dataset.OK, Median: samples[0],
			Samples: samples}
	}
	pick, failed := timed(16, 1, 1, 1), timed(128, 1, 1, 1)
	failed.Status = dataset.Failed
	others := []dataset.Measurement{pick, timed(32, 1.012, 1.012, 1.012), timed(64, 1.5, 1.5, 1.5), failed,
		timed(256, 1.001, 1.001, 1.001)}
	var tied []int
	for _, tie := range Ties(&pick, others) {
		tied = append(tied, tie.Config.BlockM)
	}
	must.Equal(t, fmt.Sprint(tied), "[256 32]")
}
