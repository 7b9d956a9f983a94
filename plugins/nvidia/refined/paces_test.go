package refined

import (
	"testing"

	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// Whatever a characterization holds, no pace that the model makes of it is negative.
func FuzzPaces(f *testing.F) {
	f.Add(records.TritonH200Timed[:2000])
	d := device{quantities: shipped, clock: 1.98e9}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := kernel.ReadTimings(data)
		if err != nil {
			return
		}
		for key, timing := range table {
			for _, blockK := range []float64{1, 64, 1 << 14} {
				k := d.timedKernel(blockK, &timing)
				paces := []float64{k.fixed, k.one.short, k.one.long, k.chip.short, k.chip.long, k.full.short, k.full.long}
				for _, v := range paces {
					if !(v >= 0) {
						t.Errorf("%+v: %+v", key, k)
					}
				}
			}
		}
	})
}
