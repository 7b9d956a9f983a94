// Package fusedmoe is the model of the Triton kernels with which vLLM and SGLang multiply the rows of each expert of a
// layer by its weights, and of those with a scale per block of a weight, for experts and for one matrix. Their loop is
// that of the kernel family triton: the model takes its time from there, and has terms for what differs, and for the
// kernels around both products of a layer.
package fusedmoe

import (
	"bytes"
	"context"
	_ "embed" // the intervals
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/fusedmoe/terms"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Family is the kernel family of experts, and the model's name in requests and descriptions. Blocks is the family with
// scales per block.
const (
	Family = "fused_moe"
	Blocks = "block_fp8"
)

// ScaleBlock is how many elements have a scale in common along K and N, where they have one per block.
const ScaleBlock = 128

// axes are what configurations have beyond the numbers of every configuration.
var axes = []gemm.Axis{{Name: "top_k", Type: gemm.Integer, Default: "0",
	Doc: "experts of a token, in the first product of a layer, whose time then has the layer's other kernels: sorting " +
		"the rows by expert, the gated activation, and the sum over a token's experts; 0 in the second product"},
	{Name: "swap_ab", Type: gemm.Enumeration, Values: []string{"on", "off"}, Default: "on",
		Doc: "on: on Hopper, experts in fp8 are computed as (B·Aᵀ)ᵀ where BLOCK_M < 64 and BLOCK_N ≥ 64, as by " +
			"vLLM 0.33.0 and SGLang 0.5.23; off: as by older ones"}}

// spaceOf has the configurations among which vLLM's tuner searches on NVIDIA (benchmarks/kernels/benchmark_moe.py).
// With scales per block, a step along K has one of them, and narrow tiles are there too, which that tuner leaves out
// and the kernel takes.
func spaceOf(kernel string) arch.Space {
	s := arch.Space{Kernel: kernel, BlockM: []int{16, 32, 64, 128, 256}, BlockN: []int{32, 64, 128, 256},
		BlockK: []int{64, 128, 256}, NumWarps: []int{4, 8}, NumStages: []int{2, 3, 4, 5}, SplitK: []int{1}}
	if kernel == Blocks {
		s.BlockK = []int{64, ScaleBlock}
	}
	return s
}

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	product arch.Architecture // with the family triton, in the timing model
	gpu     *gpu.Device
	device  device
	total   int // the place of the product's total among its terms
}

// New opens the model for a device, with kernel families of the model, over a model of the family triton.
func New(g *gpu.Device, product arch.Architecture, families ...string) (*Model, error) {
	return newModel(g, stopwatch.In(product, stopwatch.Model), families, nil)
}

func newModel(g *gpu.Device, product arch.Architecture, families []string, values map[string]float64) (*Model, error) {
	own, err := constants(g, values)
	if err != nil {
		return nil, err
	}
	m := &Model{product: product, gpu: g}
	m.Description, m.Memory, m.AnyAccess, m.Exact = *product.Describe(), product.Hierarchy().Levels(), true, true
	m.Space = func(kernel string, _ gemm.DType) arch.Space { return spaceOf(kernel) }
	m.New = func() model.Evaluation { return &evaluation{model: m} }
	d, schema := &m.Description, model.Schema(terms.Terms, terms.Page)
	numbers := model.Model{Memory: m.Memory, Description: arch.Description{Arch: d.Arch, Params: d.Params, Constants: own}}
	m.device.compute(numbers.Numbers())
	m.total = slices.IndexFunc(d.Terms, func(t arch.Term) bool { return t.Kind == arch.KindTotal })
	t := d.Terms[m.total]
	t.Name, t.Kind, t.Common, t.Doc = schema[0].Name, arch.KindIntermediate, "", schema[0].Doc
	d.Terms = slices.Concat(d.Terms[:m.total], d.Terms[m.total+1:], []arch.Term{t}, schema[1:])
	read := formula.Of(schema)
	d.Unused = slices.DeleteFunc(slices.Clone(d.Unused), func(name string) bool { return slices.Contains(read, name) })
	for i := range d.Params { // of the types that the families do not multiply; another one takes this rung away
		name := d.Params[i].Name
		if d.Rung != arch.RungCharacterized && strings.HasPrefix(name, "peak_") && !slices.Contains(peaks(g), name) &&
			!slices.Contains(d.Unused, name) {
			d.Unused = append(d.Unused, name)
		}
	}
	d.Model, d.Kernels, d.Families, d.Conversion = Family, families, nil, nil
	for _, name := range families {
		f := arch.Family{Name: name, Axes: axes, Groups: true, Doc: docs[name]}
		for _, t := range []gemm.DType{gemm.BF16, gemm.FP8} {
			p := gemm.New(1, 1, 1)
			if p.DType, p.Out = t, gemm.BF16; (name != Blocks || t == gemm.FP8) &&
				product.Describe().SupportsTypes("", &p) == nil {
				f.Types = append(f.Types, p.Types())
			}
		}
		d.Families = append(d.Families, f)
	}
	d.Constants = slices.Concat(d.Constants, own)
	d.Fitted = append(slices.Clone(d.Fitted), arch.Fitted{DataSet: terms.DataSet})
	d.Uncertainty = uncertaintyOf(d)
	return m, nil
}

// constants are the model's numbers on a device. What was fitted to its measurements replaces what is shipped, and
// values replace both, by name.
func constants(g *gpu.Device, values map[string]float64) ([]arch.Constant, error) {
	all := slices.Clone(terms.Constants)
	for i := range terms.Quantities {
		q := &terms.Quantities[i]
		all = append(all, q.Constant(q.On("", g.SM.Generation)))
	}
	if err := fit.Use(all, g.Sheet, Family); err != nil {
		return nil, err
	}
	model.Override(all, values)
	return all, nil
}

// peaks are the rates of the types that the families multiply, or convert them to.
func peaks(g *gpu.Device) (names []string) {
	for _, t := range []gemm.DType{gemm.BF16, gemm.FP8} {
		names = append(names, "peak_"+t.String(), "peak_"+g.SM.Multiplies(t).String())
	}
	return names
}

var docs = map[string]string{
	Family: "fused_moe of vLLM and SGLang: the rows of each expert by its weights",
	Blocks: "fp8 of vLLM and SGLang with a scale per 128 elements of a row of A and per 128x128 of B: fused_moe for " +
		"groups, w8a8_block_fp8 for one matrix",
}

// intervals.jsonl says how far published and measured times of layers are from the predicted ones, on shapes that were
// kept back from the fit: TestExpertTimes, TestMeasuredExperts and TestMeasuredBlocks find the same.
//
//go:embed intervals.jsonl
var intervals []byte

// uncertaintyOf returns what is known of a device's times: of the device, then of its architecture, then of all.
func uncertaintyOf(d *arch.Description) (list []arch.Uncertainty) {
	for _, of := range []string{d.ID(), d.Arch, ""} {
		for line := range bytes.Lines(intervals) {
			var one struct {
				Of          string
				Uncertainty arch.Uncertainty
			}
			if err := json.Unmarshal(line, &one); err != nil {
				panic(fmt.Sprintf("intervals.jsonl: %v", err)) // every test that opens the model reads it
			}
			if one.Uncertainty.Contain(); one.Of == of && slices.Contains(d.Kernels, one.Uncertainty.Kernel) {
				list = append(list, one.Uncertainty)
			}
		}
	}
	return list
}

// EstimateWith implements fit.Tunable.
func (m *Model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	with := func(v map[string]float64) (arch.Architecture, error) {
		return newModel(m.gpu, m.product, m.Description.Kernels, v)
	}
	return fit.EstimateEach(ctx, with, values, sample)
}

// plain returns the configuration that the product has.
func plain(c gemm.Config) gemm.Config {
	c.Kernel, c.Axes = "", gemm.Axes{}
	return c
}

// evaluation is the model at work on one problem.
type evaluation struct {
	model   *Model
	problem gemm.Problem
	config  gemm.Config
	blocks  bool
	product [1]arch.Estimate
	own     timing // the model's own terms
}

// Problem implements model.Evaluation.
func (e *evaluation) Problem(p gemm.Problem) {
	count, rows := p.Products()
	e.problem, e.own = p, timing{
		n: float64(p.N), k: float64(p.K), rows: rows, matrices: float64(count),
		elementBytes: float64(p.DType.Bits()) / 8, outputBytes: float64(p.Output().Bits()) / 8,
		experts: model.One(p.Groups != (gemm.Groups{})),
	}
}

// set moves to a configuration, and returns why its family has no such kernel.
func (e *evaluation) set(c *gemm.Config) (detail string) {
	kernel, _ := e.model.Description.Kernel(c.Kernel)
	e.config, e.blocks = *c, kernel == Blocks
	switch {
	case e.blocks && c.BlockK > ScaleBlock:
		return fmt.Sprintf("a K step of %d has several scales, and the kernel reads one per %d", c.BlockK, ScaleBlock)
	case !e.blocks && e.problem.Groups == (gemm.Groups{}):
		return "the kernels are for the rows of several experts: give groups"
	}
	return ""
}

// Config implements model.Evaluation.
func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	if e.set(c) != "" {
		return arch.ReasonModelRule
	}
	config := []gemm.Config{plain(*c)}
	if err := e.model.product.Estimate(context.Background(), e.product[:], e.problem, config); err != nil {
		return arch.ReasonModelRule
	}
	return e.product[0].Reject
}

// Detail implements model.Evaluation.
func (e *evaluation) Detail(c *gemm.Config, _ arch.Reason) string {
	if detail := e.set(c); detail != "" {
		return detail
	}
	list, err := e.model.product.Candidates(context.Background(), e.problem, arch.Space{BlockM: []int{c.BlockM},
		BlockN: []int{c.BlockN}, BlockK: []int{c.BlockK}, NumWarps: []int{c.NumWarps}, NumStages: []int{c.NumStages},
		SplitK: []int{c.SplitK}})
	if err != nil || len(list.Rejected) == 0 {
		return ""
	}
	return list.Rejected[0].Detail
}

// total computes the model's own terms for a product that takes so many cycles, and returns the last.
func (e *evaluation) total(product float64) float64 {
	c, t := &e.config, &e.own
	swap, _ := c.Axes.Get(axes[1].Name)
	t.product, t.topK, t.scaleBlock = product, float64(axes[0].Number(c.Axes)), model.One(e.blocks)*ScaleBlock
	t.swapAb = model.One(swap != "off")
	t.blockM, t.blockN, t.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	t.numWarps, t.numStages = float64(c.NumWarps), float64(c.NumStages)
	t.compute(&e.model.device)
	return t.total
}

// Estimate implements model.Evaluation.
func (e *evaluation) Estimate() arch.Estimate {
	return arch.Estimate{Cycles: unit.Cycles(e.total(float64(e.product[0].Cycles))), Bound: e.product[0].Bound}
}

// Row implements model.Evaluation: the terms of the product, and the model's own.
func (e *evaluation) Row(dst []float64) {
	n := len(dst) - len(terms.Terms) + 1
	product := e.model.total // behind the others in the model's own order: its formula has the conversion to the timing
	config := []gemm.Config{plain(e.config)}
	if e.model.product.Terms(context.Background(), dst[:n], e.problem, config) != nil {
		dst[product] = arch.RejectedTotal
	}
	total := dst[product]
	copy(dst[product:n], dst[product+1:n])
	e.total(total)
	if columns(dst[n-1:], &e.model.device, &e.own); total >= arch.RejectedTotal {
		dst[len(dst)-1] = arch.RejectedTotal
	}
}

// Estimate implements arch.Architecture: all products at once.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.Supports(&p, cfgs...); err != nil {
		return err
	}
	e, products := evaluation{model: m}, make([]gemm.Config, len(cfgs))
	e.Problem(p)
	for i := range cfgs {
		if i == 0 || cfgs[i].Kernel != cfgs[i-1].Kernel || cfgs[i].Axes != cfgs[i-1].Axes { // numbers are checked below
			if err := m.Check(&cfgs[i]); err != nil {
				return err
			}
		}
		products[i] = plain(cfgs[i])
	}
	if err := m.product.Estimate(ctx, dst, p, products); err != nil {
		return err
	}
	for i := range dst {
		if e.set(&cfgs[i]) != "" {
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
		} else if dst[i].Reject == "" {
			e.product[0] = dst[i]
			dst[i] = e.Estimate()
		}
	}
	return nil
}

// Mapping implements arch.Architecture.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	return m.product.Mapping(ctx, p, plain(c))
}
