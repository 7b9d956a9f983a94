package measure

import (
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/stats"
)

// AssumedNoise is the noise of a measurement that is taken for granted before one was made: the relative difference
// of two measurements of the same kernel. Repeated sweeps differ by 0.3–1.3 % at the median, and a measurement goes
// on until its median is known to 1 %.
const AssumedNoise = steady

// apart is how many standard errors the times of two configurations may differ by chance: 9 of 10 normal errors do not.
const apart = 1.645

// Noise returns by what share the times of two configurations may differ by chance that were measured at other times.
// Both the samples and the moment make noise. 3183 pairs in the shipped sets were measured apart and then in turns:
// the ratios of 70 % changed by less than this, and of 48 % by less than their samples alone say.
func Noise(a, b *dataset.Measurement) float64 {
	sum := AssumedNoise * AssumedNoise
	for _, m := range []*dataset.Measurement{a, b} {
		if e := stats.MedianError(m.Samples); !math.IsNaN(e) && !math.IsInf(e, 0) {
			sum += e * e
		}
	}
	return apart * math.Sqrt(sum)
}

// Tie is a measurement that is tied with a pick: its time is longer by no more than the noise, a share of the time.
type Tie struct {
	dataset.Measurement
	Noise float64
}

// Ties returns what is tied with a pick, the fastest first. noise is by what share two times may differ by chance.
func Ties(pick *dataset.Measurement, others []dataset.Measurement, noise func(a, b *dataset.Measurement) float64) (
	ties []Tie,
) {
	for i := range others {
		m := &others[i]
		if n := noise(pick, m); m.Status == dataset.OK && !m.Null && m.Config != pick.Config &&
			float64(m.Median/pick.Median)-1 <= n {
			ties = append(ties, Tie{*m, n})
		}
	}
	slices.SortStableFunc(ties, func(a, b Tie) int { return cmp.Compare(a.Median, b.Median) })
	return ties
}

// Choose returns the index of the measurement to use of a block that was measured in turns, −1 if none has a time.
// It is the fastest, unless the first one, which the model prefers, is slower by no more than the noise.
//
// noise is the larger ÷ the smaller time of the first one and its null arm − 1, NaN if one of them has no time.
func Choose(block []dataset.Measurement) (choice int, noise float64) {
	choice, noise = -1, math.NaN()
	for i := range block {
		m := &block[i]
		switch {
		case m.Status != dataset.OK:
		case m.Null:
			if block[0].Status == dataset.OK {
				noise = float64(max(m.Median, block[0].Median)/min(m.Median, block[0].Median)) - 1
			}
		case choice < 0 || m.Median < block[choice].Median:
			choice = i
		}
	}
	if choice > 0 && block[0].Status == dataset.OK && float64(block[0].Median/block[choice].Median)-1 <= noise {
		choice = 0
	}
	return choice, noise
}
