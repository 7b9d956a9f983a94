// Package triton predicts the time of Triton's matmul kernels on CDNA 3 and 4: the tutorial's, and those with which
// vLLM and SGLang multiply experts and fp8 with scales per block. The equations are in package terms.
package triton

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	amd "github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/plugins/amd-ref/triton/terms"
	"github.com/origami-gemm/origami/plugins/costs"
	"github.com/origami-gemm/origami/plugins/library/checked"
)

// Name is the model's name in requests and descriptions.
const Name = "triton"

// Kernels are its kernel families, the default first.
var Kernels = []string{Family, Experts, Blocks}

// Needs are the parameters that the model cannot do without.
var Needs = []string{"num_cus", "num_xcds", "lds_bytes", "l2_bytes", "mall_bytes", "registers_per_cu",
	"registers_per_thread", "clock", "dram_bandwidth", "peak_fp16", "peak_bf16", "peak_fp8", "peak_int8"}

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	sheet  *hw.Sheet
	params hw.Set
	cdna4  bool // kpack has no effect
	device device
}

// New returns the model on a device of CDNA 3 or 4.
func New(sheet *hw.Sheet, params hw.Set) (*Model, error) { return newModel(sheet, params, nil) }

func newModel(sheet *hw.Sheet, params hw.Set, values map[string]float64) (*Model, error) {
	m := &Model{sheet: sheet, params: params, cdna4: sheet.Arch == "gfx950"}
	d := &m.Description
	*d = amd.Description(sheet, params)
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, Kernels, arch.RungSpec, arch.RungSpec
	d.Families, d.Timing = families, string(stopwatch.Model)
	d.Terms = model.Schema(terms.Terms, terms.Page)
	d.Constants = slices.Clone(terms.Constants)
	for i := range terms.Quantities {
		q := &terms.Quantities[i]
		d.Constants = append(d.Constants, q.Constant(q.On(arch.RungSpec, sheet.Arch)))
	}
	d.Constants = append(d.Constants, costs.Of(Name, sheet.Arch)...)
	if err := fit.Use(d.Constants, sheet, Name); err != nil {
		return nil, err
	}
	model.Override(d.Constants, values)
	d.Fitted = []arch.Fitted{{DataSet: terms.DataSet}}
	for _, kernel := range Kernels {
		for _, u := range checked.Unchecked(kernel, d.Vendor) {
			u.Source = "published times of libraries on devices that nobody had compared; not checked on hardware: no times " +
				"of these kernels are published, and tiles rest on tables that servers ship for an MI300X"
			d.Uncertainty = append(d.Uncertainty, u)
		}
	}
	d.Unused = formula.Unused(params, append(formula.Of(d.Terms), "clock", "num_cus", "peak_fp16", "peak_bf16", "peak_fp8",
		"peak_int8"))
	m.Memory, m.Exact = amd.Memory(params), true // experts have groups
	m.Space = func(kernel string, _ gemm.DType) arch.Space { return spaceOf(kernel, m.cdna4) }
	m.New = func() model.Evaluation { return &evaluation{model: m} }
	value := m.Numbers()
	m.device.compute(value)
	xcds := value("num_xcds")
	m.Reach(arch.BoundL2, value("l2_rate")*xcds*value("l2_share"))
	m.Reach(arch.BoundMALL, value("mall_rate")*xcds*value("mall_share"))
	m.Reach(arch.BoundDRAM, value("dram_bandwidth")/value("clock")*value("dram_share"))
	return m, nil
}

// EstimateWith implements fit.Tunable.
func (m *Model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	with := func(v map[string]float64) (arch.Architecture, error) { return newModel(m.sheet, m.params, v) }
	return fit.EstimateEach(ctx, with, values, sample)
}

// groups are the values of GROUP_SIZE_M that phase two tries: those of vLLM's tuner.
var groups = []int{1, 4, 16, 32}

// Mapping implements arch.Architecture: the default group, or the one with the shortest time.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	e := evaluation{model: m}
	e.Problem(p)
	best := model.Group(terms.DefaultGroup, groups, func(group int) float64 {
		c.GroupM = group
		e.Config(&c)
		return e.t.total
	})
	return arch.Mapping{GroupM: best}, nil
}

// evaluation is the model at work on one problem.
type evaluation struct {
	model   *Model
	problem gemm.Problem
	t       timing
	// The axes of the last configuration, once there is one, and their values. side is 0 for Triton's choice.
	axes              gemm.Axes
	read              bool
	side              int
	waves, topK, pack float64
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	count, rows := p.Products()
	params := e.model.params
	e.problem, e.t = p, timing{
		n: float64(p.N), k: float64(p.K), rows: rows, matrices: float64(count),
		elementBytes: float64(p.DType.Bytes()), outputBytes: float64(p.Output().Bytes()),
		transA: model.One(p.TransA()), transB: model.One(p.TransB()),
		rate: params.Get("peak_"+p.DType.String()) / (params.Get("num_cus") * params.Get("clock")),
	}
}

// move sets the terms of a configuration, and returns why Triton has no such kernel.
func (e *evaluation) move(c *gemm.Config) (reason arch.Reason, detail string) {
	if !e.read || c.Axes != e.axes {
		e.axes, e.read, e.side = c.Axes, true, instruction.Number(c.Axes)
		e.waves, e.topK = float64(wavesPerEU.Number(c.Axes)), float64(topK.Number(c.Axes))
		if e.pack = float64(kpack.Number(c.Axes)); e.model.cdna4 {
			e.pack = 2
		}
	}
	family, _ := e.model.Description.Kernel(c.Kernel)
	side := cmp.Or(e.side, chosen(c))
	if reason, detail = missing(family, c, e.problem.DType.Bytes(), side); reason != "" {
		return reason, detail
	}
	if family == Experts && e.problem.Groups == (gemm.Groups{}) {
		return arch.ReasonModelRule, "the kernels are for the rows of several experts: give groups"
	}
	t := &e.t
	m, n := wavesOf(c, side)
	t.instruction, t.wavesM, t.wavesN = float64(side), float64(m), float64(n)
	t.kpack, t.wavesPerEu, t.topK = e.pack, e.waves, e.topK
	t.scaleBlock = model.One(family == Blocks) * scaleBlock
	t.tilesM = float64(e.problem.TilesM(c.BlockM))
	t.blockM, t.blockN, t.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	t.numWarps, t.numStages, t.groupM = float64(c.NumWarps), float64(c.NumStages), float64(c.GroupM)
	t.compute(&e.model.device)
	d := &e.model.Description
	if need := t.buffers * t.tileBytes; need > float64(d.SharedMemory) {
		return arch.ReasonSharedMemory, fmt.Sprintf("needs %.0f B of LDS, %.0f B available", need, float64(d.SharedMemory))
	}
	if t.registers > float64(d.RegistersPerThread) {
		return arch.ReasonRegisters, fmt.Sprintf("needs %.0f registers per lane, %d available", t.registers,
			d.RegistersPerThread)
	}
	return "", ""
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	reason, _ := e.move(c)
	return reason
}

// Detail implements model.Evaluation.
func (e *evaluation) Detail(c *gemm.Config, _ arch.Reason) string {
	_, detail := e.move(c)
	return detail
}

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	return arch.Estimate{Cycles: unit.Cycles(e.t.total), Bound: e.bound()}
}

// busyEnough is the share of the total from which on a resource limits a kernel.
const busyEnough = 0.5

// bound is the resource that is busy for most of the time.
func (e *evaluation) bound() arch.Bound {
	t := &e.t
	simds := max(1, t.fullWaves*t.workgroupsPerCu+t.tailCount*model.One(t.rest > 0)) * max(1, t.numWarps/simdsOfCU)
	compute := t.steps * simds * (t.matrixStep + t.scaleStep)
	far := t.l2Misses / e.model.device.farRate
	switch most := max(compute, far, t.dram); {
	case most < busyEnough*t.total:
		return arch.BoundLatency
	case most == compute:
		return arch.BoundCompute
	case most == t.dram:
		return arch.BoundDRAM
	default:
		return arch.BoundMALL
	}
}

// simdsOfCU is the constant simds.
const simdsOfCU = 4

// Row implements model.Evaluation.
func (e *evaluation) Row(dst []float64) { columns(dst, &e.model.device, &e.t) }
