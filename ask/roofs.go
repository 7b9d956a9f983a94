package ask

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/unit"
)

// Roofline is a prediction against the peaks of the device. What is unknown is 0.
type Roofline struct {
	// PeakShare is the rate ÷ the peak for the operands.
	PeakShare float64
	// DRAM is in bytes per second: what the model says that the kernel moves, and otherwise at least the operands and the
	// output once. DRAMPeak is the device's bandwidth, DRAMShare the quotient.
	DRAM, DRAMPeak, DRAMShare float64
	// Intensity is operations by bytes that every kernel has to move. Ridge is the intensity at which the two roofs meet.
	// RoofShare is the shortest time that the roofs allow ÷ the time. Operands that stay in a cache do not count for it.
	Intensity, Ridge, RoofShare float64
	// CTAs are the CTAs of the launch. Waves are CTAs ÷ the CTAs that run at once: CTAsPerUnit on every SM or CU.
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

// PeakBandwidth is the data sheet's bandwidth of DRAM in B/s. Without a data sheet it is the bandwidth of the model's
// last level. It is 0 if both are unknown.
func PeakBandwidth(m arch.Architecture) float64 {
	levels := m.Hierarchy().Levels()
	if len(levels) == 0 {
		return 0
	}
	last := &levels[len(levels)-1]
	return cmp.Or(float64(last.DataSheet), float64(last.Rate())*float64(m.Describe().Clock))
}

// muchPadding is the share of padding from which on a sentence names it.
const muchPadding = 0.1

// nearRoof is the share of a roof from which on a kernel is bound by it.
const nearRoof = 0.3

// boundWords are how a sentence names what limits a kernel.
var boundWords = map[arch.Bound]string{
	arch.BoundCompute: "compute", arch.BoundL2: "L2", arch.BoundMALL: "MALL", arch.BoundDRAM: "DRAM",
	arch.BoundLatency: "latency", arch.BoundL1: "L1", arch.BoundSharedMemory: "shared-memory",
	arch.BoundIssue: "issue",
}

// Why says in one sentence what limits a kernel and how far it is from the roofs: "compute-bound: 655 TFLOP/s, 66.2 %
// of the fp16 peak (989); 12.1 % of DRAM's 4.80 TB/s; 1.94 waves of 2 CTAs per SM; 1365 FLOP/B". It is empty
// for a configuration that cannot be used.
func (a *Ranking) Why(e *Entry) string {
	if e.Estimate.Reject != "" {
		return ""
	}
	r := a.Roofline(e)
	if a.Arch.RanksOnly {
		return bound(e.Estimate.Bound, Roofline{}) + strings.Join(occupancy(a, r), "; ")
	}
	rate := digits.Rate(a.Rate(e), a.Problem.DType)
	parts := []string{rate + peakOf(a, rate, r)}
	if r.DRAMShare > 0 {
		dram := dramShare(r)
		if e.Estimate.Bound == arch.BoundDRAM {
			parts = append([]string{unit.SI(r.DRAM, "B/s") + ", " + dram}, parts...)
		} else {
			parts = append(parts, dram)
		}
	}
	return a.spills(e) + bound(e.Estimate.Bound, r) + strings.Join(append(parts, occupancy(a, r)...), "; ")
}

// spills says how much of each thread does not fit into registers, and is empty if all of it does.
func (a *Ranking) spills(e *Entry) string {
	bytes, ok := a.common(e, arch.CommonSpills)
	if !ok || bytes == 0 {
		return ""
	}
	registers := "its registers"
	if n, ok := a.common(e, arch.CommonRegisters); ok {
		registers = fmt.Sprintf("%.0f registers", n)
	}
	return fmt.Sprintf("spills %s of each thread beyond %s to memory; ", digits.Quantity(bytes, "B"), registers)
}

// occupancy is what a sentence says without a time.
func occupancy(a *Ranking, r Roofline) []string {
	parts := []string{a.Waves(r), a.Intensity(r.Intensity)}
	if r.Padding >= muchPadding {
		parts = append(parts, digits.Percent(r.Padding)+" padding")
	}
	return parts
}

// bound says what limits a kernel. A model may find that the K loop waits for a resource that is idle for most of the
// time, because it starts late or has much else to do: then the kernel is not at its roof.
func bound(b arch.Bound, r Roofline) string {
	switch {
	case b == arch.BoundDRAM && r.DRAMShare > 0 && r.DRAMShare < nearRoof:
		return "waits for DRAM: "
	case b == arch.BoundCompute && r.PeakShare > 0 && r.PeakShare < nearRoof:
		return "waits for arithmetic: "
	case boundWords[b] == "":
		return ""
	}
	return boundWords[b] + "-bound: "
}

// peakOf is the share of the peak. It has the peak's unit if the rate has another.
func peakOf(a *Ranking, rate string, r Roofline) string {
	if r.PeakShare <= 0 {
		return ""
	}
	estimated := ""
	if a.Arch.Device == arch.LiveID {
		estimated = "estimated "
	}
	t := a.Problem.DType
	peak := digits.Rate(a.Arch.PeakFor(t), t)
	if number, unitOfPeak, _ := strings.Cut(peak, " "); strings.HasSuffix(rate, " "+unitOfPeak) {
		peak = number
	}
	return fmt.Sprintf(", %s of the %s%s peak (%s)", digits.Percent(r.PeakShare), estimated, t, peak)
}

// dramShare says how near a kernel is to the bandwidth of DRAM: "12.1 % of DRAM's 4.80 TB/s".
func dramShare(r Roofline) string {
	return fmt.Sprintf("%s of DRAM's %s", digits.Percent(r.DRAMShare), unit.SI(r.DRAMPeak, "B/s"))
}

// Waves says how a launch fills the device: "1.94 waves of 2 CTAs per SM", or "1.94 waves" if the model does not say
// how many fit. Nobody knows how many of a vendor's kernels run at once: "128 CTAs on 132 SMs".
func (a *Ranking) Waves(r Roofline) string {
	if a.Arch.Opaque(a.Kernel) {
		return fmt.Sprintf("%s on %s", digits.Plural(int(r.CTAs), "CTA", "CTAs"),
			digits.Plural(a.Arch.Units, a.Arch.UnitName, a.Arch.UnitName+"s"))
	}
	s := digits.ThreeDigits(r.Waves) + " waves"
	if r.Waves == 1 {
		s = "1 wave"
	}
	if r.CTAsPerUnit > 0 {
		s += fmt.Sprintf(" of %s per %s", digits.Plural(int(r.CTAsPerUnit), "CTA", "CTAs"), a.Arch.UnitName)
	}
	return s
}

// Intensity writes an arithmetic intensity: "1365 FLOP/B".
func (a *Ranking) Intensity(v float64) string {
	return digits.ThreeDigits(v) + " " + intensityUnit(a)
}

func intensityUnit(a *Ranking) string {
	return strings.TrimSuffix(digits.TeraRate(a.Problem.DType)[1:], "/s") + "/B"
}
