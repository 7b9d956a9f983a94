package calibration

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// results collects numbers.
type results struct {
	values calibrate.Values
	list   []calibrate.Number
}

// add adds a number unless one of its probes was refused.
func (r *results) add(name string, value float64, unitName, method string, probes ...string) {
	if n, ok := r.values.NewNumber(name, value, unitName, method, probes...); ok {
		n.Parameter = slices.ContainsFunc(gpu.Specs, func(s hw.Spec) bool { return s.Name == name })
		r.list = append(r.list, n)
	}
}

// numbers computes the numbers of the device.
func (p *planner) numbers(v calibrate.Values) []calibrate.Number {
	r := &results{values: v}
	r.add("clock", v["clock"].Value, "Hz", "SM cycles ÷ nanoseconds of a kernel of FMA instructions on one SM", "clock")
	p.bandwidthNumbers(r)
	r.add("l2_latency", v["latency/l2"].Value, "cycles",
		"random pointer chase of one thread, 128 B apart, over at most 20 % of the L2", "latency/l2")
	r.add("l1_latency", v["latency/l1"].Value, "cycles", "the same over 8 KiB", "latency/l1")
	r.add("shared_bandwidth", v["loads/shared_16B_neighbours"].Value, "B/cycle",
		"ld.shared of 16 bytes per thread without conflicts, per SM", "loads/shared_16B_neighbours")
	r.add("l1_bandwidth", v["loads/l1_16B_neighbours"].Value, "B/cycle",
		"ld.global of 16 bytes per thread that hits L1, per SM", "loads/l1_16B_neighbours")
	for _, pattern := range []probe.LoadPattern{{Bytes: 4}, {Bytes: 4, Broadcast: true}, {Global: true, Bytes: 4},
		{Global: true, Bytes: 4, Broadcast: true}} {
		name := "loads/" + pattern.String()
		r.add("load_rate_"+pattern.String(), v[name].Value, "1/cycle", "load instructions of a warp per cycle and SM", name)
	}
	p.instructionNumbers(r)
	r.add("launch_overhead", v["launch"].Value, "s", "device events around one launch of an empty kernel", "launch")
	return r.list
}

// bandwidthNumbers are those of the L2 and DRAM. The statistics are those of configs/README.md.
func (p *planner) bandwidthNumbers(r *results) {
	plateau, byCycle := p.plateau(r.values, 10, 60)
	r.add("l2_perf_ratio", stats.Median(byCycle), "B/cycle", "8-byte loads past L1, a CTA of 1024 threads for each slab "+
		"of 512 KiB in turn: median over data sets of 10 % to 60 % of the L2, ÷ clock of the same runs",
		plateau...)
	if bytes, ok := p.knee(r.values); ok {
		r.add("l2_knee", bytes, "B", "data set at which the bandwidth of l2_perf_ratio falls below 90 % of its median",
			plateau...)
	}
	dram, dramByCycle := p.plateau(r.values, fromDRAM, 1<<20)
	r.add("dram_perf_ratio", stats.Median(dramByCycle), "B/cycle",
		"as l2_perf_ratio, data sets of at least 4 times the L2", dram...)
	p.cached(r)
	p.curve(r)
	r.add("dram_triad", r.values["dram/triad"].Value, "B/s", "a = b + 3·c over arrays of 1 GiB, 16 bytes per thread",
		"dram/triad")
	var chases []string
	var latencies []float64
	for _, log2 := range p.chases {
		chases, latencies = append(chases, dramChase(log2)), append(latencies, r.values[dramChase(log2)].Value)
	}
	r.add("hbm_latency_penalty", stats.Median(latencies), "cycles", "random pointer chase of one thread, 128 B apart: "+
		"median over buffers of at least 4 times the L2", chases...)
}

// plateau returns the probes of the data sets between two shares of the L2, in percent, and the bytes per cycle of
// each.
func (p *planner) plateau(v calibrate.Values, low, high int) (names []string, byCycle []float64) {
	for i, share := range shares {
		if share >= low && share <= high {
			names = append(names, footprint(p.footprints[i]))
		}
	}
	return names, bytesPerCycle(v, names)
}

// bytesPerCycle are the values of probes in bytes per cycle of their own clocks.
func bytesPerCycle(v calibrate.Values, probes []string) (list []float64) {
	for _, name := range probes {
		list = append(list, v[name].Value/max(float64(v[name].Clock), 1))
	}
	return list
}

// cached are the bandwidths with loads that allocate lines in L1. No model uses them: they are for comparison with
// benchmarks whose loads are plain.
func (p *planner) cached(r *results) {
	var probes []string
	for _, share := range cachedShares[:len(cachedShares)-1] {
		probes = append(probes, cached(share))
	}
	r.add("l2_cached_bandwidth", stats.Median(bytesPerCycle(r.values, probes)), "B/cycle", "as l2_perf_ratio, with loads "+
		"that allocate lines in L1: median over data sets of 50 % to 60 % of the L2", probes...)
	r.add("dram_cached_read", r.values[cached(fromDRAM)].Value, "B/s", "the same, data set of 4 times the L2",
		cached(fromDRAM))
}

// kneeShare is the part of the L2's bandwidth below which a data set counts as not in it.
const kneeShare = 0.9

// knee returns the data set at which the bandwidth falls below kneeShare of the plateau, between two that were
// measured.
func (p *planner) knee(v calibrate.Values) (bytes float64, ok bool) {
	var inside []float64
	for i, share := range shares {
		if share <= 60 {
			inside = append(inside, v[footprint(p.footprints[i])].Value)
		}
	}
	limit := kneeShare * stats.Median(inside)
	for i := 1; i < len(shares); i++ {
		before, after := v[footprint(p.footprints[i-1])], v[footprint(p.footprints[i])]
		if shares[i] <= 60 || after.Value >= limit || before.Value < limit || after.Refused != "" {
			continue
		}
		part := (before.Value - limit) / (before.Value - after.Value)
		slabs := float64(p.footprints[i-1]) + part*float64(p.footprints[i]-p.footprints[i-1])
		return slabs * probe.SlabBytes, true
	}
	return 0, false
}

// curve computes what one SM can read from DRAM, as a share of what all can.
func (p *planner) curve(r *results) {
	most, mostName := 0.0, ""
	for _, ctas := range p.grids {
		if v := r.values[active(ctas)]; v.Refused == "" && v.Value > most {
			most, mostName = v.Value, active(ctas)
		}
	}
	if most == 0 {
		return
	}
	few := p.eighth()
	r.add("dram_bw_coeff", r.values[active(few)].Value/float64(few)/most, "1",
		fmt.Sprintf("one pass with 16-byte loads past L1, CTAs of 1024 threads, one per SM, 128 KiB in flight each: "+
			"bandwidth of %d CTAs ÷ %d ÷ the most of any number", few, few), active(few), mostName)
	r.add("dram_read", most, "B/s", "the same with the number of CTAs that reads most", mostName)
}

// instructionNumbers are those of the matrix instructions and FMA.
func (p *planner) instructionNumbers(r *results) {
	r.add("fma_rate", r.values["fma/rate"].Value, "FLOP/cycle", "fma.f32 on registers, 16 warps of 16 chains, per SM",
		"fma/rate")
	for _, instruction := range []string{"mma", "wgmma"} {
		for _, d := range types {
			rate := instruction + "/" + d.String() + "/rate"
			latency := instruction + "/" + d.String() + "/latency"
			how := "mma.sync on registers, 8 warps of 32 chains, random operands, per SM"
			long := "chain of dependent mma.sync of one warp"
			if instruction == "wgmma" {
				how = "wgmma m64n256 from shared memory, two warpgroups, random operands, per SM"
				long = "chain of wgmma m64n256 of one warpgroup that add to the same sums"
				completion := instruction + "/" + d.String() + "/completion"
				r.add("wgmma_completion_"+d.String(), r.values[completion].Value, "cycles",
					"wgmma m64n256 of one warpgroup, each waited for before the next is issued", completion)
			}
			r.add(instruction+"_rate_"+d.String(), r.values[rate].Value, "FLOP/cycle", how, rate)
			name := instruction + "_latency_" + d.String()
			if instruction == "mma" && d == gemm.FP16 {
				name = "mma_latency"
			}
			r.add(name, r.values[latency].Value, "cycles", long, latency)
		}
	}
	rates := []string{"wgmma/fp16/rate", "mma/fp16/rate"}
	i := slices.IndexFunc(rates, func(name string) bool { return r.values[name].Clock > 0 })
	if i >= 0 {
		r.add("clock_matrix", float64(r.values[rates[i]].Clock), "Hz", "SM clock while all SMs issue matrix instructions of "+
			"fp16 with random operands", rates[i])
	}
}

// atoms are the matrix instructions of a device file, from the latencies of the numbers.
func atoms(numbers []calibrate.Number) (list []hw.Atom) {
	for _, a := range []struct {
		name string
		d    gemm.DType
	}{{"mma_latency", gemm.FP16}, {"mma_latency_bf16", gemm.BF16}} {
		for _, n := range numbers {
			if n.Name == a.name {
				list = append(list, hw.Atom{Type: a.d.String(), M: gpu.MMAM, N: gpu.MMAN, K: gpu.MMAK, Cycles: n.Value,
					Source: n.Source, Method: n.Method, Date: n.Date})
			}
		}
	}
	return list
}
