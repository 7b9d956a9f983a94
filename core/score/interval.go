package score

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Level is the share of measured times that an interval is to hold.
const Level = 0.90

// timeEdges separate the kinds of predictions by time. Below 20 µs launch and event cost are a good part of the time; above
// 200 µs a kernel lasts long enough to meet the power limit.
var timeEdges = [...]unit.Seconds{20e-6, 200e-6}

// minSizes is the least number of sizes that quantiles of a kind of prediction are taken over. With fewer, the kinds of the
// same time are taken together, and then all.
const minSizes = 8

// MinSizes is the least number of sizes that intervals can be found on: of fewer, none is outside at that level.
const MinSizes = 10

const (
	numBounds = int(arch.BoundLatency) + 1
	numTimes  = len(timeEdges) + 1
	// The groups that quantiles are taken of: each kind, each time, everything.
	firstTime  = numTimes * numBounds
	everything = firstTime + numTimes
	numGroups  = everything + 1
)

// Intervals finds the ranges of an arch.Uncertainty on rows, whose points carry predicted and measured times.
//
// The sizes, not the points, are what is exchangeable: the errors of one size have much in common, and ten thousand points
// of forty sizes are forty observations. So each size has the same weight, shared by its points, and the procedure is
// conformal over sizes. With r = log(measured ÷ predicted):
//
//  1. For each kind of prediction, by time and by bound, the quantiles of r at (1 − Level)/2 and (1 + Level)/2.
//  2. The same without one size, for each size, and for each of its points by how much r lies outside, or if negative
//     inside: max(low − r, r − high).
//  3. δ is the Level·(K+1)/K quantile of these over all K sizes, and the ranges are from low − δ to high + δ.
//
// With fewer than ten sizes there is nothing to be found.
//
// A point of a new size is then in its range with a probability of about Level; that the last step uses other quantiles
// than the ranges have is what jackknife+ does too, and costs a few percent at worst.
//
// References: R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, "Predictive inference with the jackknife+", Annals
// of Statistics 49 (2021) 486–507; Y. Romano, E. Patterson, E. Candès, "Conformalized quantile regression", NeurIPS 2019;
// R. Dunn, L. Wasserman, A. Ramdas, "Distribution-free prediction sets for two-layer hierarchical models", JASA 118 (2023)
// 2491–2502.
func ErrorRanges(rows []Evaluation) []arch.ErrorRange {
	return newResiduals(rows).calibrate()
}

// Coverage is what intervals hold of sizes that they were not made from.
type Coverage struct {
	// Points is the share of the points, each size with the same weight; Picks that of the picks; Worst that of the worst size.
	Points, Picks, Worst float64
	// Width is the median of high ÷ low.
	Width float64
	// Loss and Lost are the means over the sizes of the expected loss of not measuring and of the one that was recorded, Left
	// that of the recorded one after measuring as many candidates as are worth it, Measured of how many these are.
	Loss, Lost, Left, Measured float64
}

// LeaveOneOut finds intervals and spread without each size in turn and applies them to that size.
func LeaveOneOut(rows []Evaluation) Coverage {
	c := Coverage{Worst: 1}
	var widths []float64
	picks, losses, measured := 0, 0, 0
	for i := range rows {
		u, _ := Calibrate("", slices.Delete(slices.Clone(rows), i, i+1))
		n := measure.WorthMeasuring(rows[i].Leading, u.PlanSpread, measure.AssumedNoise)
		c.Measured += float64(n) / float64(len(rows))
		if e := rows[i].first(n); e > 0 {
			measured++
			c.Left += 1/e - 1
		}
		held, of := rows[i].Covered(&u)
		share := float64(held) / float64(max(of, 1))
		for _, p := range rows[i].Points {
			if low, high, ok := u.Interval(p.Bound, p.Predicted); ok {
				widths = append(widths, float64(high/low))
			}
		}
		c.Points += share / float64(len(rows))
		c.Worst = min(c.Worst, share)
		if held, ok := rows[i].Held(&u); ok {
			picks++
			if held {
				c.Picks++
			}
		}
		if lost, ok := rows[i].lost(); ok {
			losses++
			c.Lost += lost
			c.Loss += measure.ExpectedRegret(rows[i].Leading, u.Spread, 1)
		}
	}
	c.Picks /= float64(max(picks, 1))
	c.Left /= float64(max(measured, 1))
	c.Loss, c.Lost = c.Loss/float64(max(losses, 1)), c.Lost/float64(max(losses, 1))
	c.Width = stats.Median(widths)
	return c
}

// residuals are the points of all sizes in ascending order of log(measured ÷ predicted).
type residuals struct {
	points []residual
	// sizes are the points of each size.
	sizes [][]residual
}

type residual struct {
	r      float64
	weight float64 // 1 ÷ the number of points of its size
	size   int
	kind   int
}

func newResiduals(rows []Evaluation) *residuals {
	out := &residuals{sizes: make([][]residual, len(rows))}
	for i := range rows {
		for _, p := range rows[i].Points {
			out.sizes[i] = append(out.sizes[i], residual{
				r: math.Log(float64(p.Measured / p.Predicted)), weight: 1 / float64(len(rows[i].Points)), size: i, kind: kindOf(p.Bound, p.Predicted),
			})
		}
		out.points = append(out.points, out.sizes[i]...)
	}
	slices.SortFunc(out.points, func(a, b residual) int { return cmp.Compare(a.r, b.r) })
	return out
}

func kindOf(b arch.Bound, predicted unit.Seconds) int {
	t := sort.Search(len(timeEdges), func(i int) bool { return predicted < timeEdges[i] })
	return t*numBounds + int(b)
}

// span is a pair of quantiles.
type span struct{ low, high float64 }

// calibrate finds the ranges.
func (r *residuals) calibrate() []arch.ErrorRange {
	base, used := r.spans(-1)
	var outside []residual // r is here by how much a point is outside
	sizes := 0
	for i, points := range r.sizes {
		if len(points) == 0 {
			continue
		}
		sizes++
		spans, groups := r.spans(i)
		for _, p := range points {
			s := spans[groups[p.kind]]
			outside = append(outside, residual{r: max(s.low-p.r, p.r-s.high), weight: p.weight})
		}
	}
	if sizes < MinSizes {
		return nil
	}
	delta := upper(outside, Level*float64(sizes+1))

	var ranges []arch.ErrorRange
	add := func(b arch.Bound, time, group int) {
		own := arch.ErrorRange{Bound: b, Low: math.Exp(base[group].low - delta), High: math.Exp(base[group].high + delta)}
		if time < len(timeEdges) {
			own.Below = timeEdges[time]
		}
		if own.Low > own.High { // a negative δ can turn a narrow range around
			middle := math.Sqrt(own.Low * own.High)
			own.Low, own.High = middle, middle
		}
		ranges = append(ranges, own)
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

// upper returns the least value whose points, with those below it, weigh at least so much: the largest one if all of them
// do not.
func upper(points []residual, weight float64) float64 {
	slices.SortFunc(points, func(a, b residual) int { return cmp.Compare(a.r, b.r) })
	sum := 0.0
	for _, p := range points {
		if sum += p.weight; sum >= weight*(1-1e-12) {
			return p.r
		}
	}
	return points[len(points)-1].r
}

// spans returns the quantiles of every group, without one of the sizes, and which group each kind of prediction uses.
func (r *residuals) spans(without int) (spans [numGroups]span, groups [firstTime]int) {
	var total, sum [numGroups]float64
	var sizes [numGroups]int
	for i, points := range r.sizes {
		if i == without {
			continue
		}
		var seen [numGroups]bool
		for _, p := range points {
			for _, g := range [...]int{p.kind, firstTime + p.kind/numBounds, everything} {
				total[g] += p.weight
				if !seen[g] {
					seen[g] = true
					sizes[g]++
				}
			}
		}
	}
	for g := range spans {
		spans[g] = span{math.NaN(), math.NaN()}
	}
	for i := range r.points {
		p := &r.points[i]
		if p.size == without {
			continue
		}
		for _, g := range [...]int{p.kind, firstTime + p.kind/numBounds, everything} {
			before := sum[g]
			sum[g] += p.weight
			if low := total[g] * (1 - Level) / 2; math.IsNaN(spans[g].low) && sum[g] >= low {
				spans[g].low = p.r
			}
			if high := total[g] * (1 + Level) / 2; before < high {
				spans[g].high = p.r
			}
		}
	}
	for kind := range groups {
		switch {
		case kind%numBounds > 0 && sizes[kind] >= minSizes:
			groups[kind] = kind
		case sizes[firstTime+kind/numBounds] >= minSizes:
			groups[kind] = firstTime + kind/numBounds
		default:
			groups[kind] = everything
		}
	}
	return spans, groups
}

// PlanSpread finds arch.Uncertainty.PlanSpread on rows: the least one, from spread on, with which measuring as many
// candidates as are worth it leaves a recorded loss of no more than the noise, averaged over the sizes.
func PlanSigma(rows []Evaluation, spread float64) float64 {
	left := func(s float64) float64 {
		sum, n := 0.0, 0
		for i := range rows {
			worth := measure.WorthMeasuring(rows[i].Leading, s, measure.AssumedNoise)
			if e := rows[i].first(worth); e > 0 {
				sum += 1/e - 1
				n++
			}
		}
		return sum / float64(max(n, 1))
	}
	low, high := spread, max(1, spread)
	if left(low) <= measure.AssumedNoise {
		return low
	}
	for range 10 { // to 10⁻³
		if s := (low + high) / 2; left(s) > measure.AssumedNoise {
			low = s
		} else {
			high = s
		}
	}
	return high
}

// Calibrate finds all that rows show of a kernel family, and false if they are too few; Source is left to the caller.
func Calibrate(kernel string, rows []Evaluation) (arch.Uncertainty, bool) {
	u := arch.Uncertainty{Kernel: kernel, Level: Level, Ranges: ErrorRanges(rows), Spread: Sigma(rows)}
	u.PlanSpread = PlanSigma(rows, u.Spread)
	return u, u.Ranges != nil
}

// Spread finds arch.Uncertainty.Spread on rows: the one with which the expected loss of not measuring, averaged over the
// sizes, is the recorded one.
func Sigma(rows []Evaluation) float64 {
	lost := 0.0
	var leading [][]unit.Seconds
	for i := range rows {
		if l, ok := rows[i].lost(); ok {
			lost += l
			leading = append(leading, rows[i].Leading)
		}
	}
	low, high := 0.0, 1.0
	for range 14 { // to 10⁻⁴
		spread := (low + high) / 2
		expected := 0.0
		for _, times := range leading {
			expected += measure.ExpectedRegret(times, spread, 1)
		}
		if expected < lost {
			low = spread
		} else {
			high = spread
		}
	}
	return high
}
