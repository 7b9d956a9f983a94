package stats

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"math/rand/v2"
	"testing"
)

// New clusters are covered at the level, although their residuals have an error in common.
func TestConformalCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	clusters := func(n int) [][]Residual {
		all := make([][]Residual, n)
		for i := range all {
			common := 0.2 * random.NormFloat64()
			for range 20 {
				kind := random.IntN(2)
				all[i] = append(all[i], Residual{math.Abs(common + 0.1*float64(1+2*kind)*random.NormFloat64()), kind})
			}
		}
		return all
	}
	covered, of := 0, 0
	for range 40 {
		limits, used := NewConformal(clusters(40), [][]int{{0, 2}, {1, 2}}, 8).Limits(0.1)
		for _, residuals := range clusters(50) {
			for _, r := range residuals {
				of++
				if r.Value <= limits[used[r.Kind]] {
					covered++
				}
			}
		}
	}
	coverage := float64(covered) / float64(of)
	must.That(t, coverage >= 0.87 && coverage <= 0.94, "coverage %.3f", coverage)
}

// A kind with too few clusters uses a more general group, and its last group in any case.
func TestConformalGroups(t *testing.T) {
	clusters := make([][]Residual, 12)
	for i := range clusters {
		clusters[i] = []Residual{{Value: float64(i), Kind: 0}}
		if i < 3 {
			clusters[i] = append(clusters[i], Residual{Value: 100, Kind: 1})
		}
	}
	c := NewConformal(clusters, [][]int{{0, 2}, {1, 2}, {3, 4}}, 8)
	limits, used := c.Limits(0.5)
	if c.Clusters() != 12 || used[0] != 0 || used[1] != 2 || used[2] != 4 {
		t.Errorf("%d clusters, groups %v", c.Clusters(), used)
	}
	must.That(t, math.IsNaN(limits[4]) && limits[0] >= 6 && limits[2] >= limits[0], "limits %v", limits)
	if empty := NewConformal([][]Residual{nil, nil}, [][]int{{0}}, 8); empty.Clusters() != 0 {
		t.Errorf("%d clusters without residuals", empty.Clusters())
	} else if limits, _ := empty.Limits(0.1); !math.IsNaN(limits[0]) {
		t.Errorf("limits %v without residuals", limits)
	}
}
