package nvidia

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// The names of the model and of the kernel family that it was published for.
const (
	ModelReference = "reference"
	KernelTriton   = "triton"
)

// The matrix instruction mma.sync.m16n8k16 (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
const (
	mmaM = 16
	mmaN = 8
	mmaK = 16
)

// The empirical constants, which tritonBLAS's NVIDIA port carries over from AMD Origami unchanged (its Appendix C.4).
const (
	prologueFactor    = 1.5   // a pipeline fill takes 1.5 memory latencies
	epilogueCount     = 2     // the epilogue counts twice
	occupancyDiscount = 0.95  // on prologue and epilogue, at the constant occupancy of 1
	loopOverhead      = 500   // cycles per K iteration
	kPaddingPenalty   = 50000 // cycles, times (K mod block_k) / K
	setupCycles       = 1     // launch of a CTA
	lineBytes         = 128   // loads are rounded to cache lines, and one line is the least that an SM loads
	l2HitCap          = 0.5   // when one K step of the padded grid exceeds the L2
)

// elementBytes is the size of fp16 and bf16, the types that the model takes.
const elementBytes = 2

// reference is the analytical model of tritonBLAS's NVIDIA port: two memory levels, one CTA per SM, whole waves.
// docs/model-nvidia-reference.md has the equations. It is bit-exact against testdata/golden and never tuned.
//
// Every product that feeds an addition is wrapped in a conversion, which keeps Go from fusing the two: results are the
// same bits on every platform.
type reference struct {
	description arch.Description
	levels      []arch.Level

	numSMs       int
	l2Bytes      int
	sharedMemory int
	groupM       int     // the launch-order group that phase one assumes: ⌈√num_sms⌉
	mmaCycles    float64 // mma_latency ÷ tensor_cores_per_sm
	l2Ratio      float64 // B/cycle
	dramRatio    float64 // B/cycle
	dramCoeff    float64
	dramPenalty  float64 // cycles
}

var _ arch.Architecture = (*reference)(nil)

func newReference(sheet *hw.Sheet, params hw.Set) *reference {
	r := &reference{
		numSMs:       params.Int("num_sms"),
		l2Bytes:      params.Int("l2_bytes"),
		sharedMemory: params.Int("shared_memory_bytes"),
		mmaCycles:    params.Get("mma_latency") / params.Get("tensor_cores_per_sm"),
		l2Ratio:      params.Get("l2_perf_ratio"),
		dramRatio:    params.Get("dram_perf_ratio"),
		dramCoeff:    params.Get("dram_bw_coeff"),
		dramPenalty:  params.Get("hbm_latency_penalty"),
	}
	r.groupM = int(math.Ceil(math.Sqrt(float64(r.numSMs))))
	r.levels = []arch.Level{
		{
			Name: "L2", Capacity: unit.Bytes(r.l2Bytes), Partitions: 1, Bound: arch.BoundL2,
			Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(r.l2Ratio), Units: r.numSMs, Linear: true},
		},
		{
			Name: "DRAM", Latency: unit.Cycles(r.dramPenalty), Partitions: 1, Bound: arch.BoundDRAM,
			Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(r.dramRatio), Units: r.numSMs, C1: r.dramCoeff},
		},
	}
	r.description = describe(sheet, params)
	return r
}

// Describe implements arch.Architecture.
func (r *reference) Describe() *arch.Description { return &r.description }

// Hierarchy implements arch.Architecture.
func (r *reference) Hierarchy() arch.MemoryHierarchy { return hierarchy{r} }

// supports reports an error for what the model cannot take.
func (r *reference) supports(p gemm.Problem) error {
	if p.DType != gemm.FP16 && p.DType != gemm.BF16 {
		return diag.Inputf("the reference model of %s takes fp16 and bf16, not %s: its compute term is the latency of the 16-bit mma.sync m16n8k16",
			r.description.Arch, p.DType).Do("use fp16 or bf16")
	}
	return p.Validate()
}

// usable reports a configuration that none of the models can take: one with a number out of range, or of an unknown family.
// Without a family it is taken for one of triton.
func usable(c *gemm.Config) error {
	if c.Kernel != KernelTriton && c.Kernel != KernelMMA && c.Kernel != "" {
		return diag.Inputf("nvidia does not predict the kernel family %q", c.Kernel).Do("use %s", strings.Join(familyNames[:], " or "))
	}
	return c.Validate()
}

// blockSizes and depths are the axes of the candidate list, tritonBLAS's 5 × 5 × 6.
var (
	blockSizes = []int{16, 32, 64, 128, 256}
	depths     = []int{16, 32, 64, 128, 256, 512}
)

// Candidates implements arch.Architecture. The default list of triton is block_m × block_n × block_k, the last fastest, at
// 8 warps, 2 stages and no split, which is how the kernel of the port is launched. That of mma is every kernel that
// gemmgen can build, the tiles in the same order and of each the most sensible warps and stages first. Warps and stages
// do not enter the model; a space may vary them.
func (r *reference) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := r.supports(p); err != nil {
		return nil, err
	}
	if s.Kernel == "" {
		s.Kernel = KernelTriton
	}
	axes := arch.Space{
		Kernel: KernelTriton, BlockM: blockSizes, BlockN: blockSizes, BlockK: depths,
		NumWarps: []int{8}, NumStages: []int{2}, SplitK: []int{1},
	}
	switch s.Kernel {
	case KernelTriton:
	case KernelMMA:
		axes = gemmgen.Space()
	default:
		return nil, diag.Inputf("the reference model of %s has no kernel family %q", r.description.Arch, s.Kernel).Do("use %s", strings.Join(familyNames[:], " or "))
	}
	all, err := s.Enumerate(axes)
	if err != nil {
		return nil, err
	}
	if s.Kernel == KernelMMA {
		sortMMA(&p, all)
	}
	out := &arch.Candidates{}
	for position, c := range all {
		if reason, detail := r.check(&p, &c); reason == "" {
			out.Configs = append(out.Configs, c)
		} else {
			out.Rejected = append(out.Rejected, arch.Rejection{Config: c, Position: position, Reason: reason, Detail: detail})
		}
	}
	return out, nil
}

// operandBytes is the shared memory of one K step: (block_m·block_k + block_k·block_n) elements, one buffer.
func operandBytes(c *gemm.Config) int {
	return (c.BlockM*c.BlockK + c.BlockK*c.BlockN) * elementBytes
}

// reject says why a kernel of triton cannot be used.
func (r *reference) reject(c *gemm.Config) arch.Reason {
	switch {
	case c.SplitK != 1:
		return arch.ReasonModelRule
	case operandBytes(c) > r.sharedMemory:
		return arch.ReasonSharedMemory
	default:
		return ""
	}
}

// check says why a configuration cannot be used, and why in numbers.
func (r *reference) check(p *gemm.Problem, c *gemm.Config) (reason arch.Reason, detail string) {
	switch reason = r.reject(c); {
	case reason == arch.ReasonModelRule:
		return reason, "the reference model does not know split-K"
	case c.Kernel == KernelMMA:
		_, reason, detail = mmaSpec(p, c).Check(unit.Bytes(r.sharedMemory))
		return reason, detail
	case reason == arch.ReasonSharedMemory:
		return reason, fmt.Sprintf("needs %d B of shared memory, %d B available", operandBytes(c), r.sharedMemory)
	default:
		return "", ""
	}
}

// Estimate implements arch.Architecture. It computes what breakdown computes, hoisting what depends on fewer than all
// three tile dimensions: those parts are kept from one configuration to the next and made anew when a dimension
// changes, so any order gives the same bits and the candidate order is the fastest.
func (r *reference) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := r.supports(p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	var (
		area  areaPart
		depth [16]depthPart // direct-mapped by the power of two
		mnk   = p.M * p.N * p.K
	)
	for i := range cfgs {
		c := &cfgs[i]
		if err := usable(c); err != nil {
			return err
		}
		reason := r.reject(c)
		if c.Kernel == KernelMMA {
			reason, _ = r.check(&p, c)
		}
		if reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
			continue
		}
		if area.blockM != c.BlockM || area.blockN != c.BlockN {
			r.area(&area, &p, c.BlockM, c.BlockN)
		}
		d := &depth[bits.Len(uint(c.BlockK))%len(depth)]
		if d.blockK != c.BlockK {
			d.set(&p, c.BlockK)
		}

		compute := r.mmaCycles * float64(area.mma*d.mma)
		hit := area.hit
		if d.blockK > area.maxDepth {
			hit = r.l2Hit(&p, c, &area)
		}
		load := float64(loadBytes(c) * area.active)
		l2 := load / area.l2Bandwidth
		missed := (1 - hit) * load
		dram := 0.0
		if missed > 0 {
			dram = missed/area.dramBandwidth + r.dramPenalty
		}
		memory := max(l2, dram)

		penalty := 1.0
		if launched := area.launched * d.launched; launched != mnk {
			penalty = 1 / (float64(mnk) / float64(launched))
		}
		prologue := float64(float64(prologueFactor*memory) * penalty * occupancyDiscount)
		epilogue := float64((area.store + float64(compute*penalty)) * occupancyDiscount)
		steady := max(compute, memory) * penalty
		tile := float64(steady*d.iterations) + prologue + float64(epilogue*epilogueCount) + setupCycles + d.overhead + d.padding

		e := arch.Estimate{Cycles: unit.Cycles(tile * area.waves), Bound: arch.BoundLatency}
		switch {
		case compute >= memory:
			e.Bound = arch.BoundCompute
		case l2 >= dram:
			e.Bound = arch.BoundL2
		case missed/area.dramBandwidth >= r.dramPenalty:
			e.Bound = arch.BoundDRAM
		}
		dst[i] = e
	}
	return nil
}

// areaPart is what depends on block_m and block_n only.
type areaPart struct {
	blockM, blockN int
	gridM, gridN   int
	mma            int // instructions per mmaK of depth
	active         int // SMs
	waves          float64
	tileM, tileN   int     // super group, before it is shrunk to fit the L2
	hit            float64 // hit rate as long as block_k ≤ maxDepth
	maxDepth       int     // the depth up to which neither shrinking nor the cap acts
	l2Bandwidth    float64
	dramBandwidth  float64
	store          float64 // cycles to write the active tiles
	launched       int     // padded M · padded N
}

func (r *reference) area(a *areaPart, p *gemm.Problem, blockM, blockN int) {
	a.blockM, a.blockN = blockM, blockN
	a.gridM, a.gridN = cdiv(p.M, blockM), cdiv(p.N, blockN)
	a.mma = cdiv(blockM, mmaM) * cdiv(blockN, mmaN)
	tiles := a.gridM * a.gridN * p.Batch
	a.active = min(tiles, r.numSMs)
	a.waves = float64(cdiv(tiles, r.numSMs))
	a.tileM, a.tileN = r.superGroup(a.gridM, a.gridN, a.active)
	// Bytes of the super group per element of depth; a factor of block_k cancels in the hit rate, which is one rounded
	// division of integers below 2^53 either way.
	group := (a.tileM*blockM + a.tileN*blockN) * elementBytes
	grid := (a.gridM*blockM + a.gridN*blockN) * elementBytes
	a.maxDepth = min(r.l2Bytes/group, r.l2Bytes/grid)
	a.hit = hitRate(a.tileM*blockM, a.tileN*blockN, a.tileM, a.tileN)
	a.l2Bandwidth = r.l2Ratio * (float64(a.active) / float64(r.numSMs))
	a.dramBandwidth = r.dramRatio * min(1, r.dramCoeff*float64(a.active))
	a.store = float64(a.active*blockM*blockN*elementBytes) / a.dramBandwidth
	a.launched = a.gridM * blockM * a.gridN * blockN
}

// depthPart is what depends on block_k only.
type depthPart struct {
	blockK     int
	mma        int // instructions along K
	iterations float64
	overhead   float64 // loop overhead in cycles
	padding    float64 // K padding penalty in cycles
	launched   int     // padded K
}

func (d *depthPart) set(p *gemm.Problem, blockK int) {
	steps := cdiv(p.K, blockK)
	*d = depthPart{
		blockK: blockK, mma: cdiv(blockK, mmaK), launched: steps * blockK,
		iterations: float64(max(steps-1, 1)),
	}
	d.overhead = float64(loopOverhead * d.iterations)
	if rest := p.K % blockK; rest != 0 {
		d.padding = float64(float64(rest) / float64(p.K) * kPaddingPenalty)
	}
}

// superGroup returns the block of output tiles that the active SMs are taken to work on together: groupM columns wide,
// as high as it takes, wrapped onto further columns when the grid is lower than that, and clamped to the grid.
func (r *reference) superGroup(gridM, gridN, active int) (tileM, tileN int) {
	tileN = min(r.groupM, gridN)
	tileM = cdiv(active, tileN)
	if tileM > gridM {
		tileN += tileM / gridM * r.groupM
		tileM = gridM
	}
	return min(max(tileM, 1), gridM), min(max(tileN, 1), gridN)
}

// l2Hit is the hit rate with everything taken into account: the super group is shrunk, the longer side first, until one
// K step of it fits the L2, and the rate is capped when one K step of the whole grid does not.
func (r *reference) l2Hit(p *gemm.Problem, c *gemm.Config, a *areaPart) float64 {
	tileM, tileN := r.shrink(a.tileM, a.tileN, c)
	hit := hitRate(tileM*c.BlockM*c.BlockK, tileN*c.BlockK*c.BlockN, tileM, tileN)
	if r.gridStepBytes(a.gridM, a.gridN, c) > r.l2Bytes {
		hit = min(hit, l2HitCap)
	}
	return hit
}

func (r *reference) shrink(tileM, tileN int, c *gemm.Config) (int, int) {
	for (tileM*c.BlockM*c.BlockK+tileN*c.BlockK*c.BlockN)*elementBytes > r.l2Bytes {
		switch {
		case tileM > 1 && tileM >= tileN:
			tileM--
		case tileN > 1:
			tileN--
		default:
			return tileM, tileN
		}
	}
	return tileM, tileN
}

// gridStepBytes is one K step of the whole padded grid.
func (r *reference) gridStepBytes(gridM, gridN int, c *gemm.Config) int {
	return (gridM*c.BlockM*c.BlockK + gridN*c.BlockK*c.BlockN) * elementBytes
}

// hitRate is the share of the requests of a tileM × tileN super group that find data another of its tiles has fetched,
// from the unique amounts of A and B: (total − unique) / total.
func hitRate(uniqueA, uniqueB, tileM, tileN int) float64 {
	total := uniqueA*tileN + uniqueB*tileM
	return float64(total-(uniqueA+uniqueB)) / float64(total)
}

// loadBytes is what one SM loads per K step.
func loadBytes(c *gemm.Config) int {
	a, b := operandLoads(c)
	return max(a+b, lineBytes)
}

// operandLoads is what one SM loads of A and of B per K step, in whole cache lines.
func operandLoads(c *gemm.Config) (a, b int) {
	return cdiv(c.BlockM*c.BlockK*elementBytes, lineBytes) * lineBytes, cdiv(c.BlockK*c.BlockN*elementBytes, lineBytes) * lineBytes
}

// groupCandidates are the launch-order groups that phase two tries.
var groupCandidates = [...]int{1, 2, 3, 4, 5, 6, 8, 16}

// Mapping implements arch.Architecture: phase two. Of the groups, the first with the smallest footprint of the first
// wave wins: (distinct tile rows)·block_m + (distinct tile columns)·block_n. Batched problems have their own operands
// per item, so the footprint is that of one item.
func (r *reference) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := r.supports(p); err != nil {
		return arch.Mapping{}, err
	}
	if err := usable(&c); err != nil {
		return arch.Mapping{}, err
	}
	gridM, gridN := cdiv(p.M, c.BlockM), cdiv(p.N, c.BlockN)
	wave := min(gridM*gridN, r.numSMs)
	best, bestCost := 0, 0
	for _, g := range groupCandidates {
		rows, columns := footprint(wave, g, gridM, gridN)
		if cost := rows*c.BlockM + columns*c.BlockN; best == 0 || cost < bestCost {
			best, bestCost = g, cost
		}
	}
	return arch.Mapping{GroupM: best}, nil
}

// footprint counts the distinct tile rows and columns among the first `wave` program ids of a grouped launch order,
// which walks groups of g rows column by column: id → row = g·⌊id / (g·gridN)⌋ + (id mod g·gridN) mod height,
// column = ⌊(id mod g·gridN) / height⌋, where height is g, or what is left of the grid in the last group.
func footprint(wave, g, gridM, gridN int) (rows, columns int) {
	full, rest := wave/(g*gridN), wave%(g*gridN)
	rows = min(full*g, gridM)
	if full > 0 {
		columns = gridN
	}
	if rest > 0 {
		height := min(gridM-full*g, g)
		rows += min(rest, height)
		columns = max(columns, cdiv(rest, height))
	}
	return rows, columns
}

// fits reports a destination of the wrong length, which is the caller's bug.
func fits(have, want int) error {
	if have != want {
		return fmt.Errorf("nvidia: room for %d results, %d are asked for", have, want)
	}
	return nil
}

func cdiv(a, b int) int { return (a + b - 1) / b }
