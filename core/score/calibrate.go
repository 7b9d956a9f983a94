package score

import (
	"math"
	"sort"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Level is the share of measured times that intervals are calibrated to contain.
const Level = 0.90

// MinSizes is the least number of sizes to calibrate intervals on. With fewer, Level would leave no size outside.
const MinSizes = 10

// timeEdges divide predictions by time. Below 20 µs, the launch is a good part of the time. Above 200 µs, a
// kernel lasts long enough to run into the power limit.
var timeEdges = [...]unit.Seconds{20e-6, 200e-6}

// minGroupSizes is the least number of sizes to take quantiles over. Kinds of prediction with fewer sizes are
// pooled with the others of the same time, and then with all.
const minGroupSizes = 8

// minGroupPoints is the least number of sizes with one time each that are divided into kinds: a group then has some 20,
// the fewest whose second largest error leaves a twentieth outside.
const minGroupPoints = 60

const (
	numBounds = arch.NumBounds
	numTimes  = len(timeEdges) + 1
	// Quantiles are taken over groups of predictions: one for each kind, then one for each time, then one for all.
	firstTime  = numTimes * numBounds
	everything = firstTime + numTimes
)

// Calibrate finds the uncertainty of a model's times for a kernel family from evaluations, and returns false if
// there are fewer than MinSizes. With fewer picks that have a measured time, the sigmas stay 0. The caller sets Source.
func Calibrate(kernel string, evaluations []Evaluation) (arch.Uncertainty, bool) {
	u := arch.Uncertainty{Kernel: kernel, Level: Level, Ranges: ErrorRanges(evaluations)}
	picks := 0
	for i := range evaluations {
		if evaluations[i].Pick.Time > 0 {
			picks++
		}
	}
	if picks >= MinSizes {
		u.Sigma = Sigma(evaluations)
		u.PlanSigma = PlanSigma(evaluations, u.Sigma)
	}
	return u, u.Ranges != nil
}

// ErrorRanges finds the ranges of measured ÷ predicted time, by time and by bound, from the points of evaluations. A
// range is from 1 ÷ F to F, so that the predicted time is the middle: log F is a conformal limit of |log(measured ÷
// predicted)| over the sizes (stats.Conformal). With fewer than MinSizes it returns nil. Few sizes with one time each
// are one group: the quantile of eight times alone was far too narrow for others (a width of 1.00 held 5 of 20 times of
// an H200, 2026-11-28).
func ErrorRanges(evaluations []Evaluation) []arch.ErrorRange {
	sizes, points, least := make([][]stats.Residual, len(evaluations)), 0, minGroupSizes
	for i := range evaluations {
		for _, p := range evaluations[i].Points {
			sizes[i] = append(sizes[i], residual(&p, evaluations[i].Added))
			points++
		}
	}
	if points <= len(sizes) && points < minGroupPoints {
		least = points + 1
	}
	c := stats.NewConformal(sizes, kindGroups(), least)
	if c.Clusters() < MinSizes {
		return nil
	}
	return rangesOf(c.Limits(1 - Level))
}

// residual is the size of the error of a time, without what the stopwatch added to it.
func residual(p *Point, added unit.Seconds) stats.Residual {
	predicted, measured := p.Predicted-added, max(p.Measured-added, shortest)
	return stats.Residual{Value: math.Abs(math.Log(float64(measured / predicted))), Kind: kindOf(p.Bound, predicted)}
}

// shortest stands for a kernel whose time is below what the stopwatch is said to add.
const shortest unit.Seconds = 1e-8

// rangesOf returns the ranges of limits, by time and by bound.
func rangesOf(limits []float64, used []int) (ranges []arch.ErrorRange) {
	add := func(b arch.Bound, time, group int) {
		r := arch.ErrorRange{Bound: b, Low: math.Exp(-limits[group]), High: math.Exp(limits[group])}
		if time < len(timeEdges) {
			r.Below = timeEdges[time]
		}
		ranges = append(ranges, r)
	}
	for t := range numTimes {
		for b := 1; b < numBounds; b++ {
			if kind := t*numBounds + b; used[kind] == kind {
				add(arch.Bound(b), t, kind)
			}
		}
		add(arch.BoundUnknown, t, used[t*numBounds])
	}
	return ranges
}

// kindOf returns the kind of a prediction.
func kindOf(b arch.Bound, predicted unit.Seconds) int {
	t := sort.Search(len(timeEdges), func(i int) bool { return predicted < timeEdges[i] })
	return t*numBounds + int(b)
}

// kindGroups lists the groups of each kind of prediction. A kind with an unknown bound has no group to itself.
func kindGroups() [][]int {
	groups := make([][]int, firstTime)
	for kind := range groups {
		time := firstTime + kind/numBounds
		if arch.Bound(kind%numBounds) == arch.BoundUnknown {
			groups[kind] = []int{time, everything}
		} else {
			groups[kind] = []int{kind, time, everything}
		}
	}
	return groups
}
