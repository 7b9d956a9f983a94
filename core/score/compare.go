// Package bench holds a model's picks against measurements, three ways: the pick (analytical), the best of every
// candidate (brute force), and the vendor's library.
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
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Timed is a configuration with its measured time.
type Timed struct {
	Config    gemm.Config
	Time      unit.Seconds
	Resources exec.Resources
}

// Comparison is the outcome for one problem, made from records alone.
//
// Where there are final measurements that the pick took part in, its time, the best and the libraries' are from the
// latest block of those, and the best is the fastest of them, the pick included; otherwise they are from the sweep. Both
// times of a ratio are thus from the same pass, and no efficiency exceeds 1. Ranks and tau are always from the sweep.
type Comparison struct {
	Problem gemm.Problem
	// Pick is the candidate that the model ranks first of those that have a time; PassedOver counts the ones it ranks
	// before it, which do not compile, fail, compute something else or have no record. Best is the fastest candidate.
	Pick, Best Timed
	PassedOver int
	// Phase says where these times and the libraries' are from.
	Phase dataset.Phase
	// Predicted is the model's time for its pick.
	Predicted unit.Seconds
	// Libraries are the times of the vendor's libraries, in the order of the dataset, 0 for one that has none.
	Libraries []unit.Seconds
	// Noise is the larger ÷ the smaller of the two times of the pick in the finals − 1, NaN without finals.
	Noise float64
	// Candidates counts what the model would consider, Measured those that have a time.
	Candidates, Measured int
	// Wrong, NotBuilt and Failed count the candidates that were recorded with another status, Missing those that have no
	// record. Excluded lists the wrong and the failed ones, libraries included.
	Wrong, NotBuilt, Failed, Missing int
	Excluded                         []Excluded
	// ClockMoved counts the measurements during which the clock moved by more than 2 %.
	ClockMoved int
	// PickRank is the place of the pick among the sweep's times, 1 for the fastest; BestRank the place of the best among
	// the predictions for the measured candidates.
	PickRank, BestRank int
	// Tau is Kendall's tau-b of predicted against measured times over the measured candidates; NaN if undefined.
	Tau float64
	// Points are the predicted and measured times behind Tau, in predicted order.
	Points []Point
}

// Point is a configuration, predicted and measured.
type Point struct {
	Config gemm.Config
	// Bound is what the model says limits it.
	Bound               arch.Bound
	Predicted, Measured unit.Seconds
}

// Excluded is a configuration that has no time that counts, and why.
type Excluded struct {
	Config gemm.Config
	Status dataset.Status
	Detail string
}

// Efficiency returns the best measured time ÷ the time of the pick.
func (r *Comparison) Efficiency() float64 { return ratio(r.Best.Time, r.Pick.Time) }

// VersusLibrary returns the i-th library's time ÷ the time of the pick, 0 if it has none.
func (r *Comparison) VersusLibrary(i int) float64 { return ratio(r.Libraries[i], r.Pick.Time) }

// Rate returns 2·m·n·k·batch over a time, 0 without one.
func (r *Comparison) Rate(t unit.Seconds) unit.FlopsPerSecond {
	if t <= 0 {
		return 0
	}
	return unit.FlopsPerSecond(r.Problem.Flops() / float64(t))
}

// Compare holds a model against the records of one problem.
func Compare(ctx context.Context, a arch.Architecture, data *dataset.Dataset, p gemm.Problem) (Comparison, error) {
	row := Comparison{Problem: p, Phase: dataset.Sweep, Tau: math.NaN(), Noise: math.NaN(), Libraries: make([]unit.Seconds, len(data.Libraries()))}
	request := selector.Request{Space: arch.Space{Kernel: data.Kernel}}
	if data.GroupM > 0 {
		request.Map = 1 // the least that can be asked for; the groups are given
	}
	ranked, err := selector.RankOne(ctx, a, p, request)
	if err != nil {
		return row, err
	}
	row.Candidates = len(ranked)
	clock := a.Describe().Clock
	for _, e := range ranked {
		m, ok := data.Candidate(p, e.Config)
		if ok {
			row.count(&m)
		} else {
			row.Missing++
		}
		if !ok || m.Status != dataset.OK {
			if len(row.Points) == 0 {
				row.PassedOver++
			}
			continue
		}
		own := Timed{m.Config, m.Median, m.Resources}
		if len(row.Points) == 0 {
			row.Pick, row.Predicted = own, e.Estimate.Cycles.At(clock)
		}
		row.Points = append(row.Points, Point{m.Config, e.Estimate.Bound, e.Estimate.Cycles.At(clock), m.Median})
		if row.Best.Time == 0 || m.Median < row.Best.Time {
			row.Best = own
		}
	}
	row.Measured = len(row.Points)
	if row.Measured == 0 {
		why := diag.Inputf("none of the %d candidates for %s could be measured%s", row.Candidates, p, row.why())
		return row, why.Do("check the kernel family and the device")
	}
	for i, name := range data.Libraries() {
		if m, ok := data.Find(p, gemm.Config{Kernel: name}); ok {
			row.count(&m)
			row.Libraries[i] = m.Median
		}
	}
	row.PickRank = 1
	for _, point := range row.Points {
		if point.Measured < row.Pick.Time {
			row.PickRank++
		}
	}
	predicted, measured := make([]float64, row.Measured), make([]float64, row.Measured)
	for i, point := range row.Points {
		predicted[i], measured[i] = float64(point.Predicted), float64(point.Measured)
	}
	if row.Tau, err = stats.TauB(predicted, measured); err != nil {
		return row, err
	}
	row.finals(data)
	row.BestRank = 1 + row.point(row.Best.Config)
	return row, nil
}

// point returns where a configuration is among the points, −1 if it is not.
func (r *Comparison) point(c gemm.Config) int {
	return slices.IndexFunc(r.Points, func(p Point) bool { return p.Config == c })
}

// count enters what became of a candidate or a library.
func (r *Comparison) count(m *dataset.Measurement) {
	if m.ClockMoved() {
		r.ClockMoved++
	}
	switch m.Status {
	case dataset.OK:
		return
	case dataset.NotBuilt:
		if !m.IsLibrary() {
			r.NotBuilt++
		}
		return
	case dataset.Wrong:
		r.Wrong++
	default:
		r.Failed++
	}
	r.Excluded = append(r.Excluded, Excluded{m.Config, m.Status, m.Detail})
}

// why says how many candidates fell to what.
func (r *Comparison) why() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{r.Missing, "not recorded"}, {r.NotBuilt, "not built"}, {r.Wrong, "wrong"}, {r.Failed, "failed"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// finals takes the times of the latest block of final measurements that the pick took part in.
func (r *Comparison) finals(data *dataset.Dataset) {
	blocks := data.Finals(r.Problem)
	for i := len(blocks) - 1; i >= 0; i-- {
		block := blocks[i]
		pick, null := Timed{}, unit.Seconds(0)
		for _, m := range block {
			if m.Status != dataset.OK || m.Config != r.Pick.Config {
				continue
			}
			if m.Null {
				null = m.Median
			} else {
				pick = Timed{m.Config, m.Median, m.Resources}
			}
		}
		if pick.Time == 0 {
			continue
		}
		r.Phase, r.Pick, r.Best = dataset.Final, pick, pick
		if null > 0 {
			r.Noise = float64(max(null, pick.Time)/min(null, pick.Time)) - 1
		}
		clear(r.Libraries)
		for _, m := range block {
			if m.ClockMoved() {
				r.ClockMoved++
			}
			switch {
			case m.Status != dataset.OK:
				r.Failed++
				r.Excluded = append(r.Excluded, Excluded{m.Config, m.Status, "in the finals: " + m.Detail})
			case m.IsLibrary():
				r.Libraries[slices.Index(data.Libraries(), m.Config.Kernel)] = m.Median
			case !m.Null && m.Median < r.Best.Time && r.point(m.Config) >= 0: // another model may have launched it otherwise
				r.Best = Timed{m.Config, m.Median, m.Resources}
			}
		}
		return
	}
}

// ComparisonSummary is what a list of rows comes to.
type ComparisonSummary struct {
	Problems int
	// PassedOver counts the problems where better-ranked candidates have no time, Unfinished those where some candidates
	// have no record.
	PassedOver, Unfinished int
	// Efficiency is of the pick against the best candidate, Libraries against each of the vendor's libraries (over the
	// problems that have its time).
	Efficiency        stats.Quantiles
	Libraries         []stats.Quantiles
	TauMean, TauWorst float64
	// Finals counts the problems whose times are from final measurements. Noise is the median noise floor, NaN without.
	Finals int
	Noise  float64
	// Measured, Wrong, NotBuilt, Failed, Missing and ClockMoved are the sums of the rows'.
	Measured, Wrong, NotBuilt, Failed, Missing, ClockMoved int
}

// SummariseComparisons sums up the rows of one dataset.
func SummariseComparisons(rows []Comparison) ComparisonSummary {
	s := ComparisonSummary{TauWorst: math.Inf(1)}
	var efficiency, noise []float64
	var libraries [][]float64
	taus := 0
	for i := range rows {
		r := &rows[i]
		s.Problems++
		if r.PassedOver > 0 {
			s.PassedOver++
		}
		if r.Missing > 0 {
			s.Unfinished++
		}
		if r.Phase == dataset.Final {
			s.Finals++
		}
		s.Measured += r.Measured
		s.Wrong += r.Wrong
		s.NotBuilt += r.NotBuilt
		s.Failed += r.Failed
		s.Missing += r.Missing
		s.ClockMoved += r.ClockMoved
		efficiency = append(efficiency, r.Efficiency())
		for l, t := range r.Libraries {
			if l == len(libraries) {
				libraries = append(libraries, nil)
			}
			if t > 0 {
				libraries[l] = append(libraries[l], r.VersusLibrary(l))
			}
		}
		if !math.IsNaN(r.Noise) {
			noise = append(noise, r.Noise)
		}
		if !math.IsNaN(r.Tau) {
			taus++
			s.TauMean += r.Tau
			s.TauWorst = min(s.TauWorst, r.Tau)
		}
	}
	if taus == 0 {
		s.TauMean, s.TauWorst = math.NaN(), math.NaN()
	} else {
		s.TauMean /= float64(taus)
	}
	s.Efficiency = stats.QuantilesOf(efficiency)
	for _, l := range libraries {
		s.Libraries = append(s.Libraries, stats.QuantilesOf(l))
	}
	s.Noise = stats.Median(noise)
	return s
}
