package measure

import (
	"math"

	"github.com/origami-gemm/origami/core/dataset"
)

// AssumedNoise is the noise of a measurement that is taken for granted before one was made: the relative difference
// of two measurements of the same kernel. Repeated sweeps differ by 0.3–1.3 % at the median, and a measurement goes
// on until its median is known to 1 %.
const AssumedNoise = steady

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
