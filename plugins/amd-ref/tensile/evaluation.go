package tensile

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// evaluation is the model at work on one problem, configuration by configuration.
type evaluation struct {
	m    *Model
	kind kind
	axes gemm.Axes // that in has
	in   inputs    // of the configuration of the last Config
	one  prepared
	at   *prepared
	s    sizes
	t    timing
}

// prepared is a configuration before the sizes of the problem are known.
type prepared struct {
	kernelTerms
	reason arch.Reason // why it cannot be used, if that is so
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	r := e.m.rates[p.DType.CostsLike()]
	e.kind = kind{p.Types(), p.AMajor, p.BMajor}
	e.in = inputs{
		elementBytes: float64(p.DType.Bytes()), outputBytes: float64(p.Output().Bytes()),
		transA: model.One(p.TransA()), transB: model.One(p.TransB()),
		rate: r.flops, energyScale: r.energy,
	}
	e.s = sizes{
		m: float64(p.M), n: float64(p.N), k: float64(p.K), batch: float64(p.Batch), release: e.m.today.level(&p),
	}
	e.s.compute(&e.m.device)
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.Prepare(&e.one, c)
	return e.Use(&e.one, c)
}

// Prepare implements model.Preparer.
func (e *evaluation) Prepare(n *prepared, c *gemm.Config) {
	if n.reason = e.set(c); n.reason == "" {
		n.compute(&e.in, &e.m.device)
		n.reason = e.m.cu.Fits(c, int(e.in.elementBytes), n.registers)
	}
}

// Use implements model.Preparer.
func (e *evaluation) Use(n *prepared, _ *gemm.Config) arch.Reason {
	if e.at = n; n.reason == "" {
		e.t.compute(&e.m.device, &e.s, &n.kernelTerms)
	}
	return n.reason
}

// kind is what a prepared configuration depends on.
type kind struct {
	types          gemm.Types
	aMajor, bMajor gemm.Major
}

// Key implements model.Preparer.
func (e *evaluation) Key() kind { return e.kind }

// Estimate implements arch.Architecture.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	return model.EstimateList(ctx, &m.Model, &m.lists, dst, p, cfgs)
}

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	return arch.Estimate{Cycles: unit.Cycles(e.t.total), Bound: e.bound()}
}

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	k := &e.one.kernelTerms
	k.compute(&e.in, &e.m.device)
	e.t.compute(&e.m.device, &e.s, k)
	columns(dst, &e.in, &e.m.device, &e.s, k, &e.t)
}

// set sets the inputs of a configuration, and returns why it cannot be used as far as these say.
func (e *evaluation) set(c *gemm.Config) arch.Reason {
	if c.Axes != e.axes || e.in.localSplit == 0 {
		e.axes = c.Axes
		e.in.streamK = float64(kernel.StreamK.Number(c.Axes))
		e.in.localSplit = float64(kernel.LocalSplit.Number(c.Axes))
	}
	in := &e.in
	layout, ok := e.m.cu.LayoutOf(c, int(in.localSplit))
	if !ok {
		layout = kernel.Layout{WavesM: 1, WavesN: 1, ThreadM: 1, ThreadN: 1}
	}
	in.blockM, in.blockN, in.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	in.numWarps, in.numStages = float64(c.NumWarps), float64(c.NumStages)
	in.splitK, in.groupM = float64(c.SplitK), float64(c.GroupM)
	in.wavesM, in.wavesN = float64(layout.WavesM), float64(layout.WavesN)
	in.threadM, in.threadN = float64(layout.ThreadM), float64(layout.ThreadN)
	switch {
	case !ok:
		return arch.ReasonWarps
	case e.m.cu.Missing(c, int(in.elementBytes), in.streamK > 0, in.localSplit > 1) != "":
		return arch.ReasonModelRule
	}
	return e.m.cu.Fits(c, int(in.elementBytes), 0)
}

// Detail implements model.Evaluation, for the configuration of the last Config.
func (e *evaluation) Detail(c *gemm.Config, reason arch.Reason) string {
	switch reason {
	case arch.ReasonWarps:
		return fmt.Sprintf("%d waves cannot share a tile of %dx%d", c.NumWarps, c.BlockM, c.BlockN)
	case arch.ReasonSharedMemory:
		return fmt.Sprintf("needs %d B of LDS, %d B available", kernel.LDS(c, int(e.in.elementBytes)), e.m.cu.LDS)
	case arch.ReasonRegisters:
		return fmt.Sprintf("needs %.0f registers per lane, %d available", e.one.registers, e.m.cu.RegistersPerThread)
	default:
		return e.m.cu.Missing(c, int(e.in.elementBytes), e.in.streamK > 0, e.in.localSplit > 1)
	}
}

// busyEnough is the share of the total from which on a resource limits a kernel.
const busyEnough = 0.5

// bound is the resource that is busy for most of the time.
func (e *evaluation) bound() arch.Bound {
	t, k := &e.t, e.at
	full, tail := t.steps*t.fullWaves, t.steps
	compute := full*max(k.workgroupsPerCu*k.matrixStep, k.fullPowerStep) +
		tail*max(t.tailCount*k.matrixStep, t.tailPowerStep)
	l2 := full*k.fullL2Step + tail*t.tailL2Step
	most := max(compute, l2, t.far, t.dramFloor)
	switch {
	case most < busyEnough*t.total/e.s.release:
		return arch.BoundLatency
	case most == compute:
		return arch.BoundCompute
	case most == l2:
		return arch.BoundL2
	case most == t.far && e.m.generation.MALLRate > 0:
		return arch.BoundMALL
	default:
		return arch.BoundDRAM
	}
}
