package tensile

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// Check is what the times of the model's picks on a device were compared with. TestChecked writes zchecked.go.
type Check struct {
	Device string
	// DataSet names the times.
	DataSet string
	Sizes   int
	// Median is the median of |predicted ÷ recorded − 1|.
	Median float64
	// Held is the share of recorded ÷ predicted times that the ranges of the other half of the sizes hold. Of several
	// sources of times it is that of the worst one, with the ranges of the others.
	Held float64
	// Sources are where the times are from.
	Sources string
	// Widening is arch.Uncertainty.Widening.
	Widening float64
	// Ranges hold the share Level of recorded ÷ predicted of every source.
	Ranges                         []arch.ErrorRange
	Types                          []gemm.Types
	Divisor, Split, M, N, K, Flops arch.Range
}

// Level is the share of recorded times that the ranges of a Check contain.
const Level = 0.9

// uncertainty returns the uncertainty of a device's times, if they were compared with any.
func uncertainty(device string) (list []arch.Uncertainty) {
	for i := range checks {
		c := &checks[i]
		if c.Device != device {
			continue
		}
		u := arch.Uncertainty{
			Kernel: kernel.Name, Level: Level, MedianError: c.Median, Ranges: c.Ranges, Widening: c.Widening,
			Source: fmt.Sprintf("%s hold %.0f %%", c.Sources, 100*c.Held),
			Checked: arch.Checked{
				DataSet: c.DataSet, Sizes: c.Sizes, Times: c.Sizes, Divisor: c.Divisor, Split: c.Split,
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
		list = append(list, u)
	}
	return list
}
