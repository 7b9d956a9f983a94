package configs_test

import (
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// sheets decodes every embedded file. It fails the test if a file does not decode.
func sheets(t *testing.T) []*hw.Sheet {
	t.Helper()
	files, err := fs.Glob(configs.FS, "*.yaml")
	must.Need(t, err == nil && len(files) != 0, "no embedded device files (%v)", err)
	all := make([]*hw.Sheet, len(files))
	for i, file := range files {
		data, err := fs.ReadFile(configs.FS, file)
		must.Do(t, err)
		if all[i], err = hw.DecodeSheet(file, data); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// The header of a file can be decoded without its numbers, because programs list devices at every start.
func TestHeadersComeFirst(t *testing.T) {
	for _, s := range sheets(t) {
		data, err := fs.ReadFile(configs.FS, s.File)
		must.Do(t, err)
		header, err := hw.DecodeHeader(s.File, data)
		if err != nil || !reflect.DeepEqual(header, s.Header) {
			t.Errorf("%s: the header alone is %+v (%v), that of the whole file %+v", s.File, header, err, s.Header)
		}
	}
}

// sheet returns one device.
func sheet(t *testing.T, arch, device string) *hw.Sheet {
	t.Helper()
	for _, s := range sheets(t) {
		if s.Arch == arch && s.Device == device {
			return s
		}
	}
	t.Fatalf("no file describes %s@%s", arch, device)
	return nil
}

func TestNamesAreUniqueAndEachArchHasOneDefault(t *testing.T) {
	taken := map[string]string{}
	claim := func(name, file string) {
		key := strings.ToLower(name)
		other, ok := taken[key]
		must.That(t, !ok, "%s: %q is also a name in %s", file, name, other)
		taken[key] = file
	}
	defaults := map[string]int{}
	for _, s := range sheets(t) {
		prefix := s.Arch + "-" + s.Device
		must.That(t, strings.HasPrefix(s.File, prefix), "%s: the name does not start with %s", s.File, prefix)
		claim(s.Device, s.File)
		for _, alias := range s.Aliases {
			claim(alias, s.File)
		}
		defaults[s.Arch] += 0 // an architecture without a default must show up below
		if s.Default {
			defaults[s.Arch]++
		}
	}
	for arch, n := range defaults {
		must.That(t, n == 1, "%s has %d default devices, want exactly one", arch, n)
		file, ok := taken[strings.ToLower(arch)]
		must.That(t, !ok, "%s: %q names an architecture and a device", file, arch)
	}
}

func TestEveryNumberSaysWhereItComesFrom(t *testing.T) {
	tomorrow := time.Now().Add(24 * time.Hour) // the source may be in a time zone ahead of ours
	check := func(where, source, date string) {
		must.That(t, len(source) >= 20 && strings.Contains(source, " "),
			"%s: source %q does not lead to the number", where, source)
		day, err := time.Parse(time.DateOnly, date)
		must.That(t, err == nil && !day.After(tomorrow) && day.Year() >= 2006,
			"%s: date %q is not a day on which a GPU's numbers were published", where, date)
	}
	for _, s := range sheets(t) {
		must.That(t, len(s.Derived) != 0, "%s: no derived numbers", s.File)
		for tier, numbers := range map[string]map[string]hw.Number{"derived": s.Derived, "calibrated": s.Calibrated} {
			for name, n := range numbers {
				check(s.File+": "+tier+"."+name, n.Source, n.Date)
				must.That(t, !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) && n.Value >= 0,
					"%s: %s.%s is %v", s.File, tier, name, n.Value)
				must.That(t, n.Method != hw.User, "%s: %s.%s has the method of an override", s.File, tier, name)
			}
		}
		for i, a := range s.Atoms {
			check(s.File+": atoms", a.Source, a.Date)
			for _, b := range s.Atoms[:i] {
				must.That(t, a.Type != b.Type || a.M != b.M || a.N != b.N || a.K != b.K,
					"%s: atom %s %dx%dx%d is given twice", s.File, a.Type, a.M, a.N, a.K)
			}
		}
	}
}

// nvidiaUnits maps every parameter of an NVIDIA file to its base unit. README.md has the same list.
var nvidiaUnits = map[string]string{
	"num_sms": "1", "dies": "1", "l2_bytes": "B", "shared_memory_bytes": "B", "register_file": "1",
	"registers_per_thread": "1", "tensor_cores_per_sm": "1", "clock": "Hz", "dram_bandwidth": "B/s", "tdp": "W",
	"dram_ecc": "1", "clock_loaded": "Hz",
	"peak_fp16": "FLOP/s", "peak_bf16": "FLOP/s", "peak_fp32": "FLOP/s", "peak_tf32": "FLOP/s",
	"peak_fp8": "FLOP/s", "peak_int8": "FLOP/s", "peak_fp4": "FLOP/s",
	"l2_perf_ratio": "B/cycle", "dram_perf_ratio": "B/cycle", "dram_bw_coeff": "1",
	"hbm_latency_penalty": "cycles", "mma_latency": "cycles",
}

// perArchitecture are the parameters that some NVIDIA architectures do not have: types, and dies. All devices of an
// architecture have the same.
var perArchitecture = []string{"dies", "peak_bf16", "peak_tf32", "peak_fp8", "peak_int8", "peak_fp4"}

// perBoard are the parameters that some boards do not have.
var perBoard = []string{"dram_ecc", "clock_loaded"}

// forMMA are the parameters that only models of mma.sync kernels need.
var forMMA = []string{"l2_perf_ratio", "dram_perf_ratio", "dram_bw_coeff", "hbm_latency_penalty", "mma_latency"}

// base returns a parameter in its base unit, from the highest tier that has it.
func base(t *testing.T, s *hw.Sheet, name string) float64 {
	t.Helper()
	n, ok := s.Calibrated[name]
	if !ok {
		if n, ok = s.Derived[name]; !ok {
			t.Fatalf("%s: no %s", s.File, name)
		}
	}
	units := map[string]map[string]string{"NVIDIA": nvidiaUnits, "AMD": amdUnits}[s.Vendor]
	v, err := unit.Convert(n.Value, n.Unit, units[name])
	if err != nil {
		t.Fatalf("%s: %s: %v", s.File, name, err)
	}
	return v
}

func TestNVIDIAFilesAreCompleteAndPlausible(t *testing.T) {
	lacks := map[string][]string{} // parameters, by architecture
	for _, s := range sheets(t) {
		if s.Vendor != "NVIDIA" {
			continue
		}
		missing, known := lacks[s.Arch]
		if !known { // the first device of the architecture
			missing = slices.DeleteFunc(slices.Concat(perArchitecture, forMMA), func(name string) bool { return has(s, name) })
			lacks[s.Arch] = missing
		}
		ofMMA := !slices.Contains(missing, forMMA[0])
		if !ofMMA {
			missing = append(slices.Clone(missing), forMMA...)
		}
		for _, name := range perBoard {
			if !has(s, name) {
				missing = append(slices.Clone(missing), name)
			}
		}
		checkNames(t, s, nvidiaUnits, missing)

		if smem := base(t, s, "shared_memory_bytes"); smem != math.Trunc(smem) || smem < 48<<10 || smem > 256<<10 {
			t.Errorf("%s: shared_memory_bytes is %v", s.File, smem)
		}
		// The peak is at most the rate of the tensor cores at the boost clock: a power of two per SM and cycle. Data
		// sheets of Hopper give the rate at a lower clock, 0.87 of the boost clock for the H100 NVL.
		perCycle := base(t, s, "peak_fp16") / base(t, s, "clock") / base(t, s, "num_sms")
		if rate := math.Exp2(math.Ceil(math.Log2(perCycle * 0.999))); perCycle < 0.85*rate || perCycle > 1.001*rate {
			t.Errorf("%s: peak_fp16 is %.1f FLOP per cycle and SM, want at most a power of two", s.File, perCycle)
		}
		if ofMMA {
			checkMMA(t, s)
		}
	}
}

// has reports whether a file has a parameter.
func has(s *hw.Sheet, name string) bool {
	_, derived := s.Derived[name]
	_, calibrated := s.Calibrated[name]
	return derived || calibrated
}

// checkNames checks that a file has the parameters of the list but for those that are missing, and no others.
func checkNames(t *testing.T, s *hw.Sheet, units map[string]string, missing []string) {
	t.Helper()
	for name := range units {
		if has(s, name) == slices.Contains(missing, name) {
			t.Errorf("%s: has %s: %v, and other devices of %s differ, or all models need it", s.File, name, has(s, name), s.Arch)
		}
	}
	for _, tier := range []map[string]hw.Number{s.Derived, s.Calibrated} {
		for name := range tier {
			if _, ok := units[name]; !ok {
				t.Errorf("%s: %s is not a parameter", s.File, name)
			}
		}
	}
}

// checkMMA checks what models of mma.sync kernels need of an NVIDIA device.
func checkMMA(t *testing.T, s *hw.Sheet) {
	t.Helper()
	clock, dram := base(t, s, "clock"), base(t, s, "dram_bandwidth")
	if measured := base(t, s, "dram_perf_ratio") * clock; measured > dram || measured < dram/2 {
		t.Errorf("%s: dram_perf_ratio × clock is %.3g B/s, the data sheet says %.3g", s.File, measured, dram)
	}
	// One SM cannot receive more than 64 B per cycle from the L2.
	perSM := base(t, s, "l2_perf_ratio") / base(t, s, "num_sms")
	must.That(t, perSM <= 64, "%s: l2_perf_ratio is %.1f B/cycle per SM", s.File, perSM)
	perSM = base(t, s, "dram_perf_ratio") * base(t, s, "dram_bw_coeff")
	must.That(t, perSM <= 64, "%s: dram_perf_ratio × dram_bw_coeff is %.1f B/cycle for one SM", s.File, perSM)
	must.That(t, base(t, s, "l2_perf_ratio") > base(t, s, "dram_perf_ratio"), "%s: the L2 is not faster than DRAM", s.File)
	atoms := map[string]hw.Atom{}
	for _, a := range s.Atoms {
		atoms[a.Type] = a
	}
	for _, dtype := range []string{"fp16", "bf16"} {
		if a := atoms[dtype]; a.M != 16 || a.N != 8 || a.K != 16 || a.Cycles != base(t, s, "mma_latency") {
			t.Errorf("%s: %s atom %+v, want mma.sync m16n8k16 at mma_latency", s.File, dtype, a)
		}
	}
}

// The parameters are those from which the published picks of the reference model were computed.
func TestReportedParametersAreUnchanged(t *testing.T) {
	for _, want := range []struct {
		arch, device                                                                      string
		sms, l2, smem, clock, l2Ratio, dramRatio, coefficient, penalty, latency, tc, regs float64
	}{
		{"sm89", "rtx4090", 128, 75497472, 101376, 2.52e9, 1896.0, 342.9, 0.0222, 623, 33, 4, 65536},
		{"sm86", "rtx3090", 82, 6291456, 101376, 1.695e9, 1269.2, 439.2, 0.0317, 500, 33, 4, 65536},
	} {
		s := sheet(t, want.arch, want.device)
		for name, value := range map[string]float64{
			"num_sms": want.sms, "l2_bytes": want.l2, "shared_memory_bytes": want.smem, "clock": want.clock,
			"l2_perf_ratio": want.l2Ratio, "dram_perf_ratio": want.dramRatio, "dram_bw_coeff": want.coefficient,
			"hbm_latency_penalty": want.penalty, "mma_latency": want.latency,
			"tensor_cores_per_sm": want.tc, "register_file": want.regs,
		} {
			got := base(t, s, name)
			must.That(t, got == value, "%s: %s is %v, published is %v", s.File, name, got, value)
		}
	}
}

// The intensity at which the roofs of DRAM and of arithmetic meet, in FLOP/B, as data sheets give it.
func TestRidgePoints(t *testing.T) {
	for _, d := range []struct {
		sm     *gpu.SM
		file   string
		ridges map[string]float64
	}{
		{gpu.SM90, "sm90-h200", map[string]float64{"peak_fp32": 14, "peak_fp16": 206}},
		{gpu.SM89, "sm89-rtx4090", map[string]float64{"peak_fp32": 82, "peak_fp16": 164}},
		{gpu.SM86, "sm86-rtx3090", map[string]float64{"peak_fp32": 38}},
	} {
		params := gputest.Device(t, d.sm, d.file, nil).Params
		for peak, ridge := range d.ridges {
			got := params.Get(peak) / params.Get("dram_bandwidth")
			must.That(t, math.Round(got) == ridge, "%s: %s meets DRAM at %.1f FLOP/B, want %v", d.file, peak, got, ridge)
		}
	}
}

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
