// Package tritonblas is the analytical model of tritonBLAS's NVIDIA port: two memory levels, one CTA per SM, whole
// waves. The equations are the table in package terms. The model is bit-exact against testdata/golden and never tuned.
package tritonblas

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/tritonblas/terms"
)

// Name is the name of the model in requests and descriptions.
const Name = "tritonblas"

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	gpu      *gpu.Device
	families []Family
	compiled kernel.Table // of the first family's kernels; nil knows none
	lists    model.Lists[kernel.Operands, []prepared]
	device   device
	groupM   int // launch-order group that phase one assumes: ⌈√num_sms⌉
	l2Bytes  int
}

// Family is a kernel family for this model, which distinguishes tiles but not warps and stages.
type Family interface {
	kernel.Declared
	// TileSpace returns the axes of the candidate list.
	TileSpace() arch.Space
	// SortLaunches orders the configurations of each tile, which are adjacent, with the most suitable warps and stages
	// first.
	SortLaunches(d *gpu.Device, o kernel.Operands, configs []gemm.Config)
	// CheckTile returns the reason why a configuration is rejected, or an empty reason, and the reason in numbers.
	CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (reason arch.Reason, detail string)
}

// New returns the model for a device. The first family is the default. With a compiler's report on its kernels the
// model leaves those out that spill registers or do not build, as the report on tritonBLAS's port recommends. Its
// cycles stay the same.
func New(d *gpu.Device, families []Family, compiled kernel.Table) *Model {
	m := &Model{gpu: d, families: families, compiled: compiled}
	m.Memory, m.l2Bytes = d.Memory, int(arch.LevelOf(d.Memory, arch.BoundL2).Capacity)
	m.groupM = int(math.Ceil(math.Sqrt(float64(d.SMs))))
	m.Exact = true
	m.Space = func(name string, _ gemm.DType) arch.Space { return m.family(name).TileSpace() }
	// The model ignores warps and stages, and a space may vary them.
	m.Sort = func(p *gemm.Problem, cfgs []gemm.Config) {
		if len(cfgs) > 0 {
			m.family(cfgs[0].Kernel).SortLaunches(m.gpu, kernel.OperandsOf(p), cfgs)
		}
	}
	m.New = func() model.Evaluation { return &evaluation{m: m} }
	desc := &m.Description
	*desc = d.Description()
	desc.Model, desc.Kernels, desc.Families = Name, kernel.Names(families), kernel.Describe(families, takes)
	desc.Rung = arch.RungSpec
	if d.Calibrated() {
		desc.Rung = arch.RungCalibrated
	}
	if compiled != nil {
		desc.Rung = arch.RungCompiled
	}
	desc.Terms = model.Schema(terms.Terms, "")
	desc.Constants = append(slices.Clone(terms.Constants), costs.Of(Name, d.SM.Generation)...)
	desc.Unused = formula.Unused(d.Params, slices.Concat(formula.Of(desc.Terms), []string{"clock"}, gpu.Limits))
	// On the H200 its totals are off from measured times by 144 % at the median.
	desc.RanksOnly = true
	desc.Order = arch.Order{Keys: []arch.Key{arch.KeyIntensity}}
	m.device.compute(m.Numbers())
	return m
}

// takes reports whether the model has the cost of these types. Its compute term is the latency of the 16-bit mma.sync
// m16n8k16, and its epilogue writes 16-bit results.
func takes(t gemm.Types) bool { return t.In.Bits() == 16 && t.Out == t.In }

// family returns the family of a configuration that was checked.
func (m *Model) family(name string) Family {
	f, _ := kernel.Find(&m.Description, m.families, name)
	return f
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	return model.EstimateList(ctx, &m.Model, &m.lists, dst, p, cfgs)
}

// evaluation is the model at work on one problem.
type evaluation struct {
	m        *Model
	p        gemm.Problem
	operands kernel.Operands
	sizes    sizes
	config   *gemm.Config
	one      prepared
	at       *prepared
	detail   string
	area     areaTerms
	depths   [16]struct { // of the last problem, direct-mapped by the power of two
		blockK int
		depthTerms
	}
	timing timing
}

// areaTerms are the terms of a grid, of the block_m and block_n that they are of.
type areaTerms struct {
	blockM, blockN int
	gridM, gridN   int
	tileM, tileN   int // super group, before it is shrunk to fit the L2
	gridTerms
}

// prepared is a configuration before the sizes of the problem are known.
type prepared struct {
	kernelTerms
	reason arch.Reason // why it cannot be used, if that is so
	detail string
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	*e = evaluation{m: e.m, p: p, operands: kernel.OperandsOf(&p), sizes: sizes{
		m: float64(p.M), n: float64(p.N), k: float64(p.K), batch: float64(p.Batch),
	}}
}

// Key implements model.Preparer.
func (e *evaluation) Key() kernel.Operands { return e.operands }

// Prepare implements model.Preparer.
func (e *evaluation) Prepare(n *prepared, c *gemm.Config) {
	if n.reason, n.detail = arch.ReasonModelRule, "the reference model does not know split-K"; c.SplitK == 1 {
		n.reason, n.detail = e.m.family(c.Kernel).CheckTile(e.m.gpu, e.operands, c)
	}
	n.kernelTerms = kernelTerms{
		blockM: float64(c.BlockM), blockN: float64(c.BlockN), blockK: float64(c.BlockK),
		elementBytes: kernel.ElementBytes, outputBytes: kernel.ElementBytes,
	}
	n.compute(&e.m.device)
}

// Use implements model.Preparer. Against a kernel is also what a compiler's report says: it spills, or the report has
// all kernels that build and not this one. The report has no kernels with narrow accesses.
func (e *evaluation) Use(n *prepared, c *gemm.Config) arch.Reason {
	e.at, e.config, e.detail = n, c, n.detail
	if n.reason != "" || e.m.compiled == nil || e.operands.Narrow() ||
		c.Kernel != "" && c.Kernel != e.m.families[0].Name() {
		return n.reason
	}
	switch built, ok := e.m.compiled.Find(e.operands, c, e.p.K%c.BlockK != 0); {
	case !ok:
		e.detail = "the compiler's report has no such kernel"
		return arch.ReasonModelRule
	case built.SpillBytes > 0:
		e.detail = fmt.Sprintf("the compiler spills %d B of registers", built.SpillBytes)
		return arch.ReasonRegisters
	}
	return ""
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.Prepare(&e.one, c)
	return e.Use(&e.one, c)
}

// Detail implements model.Evaluation, for the configuration of the last Config.
func (e *evaluation) Detail(*gemm.Config, arch.Reason) string { return e.detail }

// compute fills the terms of the configuration. Terms that depend on fewer than all three tile dimensions are kept
// until one of these dimensions changes, so the order of the candidates is the fastest.
func (e *evaluation) compute() *depthTerms {
	c, d, k, a := e.config, &e.m.device, &e.at.kernelTerms, &e.area
	if a.blockM != c.BlockM || a.blockN != c.BlockN {
		a.blockM, a.blockN, a.gridM, a.gridN = c.BlockM, c.BlockN, cdiv(e.p.M, c.BlockM), cdiv(e.p.N, c.BlockN)
		a.tileM, a.tileN = e.m.superGroup(a.gridM, a.gridN, min(a.gridM*a.gridN*e.p.Batch, e.m.gpu.SMs))
		a.l2GroupM, a.l2GroupN = float64(a.tileM), float64(a.tileN)
		a.compute(&e.sizes, d, k)
	}
	n := &e.depths[bits.Len(uint(c.BlockK))%len(e.depths)]
	if n.blockK != c.BlockK {
		n.blockK = c.BlockK
		n.compute(&e.sizes, d, k)
	}
	tileM, tileN := e.m.shrink(a.tileM, a.tileN, c)
	e.timing.l2TileM, e.timing.l2TileN = float64(tileM), float64(tileN)
	launched := a.gridM * c.BlockM * a.gridN * c.BlockN * cdiv(e.p.K, c.BlockK) * c.BlockK
	e.timing.utilization = float64(e.p.M*e.p.N*e.p.K) / float64(launched)
	e.timing.compute(&e.sizes, d, k, &a.gridTerms, &n.depthTerms)
	return &n.depthTerms
}

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	e.compute()
	t, bound := &e.timing, arch.BoundLatency
	switch {
	case e.at.lCompute >= t.lMem:
		bound = arch.BoundCompute
	case t.lL2 >= t.lDram:
		bound = arch.BoundL2
	case t.loadDram/e.area.limitedDramBw >= e.m.device.hbmLatencyPenalty:
		bound = arch.BoundDRAM
	}
	return arch.Estimate{Cycles: unit.Cycles(t.lTotal), Bound: bound}
}

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	n := e.compute()
	columns(dst, &e.sizes, &e.m.device, &e.at.kernelTerms, &e.area.gridTerms, n, &e.timing)
}

// superGroup returns the block of output tiles that the active SMs are assumed to share: groupM columns wide and as
// high as necessary. If that exceeds the height of the grid, it continues in further columns. It is clamped to the
// grid.
func (m *Model) superGroup(gridM, gridN, active int) (tileM, tileN int) {
	tileN = min(m.groupM, gridN)
	tileM = cdiv(active, tileN)
	if tileM > gridM {
		tileN += tileM / gridM * m.groupM
		tileM = gridM
	}
	return tileM, min(tileN, gridN)
}

// shrink shrinks the super group, the longer side first, until one K step of it fits the L2.
func (m *Model) shrink(tileM, tileN int, c *gemm.Config) (int, int) {
	for (tileM*c.BlockM+c.BlockN*tileN)*c.BlockK*kernel.ElementBytes > m.l2Bytes && tileM*tileN > 1 {
		if tileM >= tileN {
			tileM--
		} else {
			tileN--
		}
	}
	return tileM, tileN
}

func cdiv(a, b int) int { return (a + b - 1) / b }
