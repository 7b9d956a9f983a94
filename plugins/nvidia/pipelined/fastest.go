package pipelined

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
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

// EstimateFastest implements arch.FastestEstimator. It computes the least time of each configuration, and estimates
// those that can be among the fastest.
func (m *Model) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	if len(cfgs) <= fewConfigs || top > mostFastest || top < 1 {
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
	e := estimator{device: &m.device, shape: m.shape(&p)}
	first := newLowest(top) // the configurations with the lowest of the least times, which are likely to be fast
	for i := range kept.prepared {
		c := &kept.prepared[i]
		if c.reject != "" {
			if err := m.Check(&cfgs[i]); err != nil {
				return err
			}
			dst[i] = arch.Estimate{Reject: c.reject}
			continue
		}
		e.at(c.kernel)
		least := e.least(c)
		dst[i] = arch.Estimate{Cycles: unit.Cycles(least)}
		first.add(least, i)
	}
	limit := math.Inf(1)
	if first.full() {
		limit = 0
		for _, i := range first.index[:top] {
			c := &kept.prepared[i]
			e.at(c.kernel)
			limit = max(limit, float64(e.estimate(c, c.kernel).Cycles))
		}
	}
	fastest := newLowest(top)
	for i := range kept.prepared {
		if dst[i].Reject != "" || float64(dst[i].Cycles) > limit*(1+rounding) {
			continue
		}
		c := &kept.prepared[i]
		e.at(c.kernel)
		dst[i] = e.estimate(c, c.kernel)
		fastest.add(float64(dst[i].Cycles), i)
		if fastest.full() {
			limit = min(limit, fastest.value[top-1])
		}
	}
	return nil
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

func (l *lowest) full() bool { return !math.IsInf(l.value[l.n-1], 1) }

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
