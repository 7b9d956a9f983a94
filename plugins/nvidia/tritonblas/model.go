// Package tritonblas is the analytical model of tritonBLAS's NVIDIA port: two memory levels, one CTA per SM, whole
// waves. docs/model-tritonblas.md gives the equations. The model is bit-exact against testdata/golden and never
// tuned.
package tritonblas

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/tabled"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// Name is the name of the model in requests and descriptions.
const Name = "tritonblas"

// The empirical constants. tritonBLAS's NVIDIA port takes them unchanged from AMD Origami (Appendix C.4 of its report).
const (
	prologueFactor    = 1.5           // a pipeline fill takes 1.5 memory latencies
	epilogueCount     = 2             // the epilogue counts twice
	occupancyDiscount = 0.95          // on prologue and epilogue, at the constant occupancy of 1
	loopOverhead      = 500           // cycles per K iteration
	kPaddingPenalty   = 50000         // cycles, times (K mod block_k) / K
	setupCycles       = 1             // launch of a CTA
	lineBytes         = gpu.LineBytes // loads are rounded up to cache lines; an SM loads at least one
	l2HitCap          = 0.5           // if one K step of the padded grid exceeds the L2
)

// Model is the model on one device.
//
// Every product that feeds an addition is wrapped in a conversion, so that Go does not fuse the two. Results then have
// the same bits on every platform.
type Model struct {
	tabled.Model
	device   *gpu.Device
	families []Family
	compiled kernel.Table // of the first family's kernels; nil knows none
	formulas *tabled.Formulas

	numSMs      int
	groupM      int     // launch-order group that phase one assumes: ⌈√num_sms⌉
	mmaCycles   float64 // mma_latency ÷ tensor_cores_per_sm
	l2, dram    arch.Level
	l2Bytes     int     // capacity of l2
	dramLatency float64 // cycles
}

// Family is a kernel family for this model, which distinguishes tiles but not warps and stages.
type Family interface {
	Name() string
	Axes() []gemm.Axis
	Types() []gemm.Types
	Pastes() []string
	// TileSpace returns the axes of the candidate list.
	TileSpace() arch.Space
	// SortLaunches orders the configurations of each tile, which are adjacent, with the most suitable warps and stages
	// first.
	SortLaunches(d *gpu.Device, o kernel.Operands, configs []gemm.Config)
	// CheckTile returns the reason why a configuration is rejected, or an empty reason, and the reason in numbers.
	CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (reason arch.Reason, detail string)
	// RejectTiles sets the reason of CheckTile in dst for every configuration that is rejected: one call for a list,
	// because a call through the interface costs as much as the rest of an estimate.
	RejectTiles(d *gpu.Device, o kernel.Operands, dst []arch.Estimate, configs []gemm.Config)
}

// New returns the model for a device. The first family is the default. With a compiler's report on its kernels the
// model leaves those out that spill registers or do not build, as the report on tritonBLAS's port recommends. Its
// cycles stay the same.
func New(d *gpu.Device, families []Family, compiled kernel.Table) *Model {
	r := &Model{
		device: d, families: families, compiled: compiled, numSMs: d.SMs,
		mmaCycles: d.Params.Get("mma_latency") / d.Params.Get("tensor_cores_per_sm"),
		l2:        arch.LevelOf(d.Memory, arch.BoundL2), dram: arch.LevelOf(d.Memory, arch.BoundDRAM),
	}
	r.Memory, r.l2Bytes, r.dramLatency = d.Memory, int(r.l2.Capacity), float64(r.dram.Latency)
	r.groupM = int(math.Ceil(math.Sqrt(float64(r.numSMs))))
	desc := &r.Description
	*desc = d.Description()
	desc.Model, desc.Kernels, desc.Families = Name, kernel.Names(families), kernel.Declared(families, takes)
	desc.Rung = arch.RungSpec
	if d.Calibrated() {
		desc.Rung = arch.RungCalibrated
	}
	if compiled != nil {
		desc.Rung = arch.RungCompiled
	}
	desc.Constants, desc.Terms = slices.Concat(constants, costs.Of(Name, d.SM.Generation)), terms
	desc.Unused = formula.Unused(d.Params, slices.Concat(formula.Of(terms), []string{"clock"}, gpu.Limits))
	// On the H200 its totals are off from measured times by 144 % at the median.
	desc.RanksOnly = true
	desc.Order = arch.Order{Keys: []arch.Key{arch.KeyIntensity}}
	r.formulas = tabled.NewFormulas(&r.Model, inputs...)
	return r
}

// takes reports whether the model has the cost of these types. Its compute term is the latency of the 16-bit mma.sync
// m16n8k16, and its epilogue writes 16-bit results.
func takes(t gemm.Types) bool { return t.In.Bits() == 16 && t.Out == t.In }

// family returns the family of a configuration. It fails if the family is unknown or if a number of the configuration
// is out of range.
func (r *Model) family(c *gemm.Config) (Family, error) {
	f, err := kernel.Find(&r.Description, r.families, c.Kernel)
	if err != nil {
		return nil, err
	}
	return f, c.Validate(f.Axes()...)
}

// Candidates implements arch.Architecture. The most suitable warps and stages of each tile are first, because the model
// ignores them and a space may vary them.
func (r *Model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := r.Supports(&p, gemm.Config{Kernel: s.Kernel}); err != nil {
		return nil, err
	}
	f, err := kernel.Find(&r.Description, r.families, s.Kernel)
	if err != nil {
		return nil, err
	}
	all, err := s.Enumerate(f.TileSpace(), f.Axes()...)
	if err != nil {
		return nil, err
	}
	operands := kernel.OperandsOf(&p)
	f.SortLaunches(r.device, operands, all)
	out := &arch.Candidates{}
	for position, c := range all {
		if reason, detail := r.check(f, operands, &p, &c); reason == "" {
			out.Configs = append(out.Configs, c)
		} else {
			out.Rejected = append(out.Rejected, arch.Rejection{
				Config: c, Position: position, Reason: reason, Detail: detail,
			})
		}
	}
	return out, nil
}

// check returns the reason why a configuration is rejected, or an empty reason, and the reason in numbers.
func (r *Model) check(f Family, o kernel.Operands, p *gemm.Problem, c *gemm.Config) (arch.Reason, string) {
	if c.SplitK != 1 {
		return arch.ReasonModelRule, "the reference model does not know split-K"
	}
	if reason, detail := f.CheckTile(r.device, o, c); reason != "" {
		return reason, detail
	}
	return r.refuse(f, o, p, c)
}

// refuse returns the reason that a compiler's report gives against a kernel: it spills, or the report has all kernels
// that build and not this one. The report has no kernels with narrow accesses.
func (r *Model) refuse(f Family, o kernel.Operands, p *gemm.Problem, c *gemm.Config) (arch.Reason, string) {
	if r.compiled == nil || f.Name() != r.families[0].Name() || o.Narrow() {
		return "", ""
	}
	switch built, ok := r.compiled.Find(o, c, p.K%c.BlockK != 0); {
	case !ok:
		return arch.ReasonModelRule, "the compiler's report has no such kernel"
	case built.SpillBytes > 0:
		return arch.ReasonRegisters, fmt.Sprintf("the compiler spills %d B of registers", built.SpillBytes)
	}
	return "", ""
}

// Terms implements arch.Architecture.
func (r *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := r.Fits(len(dst), len(cfgs)*len(terms)); err != nil {
		return err
	}
	for i := range cfgs {
		c := &cfgs[i]
		if _, err := r.family(c); err != nil {
			return err
		}
		if err := r.Supports(&p, *c); err != nil {
			return err
		}
		var a areaPart
		var d depthPart
		r.area(&a, &p, c.BlockM, c.BlockN)
		d.set(&p, c.BlockK)
		tileM, tileN := r.shrink(a.tileM, a.tileN, c)
		r.formulas.Row(dst[i*len(terms):][:len(terms)], p, c, float64(a.tileM), float64(a.tileN), float64(tileM),
			float64(tileN), float64(p.M*p.N*p.K)/float64(a.launched*d.launched))
	}
	return nil
}

func cdiv(a, b int) int { return (a + b - 1) / b }
