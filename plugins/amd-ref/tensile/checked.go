package tensile

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// Check is what the times of the model's picks on a device were compared with. TestChecked writes zchecked.go.
type Check struct {
	Device string
	// Uncertainty has what differs between checks, and no layouts: these are all of the types.
	arch.Uncertainty
	Types []gemm.Types
}

// Level is the share of recorded times that the ranges of a Check contain.
const Level = 0.9

// uncertainty returns the uncertainty of a device's times, if they were compared with any.
func uncertainty(device string) (list []arch.Uncertainty) {
	for _, c := range checks {
		if c.Device != device {
			continue
		}
		u := c.Uncertainty
		u.Kernel, u.Level, u.Checked.Times, u.Checked.Batch = kernel.Name, Level, u.Checked.Sizes, arch.Range{Low: 1, High: 1}
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
