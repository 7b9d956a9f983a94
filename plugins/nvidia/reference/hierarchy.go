package reference

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// hierarchy has the memory levels of the model: an L2 that receives all requests, and DRAM, which serves the misses.
type hierarchy struct{ r *Model }

// Levels implements arch.MemoryHierarchy.
func (h hierarchy) Levels() []arch.Level { return h.r.levels }

// memory is the memory side of one K step, with all intermediate values.
type memory struct {
	groupTileM, groupTileN int // super group, before it is shrunk to fit the L2
	tileM, tileN           int // super group, after it is shrunk
	gridStep               int // bytes of one K step of the padded grid
	hit                    float64
	perSM                  int // bytes
	load                   float64
	l2Fraction             float64
	l2Bandwidth            float64
	l2                     float64
	dramFraction           float64
	dramBandwidth          float64
	missed                 float64
	dram                   float64
	latency                float64
}

func (r *Model) memory(p gemm.Problem, c gemm.Config, active int) memory {
	gridM, gridN := cdiv(p.M, c.BlockM), cdiv(p.N, c.BlockN)
	var m memory
	m.groupTileM, m.groupTileN = r.superGroup(gridM, gridN, active)
	m.tileM, m.tileN = r.shrink(m.groupTileM, m.groupTileN, &c)
	uniqueA := m.tileM * c.BlockM * c.BlockK * kernel.ElementBytes
	uniqueB := m.tileN * c.BlockK * c.BlockN * kernel.ElementBytes
	m.hit = hitRate(uniqueA, uniqueB, m.tileM, m.tileN)
	m.gridStep = r.gridStepBytes(gridM, gridN, &c)
	if m.gridStep > r.l2Bytes {
		m.hit = min(m.hit, l2HitCap)
	}
	m.perSM = loadBytes(&c)
	m.load = float64(m.perSM * active)
	m.l2Fraction = r.levels[0].Bandwidth.Fraction(active)
	m.l2Bandwidth = float64(r.levels[0].Bandwidth.At(active))
	m.l2 = m.load / m.l2Bandwidth
	m.dramFraction = r.levels[1].Bandwidth.Fraction(active)
	m.dramBandwidth = float64(r.levels[1].Bandwidth.At(active))
	m.missed = (1 - m.hit) * m.load
	if m.missed > 0 {
		m.dram = m.missed/m.dramBandwidth + r.dramPenalty
	}
	m.latency = max(m.l2, m.dram)
	return m
}
