package configs_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/hw"
)

// published contains the rows of testdata/published.
type published struct{ rrze, mt4g []map[string]string }

func readPublished(t *testing.T) published {
	t.Helper()
	read := func(name string) []map[string]string {
		data, err := os.ReadFile(filepath.Join("testdata", "published", name))
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]map[string]string, len(records)-1)
		for i, record := range records[1:] {
			rows[i] = map[string]string{}
			for j, column := range records[0] {
				rows[i][column] = record[j]
			}
		}
		return rows
	}
	return published{read("rrze_gpu_benches.csv"), read("mt4g.csv")}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
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
	if len(ys) < 10 {
		t.Fatalf("%s of %s has %d rows from %g to %g bytes", benchmark, device, len(ys), lo, hi)
	}
	slices.Sort(ys)
	return (ys[len(ys)/2] + ys[(len(ys)-1)/2]) / 2
}

// perSM returns the bandwidth in GB/s of one fully occupied SM, from the triad curve at 12.5 % occupancy of all SMs.
func (p published) perSM(t *testing.T, device string, sms float64) float64 {
	t.Helper()
	for _, r := range p.rrze {
		if r["benchmark"] == "gpu-stream" && r["device"] == device && r["y_name"] == "triad_GBs" && r["aux"] == "12.5" {
			if threads := number(t, r["x"]); threads != sms*2048/8 {
				t.Fatalf("12.5 %% occupancy of %s is %g threads", device, threads)
			}
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
			if clock != 0 && v != clock {
				t.Fatalf("%s of %s ran at %g and %g Hz", benchmark, device, clock, v)
			}
			clock = v
		}
	}
	if clock == 0 {
		t.Fatalf("%s logs no clock on %s", benchmark, device)
	}
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

// Every number that an NVIDIA file takes from gpu-benches or MT4G follows from the rows in testdata/published, by the
// formula in its source.
func TestComputedNumbersFollowFromThePublishedRows(t *testing.T) {
	const gb = 1e9
	p := readPublished(t)
	inf := math.Inf(1)

	a100, h200, h100 := sheet(t, "sm80", "a100"), sheet(t, "sm90", "h200"), sheet(t, "sm90", "h100")
	a100L2, h200L2 := base(t, a100, "l2_bytes"), base(t, h200, "l2_bytes")
	a100Clock, h200Clock := p.rrzeClock(t, "gpu-latency", "a100_80"), p.rrzeClock(t, "gpu-roofline", "h200")
	a100DRAM := p.curveMedian(t, "gpu-l2-cache", "a100_80", 4*a100L2, inf)
	h200DRAM := p.curveMedian(t, "gpu-l2-cache", "h200", 4*h200L2, inf)
	h200L2Ratio := p.curveMedian(t, "gpu-l2-cache", "h200", 0.1*h200L2, 0.6*h200L2) * gb / h200Clock
	gh200PerSM := p.perSM(t, "gh200", 132)
	gh200Latency := p.curveMedian(t, "gpu-latency", "gh200", 4*60<<20, inf)
	h100DRAM, h100Clock := p.mt4gValue(t, "NVIDIA H100 80GB HBM3", "main", "readBandwidth")
	h100DRAM *= 1 << 30 / gb

	computed := []struct {
		sheet *hw.Sheet
		name  string
		value float64
	}{
		{a100, "l2_perf_ratio", p.curveMedian(t, "gpu-l2-cache", "a100_80", 0.1*a100L2, 0.6*a100L2) * gb / a100Clock},
		{a100, "dram_perf_ratio", a100DRAM * gb / a100Clock},
		{a100, "dram_bw_coeff", p.perSM(t, "a100_80", 108) / a100DRAM},
		{a100, "hbm_latency_penalty", p.curveMedian(t, "gpu-latency", "a100_80", 4*a100L2, inf)},
		{h200, "l2_perf_ratio", h200L2Ratio},
		{h200, "dram_perf_ratio", h200DRAM * gb / h200Clock},
		{h200, "dram_bw_coeff", gh200PerSM / h200DRAM},
		{h200, "hbm_latency_penalty", gh200Latency},
		{h100, "l2_perf_ratio", h200L2Ratio * 50 / 60},
		{h100, "dram_perf_ratio", h100DRAM * gb / h100Clock},
		{h100, "dram_bw_coeff", gh200PerSM / h100DRAM},
		{h100, "hbm_latency_penalty", gh200Latency},
	}
	recomputed := map[*hw.Sheet]map[string]bool{}
	precision := map[string]float64{
		"l2_perf_ratio": 10, "dram_perf_ratio": 10, "dram_bw_coeff": 10000, "hbm_latency_penalty": 10,
	}
	for _, c := range computed {
		want := math.Round(c.value*precision[c.name]) / precision[c.name]
		if got := base(t, c.sheet, c.name); got != want {
			t.Errorf("%s: %s is %v, the published rows give %v (%v)", c.sheet.File, c.name, got, want, c.value)
		}
		if recomputed[c.sheet] == nil {
			recomputed[c.sheet] = map[string]bool{}
		}
		recomputed[c.sheet][c.name] = true
	}

	// The table above is complete.
	for _, s := range []*hw.Sheet{a100, h200, h100} {
		for _, tier := range []map[string]hw.Number{s.Derived, s.Calibrated} {
			for name, n := range tier {
				measured := n.Method == hw.Microbenchmark || n.Method == hw.Assumed
				published := strings.Contains(n.Source, "gpu-benches@") || strings.Contains(n.Source, "mt4g@")
				if measured && published && !recomputed[s][name] {
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
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s: the source says %v, the rows give %v", what, want, got)
		}
	}
	pcie := p.curveMedian(t, "gpu-l2-cache", "h100_pcie", 0.1*(50<<20), 0.6*(50<<20))
	near("L2 of the H100 PCIe at 1755 MHz, B/cycle", pcie/1.755, 3978, 0.5)
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
