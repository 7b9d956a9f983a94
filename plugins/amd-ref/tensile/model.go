// Package tensile predicts the time of Tensile's kernels from what their work-groups do on a CU: how many fit at once,
// what a step takes at each resource, what the power limit of the board leaves, waves and their tail, launch, start and
// output. The equations are in package terms.
package tensile

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/selector"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	gpu "github.com/origami-gemm/origami/plugins/amd-ref/device"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
	"github.com/origami-gemm/origami/plugins/costs"
)

// Name is the model's name in requests and descriptions.
const Name = "tensile"

// Needs are the parameters that the model cannot do without.
var Needs = append(slices.Clone(terms.Parameters), "registers_per_thread", "l2_bytes", "mall_bytes", "peak_fp16",
	"peak_bf16", "peak_fp32", "peak_tf32", "peak_fp8", "peak_int8")

// multiplied are the types of operands that Tensile's kernels are modelled for, besides those that cost the same.
var multiplied = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32, gemm.TF32, gemm.FP8, gemm.INT8}

//go:generate go run ../internal/gen

// Model is the model on one device.
type Model struct {
	model.Model
	today *today // nil for the recorded release
	lists model.Lists[kind, []prepared]

	sheet      *hw.Sheet
	params     hw.Set
	generation *terms.Generation
	cu         kernel.CU
	device     device
	rates      map[gemm.DType]rate // of the types that the kernels multiply
}

// rate of a type on one CU.
type rate struct{ flops, energy float64 }

// New returns the model on a device, whose architecture is one of terms.Generations. A value of the device file that a
// quantity cannot have is an error.
func New(sheet *hw.Sheet, params hw.Set) (*Model, error) {
	if err := fit.Use(constants(terms.Generations[sheet.Arch]), sheet, Name); err != nil {
		return nil, err
	}
	return newModel(sheet, params, nil), nil
}

// Library returns what the vendor's library takes for a problem, in the timing model; 0 if it is not known.
type Library func(gemm.Problem) unit.Seconds

// today is what the libraries of today change. It is shared by models with other values of quantities.
type today struct {
	library Library
	// fastest selects among the kernels of the recorded release with the shipped quantities, for one caller at a time.
	fastest *selector.Selector
	result  selector.Result
	asking  sync.Mutex
	last    atomic.Pointer[level] // of the last problem
	clock   unit.Hertz
}

// level is that of a problem.
type level struct {
	problem gemm.Problem
	value   float64
}

// Today makes the model predict the libraries of today. The recorded release says which kernel is the fastest, and how
// much slower the others are. library says how long the fastest takes with the shipped quantities, and described is
// what it states of its errors and parameters.
func (m *Model) Today(library Library, described *arch.Description) {
	shipped := *m.sheet
	shipped.Fitted = nil
	recorded := newModel(&shipped, m.params, nil)
	recorded.Description.Order = arch.Order{} // the fastest, not one nearly as fast
	m.today = &today{library: library, fastest: selector.New(recorded, arch.Space{}), clock: m.Description.Clock}
	d := &m.Description
	d.Timing, d.Uncertainty = string(stopwatch.Model), slices.Clone(described.Uncertainty)
	d.Monotone = []arch.Dim{arch.DimNone} // a kernel may come closer to the fastest as the problem grows
	d.AlsoReads(described)
	for i := range d.Uncertainty {
		d.Uncertainty[i].Kernel = kernel.Name
	}
}

// level is the time of the library ÷ the fastest time of the recorded release, 1 if either is unknown.
func (t *today) level(p *gemm.Problem) float64 {
	if t == nil {
		return 1
	}
	if last := t.last.Load(); last != nil && last.problem == *p {
		return last.value
	}
	l := &level{*p, 1}
	t.asking.Lock()
	defer t.asking.Unlock()
	if err := t.fastest.Select(context.Background(), *p, &t.result); err == nil {
		if of := t.library(*p); of > 0 {
			l.value = float64(of / t.result.Entries[0].Estimate.Cycles.At(t.clock))
		}
	}
	t.last.Store(l)
	return l.value
}

// constants are the numbers of the model for a generation, as they are shipped.
func constants(g *terms.Generation) []arch.Constant {
	all := g.Constants()
	for i := range terms.Quantities {
		q := &terms.Quantities[i]
		all = append(all, q.Constant(q.On(arch.RungSpec, g.Name)))
	}
	return all
}

// EstimateWith implements fit.Tunable.
func (m *Model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	with := func(v map[string]float64) (arch.Architecture, error) { return m.With(v), nil }
	return fit.EstimateEach(ctx, with, values, sample)
}

// With returns the model with other values of quantities, by name.
func (m *Model) With(values map[string]float64) *Model {
	with := newModel(m.sheet, m.params, values)
	with.today = m.today
	return with
}

func newModel(sheet *hw.Sheet, params hw.Set, values map[string]float64) *Model {
	g := terms.Generations[sheet.Arch]
	m := &Model{sheet: sheet, params: params, generation: g, rates: map[gemm.DType]rate{}}
	m.Space = func(_ string, t gemm.DType) arch.Space { return m.cu.Space(t) }
	m.New, m.Share = func() model.Evaluation { return &evaluation{m: m} }, m.lists.Share
	m.cu = kernel.CU{
		FMA: g.FMA, StreamK: g.MALLRate > 0, Sides: g.Sides, Buffers: g.Buffers,
		LDS: params.Int("lds_bytes"), RegistersPerThread: params.Int("registers_per_thread"),
	}
	m.setRates()
	m.describe(values)
	m.Memory = gpu.Memory(params)
	value := m.Numbers()
	m.device.compute(value)
	m.reach(value)
	return m
}

// setRates sets the rates of the types that the kernels multiply. With FMA that is fp32, and fp16 at half its peak: FMA
// that takes fp16 and adds in fp32 is not packed (AMD Vega ISA, V_MAD_MIX_F32). Nothing was compared for others.
func (m *Model) setRates() {
	cycles := m.params.Get("num_cus") * m.params.Get("clock")
	for _, t := range multiplied {
		peak, ok := m.params.Lookup("peak_" + t.String())
		if !ok || !(peak.Value > 0) || m.cu.FMA && t != gemm.FP32 && t != gemm.FP16 {
			continue
		}
		if m.cu.FMA && t == gemm.FP16 {
			peak.Value /= 2
		}
		r := rate{flops: peak.Value / cycles, energy: 1}
		if fp16 := m.params.Get("peak_fp16"); fp16 > 0 {
			r.energy = math.Sqrt(fp16/peak.Value) * math.Sqrt(math.Sqrt(fp16/peak.Value))
		}
		m.rates[t] = r
	}
}

func (m *Model) describe(values map[string]float64) {
	d := &m.Description
	*d = gpu.Description(m.sheet, m.params)
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, []string{kernel.Name}, arch.RungSpec, arch.RungSpec
	d.Terms = model.Schema(terms.Terms, terms.Page)
	d.Constants = append(constants(m.generation), costs.Of(Name, m.generation.Name)...)
	d.Order = arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}}
	d.Families = []arch.Family{{Name: kernel.Name, Doc: kernel.Doc, Axes: kernel.Axes, Types: m.types()}}
	_ = fit.Use(d.Constants, m.sheet, Name) // New has checked the device file
	model.Override(d.Constants, values)
	d.Widen("LDS", arch.AtShared, "lds_width")
	d.Atoms, d.Uncertainty = m.atoms(), uncertainty(m.sheet.Device)
	d.Fitted = []arch.Fitted{{DataSet: terms.DataSet}}
	if f := m.sheet.Fitted; f != nil {
		d.Fitted = append(d.Fitted,
			arch.Fitted{DataSet: f.DataSet, Kernel: f.Kernel, Problems: f.Problems})
	}
	used := []string{"lds_bytes", "registers_per_thread"}
	for _, t := range gemm.DTypes() {
		if m.takes(t) {
			used = append(used, "peak_fp16", "peak_"+t.String())
		}
	}
	d.Unused = formula.Unused(m.params, append(formula.Of(d.Terms), used...))
}

// reach sets what the kernels reach of the bandwidths.
func (m *Model) reach(value func(name string) float64) {
	m.Reach(arch.BoundL2, value("l2_rate")*value("num_xcds")*value("l2_share"))
	m.Reach(arch.BoundMALL, value("mall_rate")*value("num_xcds")*value("mall_share"))
	m.Reach(arch.BoundDRAM, value("dram_bandwidth")/value("clock")*value("dram_share"))
}

// takes reports whether the kernels multiply a type.
func (m *Model) takes(t gemm.DType) bool { return m.rates[t.CostsLike()].flops > 0 }

// atoms are the matrix instructions that the device file lists first for a type, or an FMA of one lane.
func (m *Model) atoms() (list []arch.Atom) {
	for _, t := range gemm.DTypes() {
		if !m.takes(t) || t.CostsLike() != t {
			continue
		}
		name := t.String()
		if t == gemm.TF32 {
			name = "xf32" // as AMD calls it
		}
		a := arch.Atom{DType: t, M: 1, N: 1, K: 1, Latency: 1, PerUnit: int(m.rates[t].flops / 2)}
		i := slices.IndexFunc(m.sheet.Atoms, func(atom hw.Atom) bool { return atom.Type == name })
		if i >= 0 {
			atom := &m.sheet.Atoms[i]
			const matrixCores = 4
			a = arch.Atom{
				DType: t, M: atom.M, N: atom.N, K: atom.K, Latency: unit.Cycles(atom.Cycles), PerUnit: matrixCores,
			}
		}
		list = append(list, a)
	}
	return list
}

// types are those of operands and results that the kernels multiply. Kernels with FMA that write fp32 from fp16 are
// left out: at the median of 2,084 sizes, rocBLAS@b520bc83fa takes 1.95 times as long on gfx900 for them as for those
// that write fp16, and no term says why.
func (m *Model) types() []gemm.Types {
	list := gemm.Plain(slices.DeleteFunc(gemm.DTypes(), func(t gemm.DType) bool { return !m.takes(t) })...)
	return slices.DeleteFunc(list, func(t gemm.Types) bool { return m.cu.FMA && t.In != t.Out })
}

// groups are the work-group mappings that phase two tries.
var groups = []int{1, 2, 4, 16, 32}

// Mapping implements arch.Architecture: the default group, or the one with the shortest time.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := m.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	e := evaluation{m: m}
	e.Problem(p)
	best := model.Group(terms.DefaultGroup, groups, func(group int) float64 {
		c.GroupM = group
		e.set(&c)
		e.one.compute(&e.in, &m.device)
		e.t.compute(&m.device, &e.s, &e.one.kernelTerms)
		return e.t.total
	})
	return arch.Mapping{GroupM: best, XCDs: m.Description.Partitions}, nil
}
