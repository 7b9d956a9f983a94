package measure_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// The parts of a work are disjoint, have all of it, and are about equal in cost.
func TestParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		costs := make([]unit.Seconds, random.IntN(60))
		total, largest := unit.Seconds(0), unit.Seconds(0)
		for i := range costs {
			costs[i] = unit.Seconds(random.ExpFloat64())
			total += costs[i]
			largest = max(largest, costs[i])
		}
		n := 1 + random.IntN(9)
		var all []int
		for i := range n {
			part, load := measure.Shard{Index: i + 1, Of: n}.Part(costs), unit.Seconds(0)
			if !slices.IsSorted(part) {
				t.Fatal(part)
			}
			for _, at := range part {
				load += costs[at]
			}
			if best := max(total/unit.Seconds(n), largest); load > best*4/3+1e-9 && load > total/unit.Seconds(n)+largest {
				t.Errorf("part %d of %d has %v of %v, the largest piece is %v", i+1, n, load, total, largest)
			}
			all = append(all, part...)
		}
		slices.Sort(all)
		for i, at := range all {
			if i != at || len(all) != len(costs) {
				t.Fatalf("%v of %d pieces", all, len(costs))
			}
		}
	}
	if got := (measure.Shard{}).Part(make([]unit.Seconds, 3)); !slices.Equal(got, []int{0, 1, 2}) {
		t.Error(got)
	}
	if s := (measure.Shard{Index: 2, Of: 4}); s.String() != "2/4" {
		t.Error(s)
	}
}
