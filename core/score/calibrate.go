package score

import (
	"math"
	"slices"
	"sort"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/measure"
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

// Calibrate finds the uncertainty of a model's times for a kernel family from evaluations on a data set, and returns
// false if there are fewer than MinSizes. With fewer picks that have a measured time, the sigmas stay 0. The caller
// sets Source.
func Calibrate(kernel, dataSet string, evaluations []Evaluation) (arch.Uncertainty, bool) {
	u := calibrated(evaluations)
	if u.Kernel = kernel; u.Ranges == nil {
		return u, false
	}
	u.Checked, u.Widening = checkedOn(dataSet, evaluations), widening(evaluations)
	return u, true
}

// calibrated finds ranges and sigmas.
func calibrated(evaluations []Evaluation) arch.Uncertainty {
	u := arch.Uncertainty{Level: Level, Ranges: ErrorRanges(evaluations)}
	picks := 0
	for i := range evaluations {
		if evaluations[i].Pick.Measured > 0 {
			picks++
		}
	}
	if picks >= MinSizes {
		u.Sigma = sigmaOfPicks(evaluations)
		u.PlanSigma = planSigma(evaluations, u.Sigma)
	}
	return u
}

// CalibrateRows returns the uncertainty of a model's times for a kernel family from problems with one measured time
// each, with the ranges found on them. The caller sets Source.
func CalibrateRows(kernel, dataSet string, rows []Row, ranges []arch.ErrorRange) arch.Uncertainty {
	each := EachAlone(rows)
	u := arch.Uncertainty{Kernel: kernel, Level: Level, Ranges: ranges, Checked: checkedOn(dataSet, each),
		MedianError: medianError(ratiosOf(rows))}
	if ranges != nil {
		u.Widening = widening(each)
	}
	// M, N, K and batch count once, in whichever types and under whichever conditions they were timed.
	u.Checked.Times = len(rows)
	u.Checked.Sizes = len(GroupBy(rows, func(r *Row) [4]int {
		return [...]int{r.Problem.M, r.Problem.N, r.Problem.K, r.Problem.Batch}
	}))
	return u
}

// EachAlone returns the evaluations of problems with one measured time each. Rejected configurations have none.
func EachAlone(rows []Row) (each []Evaluation) {
	for i := range rows {
		if r := &rows[i]; r.Reject == "" {
			each = append(each, Evaluation{Problem: r.Problem, Rows: rows[i : i+1], Class: ClassOf(r.Problem)})
		}
	}
	return each
}

// checkedOn returns what evaluations compare a model's times with measured times on.
func checkedOn(dataSet string, evaluations []Evaluation) arch.Checked {
	c := arch.Checked{DataSet: dataSet}
	for i := range evaluations {
		e := &evaluations[i]
		if len(e.Rows) > 0 {
			c.Sizes++
		}
		for j := range e.Rows {
			c.Add(&e.Problem, e.Rows[j].Config.SplitK)
		}
	}
	return c
}

// ErrorRanges finds the ranges of measured ÷ predicted time, by time and by bound, from the rows of evaluations. A
// range is from 1 ÷ F to F, so that the predicted time is the middle: log F is a conformal limit of |log(measured ÷
// predicted)| over the sizes (stats.Conformal). With fewer than MinSizes it returns nil. Few sizes with one time each
// are one group: the quantile of eight times alone was far too narrow for others (a width of 1.00 held 5 of 20 times of
// an H200, 2026-11-28).
func ErrorRanges(evaluations []Evaluation) []arch.ErrorRange {
	sizes, points, least := make([][]stats.Residual, len(evaluations)), 0, minGroupSizes
	for i := range evaluations {
		for j := range evaluations[i].Rows {
			sizes[i] = append(sizes[i], evaluations[i].Rows[j].residual())
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

// widening finds arch.Uncertainty.Widening from evaluations. Each class of shape is left out in turn: the widest range
// of the others, times the factor, contains the share Level of the times of the class, each size with the same weight.
// It is 0 if no class can be left out, because fewer than MinSizes sizes would remain.
func widening(evaluations []Evaluation) float64 {
	factor := 0.0
	for _, class := range Classes() {
		left := ofClass(evaluations, class, true)
		u := arch.Uncertainty{Ranges: ErrorRanges(ofClass(evaluations, class, false))}
		if len(left) == 0 || u.Ranges == nil {
			continue
		}
		var outside []stats.Weighted
		total, widest := 0.0, u.WidestRange()
		for i := range left {
			weight := 1 / float64(len(left[i].Rows))
			for j := range left[i].Rows {
				r := &left[i].Rows[j]
				outside = append(outside, stats.Weighted{Value: r.outside(widest.Of(r.Predicted - r.Added)), Weight: weight})
				total += weight
			}
		}
		factor = max(factor, 1, stats.UpperQuantile(outside, Level*total))
	}
	return factor
}

// sigmaOfPicks finds arch.Uncertainty.Sigma from evaluations: the sigma at which the expected regret of the picks,
// averaged over the sizes, equals their measured regret.
func sigmaOfPicks(evaluations []Evaluation) float64 {
	regret := 0.0
	var leading [][]unit.Seconds
	for i := range evaluations {
		if r, ok := evaluations[i].Regret(); ok {
			regret += r
			leading = append(leading, evaluations[i].Leading)
		}
	}
	return bisect(0, 1, 14, func(sigma float64) bool { // to 10⁻⁴
		expected := 0.0
		for _, times := range leading {
			expected += measure.ExpectedRegret(times, sigma, 1)
		}
		return expected < regret
	})
}

// planSigma finds arch.Uncertainty.PlanSigma from evaluations: the least value, not below sigma, such that measuring as
// many candidates as are worth it leaves a mean regret of at most the noise of a measurement.
func planSigma(evaluations []Evaluation, sigma float64) float64 {
	tooMuchLeft := func(s float64) bool {
		sum, n := 0.0, 0
		for i := range evaluations {
			worth := measure.WorthMeasuring(evaluations[i].Leading, s, measure.AssumedNoise)
			if e := evaluations[i].EfficiencyOfFirst(worth); e > 0 {
				sum += 1/e - 1
				n++
			}
		}
		return sum/float64(max(n, 1)) > measure.AssumedNoise
	}
	if !tooMuchLeft(sigma) {
		return sigma
	}
	return bisect(sigma, max(1, sigma), 10, tooMuchLeft) // to 10⁻³
}

// bisect returns about the least value between two for which low does not hold.
func bisect(from, to float64, steps int, low func(float64) bool) float64 {
	for range steps {
		if middle := (from + to) / 2; low(middle) {
			from = middle
		} else {
			to = middle
		}
	}
	return to
}

// Coverage is the out-of-bag score of a calibration: how intervals and sigmas do on sizes that they were not found on.
type Coverage struct {
	Points float64 `json:"interval_coverage"`       // of the times, each size with the same weight
	Picks  float64 `json:"interval_coverage_picks"` // of the picks' times
	Worst  float64 `json:"interval_coverage_worst"` // of the times of the worst size
	Width  float64 `json:"high_over_low_median"`    // the median width of the intervals
	// the mean regrets of the picks: expected, recorded, and after measuring what is worth it
	ExpectedRegret     float64 `json:"expected_regret_mean"`
	Regret             float64 `json:"recorded_regret_mean"`
	RegretLeft         float64 `json:"auto_regret_mean"`
	CandidatesMeasured float64 `json:"auto_measured_mean"` // how many these are
}

// LeaveOneOut calibrates without each size in turn and scores the calibration on that size. done is told of each.
func LeaveOneOut(evaluations []Evaluation, done func(sizes int)) Coverage {
	c := Coverage{Worst: 1}
	var widths []float64
	picks, regrets, measured := 0, 0, 0
	for i := range evaluations {
		e := &evaluations[i]
		u := calibrated(slices.Delete(slices.Clone(evaluations), i, i+1))
		worth := measure.WorthMeasuring(e.Leading, u.PlanSigma, measure.AssumedNoise)
		c.CandidatesMeasured += float64(worth) / float64(len(evaluations))
		if efficiency := e.EfficiencyOfFirst(worth); efficiency > 0 {
			measured++
			c.RegretLeft += 1/efficiency - 1
		}
		held, of := Held(e.Rows, Everywhere(&u))
		share := float64(held) / float64(max(of, 1))
		for j := range e.Rows {
			r := &e.Rows[j]
			if low, high, ok := u.Interval(r.Bound, r.Predicted-r.Added); ok {
				widths = append(widths, float64(high/low))
			}
		}
		c.Points += share / float64(len(evaluations))
		c.Worst = min(c.Worst, share)
		held, of = Held([]Row{e.Pick}, Everywhere(&u))
		c.Picks, picks = c.Picks+float64(held), picks+of
		if regret, ok := e.Regret(); ok {
			regrets++
			c.Regret += regret
			c.ExpectedRegret += measure.ExpectedRegret(e.Leading, u.Sigma, 1)
		}
		done(1)
	}
	c.Picks /= float64(max(picks, 1))
	c.RegretLeft /= float64(max(measured, 1))
	c.ExpectedRegret, c.Regret = c.ExpectedRegret/float64(max(regrets, 1)), c.Regret/float64(max(regrets, 1))
	c.Width = stats.Median(widths)
	return c
}

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

// Group is times that have errors in common: of one source, one device or one generation of GPUs. Groups of one Part,
// as a device or an architecture in a type, say something of each other.
type Group struct {
	Name, Part string
	Rows       []Row
}

// LeftOut is how the ranges of the other groups of its part do on a group.
type LeftOut struct {
	Name  string  `json:"name"`         // the source, or the device
	Part  string  `json:"of"`           // the device or architecture, the types, the scheme of scales
	Times int     `json:"times"`        // how many
	Held  float64 `json:"held"`         // the share of its times in the ranges
	Width float64 `json:"width"`        // the median of high ÷ low
	Error float64 `json:"error_median"` // the median |predicted ÷ measured − 1|

	points []heldPoint
}

type heldPoint struct {
	outside, width float64 // logs
	layer          Layer
}

// GroupsLeftOut are the results of leaving out each group in turn.
type GroupsLeftOut struct {
	// Widening is the log by which ranges grow at both ends to hold the share Level of the times of a group that they were
	// not found on. Each group has the same weight: a next one may be as small as the smallest.
	Widening float64 `json:"-"`
	// the share of the times that the intervals hold
	Held  float64 `json:"held"`
	Width float64 `json:"width"` // the median of high ÷ low
	// by class of shape, the share of the times
	Layers map[string]float64 `json:"classes"`
	Left   []LeftOut          `json:"groups"` // the hardest first
}

// minLeftOut is the least number of times of a group that is left out.
const minLeftOut = 3

// LeaveGroupsOut finds by how much ranges have to grow to hold for another group of their part.
func LeaveGroupsOut(groups []Group) GroupsLeftOut {
	parts, clusters := map[string][]int{}, make([][][]stats.Residual, len(groups))
	for i := range groups {
		parts[groups[i].Part], clusters[i] = append(parts[groups[i].Part], i), groups[i].clusters()
	}
	var f GroupsLeftOut
	var outside []stats.Weighted
	for i := range groups {
		g := &groups[i]
		var others [][]stats.Residual
		for _, j := range parts[g.Part] {
			if groups[j].Name != g.Name {
				others = append(others, clusters[j]...)
			}
		}
		u := arch.Uncertainty{Ranges: clusterRanges(others, 0)}
		if u.Ranges == nil || len(g.Rows) < minLeftOut {
			continue
		}
		left := LeftOut{Name: g.Name, Part: g.Part, Times: len(g.Rows), Error: medianError(ratiosOf(g.Rows))}
		for i := range g.Rows {
			r := &g.Rows[i]
			low, high, _ := u.Interval(r.Bound, r.Predicted)
			p := heldPoint{math.Log(r.outside(low, high)), math.Log(float64(high / low)), LayerOf(r.Problem)}
			left.points = append(left.points, p)
			outside = append(outside, stats.Weighted{Value: p.outside, Weight: 1 / float64(len(g.Rows))})
		}
		f.Left = append(f.Left, left)
	}
	f.Widening = stats.UpperQuantile(outside, Level*float64(len(f.Left)))
	f.Hold(f.Widening)
	return f
}

// Hold counts what the ranges hold with another widening.
func (f *GroupsLeftOut) Hold(widening float64) {
	f.Widening, f.Held = widening, 0
	var widths []float64
	var held, of [len(layerNames)]float64
	for i := range f.Left {
		left := &f.Left[i]
		left.Held = 0
		var own []float64
		for _, p := range left.points {
			own = append(own, math.Exp(p.width+2*f.Widening))
			of[p.layer]++
			if p.outside <= f.Widening {
				held[p.layer]++
				left.Held++
			}
		}
		left.Held /= float64(left.Times)
		left.Width = stats.Median(own)
		f.Held += left.Held / float64(len(f.Left))
		widths = append(widths, own...)
	}
	f.Width, f.Layers = stats.Median(widths), map[string]float64{}
	for _, l := range Layers() {
		if of[l] > 0 {
			f.Layers[l.String()] = held[l] / of[l]
		}
	}
}

// GroupRanges finds the ranges of measured ÷ predicted time from groups, and widens them
// at both ends. Times of the same N and K of a group count as one. There are none with fewer than minGroupTimes times.
func GroupRanges(groups []Group, widening float64) []arch.ErrorRange {
	var clusters [][]stats.Residual
	for i := range groups {
		clusters = append(clusters, groups[i].clusters()...)
	}
	return clusterRanges(clusters, widening)
}

// clusters are the errors of a group. The errors of one N and K are one cluster.
func (g *Group) clusters() (clusters [][]stats.Residual) {
	for _, rows := range GroupBy(g.Rows, func(r *Row) [2]int { return [...]int{r.Problem.N, r.Problem.K} }) {
		cluster := make([]stats.Residual, len(rows))
		for i := range rows {
			cluster[i] = rows[i].residual()
		}
		clusters = append(clusters, cluster)
	}
	return clusters
}

func clusterRanges(clusters [][]stats.Residual, widening float64) []arch.ErrorRange {
	times := 0
	for _, c := range clusters {
		times += len(c)
	}
	if times < minGroupTimes {
		return nil
	}
	limits, used := stats.NewConformal(clusters, kindGroups(), minGroupSizes).Quantiles(1 - Level)
	for i := range limits {
		limits[i] = max(limits[i]+widening, 0)
	}
	return rangesOf(limits, used)
}

// minGroupTimes is the least number of times that ranges are found on. The widening stands for what so few do not show.
const minGroupTimes = 20
