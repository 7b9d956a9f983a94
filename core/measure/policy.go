package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// These constants say how often something is measured. Times are kernel times, the sum of the samples.
const (
	// finalWarmup is the number of runs before the first timed run of the finals. They load code and tables and
	// take the clock out of idle. In a sweep the result check has done that.
	finalWarmup = 1
	// minSamples is the least number of samples to estimate a median and its error from.
	minSamples = 3
	// maxSamples and sampleBudget end a measurement that does not become steady. At 30 ms each, 500 candidates take
	// 15 s of device time. At 50 samples the median of a kernel with 5 % of noise is known to 1 %.
	maxSamples   = 50
	sampleBudget = unit.Seconds(30e-3)
	// steady is the relative standard error of the median that ends a measurement. It is about the noise of one run.
	steady = 0.01
	// A candidate whose samples are all slower than hopelessRatio times the best so far cannot be the fastest. It
	// is left at two samples that agree, at three, or at one that took hopelessTime, so that tau still has its time.
	// The ratio allows for the clock: under a power limit the clock of an H200 moves by a quarter. Of two
	// samples of which one is more than disagreeing times the other, one had a hiccup, and their mean would be wrong:
	// probably why 0.35 % of 264,600 times on two H100s were too long, 4 times at the median of these
	// (experiments/two-gpus).
	hopelessSamples = 3
	hopelessTime    = unit.Seconds(1e-3)
	hopelessRatio   = 1.5
	disagreeing     = 1.25

	// finalists is how many of the fastest candidates are measured again beside the pick. The fastest of many is
	// partly the luckiest, and measuring a few again corrects that.
	finalists = 3
	// A block of finals goes on in rounds of one sample each: at least minRounds, and then until finalBudget is
	// used up or maxRounds are done.
	minRounds   = 10
	maxRounds   = 50
	finalBudget = unit.Seconds(0.5)

	// maxCrashes is how many configurations in a row may be failed because they end the executor's process before the
	// sweep gives up. One bad kernel does that, and its neighbours may have the same fault. Three in a row without a
	// success are more likely the device's fault. Before any kernel has worked it is the number of deaths.
	maxCrashes = 3
)

// enough reports whether a candidate has enough samples. best is the best median so far, 0 if there is none.
func enough(samples []exec.Sample, best unit.Seconds) bool {
	n := len(samples)
	few := n == 1 && samples[0].Time >= hopelessTime ||
		n == 2 && max(samples[0].Time, samples[1].Time) <= disagreeing*min(samples[0].Time, samples[1].Time)
	if best > 0 && (n >= hopelessSamples || few) &&
		!slices.ContainsFunc(samples, func(s exec.Sample) bool { return s.Time <= hopelessRatio*best }) {
		return true
	}
	if n < minSamples {
		return false
	}
	if n >= maxSamples {
		return true
	}
	var room [maxSamples]unit.Seconds
	times, total := room[:0], unit.Seconds(0)
	for _, s := range samples {
		times, total = append(times, s.Time), total+s.Time
	}
	return total >= sampleBudget || stats.MedianError(times) <= steady
}

// TritonBLASProblems returns the 23 problems that tritonBLAS's NVIDIA port was evaluated on (its report of
// 2026-02-12, table 7.2): squares from 64 to 8192, and the decode, prefill and projection shapes of Llama-sized
// layers. They are fp16 and row-major.
func TritonBLASProblems() []gemm.Problem {
	var problems []gemm.Problem
	for _, s := range [][3]int{
		{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
		{2048, 2048, 2048}, {128, 4096, 4096}, {128, 4096, 14336}, {128, 14336, 4096}, {64, 16384, 4096},
		{128, 8192, 4096}, {8192, 128, 4096}, {16384, 64, 4096}, {128, 8192, 8192}, {128, 8192, 28672},
		{128, 28672, 8192}, {4096, 4096, 4096}, {4096, 4096, 14336}, {4096, 14336, 4096}, {8192, 8192, 8192},
		{8192, 14336, 4096}, {8192, 28672, 8192}, {8192, 53248, 16384},
	} {
		problems = append(problems, gemm.New(s[0], s[1], s[2]))
	}
	return problems
}

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
