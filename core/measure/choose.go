package measure

import (
	"math"

	"github.com/origami-gemm/origami/core/dataset"
)

// AssumedNoise is what two measurements of the same kernel are taken to differ by before there are any: recorded ones repeat to
// 0.3–1.3 % at the median (plugins/nvidia/data), and a measurement goes on until its median is known to 1 %.
const AssumedNoise = steady

// Choose returns which of a block of measurements made in turns to use, −1 if none has a time, and the noise floor: the
// larger ÷ the smaller time of the first one and its null arm − 1, NaN where one of them has none.
//
// It is the fastest; but the first, which the model prefers, stays if it is slower by no more than the noise floor.
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
