package configs_test

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"math"
	"strings"
	"testing"
)

// amdUnits maps every parameter of an AMD file to its base unit. README.md has the same list.
var amdUnits = map[string]string{
	"num_cus": "1", "num_xcds": "1", "lds_bytes": "B", "l2_bytes": "B", "mall_bytes": "B", "registers_per_cu": "1",
	"registers_per_thread": "1", "clock": "Hz", "dram_bandwidth": "B/s", "tdp": "W",
	"peak_fp16": "FLOP/s", "peak_bf16": "FLOP/s", "peak_fp32": "FLOP/s", "peak_tf32": "FLOP/s",
	"peak_fp8": "FLOP/s", "peak_int8": "FLOP/s", "peak_fp4": "FLOP/s",
	"memory_clock": "Hz", "parallel_mi": "1", "mem1_perf_ratio": "B/cycle", "mem2_perf_ratio": "B/cycle",
	"mem3_perf_ratio": "B/cycle", "hbm_latency": "cycles", "bw_c0": "1", "bw_c1": "1", "bw_c2": "1",
}

// forReference are the parameters that only the reference model needs. It knows gfx90a and later.
var forReference = []string{
	"memory_clock", "parallel_mi", "mem1_perf_ratio", "mem2_perf_ratio", "mem3_perf_ratio", "hbm_latency",
	"bw_c0", "bw_c1", "bw_c2",
}

func TestAMDFilesAreCompleteAndPlausible(t *testing.T) {
	reference := map[string]bool{"gfx90a": true, "gfx942": true, "gfx950": true}
	for _, s := range sheets(t) {
		if s.Vendor != "AMD" {
			continue
		}
		var missing []string
		if !reference[s.Arch] {
			missing = append(missing, forReference...)
		}
		if s.Arch != "gfx950" {
			missing = append(missing, "peak_fp4")
		}
		checkNames(t, s, amdUnits, missing)

		cus := base(t, s, "num_cus")
		if math.Mod(cus, base(t, s, "num_xcds")) != 0 {
			t.Errorf("%s: %v CUs in %v dies", s.File, cus, base(t, s, "num_xcds"))
		}
		// Each peak is a power of two per CU and cycle, at the clock of the file, as far as the data sheet prints it.
		for name := range amdUnits {
			if !strings.HasPrefix(name, "peak_") || (name == "peak_fp4" && s.Arch != "gfx950") {
				continue
			}
			perCycle := base(t, s, name) / base(t, s, "clock") / cus
			if rate := math.Exp2(math.Round(math.Log2(perCycle))); math.Abs(perCycle-rate) > 0.005*rate {
				t.Errorf("%s: %s is %.1f FLOP per cycle and CU, want a power of two", s.File, name, perCycle)
			}
		}
		// A compute unit holds at least one wave of 64 lanes that use every register.
		must.That(t, base(t, s, "registers_per_cu") >= 64*base(t, s, "registers_per_thread"),
			"%s: a wave needs more registers than a CU has", s.File)
		if base(t, s, "dram_bandwidth") > 20e12 || base(t, s, "l2_bytes") < 1<<20 {
			t.Errorf("%s: DRAM %v B/s, L2 %v B", s.File, base(t, s, "dram_bandwidth"), base(t, s, "l2_bytes"))
		}
	}
}
