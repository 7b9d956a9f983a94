package configs_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// published contains the rows of testdata/published.
type published struct{ rrze, mt4g []map[string]string }

func readPublished(t *testing.T) published {
	t.Helper()
	return published{csvtest.Named(t, "testdata/published/rrze_gpu_benches.csv"),
		csvtest.Named(t, "testdata/published/mt4g.csv")}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	must.Do(t, err)
	return v
}

// curveMedian returns the median of y over the rows of one curve with x from lo to hi bytes.
func (p published) curveMedian(t *testing.T, benchmark, device string, lo, hi float64) float64 {
	t.Helper()
	var ys []float64
	for _, r := range p.rrze {
		if x := number(t, r["x"]) * 1024; r["benchmark"] == benchmark && r["device"] == device && lo <= x && x <= hi {
			ys = append(ys, number(t, r["y"]))
		}
	}
	must.Need(t, len(ys) >= 10, "%s of %s has %d rows from %g to %g bytes", benchmark, device, len(ys), lo, hi)
	slices.Sort(ys)
	return (ys[len(ys)/2] + ys[(len(ys)-1)/2]) / 2
}

// perSM returns the bandwidth in GB/s of one fully occupied SM, from the triad curve at 12.5 % occupancy of all SMs,
// each of which holds 2048 threads. The row is found by its threads: the curve of the H100 PCIe calls these 25 %.
func (p published) perSM(t *testing.T, device string, sms float64) float64 {
	t.Helper()
	for _, r := range p.rrze {
		if r["benchmark"] == "gpu-stream" && r["device"] == device && r["y_name"] == "triad_GBs" &&
			number(t, r["x"]) == sms*2048/8 {
			return number(t, r["y"]) / 0.125 / sms
		}
	}
	t.Fatalf("no triad row of %s at 12.5 %% occupancy", device)
	return 0
}

// rrzeClock returns the clock in Hz that a benchmark logged on a device. All its rows must agree.
func (p published) rrzeClock(t *testing.T, benchmark, device string) float64 {
	t.Helper()
	clock := 0.0
	for _, r := range p.rrze {
		if r["benchmark"] == benchmark && r["device"] == device {
			mhz, _, _ := strings.Cut(r["aux"], "|")
			v := number(t, mhz) * 1e6
			must.Need(t, clock == 0 || v == clock, "%s of %s ran at %g and %g Hz", benchmark, device, clock, v)
			clock = v
		}
	}
	must.Need(t, clock != 0, "%s logs no clock on %s", benchmark, device)
	return clock
}

// mt4gValue returns a metric of a device, and the clock in Hz of its file.
func (p published) mt4gValue(t *testing.T, device, level, metric string) (value, clock float64) {
	t.Helper()
	for _, r := range p.mt4g {
		if r["device"] == device && r["level"] == level && r["metric"] == metric {
			return number(t, r["value"]), number(t, r["clock_MHz"]) * 1e6
		}
	}
	t.Fatalf("MT4G has no %s %s of %s", level, metric, device)
	return 0, 0
}

// computed is a number of a device file as its source computes it.
type computed struct {
	sheet *hw.Sheet
	name  string
	value float64
}

const gb = 1e9

// dramShare is the share of the data sheet's bandwidth that gpu-l2-cache reaches beyond the L2.
func (p published) dramShare(t *testing.T, device string, l2, sheet float64) float64 {
	t.Helper()
	return p.curveMedian(t, "gpu-l2-cache", device, 4*l2, math.Inf(1)) * gb / sheet
}

// a100Numbers are those of the A100 SXM4 with 80 GB, from its own curves, and of the other A100s, from its curves.
func a100Numbers(t *testing.T, p published) []computed {
	a100 := sheet(t, "sm80", "a100")
	l2, clock := base(t, a100, "l2_bytes"), p.rrzeClock(t, "gpu-latency", "a100_80")
	l2Ratio := p.curveMedian(t, "gpu-l2-cache", "a100_80", 0.1*l2, 0.6*l2) * gb / clock
	share := p.dramShare(t, "a100_80", l2, base(t, a100, "dram_bandwidth"))
	latency := p.curveMedian(t, "gpu-latency", "a100_80", 4*l2, math.Inf(1))
	var all []computed
	for curve, devices := range map[string][]string{
		"a100_80": {"a100", "a100-pcie-80gb", "a800", "a800-pcie-80gb"},
		"a100_40": {"a100-sxm-40gb", "a100-pcie-40gb"},
	} {
		for _, device := range devices {
			s := sheet(t, "sm80", device)
			dram := share * base(t, s, "dram_bandwidth")
			all = append(all, computed{s, "l2_perf_ratio", l2Ratio}, computed{s, "dram_perf_ratio", dram / clock},
				computed{s, "dram_bw_coeff", p.perSM(t, curve, 108) * gb / dram}, computed{s, "hbm_latency_penalty", latency})
		}
	}
	return all
}

// hopperNumbers are those of GH100. The H200's L2 stands for that of other parts, per SM or per byte.
func hopperNumbers(t *testing.T, p published) []computed {
	h200, h100 := sheet(t, "sm90", "h200"), sheet(t, "sm90", "h100")
	pcie, nvl, h20 := sheet(t, "sm90", "h100-pcie"), sheet(t, "sm90", "h100-nvl"), sheet(t, "sm90", "h20")
	h20e := sheet(t, "sm90", "h20-3e")
	l2, pcieL2 := base(t, h200, "l2_bytes"), base(t, pcie, "l2_bytes")
	clock, pcieClock := p.rrzeClock(t, "gpu-roofline", "h200"), base(t, pcie, "clock")
	l2Ratio := p.curveMedian(t, "gpu-l2-cache", "h200", 0.1*l2, 0.6*l2) * gb / clock
	pcieRatio := p.curveMedian(t, "gpu-l2-cache", "h100_pcie", 0.1*pcieL2, 0.6*pcieL2) * gb / pcieClock

	share := p.dramShare(t, "h200", l2, base(t, h200, "dram_bandwidth"))
	h100DRAM, h100Clock := p.mt4gValue(t, "NVIDIA H100 80GB HBM3", "main", "readBandwidth")
	nvlDRAM, nvlClock := p.mt4gValue(t, "NVIDIA H100 NVL", "main", "readBandwidth")
	h100DRAM, nvlDRAM = h100DRAM*(1<<30), nvlDRAM*(1<<30)
	pcieDRAM := p.curveMedian(t, "gpu-l2-cache", "h100_pcie", 4*pcieL2, math.Inf(1)) * gb
	dramOf := func(s *hw.Sheet) float64 { return share * base(t, s, "dram_bandwidth") }
	gh200, h800 := sheet(t, "sm90", "gh200"), sheet(t, "sm90", "h800")

	perSM, pciePerSM := p.perSM(t, "gh200", 132)*gb, p.perSM(t, "h100_pcie", 114)*gb
	gh200Clock := p.rrzeClock(t, "gpu-latency", "gh200")
	seconds := p.curveMedian(t, "gpu-latency", "gh200", 4*60<<20, math.Inf(1)) / gh200Clock
	var all []computed
	for _, d := range []struct {
		sheet                 *hw.Sheet
		l2Ratio, dram, at, sm float64
	}{
		{h200, l2Ratio, dramOf(h200), clock, perSM},
		{gh200, l2Ratio, dramOf(gh200), clock, perSM},
		{h100, l2Ratio, h100DRAM, h100Clock, perSM},
		{h800, l2Ratio, h100DRAM, h100Clock, perSM},
		{nvl, l2Ratio, nvlDRAM, nvlClock, perSM},
		{pcie, pcieRatio, pcieDRAM, pcieClock, pciePerSM},
		{h20, l2Ratio * 78 / 132, dramOf(h20), base(t, h20, "clock"), perSM},
		{h20e, l2Ratio * 78 / 132, dramOf(h20e), base(t, h20e, "clock"), perSM},
	} {
		all = append(all, computed{d.sheet, "l2_perf_ratio", d.l2Ratio}, computed{d.sheet, "dram_perf_ratio", d.dram / d.at},
			computed{d.sheet, "dram_bw_coeff", d.sm / d.dram},
			computed{d.sheet, "hbm_latency_penalty", seconds * base(t, d.sheet, "clock")})
	}
	return all
}

// professionalNumbers are those of the professional cards with GDDR6, from the L40 and the A40, and where these have
// no curve from the GeForce card of the architecture.
func professionalNumbers(t *testing.T, p published) []computed {
	const l40L2, a40L2 = 96 << 20, 6 << 20
	share := p.dramShare(t, "l40", l40L2, 864*gb)
	l40Clock, a40Clock := p.rrzeClock(t, "gpu-latency", "l40"), p.rrzeClock(t, "gpu-latency", "a40")
	l40Ratio := p.curveMedian(t, "gpu-l2-cache", "l40", 0.1*l40L2, 0.6*l40L2) * gb / l40Clock
	l40Seconds := p.curveMedian(t, "gpu-latency", "l40", 4*l40L2, math.Inf(1)) / l40Clock
	a40Seconds := p.curveMedian(t, "gpu-latency", "a40", 4*a40L2, math.Inf(1)) / a40Clock
	ampere, ada := sheet(t, "sm86", "rtx3090"), sheet(t, "sm89", "rtx4090")
	ampereRatio := base(t, ampere, "l2_perf_ratio")
	var all []computed
	for _, d := range []struct {
		geforce          *hw.Sheet
		device           string
		l2Ratio, seconds float64
	}{
		{ampere, "a10", ampereRatio * 72 / 82, a40Seconds},
		{ampere, "a40", ampereRatio, a40Seconds},
		{ampere, "a6000", ampereRatio, a40Seconds},
		{ada, "l40", l40Ratio, l40Seconds},
		{ada, "l40s", l40Ratio, l40Seconds},
		{ada, "rtx6000-ada", l40Ratio, l40Seconds},
		{ada, "l20", l40Ratio * 92 / 142, l40Seconds},
		{ada, "l4", l40Ratio * 58 / 142, l40Seconds},
	} {
		s := sheet(t, d.geforce.Arch, d.device)
		dram := share * base(t, s, "dram_bandwidth")
		all = append(all, computed{s, "l2_perf_ratio", d.l2Ratio}, computed{s, "dram_perf_ratio", dram / base(t, s, "clock")},
			computed{s, "dram_bw_coeff", oneSM(t, d.geforce) / dram},
			computed{s, "hbm_latency_penalty", d.seconds * base(t, s, "clock")})
	}
	return all
}

// oneSM is the bandwidth of one active SM in a device file, in B/s.
func oneSM(t *testing.T, s *hw.Sheet) float64 {
	return base(t, s, "dram_bw_coeff") * base(t, s, "dram_perf_ratio") * base(t, s, "clock")
}

// geforceNumbers are those of cards that were not measured, from a GeForce card of the same or the previous generation.
func geforceNumbers(t *testing.T) []computed {
	ampere, ada := sheet(t, "sm86", "rtx3090"), sheet(t, "sm89", "rtx4090")
	var all []computed
	for _, d := range []struct{ from, sheet *hw.Sheet }{
		{ampere, sheet(t, "sm86", "rtx3080")}, {ampere, sheet(t, "sm86", "rtx3080ti")},
		{ada, sheet(t, "sm89", "rtx4090d")}, {ada, sheet(t, "sm120", "rtx5080")}, {ada, sheet(t, "sm120", "rtxpro5000")},
		{ada, sheet(t, "sm120", "rtx5090")}, {ada, sheet(t, "sm120", "rtx5090d-v2")}, {ada, sheet(t, "sm120", "rtxpro6000")},
	} {
		from, s := d.from, d.sheet
		ratio := func(name string) float64 { return base(t, s, name) / base(t, from, name) }
		dram := base(t, from, "dram_perf_ratio") * base(t, from, "clock") * ratio("dram_bandwidth")
		all = append(all,
			computed{s, "l2_perf_ratio", base(t, from, "l2_perf_ratio") * min(ratio("num_sms"), ratio("l2_bytes"))},
			computed{s, "dram_perf_ratio", dram / base(t, s, "clock")},
			computed{s, "dram_bw_coeff", oneSM(t, from) / dram},
			computed{s, "hbm_latency_penalty", base(t, from, "hbm_latency_penalty") * ratio("clock")})
	}
	return all
}

// Every number that an NVIDIA file takes from gpu-benches or MT4G follows from the rows in testdata/published, by the
// formula in its source, and so do numbers that one file takes from another.
func TestComputedNumbersFollowFromThePublishedRows(t *testing.T) {
	p := readPublished(t)
	recomputed := map[string]map[string]bool{} // names by file
	precision := map[string]float64{
		"l2_perf_ratio": 10, "dram_perf_ratio": 10, "dram_bw_coeff": 10000, "hbm_latency_penalty": 10,
	}
	for _, c := range slices.Concat(a100Numbers(t, p), hopperNumbers(t, p), professionalNumbers(t, p), geforceNumbers(t)) {
		want := math.Round(c.value*precision[c.name]) / precision[c.name]
		got := base(t, c.sheet, c.name)
		must.That(t, got == want, "%s: %s is %v, the published rows give %v (%v)", c.sheet.File, c.name, got, want, c.value)
		if recomputed[c.sheet.File] == nil {
			recomputed[c.sheet.File] = map[string]bool{}
		}
		recomputed[c.sheet.File][c.name] = true
	}

	// The lists above are complete.
	for _, s := range sheets(t) {
		names, listed := recomputed[s.File]
		for _, tier := range []map[string]hw.Number{s.Derived, s.Calibrated} {
			for name, n := range tier {
				measured := n.Method == hw.Microbenchmark || n.Method == hw.Assumed
				published := strings.Contains(n.Source, "gpu-benches@") || strings.Contains(n.Source, "mt4g@")
				if _, has := precision[name]; has && listed && measured && published && !names[name] {
					t.Errorf("%s: %s comes from published rows and is not recomputed here", s.File, name)
				}
			}
		}
	}
}

// The cross-checks that the sources mention hold.
func TestCrossChecksInTheSources(t *testing.T) {
	p := readPublished(t)
	near := func(what string, got, want, tolerance float64) {
		must.That(t, math.Abs(got-want) <= tolerance, "%s: the source says %v, the rows give %v", what, want, got)
	}
	pcie := p.curveMedian(t, "gpu-l2-cache", "h100_pcie", 0.1*(50<<20), 0.6*(50<<20))
	near("L2 of the H100 PCIe at 1755 MHz, B/cycle", pcie/1.755, 3978, 0.5)
	nvl, nvlClock := p.mt4gValue(t, "NVIDIA H100 NVL", "l2", "readBandwidth")
	near("MT4G's L2 of the H100 NVL, B/cycle", nvl*(1<<30)/nvlClock, 2591, 0.5)
	nvlLatency, _ := p.mt4gValue(t, "NVIDIA H100 NVL", "main", "latency")
	near("MT4G's latency of the H100 NVL", nvlLatency, 803, 0.5)
	nvlDRAM, _ := p.mt4gValue(t, "NVIDIA H100 NVL", "main", "readBandwidth")
	near("MT4G's DRAM of the H100 NVL over the data sheet's", nvlDRAM*(1<<30)/3.9e12, 0.79, 0.005)
	nvlSize, _ := p.mt4gValue(t, "NVIDIA H100 NVL", "l2", "size")
	near("L2 of the H100 NVL", nvlSize, base(t, sheet(t, "sm90", "h100-nvl"), "l2_bytes"), 0)
	l2, clock := p.mt4gValue(t, "NVIDIA H100 80GB HBM3", "l2", "readBandwidth")
	near("MT4G's L2 of the H100, B/cycle", l2*(1<<30)/clock, 2456, 0.5)
	latency, _ := p.mt4gValue(t, "NVIDIA H100 80GB HBM3", "main", "latency")
	near("MT4G's latency of the H100", latency, 834, 0.5)
	a100, _ := p.mt4gValue(t, "NVIDIA A100-PCIE-40GB", "main", "latency")
	a100Latency := p.curveMedian(t, "gpu-latency", "a100_80", 4*(40<<20), math.Inf(1))
	near("MT4G's latency on an A100 over gpu-latency's", a100/a100Latency, 1.16, 0.005)
	a100L2, a100Clock := p.mt4gValue(t, "NVIDIA A100-PCIE-40GB", "l2", "readBandwidth")
	a100Ratio := base(t, sheet(t, "sm80", "a100"), "l2_perf_ratio")
	near("MT4G's L2 on an A100 over gpu-l2-cache's", a100L2*(1<<30)/a100Clock/a100Ratio, 0.47, 0.005)
	dram, _ := p.mt4gValue(t, "NVIDIA H100 80GB HBM3", "main", "readBandwidth")
	near("MT4G's DRAM of the H100 over the data sheet's", dram*(1<<30)/3.35e12, 0.82, 0.005)
	h200 := p.curveMedian(t, "gpu-l2-cache", "h200", 4*(60<<20), math.Inf(1))
	near("DRAM of the H200 over the data sheet's", h200/4800, 0.81, 0.005)
	for device, want := range map[string]float64{"a100": 41943040, "h100": 52428800} {
		name := map[string]string{"a100": "NVIDIA A100-PCIE-40GB", "h100": "NVIDIA H100 80GB HBM3"}[device]
		size, _ := p.mt4gValue(t, name, "l2", "size")
		near("L2 of the "+device, size, want, 0)
	}
}
