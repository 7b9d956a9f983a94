package score

import (
	"math"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
)

// ComparisonSummary sums up the comparisons of several problems.
type ComparisonSummary struct {
	Problems int
	// PassedOver counts the problems where candidates ranked before the pick have no time, Unfinished those where some
	// candidates were not measured.
	PassedOver, Unfinished int
	// Efficiency is the efficiency of the pick. Libraries is each library's time ÷ the time of the pick, over the problems
	// that have the library's time.
	Efficiency        stats.Quantiles
	Libraries         []stats.Quantiles
	TauMean, TauWorst float64
	// Finals counts the problems whose times come from final measurements. Noise is the median of Comparison.Noise over
	// these, NaN if there are none.
	Finals int
	Noise  float64
	// Measured, Wrong, NotBuilt, Failed, Missing and ClockMoved are sums over the problems.
	Measured, Wrong, NotBuilt, Failed, Missing, ClockMoved int
}

// SummariseComparisons sums up the comparisons with one data set.
func SummariseComparisons(comparisons []Comparison) ComparisonSummary {
	s := ComparisonSummary{Problems: len(comparisons), TauWorst: math.Inf(1)}
	var efficiency, noise []float64
	var libraries [][]float64
	taus := 0
	for i := range comparisons {
		c := &comparisons[i]
		s.count(c)
		efficiency = append(efficiency, c.Efficiency())
		for l, t := range c.Libraries {
			if l == len(libraries) {
				libraries = append(libraries, nil)
			}
			if t > 0 {
				libraries[l] = append(libraries[l], c.VersusLibrary(l))
			}
		}
		if !math.IsNaN(c.Noise) {
			noise = append(noise, c.Noise)
		}
		if !math.IsNaN(c.Tau) {
			taus++
			s.TauMean += c.Tau
			s.TauWorst = min(s.TauWorst, c.Tau)
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

// count adds the counts of one comparison.
func (s *ComparisonSummary) count(c *Comparison) {
	if c.PassedOver > 0 {
		s.PassedOver++
	}
	if c.Missing > 0 {
		s.Unfinished++
	}
	if c.Phase == dataset.Final {
		s.Finals++
	}
	s.Measured += c.Measured
	s.Wrong += c.Wrong
	s.NotBuilt += c.NotBuilt
	s.Failed += c.Failed
	s.Missing += c.Missing
	s.ClockMoved += c.ClockMoved
}
