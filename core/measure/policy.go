package measure

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
)

// How often something is measured. Times are kernel times: what the samples add up to.
const (
	// finalWarmup runs come before the first timed one of the finals: code and tables have been loaded, the clock has left
	// idle. In a sweep the check of the result has seen to that.
	finalWarmup = 1
	// minSamples is the least that a median and its error can be taken of.
	minSamples = 3
	// maxSamples and sampleBudget end a measurement that does not become steady. At 30 ms each, 500 candidates take 15 s
	// of a device; at 50 samples the median of a kernel with 5 % of noise is known to 1 %.
	maxSamples   = 50
	sampleBudget = unit.Seconds(30e-3)
	// steady is the relative standard error of the median that is good enough: the noise of one run is about that.
	steady = 0.01
	// A candidate whose samples are all slower than hopelessRatio times the best so far cannot win, and is left at two samples,
	// or one that took hopelessTime: tau still gets its time. Under a power limit the clock of an H200 moves by a quarter;
	// the hiccups that would make more of it are short, and rare.
	hopelessSamples = 2
	hopelessTime    = unit.Seconds(1e-3)
	hopelessRatio   = 1.5

	// finalists is how many of the fastest candidates are measured again beside the pick. The fastest of many is partly the
	// luckiest, and a second look at a few tells which.
	finalists = 3
	// A block of finals goes on in rounds of one sample each: at least minRounds, then until finalBudget is used or
	// maxRounds are done.
	minRounds   = 10
	maxRounds   = 50
	finalBudget = unit.Seconds(0.5)

	// maxCrashes is how many configurations in a row may take the executor's process along. One bad kernel does that, and
	// its neighbours may share the fault; three in a row without a success between are more likely the device's.
	maxCrashes = 3
	// maxDetail bounds what is kept of a compiler's log, in bytes.
	maxDetail = 2000
)

// enough reports whether a candidate has been measured often enough. best is the best median so far, 0 if there is none.
func enough(samples []exec.Sample, best unit.Seconds) bool {
	n := len(samples)
	if best > 0 && (n >= hopelessSamples || n == 1 && samples[0].Time >= hopelessTime) &&
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
	return total >= sampleBudget || medianError(times) <= steady
}

// medianError estimates the standard error of the median ÷ the median, from the median absolute deviation (MAD):
//
//	√(π/2) · 1.4826 · MAD ÷ (√n · median)
//
// 1.4826 · MAD estimates the standard deviation of normal noise, and the median of n samples of it scatters √(π/2) times
// as much as their mean. An outlier moves it little.
func medianError(times []unit.Seconds) float64 {
	median, mad := dataset.MedianMAD(times)
	return math.Sqrt(math.Pi/2) * 1.4826 * float64(mad) / (math.Sqrt(float64(len(times))) * float64(median))
}
