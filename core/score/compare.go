package score

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Comparison holds a model's pick for one problem against the best of the model's candidates and against vendor
// libraries. The pick is the first candidate in predicted order that has a measured time; Points are in predicted
// order.
//
// The times of the pick, the best and the libraries come from the latest block of final measurements that the pick
// took part in, where there is one, and from the sweep otherwise. The best is then the fastest of that block. Both
// times of a ratio thus come from the same pass, and no efficiency exceeds 1. Ranks and tau always come from the
// sweep.
type Comparison struct {
	Outcome
	// PassedOver counts the candidates that the model ranks before the pick and that have no time: they do not compile,
	// fail, compute something else, or were not measured.
	PassedOver int
	// Phase says where the times come from.
	Phase dataset.Phase
	// Libraries are the times of the vendor libraries in the order of the data set, 0 for a library without a time.
	Libraries []unit.Seconds
	// Noise is the larger ÷ the smaller of the pick's two times in the finals − 1, NaN without finals.
	Noise float64
	// Candidates counts the model's candidates, Measured the candidates with a time.
	Candidates, Measured int
	// Wrong, NotBuilt and Failed count the candidates that were measured with another status, Missing those that
	// were not measured. Excluded lists the wrong and the failed ones, libraries included.
	Wrong, NotBuilt, Failed, Missing int
	Excluded                         []dataset.Measurement
	// ClockMoved counts the measurements during which the clock moved by more than 2 %.
	ClockMoved int
}

// Efficiency returns the best measured time ÷ the measured time of the pick.
func (c *Comparison) Efficiency() float64 { return ratio(c.Best.Time, c.Pick.Time) }

// VersusLibrary returns the i-th library's time ÷ the time of the pick, 0 if the library has no time.
func (c *Comparison) VersusLibrary(i int) float64 { return ratio(c.Libraries[i], c.Pick.Time) }

// onlySplit is the split of K that a sweep holds constant for a problem: it was not made to tell splits apart, and the
// model then chooses among the kernels with this one. It is nil if the sweep varies the split.
func onlySplit(data *dataset.Dataset, p gemm.Problem) (splits []int) {
	for _, m := range data.Sweep(p) {
		if splits == nil {
			splits = []int{m.Config.SplitK}
		}
		if m.Config.SplitK != splits[0] {
			return nil
		}
	}
	return splits
}

// Compare holds a model's pick for one problem against the measurements of its candidates.
func Compare(ctx context.Context, a arch.Architecture, data *dataset.Dataset, p gemm.Problem) (Comparison, error) {
	c := Comparison{
		Outcome: Outcome{Problem: p, Tau: math.NaN()},
		Phase:   dataset.Sweep, Noise: math.NaN(), Libraries: make([]unit.Seconds, len(data.Libraries())),
	}
	request := selector.Request{Space: arch.Space{Kernel: data.Kernel, SplitK: onlySplit(data, p)}}
	if data.GroupM > 0 {
		request.Map = 1 // the groups are given, and 1 is the least that can be asked for
	}
	ranked, err := selector.RankOne(ctx, a, p, request)
	if err != nil {
		return c, err
	}
	c.Candidates = len(ranked)
	c.addCandidates(data, ranked, a.Describe().Clock)
	if c.Measured == 0 {
		err := diag.Inputf("none of the %d candidates for %s could be measured%s", c.Candidates, p, c.reasons())
		if c.Missing == c.Candidates {
			return c, err.Do("leave the problem out, or measure it")
		}
		return c, err.Do("check the types, the kernel family and the device")
	}
	for i, name := range data.Libraries() {
		if m, ok := data.FindLibrary(p, name); ok {
			c.count(&m)
			c.Libraries[i] = m.Median
		}
	}
	predicted, measured := make([]float64, c.Measured), make([]float64, c.Measured)
	for i, point := range c.Points {
		predicted[i], measured[i] = float64(point.Predicted), float64(point.Measured)
	}
	c.PickRank = 1 + countBelow(measured, float64(c.Pick.Time))
	if c.Tau, err = stats.TauB(predicted, measured); err != nil {
		return c, err
	}
	c.useFinals(data)
	c.BestRank = 1 + c.indexOf(c.Best.Config)
	return c, nil
}

// addCandidates enters the model's candidates, which are in predicted order, with their measurements.
func (c *Comparison) addCandidates(data *dataset.Dataset, ranked []selector.Entry, clock unit.Hertz) {
	for _, e := range ranked {
		m, ok := data.Candidate(c.Problem, e.Config)
		if ok {
			c.count(&m)
		} else {
			c.Missing++
		}
		if !ok || m.Status != dataset.OK {
			if len(c.Points) == 0 {
				c.PassedOver++
			}
			continue
		}
		timed, predicted := Timed{m.Config, m.Median, m.Resources}, e.Estimate.Cycles.At(clock)
		if len(c.Points) == 0 {
			c.Pick, c.Predicted = timed, predicted
		}
		c.Points = append(c.Points, Point{m.Config, e.Estimate.Bound, predicted, m.Median})
		if c.Best.Time == 0 || m.Median < c.Best.Time {
			c.Best = timed
		}
	}
	c.Measured = len(c.Points)
}

// indexOf returns the index of a configuration in Points, −1 if it is not there.
func (c *Comparison) indexOf(config gemm.Config) int {
	return slices.IndexFunc(c.Points, func(p Point) bool { return p.Config == config })
}

// count enters the status of a measurement.
func (c *Comparison) count(m *dataset.Measurement) {
	if m.ClockMoved() {
		c.ClockMoved++
	}
	switch m.Status {
	case dataset.OK:
		return
	case dataset.NotBuilt:
		if m.Library == "" {
			c.NotBuilt++
		}
		return
	case dataset.Wrong:
		c.Wrong++
	default:
		c.Failed++
	}
	c.Excluded = append(c.Excluded, *m)
}

// reasons says why candidates have no time, and how many for each reason.
func (c *Comparison) reasons() string {
	var parts []string
	for _, r := range []struct {
		n    int
		what string
	}{{c.Missing, "not recorded"}, {c.NotBuilt, "not built"}, {c.Wrong, "wrong"}, {c.Failed, "failed"}} {
		if r.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// useFinals takes the times of the latest block of final measurements in which the pick has a time.
func (c *Comparison) useFinals(data *dataset.Dataset) {
	for _, block := range slices.Backward(data.Finals(c.Problem)) {
		pick, null := c.pickIn(block)
		if pick.Time == 0 {
			continue
		}
		c.Phase, c.Pick, c.Best = dataset.Final, pick, pick
		if null > 0 {
			c.Noise = float64(max(null, pick.Time)/min(null, pick.Time)) - 1
		}
		clear(c.Libraries)
		for _, m := range block {
			if m.ClockMoved() {
				c.ClockMoved++
			}
			switch {
			case m.Status != dataset.OK:
				c.Failed++
				m.Detail = "in the finals: " + m.Detail
				c.Excluded = append(c.Excluded, m)
			case m.Library != "":
				c.Libraries[slices.Index(data.Libraries(), m.Library)] = m.Median
			case !m.Null && m.Median < c.Best.Time && c.indexOf(m.Config) >= 0: // another model may use another group
				c.Best = Timed{m.Config, m.Median, m.Resources}
			}
		}
		return
	}
}

// pickIn returns the pick as a block of final measurements has it, and the time of its null arm; 0 for a missing time.
func (c *Comparison) pickIn(block []dataset.Measurement) (pick Timed, null unit.Seconds) {
	for _, m := range block {
		switch {
		case m.Status != dataset.OK || m.Config != c.Pick.Config:
		case m.Null:
			null = m.Median
		default:
			pick = Timed{m.Config, m.Median, m.Resources}
		}
	}
	return pick, null
}

// countBelow counts the values below a limit.
func countBelow(values []float64, limit float64) int {
	n := 0
	for _, v := range values {
		if v < limit {
			n++
		}
	}
	return n
}
