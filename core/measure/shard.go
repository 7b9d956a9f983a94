package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/unit"
)

// MostShards is the most parts that a work has.
const MostShards = 1 << 16

// Shard is one of several parts of a work, numbered from 1. The zero value is all of it.
type Shard struct{ Index, Of int }

// String writes a shard as in 2/4.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Part returns the places of the shard's pieces of a work, in their order. The largest piece goes first, each to the
// part that is smallest so far, and of equal ones to the first. So the parts depend on the costs alone. No part is
// larger than 4/3 of the largest part of the best partition (Graham, SIAM J. Appl. Math. 17, 1969).
func (s Shard) Part(costs []unit.Seconds) []int {
	order := make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	if s.Of == 0 {
		return order
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	load := make([]unit.Seconds, s.Of)
	var part []int
	for _, i := range order {
		least := slices.Index(load, slices.Min(load))
		load[least] += costs[i]
		if least == s.Index-1 {
			part = append(part, i)
		}
	}
	slices.Sort(part)
	return part
}

// Overhead is about how long a measurement takes beside its timed runs: compiling ahead, checking the result, flushing
// the L2. The shipped sweeps made 33 (Triton) to 45 (generated kernels) measurements per second.
const Overhead = unit.Seconds(22e-3)

// Cost is about how long it takes to measure a candidate of a sweep that takes t: the overhead, and the timed runs of
// the policy.
func Cost(t unit.Seconds) unit.Seconds {
	return Overhead + max(minSamples*t, min(maxSamples*t, sampleBudget))
}
