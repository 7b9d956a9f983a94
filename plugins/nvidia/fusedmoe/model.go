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

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/tabled"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
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
	Doc: "experts of a token, in the first product of a layer, whose time then has the layer's other kernels: sorting the " +
		"rows by expert, the gated activation, and the sum over a token's experts; 0 in the second product"}}

// spaces are the configurations among which vLLM's tuner searches on NVIDIA (benchmarks/kernels/benchmark_moe.py). With
// scales per block, a step along K has one of them, and narrow tiles are there too, which that tuner leaves out and the
// kernel takes.
func spaceOf(kernel string) arch.Space {
	s := arch.Space{Kernel: kernel, BlockM: []int{16, 32, 64, 128, 256}, BlockN: []int{32, 64, 128, 256},
		BlockK: []int{64, 128, 256}, NumWarps: []int{4, 8}, NumStages: []int{2, 3, 4, 5}, SplitK: []int{1}}
	if kernel == Blocks {
		s.BlockK = []int{64, ScaleBlock}
	}
	return s
}

// Model is the model on one device.
type Model struct {
	product     arch.Architecture // with the family triton, in the timing model
	gpu         *gpu.Device
	description arch.Description
	formulas    *tabled.Formulas
	total       int // the place of the product's total among its terms
}

// New opens the model for a device, with kernel families of the model, over a model of the family triton.
func New(g *gpu.Device, product arch.Architecture, families ...string) (*Model, error) {
	return newModel(g, timing.In(product, timing.Model), families, nil)
}

func newModel(g *gpu.Device, product arch.Architecture, families []string, values map[string]float64) (*Model, error) {
	own, err := constants(g, values)
	if err != nil {
		return nil, err
	}
	m := &Model{product: product, gpu: g, description: *product.Describe()}
	d, schema := &m.description, tabled.Schema(Terms, page)
	m.formulas = tabled.NewFormulas(&arch.Description{Model: Family, Arch: d.Arch, Params: d.Params, Constants: own,
		Terms: schema}, inputs...)
	d.Terms = slices.Concat(d.Terms, schema[1:])
	m.total = slices.IndexFunc(d.Terms, func(t arch.Term) bool { return t.Kind == arch.KindTotal })
	t := &d.Terms[m.total]
	t.Name, t.Kind, t.Common, t.Doc = inputs[0], arch.KindIntermediate, "", schema[0].Doc
	read := formula.Of(schema)
	d.Unused = slices.DeleteFunc(slices.Clone(d.Unused), func(name string) bool { return slices.Contains(read, name) })
	d.Model, d.Kernels, d.Families, d.Conversion = Family, families, nil, nil
	for _, name := range families {
		f := arch.Family{Name: name, Axes: axes, Groups: true,
			Doc: "fused_moe of vLLM and SGLang: the rows of each expert by its weights"}
		types := gemm.Types{In: gemm.BF16, Out: gemm.BF16}
		if name == Blocks {
			types.In = gemm.FP8
			f.Doc = fmt.Sprintf("fp8 of vLLM and SGLang with a scale per %d elements of a row of A and per %dx%d of B: "+
				"fused_moe for groups, w8a8_block_fp8 for one matrix", ScaleBlock, ScaleBlock, ScaleBlock)
		}
		for _, in := range []gemm.DType{types.In, gemm.FP8} {
			p := gemm.New(1, 1, 1)
			p.DType, p.Out = in, types.Out
			if product.Describe().SupportsTypes(triton.Family{}.Name(), &p) == nil && !slices.Contains(f.Types, p.Types()) {
				f.Types = append(f.Types, p.Types())
			}
		}
		d.Families = append(d.Families, f)
	}
	d.Constants = slices.Concat(d.Constants, own)
	d.Fitted = append(slices.Clone(d.Fitted), arch.Fitted{DataSet: DataSet})
	d.Uncertainty = uncertaintyOf(d)
	return m, nil
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
				Uncertainty arch.UncertaintyRecord
			}
			err := json.Unmarshal(line, &one)
			u, wrong := one.Uncertainty.Uncertainty()
			if err != nil || wrong != nil {
				panic(fmt.Sprintf("intervals.jsonl: %v, %v", err, wrong)) // every test that opens the model reads it
			}
			if one.Of == of && slices.Contains(d.Kernels, u.Kernel) {
				list = append(list, u)
			}
		}
	}
	return list
}

// Describe implements arch.Architecture.
func (m *Model) Describe() *arch.Description { return &m.description }

// Hierarchy implements arch.Architecture.
func (m *Model) Hierarchy() arch.MemoryHierarchy { return m.product.Hierarchy() }

// EstimateWith implements fit.Tunable.
func (m *Model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	with := func(v map[string]float64) (arch.Architecture, error) {
		return newModel(m.gpu, m.product, m.description.Kernels, v)
	}
	return fit.EstimateEach(ctx, with, values, sample)
}

// plain checks configurations for a problem, and returns those of the family triton.
func (m *Model) plain(p *gemm.Problem, cfgs []gemm.Config) ([]gemm.Config, error) {
	out := slices.Clone(cfgs)
	for i := range out {
		c := &out[i]
		if i == 0 || c.Kernel != cfgs[i-1].Kernel {
			if err := m.supports(p, c.Kernel); err != nil {
				return nil, err
			}
		}
		if err := m.description.CheckConfig(c); err != nil {
			return nil, err
		}
		c.Kernel, c.Axes = triton.Family{}.Name(), gemm.Axes{}
	}
	return out, nil
}

// supports reports a problem that kernels of a family do not solve.
func (m *Model) supports(p *gemm.Problem, name string) error {
	kernel, err := m.description.Kernel(name)
	if err == nil {
		err = m.description.SupportsTypes(kernel, p)
	}
	if err == nil && kernel == Family && p.Groups == (gemm.Groups{}) {
		err = diag.Inputf("%s kernels are for groups of rows, and %s has none", Family, *p).
			Do("give the rows of each expert, as in --groups 120,33,0,512")
	}
	return err
}

// reject returns why a family has no kernel of a configuration, beside what the family triton has against it.
func (m *Model) reject(c *gemm.Config) (reason arch.Reason, detail string) {
	if kernel, _ := m.description.Kernel(c.Kernel); kernel != Blocks || c.BlockK <= ScaleBlock {
		return "", ""
	}
	return arch.ReasonModelRule, fmt.Sprintf("a K step of %d has several scales, and the kernel reads one per %d", c.BlockK,
		ScaleBlock)
}

// Candidates implements arch.Architecture.
func (m *Model) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	kernel, err := m.description.Kernel(s.Kernel)
	if err != nil {
		return nil, err
	}
	if err := m.supports(&p, kernel); err != nil {
		return nil, err
	}
	defaults := spaceOf(kernel)
	all, err := s.Enumerate(defaults, axes...)
	if err != nil {
		return nil, err
	}
	s.Kernel, s.Axes = triton.Family{}.Name(), nil
	for i, values := range s.Numbers() {
		if values != nil && len(*values) == 0 {
			*values = *defaults.Numbers()[i]
		}
	}
	list, err := m.product.Candidates(ctx, p, s)
	if err != nil {
		return nil, err
	}
	rejected := map[gemm.Config]arch.Rejection{}
	for _, r := range list.Rejected {
		rejected[r.Config] = r
	}
	out := &arch.Candidates{}
	for i, c := range all {
		own := c
		own.Kernel, own.Axes = s.Kernel, gemm.Axes{}
		r := rejected[own]
		if reason, detail := m.reject(&c); reason != "" {
			r.Reason, r.Detail = reason, detail
		}
		if r.Config, r.Position = c, i; r.Reason == "" {
			out.Configs = append(out.Configs, c)
		} else {
			out.Rejected = append(out.Rejected, r)
		}
	}
	return out, nil
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	plain, err := m.plain(&p, cfgs)
	if err != nil {
		return err
	}
	if err := m.product.Estimate(ctx, dst, p, plain); err != nil {
		return err
	}
	own := make([]float64, len(Terms))
	for i := range dst {
		if reason, _ := m.reject(&cfgs[i]); reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
		}
		if dst[i].Reject == "" {
			m.row(own, &p, &cfgs[i], float64(dst[i].Cycles))
			dst[i].Cycles = unit.Cycles(own[len(own)-1])
		}
	}
	return nil
}

// row fills the model's own terms for a product that takes so many cycles.
func (m *Model) row(own []float64, p *gemm.Problem, c *gemm.Config, product float64) {
	block := 0.0
	if kernel, _ := m.description.Kernel(c.Kernel); kernel == Blocks {
		block = ScaleBlock
	}
	m.formulas.Row(own, *p, c, product, tabled.One(p.Groups != (gemm.Groups{})), block, float64(axes[0].Number(c.Axes)))
}

// Terms implements arch.Architecture: the terms of the product, and the model's own.
func (m *Model) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	plain, err := m.plain(&p, cfgs)
	if err != nil {
		return err
	}
	n := len(m.description.Terms)
	if len(dst) != n*len(cfgs) {
		return fmt.Errorf("the %s model: room for %d results, and %d are asked for", Family, len(dst), n*len(cfgs))
	}
	inner := n - len(Terms) + 1
	rows, own := make([]float64, inner*len(cfgs)), make([]float64, len(Terms))
	if err := m.product.Terms(ctx, rows, p, plain); err != nil {
		return err
	}
	for i := range cfgs {
		r := dst[i*n:][:n]
		copy(r, rows[i*inner:][:inner])
		m.row(own, &p, &cfgs[i], r[m.total])
		copy(r[inner:], own[1:])
		if r[m.total] >= arch.RejectedTotal {
			r[n-1] = arch.RejectedTotal
		}
	}
	return nil
}

// Mapping implements arch.Architecture.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	plain, err := m.plain(&p, []gemm.Config{c})
	if err != nil {
		return arch.Mapping{}, err
	}
	return m.product.Mapping(ctx, p, plain[0])
}
