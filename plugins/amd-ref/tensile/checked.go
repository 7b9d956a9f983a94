package tensile

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
)

// Check is what the times of the model's picks on a device were compared with. TestChecked writes zchecked.go.
type Check struct {
	Device string
	Sizes  int
	// Median is the median of |predicted ÷ recorded − 1|.
	Median float64
	// Held is the share of recorded ÷ predicted times that the ranges of the other half of the sizes hold.
	Held float64
	// Short are the quantiles 0.05 and 0.95 of recorded ÷ predicted for predicted times below ShortSeconds, Long of the
	// others.
	Short, Long                    [2]float64
	Types                          []gemm.Types
	Divisor, Split, M, N, K, Flops arch.Range
}

// ShortSeconds divides the predicted times that have ranges of their own.
const ShortSeconds = 20e-6

// Level is the share of recorded times that the ranges of a Check contain.
const Level = 0.9

// uncertainty returns the uncertainty of a device's times, if they were compared with any.
func uncertainty(device string) []arch.Uncertainty {
	for i := range checks {
		c := &checks[i]
		if c.Device != device {
			continue
		}
		u := arch.Uncertainty{
			Kernel: kernel.Name, Level: Level, MedianError: c.Median,
			Ranges: []arch.ErrorRange{
				{Below: unit.Seconds(ShortSeconds), Low: c.Short[0], High: c.Short[1]}, {Low: c.Long[0], High: c.Long[1]},
			},
			Source: fmt.Sprintf("speeds of the kernels that AMD's tuning chose, to which the model was fitted; "+
				"of the other half of the sizes the ranges hold %.0f %%", 100*c.Held),
			Checked: arch.Checked{
				DataSet: terms.DataSet, Sizes: c.Sizes, Times: c.Sizes, Divisor: c.Divisor, Split: c.Split,
				M: c.M, N: c.N, K: c.K, Batch: arch.Range{Low: 1, High: 1}, Flops: c.Flops,
			},
		}
		for _, t := range c.Types {
			for _, a := range []gemm.Major{gemm.MajorM, gemm.MajorK} {
				for _, b := range []gemm.Major{gemm.MajorK, gemm.MajorN} {
					u.Checked.Layouts = append(u.Checked.Layouts, arch.Layout{Types: t, AMajor: a, BMajor: b})
				}
			}
		}
		return []arch.Uncertainty{u}
	}
	return nil
}
