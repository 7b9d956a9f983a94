package tritonblas

import (
	"context"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Estimate implements arch.Architecture. It computes what the formulas of the terms say. Values that depend on fewer
// than all three tile dimensions are kept until one of these dimensions changes. Every order of configurations thus
// gives the same bits, and the candidate order is the fastest.
func (r *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := r.Supports(&p, cfgs...); err != nil {
		return err
	}
	if err := r.Fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	if err := r.reject(dst, &p, cfgs); err != nil {
		return err
	}
	var (
		area  areaPart
		depth [16]depthPart // direct-mapped by the power of two
		mnk   = p.M * p.N * p.K
	)
	for i := range cfgs {
		c := &cfgs[i]
		if c.SplitK != 1 {
			dst[i].Reject = arch.ReasonModelRule
		}
		if dst[i].Reject != "" {
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
			dram = missed/area.dramBandwidth + r.dramLatency
		}
		memory := max(l2, dram)

		penalty := 1.0
		if launched := area.launched * d.launched; launched != mnk {
			penalty = 1 / (float64(mnk) / float64(launched))
		}
		prologue := float64(float64(prologueFactor*memory) * penalty * occupancyDiscount)
		epilogue := float64((area.store + float64(compute*penalty)) * occupancyDiscount)
		steady := max(compute, memory) * penalty
		tile := float64(steady*d.iterations) + prologue + float64(epilogue*epilogueCount) +
			setupCycles + d.overhead + d.padding
		e := arch.Estimate{Cycles: unit.Cycles(tile * area.waves), Bound: arch.BoundLatency}
		switch {
		case compute >= memory:
			e.Bound = arch.BoundCompute
		case l2 >= dram:
			e.Bound = arch.BoundL2
		case missed/area.dramBandwidth >= r.dramLatency:
			e.Bound = arch.BoundDRAM
		}
		dst[i] = e
	}
	return nil
}

// reject resets dst, and sets the reason of every configuration that its family rejects.
func (r *Model) reject(dst []arch.Estimate, p *gemm.Problem, cfgs []gemm.Config) error {
	clear(dst)
	operands := kernel.OperandsOf(p)
	for start, end := 0, 0; start < len(cfgs); start = end {
		f, err := r.family(&cfgs[start])
		if err != nil {
			return err
		}
		axes := f.Axes()
		for end = start; end < len(cfgs) && cfgs[end].Kernel == cfgs[start].Kernel; end++ {
			if c := &cfgs[end]; !c.Plain() {
				if err := c.Validate(axes...); err != nil {
					return err
				}
			}
		}
		f.RejectTiles(r.device, operands, dst[start:end], cfgs[start:end])
		if r.compiled == nil {
			continue
		}
		for i := start; i < end; i++ {
			if dst[i].Reject == "" {
				dst[i].Reject, _ = r.refuse(f, operands, p, &cfgs[i])
			}
		}
	}
	return nil
}

// areaPart holds the values that depend on block_m and block_n only.
type areaPart struct {
	blockM, blockN int
	gridM, gridN   int
	mma            int // instructions per step of MMAK along K
	active         int // SMs
	waves          float64
	tileM, tileN   int     // super group, before it is shrunk to fit the L2
	hit            float64 // hit rate if block_k ≤ maxDepth
	maxDepth       int     // largest block_k without shrinking and without the cap
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
	// Bytes of the super group per element of depth. block_k cancels in the hit rate, which is one rounded division of
	// integers below 2^53 with or without it.
	group := (a.tileM*blockM + a.tileN*blockN) * kernel.ElementBytes
	grid := (a.gridM*blockM + a.gridN*blockN) * kernel.ElementBytes
	a.maxDepth = min(r.l2Bytes/group, r.l2Bytes/grid)
	a.hit = hitRate(a.tileM*blockM, a.tileN*blockN, a.tileM, a.tileN)
	a.l2Bandwidth = float64(r.l2.Bandwidth.At(a.active))
	a.dramBandwidth = float64(r.dram.Bandwidth.At(a.active))
	a.store = float64(a.active*blockM*blockN*kernel.ElementBytes) / a.dramBandwidth
	a.launched = a.gridM * blockM * a.gridN * blockN
}

// depthPart holds the values that depend on block_k only.
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

// superGroup returns the block of output tiles that the active SMs are assumed to share: groupM columns wide and as
// high as necessary. If that exceeds the height of the grid, it continues in further columns. It is clamped to the
// grid.
func (r *Model) superGroup(gridM, gridN, active int) (tileM, tileN int) {
	tileN = min(r.groupM, gridN)
	tileM = cdiv(active, tileN)
	if tileM > gridM {
		tileN += tileM / gridM * r.groupM
		tileM = gridM
	}
	return min(max(tileM, 1), gridM), min(max(tileN, 1), gridN)
}

// l2Hit returns the hit rate with shrinking and cap. The super group is shrunk, the longer side first, until one K step
// of it fits the L2. The rate is capped if one K step of the whole grid does not fit.
func (r *Model) l2Hit(p *gemm.Problem, c *gemm.Config, a *areaPart) float64 {
	tileM, tileN := r.shrink(a.tileM, a.tileN, c)
	hit := hitRate(tileM*c.BlockM*c.BlockK, tileN*c.BlockK*c.BlockN, tileM, tileN)
	if (a.gridM*c.BlockM*c.BlockK+a.gridN*c.BlockK*c.BlockN)*kernel.ElementBytes > r.l2Bytes {
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

// hitRate returns the share of the requests of a tileM × tileN super group that hit data already loaded by another of
// its tiles, from the distinct amounts of A and B: (total − distinct) / total.
func hitRate(uniqueA, uniqueB, tileM, tileN int) float64 {
	total := uniqueA*tileN + uniqueB*tileM
	return float64(total-(uniqueA+uniqueB)) / float64(total)
}

// loadBytes returns the bytes that one SM loads per K step: A and B each in whole cache lines.
func loadBytes(c *gemm.Config) int {
	a := cdiv(c.BlockM*c.BlockK*kernel.ElementBytes, lineBytes) * lineBytes
	b := cdiv(c.BlockK*c.BlockN*kernel.ElementBytes, lineBytes) * lineBytes
	return max(a+b, lineBytes)
}
