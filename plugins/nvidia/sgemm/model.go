// Package sgemm is the model of the kernel family sgemm: kernels that multiply fp32 with FMA instructions,
// from one thread per element of C to register tiles, and one with tensor cores. What such kernels wait for is not what
// pipelined matrix kernels do, so the model has its own table of terms: issue of loads and stores, passes through
// shared memory with their bank conflicts, cache lines, FMA, issue slots, barriers, latencies, and the traffic of L2
// and DRAM. All counts come from the addresses and instructions of a kernel's loop. No kernel is a special case.
//
// The equations are the table in package terms, which is also what `origami explain` shows. docs/ladder.md says where
// the numbers come from and what they were checked on.
package sgemm

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	stated "github.com/origami-gemm/origami/plugins/costs"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm/terms"
)

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	gpu    *gpu.Device
	device device
	lists  model.Lists[kernel.Operands, []counted]
}

// counted is a configuration with the counts of its kernel.
type counted struct {
	*counts
	terms kernelTerms
}

// of moves to a configuration whose kernel has these counts, with the inputs that the configuration has by itself.
func (n *counted) of(d *device, c *gemm.Config, counts *counts) (in inputs) {
	n.counts, in = counts, counts.inputs
	in.blockM, in.blockN, in.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	in.numWarps, in.groupM, in.splitK = float64(c.NumWarps), float64(c.GroupM), float64(max(c.SplitK, 1))
	n.terms.compute(&in, d)
	return in
}

// Family is the kernel family that the model predicts, and the model's name in requests and descriptions.
var Family = family.Family{}.Name()

// DataSet is what the constants were fitted to, on one device for all.
const DataSet = "sweeps/sgemm/sgemm-fit"

// Needs are the parameters that the model cannot do without.
func Needs() []string { return slices.Concat(terms.Parameters, gpu.Limits) }

// New opens the model for a device.
func New(g *gpu.Device) *Model {
	m := &Model{gpu: g}
	m.Description, m.AnyAccess, m.Exact = g.Description(), true, true
	m.Space = func(string, gemm.DType) arch.Space { return family.Family{}.Space() }
	m.New, m.Share = func() model.Evaluation { return &evaluation{model: m} }, m.lists.Share
	d := &m.Description
	d.Model, d.Kernels, d.Rung = Family, []string{Family}, arch.RungSpec
	d.Timing = string(stopwatch.Events) // of the measured ladder
	if g.BandwidthsMeasured() {
		d.Rung = arch.RungCalibrated
	}
	d.Families = kernel.Describe([]family.Family{{}}, func(gemm.Types) bool { return true })
	d.Families[0].Doc = "fp32 with FMA instructions: the kernels of the public SGEMM ladders"
	d.Terms = model.Schema(terms.Terms, "")
	d.Constants = append(terms.Constants(g), stated.Of(Family, g.SM.Generation)...)
	d.Unused = formula.Unused(g.Params, append(Needs(), "l2_latency"))
	m.Memory = g.Memory
	m.device.compute(m.Numbers())
	return m
}

// evaluation is the model at work on one problem.
type evaluation struct {
	model    *Model
	asked    gemm.Problem
	operands kernel.Operands
	apart    [2]int
	in       inputs
	one      counted
	kernel   gemm.Config // that the counts of one are of, for the operands
	at       *counted
	detail   string
	p        problem
	t        timing
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	e.asked, e.apart = p, apartOf(&p)
	if o := kernel.OperandsOf(&p).WithWidths(family.Family{}, &p); o != e.operands {
		e.operands, e.one.counts = o, nil
	}
	count, rows := p.Products()
	e.p = problem{m: rows, n: float64(p.N), k: float64(p.K), batch: float64(count),
		outputBytes: float64(p.Output().Bits()) / 8}
	e.p.compute(&e.model.device)
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.prepare(c)
	return e.Use(&e.one, c)
}

func (e *evaluation) prepare(c *gemm.Config) {
	if k := kernelOf(c); e.one.counts == nil || k != e.kernel {
		e.one.counts, e.kernel = e.model.count(e.operands, k), k
	}
	e.in = e.one.of(&e.model.device, c, e.one.counts)
}

// Key implements model.Preparer.
func (e *evaluation) Key() kernel.Operands { return e.operands }

// Prepare implements model.Preparer.
func (e *evaluation) Prepare(n *counted, c *gemm.Config) {
	e.prepare(c)
	*n = e.one
}

// Use implements model.Preparer.
func (e *evaluation) Use(n *counted, c *gemm.Config) arch.Reason {
	e.at, e.detail, e.t.l1Passes = n, n.detail, n.passes(&e.apart)
	if n.multiplications > 0 { // with tensor cores, which not every problem of these operands can use
		if _, e.detail = generator.Guard(&e.asked, *c); e.detail != "" {
			return generator.ReasonGuard
		}
	}
	return n.reason
}

// Detail implements model.Evaluation, for the configuration of the last Config.
func (e *evaluation) Detail(*gemm.Config, arch.Reason) string { return e.detail }

// Estimate implements model.Evaluation. The bound is the resource that a K step needs longest.
func (e *evaluation) Estimate() arch.Estimate {
	t, k := &e.t, &e.at.terms
	t.compute(&e.model.device, &e.p, k)
	out := arch.Estimate{Cycles: unit.Cycles(t.total), Bound: arch.BoundCompute}
	most := k.fmaStep + k.tensorStep
	for _, other := range [...]struct {
		bound arch.Bound
		step  float64
	}{
		{arch.BoundIssue, max(k.loadIssueStep, k.issueStep)}, {arch.BoundSharedMemory, e.at.sharedWavefronts},
		{arch.BoundL1, t.l1Passes}, {arch.BoundL2, t.l2Step}, {arch.BoundDRAM, t.dramStep},
		{arch.BoundLatency, t.waitingStep},
	} {
		if other.step > most {
			out.Bound, most = other.bound, other.step
		}
	}
	return out
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	return model.EstimateList(ctx, &m.Model, &m.lists, dst, p, cfgs)
}

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) {
	e.Estimate()
	columns(dst, &e.in, &e.model.device, &e.p, &e.at.terms, &e.t)
	for i, v := range dst {
		if math.IsNaN(v) || math.IsInf(v, 0) { // of a configuration that is no kernel
			dst[i] = arch.RejectedTotal
		}
	}
}

// groups are the launch orders that Mapping tries.
var groups = [...]int{1, 2, 4, 8, 16}

// groupGain is how much faster another order has to be than the one before.
const groupGain = 0.02

// Mapping implements arch.Architecture.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil { // the group that c came with counts too
		return arch.Mapping{}, err
	}
	e := evaluation{model: m}
	e.Problem(p)
	best, least := groups[0], math.Inf(1)
	for _, group := range groups {
		if c.GroupM = group; e.Config(&c) != "" {
			break
		}
		if v := float64(e.Estimate().Cycles); v < least*(1-groupGain) {
			best, least = group, v
		}
	}
	return arch.Mapping{GroupM: best}, nil
}
