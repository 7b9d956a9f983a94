package score

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/stats"
)

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
	type weights struct{ n, k int }
	at := map[weights]int{}
	for i := range g.Rows {
		r := &g.Rows[i]
		c, there := at[weights{r.Problem.N, r.Problem.K}]
		if !there {
			c = len(clusters)
			at[weights{r.Problem.N, r.Problem.K}], clusters = c, append(clusters, nil)
		}
		clusters[c] = append(clusters[c], r.residual())
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
