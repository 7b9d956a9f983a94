package ask

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/roofline"
)

// Roofline is a prediction against the peaks of the device. What is unknown is 0.
type Roofline struct {
	// PeakShare is the rate ÷ the peak for the operands.
	PeakShare float64
	// DRAM is in bytes per second: what the model says that the kernel moves, and otherwise at least the operands and the
	// output once. DRAMPeak is that of the device, DRAMShare the quotient.
	DRAM, DRAMPeak, DRAMShare float64
	// Intensity is operations by bytes that every kernel has to move. Ridge is the intensity at which the two roofs meet.
	// RoofShare is the shortest time that the roofs allow ÷ the time. Operands that stay in a cache do not count for it.
	Intensity, Ridge, RoofShare float64
	// CTAs are those of the launch. Waves are CTAs ÷ those that run at once, which are CTAsPerUnit on every SM or CU.
	CTAs, Waves, CTAsPerUnit float64
	// Padding is the share of the tiles' operations that the problem does not have.
	Padding float64
}

// Roofline returns where an entry is under the roofs. Without terms, it counts with one CTA per SM or CU.
func (a *Ranking) Roofline(e *Entry) Roofline {
	p, c := &a.Problem, &e.Config
	least := roofline.Compulsory(*p)
	tilesM, tilesN, steps := float64(p.TilesM(max(c.BlockM, 1))), ceilDiv(p.N, c.BlockN), ceilDiv(p.K, c.BlockK)
	padded := 2 * tilesM * float64(c.BlockM) * tilesN * float64(c.BlockN) * steps * float64(c.BlockK)
	r := Roofline{DRAMPeak: a.DRAMPeak, Intensity: p.Flops() / least, Padding: 1 - p.Flops()/padded}
	r.PeakShare, _ = a.PeakShare(e)
	r.CTAsPerUnit, _ = a.common(e, arch.CommonCTAsPerUnit)
	r.CTAs = tilesM * tilesN * float64(max(c.SplitK, 1))
	var ok bool
	if r.Waves, ok = a.common(e, arch.CommonWaves); !ok {
		r.Waves = r.CTAs / (float64(a.Arch.Units) * max(r.CTAsPerUnit, 1))
	}
	moved, ok := a.common(e, arch.CommonDRAMTotal)
	if !ok {
		step, _ := a.common(e, arch.CommonDRAMTraffic)
		moved = max(least, step*steps*math.Ceil(r.Waves))
	}
	seconds := float64(a.Seconds(e))
	r.DRAM = moved / seconds
	if r.DRAMPeak > 0 {
		r.DRAMShare = r.DRAM / r.DRAMPeak
		if peak := float64(a.Arch.PeakFor(p.DType)); peak > 0 {
			r.Ridge = peak / r.DRAMPeak
			r.RoofShare = max(p.Flops()/peak, min(moved, least)/r.DRAMPeak) / seconds
		}
	}
	return r
}

func ceilDiv(size, block int) float64 { return float64((size + block - 1) / max(block, 1)) }

// common returns a term of an entry by the name that all models have for it.
func (a *Ranking) common(e *Entry, name string) (float64, bool) { return a.Arch.Common(e.Terms, name) }

// DRAMPeak is the data sheet's bandwidth of DRAM in B/s, and that of the model's last level where a device has none. It
// is 0 if it is unknown.
func DRAMPeak(m arch.Architecture) float64 {
	d := m.Describe()
	if p, ok := hw.Set(d.Params).Lookup("dram_bandwidth"); ok {
		return p.Value
	}
	if levels := m.Hierarchy().Levels(); len(levels) > 0 {
		return float64(levels[len(levels)-1].Bandwidth.Peak) * float64(d.Clock)
	}
	return 0
}
