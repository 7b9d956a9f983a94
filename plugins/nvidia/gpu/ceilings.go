package gpu

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// ceilings are the roofs of the device that its numbers give, except for the widths of units, which are constants of
// models.
func (d *Device) ceilings(description *arch.Description) (list []arch.Ceiling) {
	for _, t := range gemm.DTypes() {
		if t.CostsLike() == t && t != gemm.FP32 {
			list = append(list, d.matrix(description, t)...)
		}
	}
	peak, _ := d.Params.Lookup("peak_fp32")
	fma := arch.Ceiling{Name: "FMA", DType: gemm.FP32, Limit: peak.Value, Source: peak.Source}
	if reached, n := d.perSM("fma_rate"); reached > 0 {
		fma.Limit, fma.Reached = max(fma.Limit, reached), reached
		fma.Source = "limit: " + fma.Source + "; reached: " + n.Source
	}
	list = append(list, fma)
	for _, c := range []arch.Ceiling{
		{Name: "shared memory", Level: arch.AtShared, Source: "shared_bandwidth"},
		{Name: "L1", Level: arch.AtRequested, Source: "l1_bandwidth"},
	} {
		reached, n := d.perSM(c.Source)
		if c.Reached, c.Source = reached, n.Source; reached > 0 {
			list = append(list, c)
		}
	}
	return append(list, d.memory()...)
}

// matrix are the rates of the matrix instructions of a type that were measured.
func (d *Device) matrix(description *arch.Description, t gemm.DType) (list []arch.Ceiling) {
	sheet := "peak of " + d.Sheet.Name
	if p, ok := d.Params.Lookup("peak_" + t.String()); ok {
		sheet = p.Source
	}
	for _, x := range []struct{ param, name string }{{"wgmma_rate_", "wgmma"}, {"mma_rate_", "mma.sync"}} {
		reached, n := d.perSM(x.param + t.String())
		if reached == 0 {
			continue
		}
		// A clock above the clock of the data sheet's peak is possible until the power limit lowers it.
		limit := max(float64(description.PeakFor(t)), n.Value*float64(d.SMs)*float64(d.Clock))
		list = append(list, arch.Ceiling{Name: x.name, DType: t, Limit: limit, Reached: reached,
			Source: "limit: " + sheet + "; reached: " + n.Source})
	}
	return list
}

// memory are the bandwidths of L2 and DRAM.
func (d *Device) memory() []arch.Ceiling {
	l2 := arch.Ceiling{Name: "L2", Level: arch.AtL2}
	if p, ok := d.Params.Lookup("l2_perf_ratio"); ok {
		l2.Source = p.Source
		if rate := p.Value * d.clockOf(p); p.Method == hw.Microbenchmark || p.Tier == hw.Override {
			l2.Reached = rate
		} else {
			l2.Limit = rate
		}
	}
	dram := arch.Ceiling{Name: "DRAM", Level: arch.AtDRAM}
	if p, ok := d.Params.Lookup("dram_bandwidth"); ok {
		dram.Limit, dram.Source = p.Value, "limit: "+p.Source
	}
	reached := ""
	for _, name := range []string{"dram_read", "dram_triad", "dram_perf_ratio"} {
		p, ok := d.Params.Lookup(name)
		rate := p.Value
		if name == "dram_perf_ratio" {
			rate *= d.clockOf(p)
		}
		if ok && p.Tier >= hw.Calibrated && rate > dram.Reached {
			dram.Reached, reached = rate, "; reached: "+p.Source
		}
	}
	dram.Source += reached
	return []arch.Ceiling{l2, dram}
}

// perSM returns a measured number of one SM as a rate of all, at the clock that it was measured at or, if that is
// unknown, at the device's.
func (d *Device) perSM(name string) (rate float64, n hw.Number) {
	p, ok := d.Params.Lookup(name)
	if !ok {
		return 0, hw.Number{}
	}
	return p.Value * float64(d.SMs) * d.clockOf(p), p.Number
}

func (d *Device) clockOf(p hw.Param) float64 {
	if p.Clock > 0 {
		return float64(p.Clock)
	}
	return float64(d.Clock)
}
