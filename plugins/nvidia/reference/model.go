// Package reference is the analytical model of tritonBLAS's NVIDIA port: two memory levels, one CTA per SM, whole
// waves. docs/model-nvidia-reference.md has the equations. The model is bit-exact against testdata/golden and never
// tuned.
package reference

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Name is the model's name in requests and descriptions.
const Name = "reference"

// The empirical constants, which tritonBLAS's NVIDIA port carries over from AMD Origami unchanged (its Appendix C.4).
const (
	prologueFactor    = 1.5           // a pipeline fill takes 1.5 memory latencies
	epilogueCount     = 2             // the epilogue counts twice
	occupancyDiscount = 0.95          // on prologue and epilogue, at the constant occupancy of 1
	loopOverhead      = 500           // cycles per K iteration
	kPaddingPenalty   = 50000         // cycles, times (K mod block_k) / K
	setupCycles       = 1             // launch of a CTA
	lineBytes         = gpu.LineBytes // loads are rounded to cache lines, and one line is the least that an SM loads
	l2HitCap          = 0.5           // when one K step of the padded grid exceeds the L2
)

// Model is the model on one device.
//
// Every product that feeds an addition is wrapped in a conversion, which keeps Go from fusing the two: results are the
// same bits on every platform.
type Model struct {
	description arch.Description
	device      *gpu.Device
	families    []Family
	levels      []arch.Level

	numSMs      int
	l2Bytes     int
	groupM      int     // the launch-order group that phase one assumes: ⌈√num_sms⌉
	mmaCycles   float64 // mma_latency ÷ tensor_cores_per_sm
	l2Ratio     float64 // B/cycle
	dramRatio   float64 // B/cycle
	dramCoeff   float64
	dramPenalty float64 // cycles
}

var _ arch.Architecture = (*Model)(nil)

// Family is a kernel family as the model sees it: it tells tiles apart, not warps and stages.
type Family interface {
	Name() string
	// TileSpace has the axes of the candidate list.
	TileSpace() arch.Space
	// SortLaunches orders the configurations of each tile, which stand together, the most sensible warps and stages
	// first.
	SortLaunches(d *gpu.Device, o kernel.Operands, configs []gemm.Config)
	// CheckTile says why a configuration cannot be used, and puts it in numbers.
	CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (reason arch.Reason, detail string)
}

// New returns the model for a device, with the default family first.
func New(d *gpu.Device, families []Family) *Model {
	params := d.Params
	r := &Model{
		description: d.Description(), device: d, families: families,
		numSMs:      d.SMs,
		l2Bytes:     params.Int("l2_bytes"),
		mmaCycles:   params.Get("mma_latency") / params.Get("tensor_cores_per_sm"),
		l2Ratio:     params.Get("l2_perf_ratio"),
		dramRatio:   params.Get("dram_perf_ratio"),
		dramCoeff:   params.Get("dram_bw_coeff"),
		dramPenalty: params.Get("hbm_latency_penalty"),
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
	r.description.Model, r.description.Kernels = Name, kernel.Names(families)
	r.description.Rung = arch.RungSpec
	if d.Calibrated() {
		r.description.Rung = arch.RungCalibrated
	}
	r.description.Constants, r.description.Terms = constants, terms
	r.description.Unused = formula.Unused(&r.description, append([]string{"clock"}, gpu.Limits...)...)
	r.description.Order = arch.Order{Keys: []arch.Key{arch.KeyIntensity}}
	return r
}

// Describe implements arch.Architecture.
func (r *Model) Describe() *arch.Description { return &r.description }

// Hierarchy implements arch.Architecture.
func (r *Model) Hierarchy() arch.MemoryHierarchy { return hierarchy{r} }

// supports reports an error for what the model cannot take.
func (r *Model) supports(p gemm.Problem) error {
	if p.DType != gemm.FP16 && p.DType != gemm.BF16 {
		return diag.Inputf("the reference model of %s takes fp16 and bf16, not %s: its compute term is the latency of the 16-bit mma.sync m16n8k16",
			r.description.Arch, p.DType).Do("use fp16 or bf16")
	}
	return p.Validate()
}

// family returns the family of a configuration, or why none of the model's can have it: it is of an unknown family,
// or a number of it is out of range.
func (r *Model) family(c *gemm.Config) (Family, error) {
	f, ok := kernel.Find(r.families, c.Kernel)
	if !ok {
		return nil, kernel.Unknown(&r.description, c.Kernel)
	}
	return f, c.Validate()
}

// Candidates implements arch.Architecture, with the most sensible warps and stages of each tile first: they do not
// enter the model, and a space may vary them.
func (r *Model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := r.supports(p); err != nil {
		return nil, err
	}
	f, ok := kernel.Find(r.families, s.Kernel)
	if !ok {
		return nil, kernel.Unknown(&r.description, s.Kernel)
	}
	all, err := s.Enumerate(f.TileSpace())
	if err != nil {
		return nil, err
	}
	operands := kernel.OperandsOf(&p)
	f.SortLaunches(r.device, operands, all)
	out := &arch.Candidates{}
	for position, c := range all {
		if reason, detail := r.check(f, operands, &c); reason == "" {
			out.Configs = append(out.Configs, c)
		} else {
			out.Rejected = append(out.Rejected, arch.Rejection{Config: c, Position: position, Reason: reason, Detail: detail})
		}
	}
	return out, nil
}

// check says why a configuration cannot be used, and puts it in numbers.
func (r *Model) check(f Family, o kernel.Operands, c *gemm.Config) (reason arch.Reason, detail string) {
	if c.SplitK != 1 {
		return arch.ReasonModelRule, "the reference model does not know split-K"
	}
	return f.CheckTile(r.device, o, c)
}

// Estimate implements arch.Architecture. It computes what breakdown computes, hoisting what depends on fewer than all
// three tile dimensions: those parts are kept from one configuration to the next and made anew when a dimension
// changes, so any order gives the same bits and the candidate order is the fastest.
func (r *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := r.supports(p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	var (
		operands = kernel.OperandsOf(&p)
		f        Family
		name     string // of f, as configurations have it
		area     areaPart
		depth    [16]depthPart // direct-mapped by the power of two
		mnk      = p.M * p.N * p.K
	)
	for i := range cfgs {
		c := &cfgs[i]
		if f == nil || c.Kernel != name {
			var err error
			if f, err = r.family(c); err != nil {
				return err
			}
			name = c.Kernel
		} else if err := c.Validate(); err != nil {
			return err
		}
		if c.SplitK != 1 {
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
			continue
		}
		if reason, _ := f.CheckTile(r.device, operands, c); reason != "" {
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

func (r *Model) area(a *areaPart, p *gemm.Problem, blockM, blockN int) {
	a.blockM, a.blockN = blockM, blockN
	a.gridM, a.gridN = cdiv(p.M, blockM), cdiv(p.N, blockN)
	a.mma = cdiv(blockM, gpu.MMAM) * cdiv(blockN, gpu.MMAN)
	tiles := a.gridM * a.gridN * p.Batch
	a.active = min(tiles, r.numSMs)
	a.waves = float64(cdiv(tiles, r.numSMs))
	a.tileM, a.tileN = r.superGroup(a.gridM, a.gridN, a.active)
	// Bytes of the super group per element of depth; a factor of block_k cancels in the hit rate, which is one rounded
	// division of integers below 2^53 either way.
	group := (a.tileM*blockM + a.tileN*blockN) * kernel.ElementBytes
	grid := (a.gridM*blockM + a.gridN*blockN) * kernel.ElementBytes
	a.maxDepth = min(r.l2Bytes/group, r.l2Bytes/grid)
	a.hit = hitRate(a.tileM*blockM, a.tileN*blockN, a.tileM, a.tileN)
	a.l2Bandwidth = r.l2Ratio * (float64(a.active) / float64(r.numSMs))
	a.dramBandwidth = r.dramRatio * min(1, r.dramCoeff*float64(a.active))
	a.store = float64(a.active*blockM*blockN*kernel.ElementBytes) / a.dramBandwidth
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
		blockK: blockK, mma: cdiv(blockK, gpu.MMAK), launched: steps * blockK,
		iterations: float64(max(steps-1, 1)),
	}
	d.overhead = float64(loopOverhead * d.iterations)
	if rest := p.K % blockK; rest != 0 {
		d.padding = float64(float64(rest) / float64(p.K) * kPaddingPenalty)
	}
}

// superGroup returns the block of output tiles that the active SMs are taken to work on together: groupM columns wide,
// as high as it takes, wrapped onto further columns when the grid is lower than that, and clamped to the grid.
func (r *Model) superGroup(gridM, gridN, active int) (tileM, tileN int) {
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
func (r *Model) l2Hit(p *gemm.Problem, c *gemm.Config, a *areaPart) float64 {
	tileM, tileN := r.shrink(a.tileM, a.tileN, c)
	hit := hitRate(tileM*c.BlockM*c.BlockK, tileN*c.BlockK*c.BlockN, tileM, tileN)
	if r.gridStepBytes(a.gridM, a.gridN, c) > r.l2Bytes {
		hit = min(hit, l2HitCap)
	}
	return hit
}

func (r *Model) shrink(tileM, tileN int, c *gemm.Config) (int, int) {
	for (tileM*c.BlockM*c.BlockK+tileN*c.BlockK*c.BlockN)*kernel.ElementBytes > r.l2Bytes {
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
func (r *Model) gridStepBytes(gridM, gridN int, c *gemm.Config) int {
	return (gridM*c.BlockM*c.BlockK + gridN*c.BlockK*c.BlockN) * kernel.ElementBytes
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
	return cdiv(c.BlockM*c.BlockK*kernel.ElementBytes, lineBytes) * lineBytes, cdiv(c.BlockK*c.BlockN*kernel.ElementBytes, lineBytes) * lineBytes
}

// groupCandidates are the launch-order groups that phase two tries.
var groupCandidates = [...]int{1, 2, 3, 4, 5, 6, 8, 16}

// Mapping implements arch.Architecture: phase two. Of the groups, the first with the smallest footprint of the first
// wave wins: (distinct tile rows)·block_m + (distinct tile columns)·block_n. Batched problems have their own operands
// per item, so the footprint is that of one item.
func (r *Model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := r.supports(p); err != nil {
		return arch.Mapping{}, err
	}
	if _, err := r.family(&c); err != nil {
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
		return fmt.Errorf("reference: room for %d results, %d are asked for", have, want)
	}
	return nil
}

func cdiv(a, b int) int { return (a + b - 1) / b }
