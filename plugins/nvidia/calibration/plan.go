// Package calibration is the microbenchmarks of NVIDIA GPUs, and the hardware parameters that follow from them. The
// kernels are those of gemmgen/probe and gemmgen/mma. configs/README.md has the statistics of the parameters, and
// docs/calibrating.md the methods.
package calibration

import (
	"context"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// planner collects the probes of a device.
type planner struct {
	target target.Target
	// sms, l2 and memory are what the driver reports.
	sms              int
	l2, memory, dram float64
	probes           []calibrate.Probe
	err              error
	// footprints are the data sets of the L2 and of DRAM in slabs, grids the CTAs of the DRAM curve, chases the base-2
	// logarithms of the pointers in DRAM.
	footprints, grids, chases []int
}

// New returns the plan for a device, by what its driver reports.
func New(d exec.Device) (*calibrate.Plan, error) {
	t, err := target.Parse(d.Arch)
	if err != nil || !t.MultipliesMatrices() {
		return nil, diag.Inputf("%s (%s) has no microbenchmarks", d.Name, d.Arch).
			Do("use a GPU of compute capability 8.0 or later")
	}
	t.Suffix = target.ArchFeatures
	p := &planner{target: t}
	p.l2, p.memory, p.dram = d.Attributes["l2_bytes"], d.Attributes["memory_bytes"], d.Attributes["dram_bandwidth"]
	p.sms = int(d.Attributes["num_sms"])
	if p.sms < 1 || p.l2 < 1<<20 || p.memory < 16*p.l2 {
		return nil, diag.Inputf("the driver reports %d SMs, %.4g bytes of L2 and %.4g bytes of memory of %s", p.sms, p.l2,
			p.memory, d.Name).Do("update the driver")
	}
	p.clocks()
	p.matrices()
	p.onChip()
	p.bandwidths()
	p.latencies()
	p.launches()
	if p.err != nil {
		return nil, p.err
	}
	return &calibrate.Plan{Probes: p.probes,
		Numbers: func(_ context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
			numbers := p.numbers(v)
			return numbers, atoms(numbers), nil
		}}, nil
}

// How the values of probes follow from the counters (probe.Counters), which all CTAs add to: cycles and nanoseconds are
// means over the CTAs. TestCounters holds the numbers of the counters.
const (
	cycles      = "counter_0/counter_2"
	nanoseconds = "counter_1/counter_2"
	// clock is the SM clock in Hz.
	clock = cycles + "/(" + nanoseconds + ")*1e9"
	// The work of a CTA per cycle, the cycles of each part of that work, the work of all per second.
	perCycle   = "work/(" + cycles + ")"
	cyclesEach = cycles + "/work"
	perSecond  = "work/seconds"
)

// add adds a probe. The arguments follow the parameters of the kernel: see buffer, word and counters.
func (p *planner) add(
	name, unitName string, work float64, value string, k *ptx.Kernel, err error, program exec.Program,
) {
	if err != nil {
		p.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	program.Text, program.Entry = k.Text, k.Name
	program.Launches = max(program.Launches, 1)
	for _, a := range program.Arguments {
		if a.Kind == exec.CountersArgument {
			program.Counters = probe.Counters
		}
	}
	one := calibrate.Probe{Name: name, Unit: unitName, Program: program, Runs: runs, Work: work, Value: value}
	if program.Counters > 0 {
		one.Clock = clock
	}
	p.probes = append(p.probes, one)
}

// runs is the timed runs of a round. warmup comes before them, and hot where the power limit decides.
const (
	runs   = 5
	warmup = 2
	hot    = 6
)

func buffer(bytes int, t gemm.DType) exec.Argument {
	return exec.Argument{Kind: exec.BufferArgument, Bytes: unit.Bytes(bytes), DType: t}
}

func word(v int) exec.Argument { return exec.Argument{Kind: exec.Word32, Value: uint64(v)} }

var counters = exec.Argument{Kind: exec.CountersArgument}

// clocks measures the clock with one SM busy, and the rate of FMA with all.
func (p *planner) clocks() {
	k, err := probe.FMA(p.target)
	const light, full = 20_000, 10_000 // turns of 2048 cycles
	in := buffer(8*probe.FMAThreads, gemm.FP32)
	p.add("clock", "Hz", 1, clock, k, err, exec.Program{Grid: 1, Threads: probe.FMAThreads, Warmup: warmup,
		Arguments: []exec.Argument{in, counters, word(light)}})
	p.add("fma/rate", "FLOP/cycle", full*probe.FMAOperations, perCycle, k, err, exec.Program{Grid: p.sms,
		Threads: probe.FMAThreads, Warmup: warmup, Arguments: []exec.Argument{in, counters, word(full)}})
}

// types are the operands of matrix instructions.
var types = []gemm.DType{gemm.FP16, gemm.BF16, gemm.TF32, gemm.FP8, gemm.INT8}

// hopper has wgmma.
var hopper = target.Target{CC: 90, Suffix: target.ArchFeatures}

// matrices measures rate and latency of the matrix instructions of each type, with random operands.
func (p *planner) matrices() {
	for _, d := range types {
		if d == gemm.FP8 && (!p.target.HasFP8() || p.target.EmulatesFP8()) {
			continue // there is none, or it is a conversion and an instruction of fp16
		}
		p.mma(d)
	}
	if p.target == hopper {
		for _, d := range types {
			p.wgmma(d)
		}
	}
}

func (p *planner) mma(d gemm.DType) {
	const rateTurns, latencyTurns = 60_000, 4096
	in := buffer(32*mma.PeakWarps*mma.PeakInputBytes, d)
	k, err := mma.EmitPeak(d, p.target)
	p.add("mma/"+d.String()+"/rate", "FLOP/cycle", rateTurns*float64(mma.PeakOperations(d)), perCycle, k, err,
		exec.Program{Grid: p.sms, Threads: 32 * mma.PeakWarps, Warmup: hot,
			Arguments: []exec.Argument{in, counters, word(rateTurns)}})
	k, err = mma.EmitLatency(d, p.target)
	p.add("mma/"+d.String()+"/latency", "cycles", latencyTurns*mma.LatencyChain, cyclesEach, k, err,
		exec.Program{Grid: 1, Threads: 32, Warmup: warmup, Arguments: []exec.Argument{in, counters, word(latencyTurns)}})
}

func (p *planner) wgmma(d gemm.DType) {
	const rateTurns, latencyTurns = 24_000, 1024
	for _, c := range []struct {
		name, unit              string
		grid, warpgroups, turns int
		wait                    bool
	}{
		{"rate", "FLOP/cycle", p.sms, 2, rateTurns, false}, {"latency", "cycles", 1, 1, latencyTurns, false},
		{"completion", "cycles", 1, 1, latencyTurns, true},
	} {
		work, of, warm := float64(c.turns*probe.WgmmaSteps), cyclesEach, warmup
		if c.name == "rate" {
			work, of, warm = work*float64(c.warpgroups*probe.WgmmaOperations(d)), perCycle, hot
		}
		k, err := probe.Wgmma(d, c.warpgroups, c.wait, p.target)
		bytes := probe.WgmmaBytes(c.warpgroups)
		p.add("wgmma/"+d.String()+"/"+c.name, c.unit, work, of, k, err, exec.Program{Grid: c.grid,
			Threads: probe.WarpgroupThreads * c.warpgroups, SharedMemory: unit.Bytes(bytes), Warmup: warm,
			Arguments: []exec.Argument{buffer(bytes, d), counters, word(c.turns)}})
	}
}

// onChip measures shared memory and L1.
func (p *planner) onChip() {
	const turns = 4096
	for _, pattern := range []probe.LoadPattern{
		{Bytes: 16}, {Bytes: 4}, {Bytes: 4, Broadcast: true},
		{Global: true, Bytes: 16}, {Global: true, Bytes: 4}, {Global: true, Bytes: 4, Broadcast: true},
	} {
		name, unitName, amount := "loads/"+pattern.String(), "1/cycle", float64(turns*probe.LoadsTurn*probe.LoadsThreads/32)
		if pattern.Bytes == 16 {
			unitName, amount = "B/cycle", amount*32*16
		}
		k, err := probe.Loads(pattern, p.target)
		p.add(name, unitName, amount, perCycle, k, err, exec.Program{Grid: p.sms, Threads: probe.LoadsThreads,
			Warmup: warmup, Arguments: []exec.Argument{buffer(probe.LoadsBytes, gemm.FP32), counters, word(turns)}})
	}
}

// The data sets of Slabs: shares of the L2, in percent.
var shares = []int{
	10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 100, 120, 150, 200, 300, 400, 600, 800,
}

// cachedShares are the data sets of CachedSlabs: three that the L2 holds and that are larger than what the L1s of an
// H200 hold together, and one from DRAM.
var cachedShares = []int{50, 55, 60, fromDRAM}

const (
	// slabCTAs is the CTAs of Slabs: 4 GiB.
	slabCTAs = 8192
	// minSlabs keeps CTAs that run at the same time from reading the same slabs, which would make it another benchmark.
	minSlabs = 3
	// fromDRAM is the smallest data set, in percent of the L2, of which nothing is left when it is read again.
	fromDRAM = 400
	// curveBytes is the data set of the DRAM curve, at most a quarter of the memory. What the L2 keeps of it from one run
	// to the next is less than a percent.
	curveBytes = 8 << 30
	// triadBytes is an array of Triad, at most an eighth of the memory.
	triadBytes = 1 << 30
)

// footprint names the probe of a data set.
func footprint(slabs int) string { return fmt.Sprintf("slabs/%.4g MiB", float64(slabs)/2) }

// cached names the probe of a data set with loads that allocate in L1, by its share of the L2 in percent.
func cached(share int) string { return fmt.Sprintf("slabs/cached/%d %% of L2", share) }

// active names the probe of a number of CTAs.
func active(ctas int) string { return fmt.Sprintf("dram/%d CTAs", ctas) }

// slabs are those of a share of the L2, in percent.
func (p *planner) slabs(share int) int {
	return max(minSlabs, int(p.l2*float64(share)/100/probe.SlabBytes))
}

// bandwidths measures the L2 over data sets, and DRAM over active CTAs.
func (p *planner) bandwidths() {
	k, err := probe.Slabs(p.target)
	largest := int(p.l2*float64(shares[len(shares)-1])/100/probe.SlabBytes) + 1
	read := func(name string, share, slabs int) {
		p.add(name, "B/s", slabCTAs*probe.SlabBytes, perSecond, k, err, exec.Program{
			Grid: slabCTAs, Threads: probe.StreamThreads, Warmup: warmup,
			Arguments: []exec.Argument{buffer(largest*probe.SlabBytes, gemm.FP32), counters, word(slabs)}})
		if share >= fromDRAM {
			p.limited()
		}
	}
	for _, share := range shares {
		slabs := p.slabs(share)
		if !slices.Contains(p.footprints, slabs) { // as with a small L2
			read(footprint(slabs), share, slabs)
		}
		p.footprints = append(p.footprints, slabs)
	}
	k, err = probe.CachedSlabs(p.target)
	for _, share := range cachedShares {
		read(cached(share), share, p.slabs(share))
	}
	k, err = probe.Stream(p.target)
	slabs := int(min(curveBytes, p.memory/4)) / probe.SlabBytes
	p.grids = p.activeCTAs()
	for _, ctas := range p.grids {
		turns := (slabs + ctas - 1) / ctas
		p.add(active(ctas), "B/s", float64(ctas*turns)*probe.SlabBytes, perSecond, k, err, exec.Program{
			Grid: ctas, Threads: probe.StreamThreads, Warmup: 1, Arguments: []exec.Argument{
				buffer(slabs*probe.SlabBytes, gemm.FP32), counters, word(slabs), word(turns)}})
		p.limited()
	}
	k, err = probe.Triad(p.target)
	ctas := int(min(triadBytes, p.memory/8)) / probe.TriadBytes
	array := buffer(ctas*probe.TriadBytes, gemm.FP32)
	p.add("dram/triad", "B/s", 3*float64(ctas)*probe.TriadBytes, perSecond, k, err, exec.Program{Grid: ctas,
		Threads: probe.TriadThreads, Warmup: warmup, Arguments: []exec.Argument{array, array, array}})
	p.limited()
}

// limited says that the last probe reads from DRAM: it cannot be faster than the driver says that DRAM is.
func (p *planner) limited() { p.probes[len(p.probes)-1].Limit = p.dram }

// part is the part of the SMs, one in so many, of which the DRAM bandwidth is dram_bw_coeff.
const part = 8

// activeCTAs are the numbers of CTAs of the DRAM curve, from one to two per SM.
func (p *planner) activeCTAs() (grids []int) {
	for n := 1; n < p.sms; n = n + max(1, n/2) {
		grids = append(grids, n)
	}
	grids = append(grids, p.eighth(), p.sms, 2*p.sms)
	slices.Sort(grids)
	return slices.Compact(grids)
}

// eighth is the CTAs of which dram_bw_coeff is.
func (p *planner) eighth() int { return max(1, p.sms/part) }

// The pointers of a chase and the steps of it.
const (
	l1Pointers = 6 // as a power of two: 8 KiB
	chaseSteps = 1 << 15
	// l2Share is the part of the L2 that the pointers of its chase take at most.
	l2Share = 0.2
)

// latencies measures L1, L2 and DRAM.
func (p *planner) latencies() {
	k, err := probe.Chase(p.target)
	chase := func(name string, log2, steps int) {
		p.add(name, "cycles", float64(steps), cyclesEach, k, err, exec.Program{
			Grid: 1, Threads: probe.ChaseThreads, Warmup: 1, Arguments: []exec.Argument{
				buffer(probe.LineBytes<<log2, 0), counters, word(log2), word(steps / probe.ChaseTurn),
			}})
	}
	chase("latency/l1", l1Pointers, chaseSteps)
	l2 := largestPower(p.l2 * l2Share / probe.LineBytes)
	chase("latency/l2", l2, min(chaseSteps, 1<<l2))
	first := largestPower(p.l2*fromDRAM/100/probe.LineBytes) + 1
	for log2 := first; log2 < first+3 && float64(int(probe.LineBytes)<<log2) <= p.memory/2; log2++ {
		p.chases = append(p.chases, log2)
		chase(dramChase(log2), log2, chaseSteps)
	}
}

func dramChase(log2 int) string { return fmt.Sprintf("latency/dram/%d MiB", probe.LineBytes<<log2>>20) }

// largestPower is the exponent of the largest power of two that is at most v.
func largestPower(v float64) (log2 int) {
	for float64(int(2)<<log2) <= v {
		log2++
	}
	return log2
}

// launches measures an empty kernel.
func (p *planner) launches() {
	k, err := probe.Empty(p.target)
	p.add("launch", "s", 1, "seconds", k, err, exec.Program{Grid: p.sms, Threads: 32, Warmup: 20})
	p.probes[len(p.probes)-1].Runs = 101
}
