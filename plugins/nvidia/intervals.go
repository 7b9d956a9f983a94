package nvidia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// interval is one line of data.Intervals, with the fields that a model needs.
type interval struct {
	Arch, Device, Model string
	Rung                arch.Rung
	Uncertainty         struct {
		Kernel, Source string
		Level, Spread  float64
		PlanSpread     float64 `json:"plan_spread"`
		Ranges         []struct {
			Bound     *string
			Below     *float64 `json:"below_seconds"`
			Low, High float64
		}
	}
}

// intervals reads the embedded file.
var intervals = sync.OnceValue(func() []interval {
	var all []interval
	for line := range bytes.Lines(data.Intervals) {
		var one interval
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		all = append(all, one)
	}
	return all
})

// uncertaintyOf returns the uncertainty of an opened model's times. It is empty if the model was not compared with
// measurements of the device.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	bounds := map[string]arch.Bound{}
	for b := arch.BoundUnknown; b <= arch.BoundLatency; b++ {
		bounds[b.String()] = b
	}
	var uncertainty []arch.Uncertainty
	for _, one := range intervals() {
		if one.Arch != d.Arch || one.Device != d.Device || one.Model != d.Model || one.Rung != d.Rung {
			continue
		}
		u := arch.Uncertainty{
			Kernel: one.Uncertainty.Kernel, Level: one.Uncertainty.Level,
			Sigma: one.Uncertainty.Spread, PlanSigma: one.Uncertainty.PlanSpread,
			Source: one.Uncertainty.Source,
		}
		for _, r := range one.Uncertainty.Ranges {
			e := arch.ErrorRange{Low: r.Low, High: r.High}
			if r.Bound != nil {
				e.Bound = bounds[*r.Bound]
			}
			if r.Below != nil {
				e.Below = unit.Seconds(*r.Below)
			}
			u.Ranges = append(u.Ranges, e)
		}
		uncertainty = append(uncertainty, u)
	}
	return uncertainty
}
