package pipelined

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
)

// estimator estimates configurations for a problem. It computes the terms of the grid once for those that follow each
// other and share a kernel.
type estimator struct {
	device *device
	shape  shape
	kernel *preparedKernel // whose terms grid has
	grid   gridTerms
	timing timing
}

// at moves to a kernel of a list.
func (e *estimator) at(k *preparedKernel) {
	if k != e.kernel {
		e.kernel = k
		e.shape.grid(&e.grid, e.device, k)
	}
}

// estimate estimates a configuration of the kernel that grid is of.
func (e *estimator) estimate(c *preparedConfig, k *preparedKernel) arch.Estimate {
	masked := e.shape.masked(c)
	v, t := &k.variants[masked], &e.timing
	t.compute(e.device, &e.shape.sizes, &k.kernelTerms, v, &c.splits[masked], &e.grid)
	return arch.Estimate{Cycles: unit.Cycles(t.total), Bound: t.bound(&k.kernelTerms, v, &e.grid)}
}

// least is a time that the estimate is not below, but for rounding (terms.Least).
func (e *estimator) least(c *preparedConfig) float64 {
	masked := e.shape.masked(c)
	k := &c.kernel.kernelTerms
	return least(e.device, &e.shape.sizes, k, &c.kernel.variants[masked], &c.splits[masked], &e.grid)
}

const (
	// mostFastest is up to how many of the fastest configurations are found without all estimates.
	mostFastest = 16
	// rounding is more than the relative error of least and of the total.
	rounding = 1e-9
)

var _ arch.FastestEstimator = (*Model)(nil)

// EstimateFastest implements arch.FastestEstimator. It computes a floor of each kernel, the least time of each
// configuration of those whose floor is low enough, and estimates those that can be among the fastest.
func (m *Model) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	if len(cfgs) <= model.FewConfigs || top > mostFastest || top < 1 {
		return m.Estimate(ctx, dst, p, cfgs)
	}
	kept, err := m.kept(&p, cfgs)
	if err != nil {
		return err
	}
	if kept == nil {
		return m.Estimate(ctx, dst, p, cfgs)
	}
	if err := m.Fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	if err := kept.reject(dst); err != nil || len(kept.kernels) == 0 {
		return err
	}
	e := estimator{device: &m.device, shape: m.shape(&p)}
	likely := newLowest(mostFastest) // the kernels with the lowest floors, and the fastest one for the last problem
	for n := range kept.kernels {
		k := &kept.kernels[n]
		floor := e.floor(k)
		dst[kept.usable[k.first]].Cycles = unit.Cycles(floor)
		likely.add(floor, n)
	}
	tried := likely.index[:min(mostFastest, len(kept.kernels))]
	if won := int(kept.won.Load()); !slices.Contains(tried, won) {
		tried[len(tried)-1] = won
	}
	seen := newLowest(top)
	for _, n := range tried {
		k := &kept.kernels[n]
		e.at(k.preparedKernel)
		for _, i := range kept.usable[k.first:k.behind] {
			seen.add(float64(e.estimate(&kept.prepared[i], k.preparedKernel).Cycles), n)
		}
	}
	limit := seen.value[top-1]
	fastest := newLowest(top)
	for n := range kept.kernels {
		k := &kept.kernels[n]
		configs := kept.usable[k.first:k.behind]
		if floor := dst[configs[0]].Cycles; float64(floor) > limit*(1+rounding) {
			for _, i := range configs {
				dst[i] = arch.Estimate{Cycles: floor}
			}
			continue
		}
		e.at(k.preparedKernel)
		for _, i := range configs {
			c := &kept.prepared[i]
			least := e.least(c)
			if least > limit*(1+rounding) {
				dst[i] = arch.Estimate{Cycles: unit.Cycles(least)}
				continue
			}
			dst[i] = e.estimate(c, k.preparedKernel)
			fastest.add(float64(dst[i].Cycles), n)
			limit = min(limit, fastest.value[top-1])
		}
	}
	kept.won.Store(int32(fastest.index[0]))
	return nil
}

// listedKernel is a kernel of a list, with what its floor depends on.
type listedKernel struct {
	*preparedKernel
	first, behind int32 // its configurations in the list's usable
	floorTerms
}

// floorTerms are what a floor depends on.
type floorTerms struct {
	tileM, tileN, sharersM, sharersN, depth float64
	least                                   float64 // CTAs of the SM that has most, at least
	bytesM, bytesN                          float64 // that a K step reads of a row of A and of a column of B
	pace                                    float64 // cycles of an SM for a K step that nothing else delays, at least
	chain                                   float64 // cycles of a K step in a CTA, at least, ÷ the largest split of K
	end                                     float64 // cycles of an SM for the output of a CTA, at least
	fixed                                   float64 // cycles of the first loads
}

// setFloor sets what the floor depends on. The names of terms without a name may change as zterms.go is generated: then
// TestFastestAreThoseOfAllEstimates fails.
func (k *listedKernel) setFloor(d *device, configs []preparedConfig, usable []int32) {
	cost, mostSplit := math.Inf(1), 1.
	for _, i := range usable {
		c := &configs[i]
		cost, mostSplit = min(cost, c.splits[0].part2, c.splits[1].part2), max(mostSplit, c.splits[0].splitK)
	}
	f := &k.floorTerms
	f.tileM, f.tileN, f.sharersM, f.sharersN, f.depth = k.blockM, k.blockN, k.sharers, k.sharersA, k.blockK
	f.pace = math.Sqrt(math.Sqrt(min(k.variants[0].onChip, k.variants[1].onChip)))
	f.chain = k.chainStep / mostSplit
	f.end = k.blockM*k.blockN*cost + k.tensorCopy
	f.least = 1
	if k.streams > 0 {
		f.least = 0
	}
	if k.resident > 0 {
		f.bytesM = k.blockK * k.elementBytes / k.sharersA / (d.l2PerfRatio * d.waveCoalescing) * k.sms
		columns := k.blockN
		if k.transB == 0 {
			columns = math.Ceil(k.blockN*k.elementBytes/d.lineBytes) * d.lineBytes / k.elementBytes
		}
		f.bytesN = k.blockK * columns / k.blockN * k.elementBytes / k.sharers / (d.l2PerfRatio * d.waveCoalescing) * k.sms
	}
	f.fixed = d.prologueCycles + d.dramLatency + k.resident*d.residentTurn
	if k.timed > 0 { // the timing pass may know that the kernel is faster than its terms
		*f = floorTerms{tileM: 1, tileN: 1, sharersM: 1, sharersN: 1, depth: 1}
	}
}

// floor is a time that no configuration of a kernel is below: the K steps alone, dealt to all SMs without a rest or one
// after the other in the largest split, and the output. It takes a fraction of the time of least.
func (e *estimator) floor(k *listedKernel) float64 {
	s, f := &e.shape, &k.floorTerms
	gridM := s.m / f.tileM
	if s.groups == (gemm.Groups{}) {
		gridM = math.Ceil(math.Ceil(gridM)/f.sharersM) * f.sharersM
	}
	gridN := math.Ceil(math.Ceil(s.n/f.tileN)/f.sharersN) * f.sharersN
	steps := math.Ceil(s.k / f.depth)
	ctas := gridM * gridN * s.batch / k.sms
	l2 := s.m/gridM*f.bytesM + s.n/gridN*f.bytesN
	loop := max(ctas*steps*max(f.pace, l2), steps*f.chain)
	return (s.launch + f.fixed + max(ctas, f.least)*f.end + loop) * (1 - rounding)
}

// lowest are the lowest of the values that were added, and whose they are. Values that are missing are infinite.
type lowest struct {
	n     int
	value [mostFastest]float64
	index [mostFastest]int
}

func newLowest(n int) lowest {
	l := lowest{n: n}
	for i := range l.value {
		l.value[i] = math.Inf(1)
	}
	return l
}

func (l *lowest) add(value float64, index int) {
	if !(value < l.value[l.n-1]) {
		return
	}
	i := l.n - 1
	for ; i > 0 && value < l.value[i-1]; i-- {
		l.value[i], l.index[i] = l.value[i-1], l.index[i-1]
	}
	l.value[i], l.index[i] = value, index
}
