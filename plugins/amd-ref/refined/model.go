// Package refined predicts the time of Tensile's kernels from what their work-groups do on a CU: how many fit at once,
// what a step takes at each resource, what the power limit of the board leaves, waves and their tail, launch, start and
// output. The equations are in package terms and on docs/model-amd-refined.md.
package refined

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined/terms"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
)

// Name is the model's name in requests and descriptions.
const Name = "refined"

// Needs are the parameters that the model cannot do without.
var Needs = append(slices.Clone(terms.Parameters), "registers_per_thread", "l2_bytes", "mall_bytes", "peak_fp16",
	"peak_bf16", "peak_fp32", "peak_tf32", "peak_fp8", "peak_int8")

//go:generate go run ./internal/gen

// Model is the model on one device.
type Model struct {
	description arch.Description
	levels      []arch.Level
	sheet       *hw.Sheet
	params      hw.Set
	generation  *terms.Generation
	cu          tensile.CU
	device      device
	rates       [gemm.INT8 + 1]rate // by element type
}

// rate of a type on one CU, 0 for a type that the kernels do not multiply.
type rate struct{ flops, energy float64 }

var (
	_ arch.Architecture    = (*Model)(nil)
	_ arch.MemoryHierarchy = (*Model)(nil)
)

// New returns the model on a device, whose architecture is one of terms.Generations.
func New(sheet *hw.Sheet, params hw.Set) *Model { return newModel(sheet, params, nil) }

// With returns the model with other values of quantities, by name.
func (m *Model) With(values map[string]float64) *Model { return newModel(m.sheet, m.params, values) }

func newModel(sheet *hw.Sheet, params hw.Set, values map[string]float64) *Model {
	g := terms.Generations[sheet.Arch]
	m := &Model{sheet: sheet, params: params, generation: g}
	m.cu = tensile.CU{
		FMA: g.FMA, StreamK: g.MALLRate > 0, Sides: g.Sides, Buffers: g.Buffers,
		LDS: params.Int("lds_bytes"), RegistersPerThread: params.Int("registers_per_thread"),
	}
	m.setRates()
	m.describe(values)
	numbers := map[string]float64{}
	for _, p := range m.description.Params {
		numbers[p.Name] = p.Value
	}
	for _, c := range m.description.Constants {
		numbers[c.Name] = c.Value
	}
	m.device.compute(func(name string) float64 { return numbers[name] })
	m.setLevels(numbers)
	return m
}

// setRates sets the rates of the types that the kernels multiply. With FMA, that is fp32 alone: nothing was compared
// for others.
func (m *Model) setRates() {
	cycles := m.params.Get("num_cus") * m.params.Get("clock")
	for _, t := range gemm.DTypes() {
		peak, ok := m.params.Lookup("peak_" + t.String())
		if !ok || !(peak.Value > 0) || int(t) >= len(m.rates) || m.cu.FMA && t != gemm.FP32 {
			continue
		}
		m.rates[t].flops = peak.Value / cycles
		if fp16 := m.params.Get("peak_fp16"); fp16 > 0 {
			m.rates[t].energy = math.Sqrt(fp16/peak.Value) * math.Sqrt(math.Sqrt(fp16/peak.Value))
		} else {
			m.rates[t].energy = 1
		}
	}
}

func (m *Model) describe(values map[string]float64) {
	get := func(name string) float64 { return m.params.Get(name) }
	m.description = arch.Description{
		Arch: m.sheet.Arch, Vendor: m.sheet.Vendor,
		Device: m.sheet.Device, DeviceName: m.sheet.Name, Aliases: m.sheet.Aliases,
		Model: Name, Kernels: []string{tensile.Name}, Rung: arch.RungSpec,
		UnitName: "CU", Units: int(get("num_cus")), Partitions: int(get("num_xcds")),
		Clock: unit.Hertz(get("clock")), ClockRung: arch.RungSpec,
		SharedMemory: unit.Bytes(get("lds_bytes")), RegisterFile: int(get("registers_per_cu")),
		RegistersPerThread: int(get("registers_per_thread")),
		Params:             m.params, Terms: terms.Schema(), Constants: m.generation.Constants(),
		Order: arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}},
		Families: []arch.Family{{
			Name: tensile.Name, Doc: tensile.Doc, Axes: tensile.Axes, Types: m.types(),
		}},
	}
	for i := range terms.Quantities {
		c := terms.Quantities[i].Constant(m.generation)
		if v, ok := values[c.Name]; ok {
			c.Value = v
		}
		m.description.Constants = append(m.description.Constants, c)
	}
	for _, t := range gemm.DTypes() {
		if p, ok := m.params.Lookup("peak_" + t.String()); ok && p.Value > 0 {
			m.description.Peak = append(m.description.Peak, arch.PeakRate{DType: t, Rate: unit.FlopsPerSecond(p.Value)})
		}
	}
	m.description.Atoms, m.description.Uncertainty = m.atoms(), uncertainty(m.sheet.Device)
	m.description.Fitted = []arch.Fitted{{DataSet: fittedTo}}
	used := []string{"lds_bytes", "registers_per_thread"}
	for _, t := range gemm.DTypes() {
		if m.takes(t) {
			used = append(used, "peak_fp16", "peak_"+t.String())
		}
	}
	m.description.Unused = formula.Unused(m.params, append(formula.Of(m.description.Terms), used...))
}

func (m *Model) setLevels(numbers map[string]float64) {
	cus := int(numbers["num_cus"])
	l2 := numbers["l2_rate"] * numbers["num_xcds"] * numbers["l2_share"]
	dram := numbers["dram_bandwidth"] / numbers["clock"] * numbers["dram_share"]
	flat := func(rate float64) arch.Bandwidth {
		return arch.Bandwidth{Peak: unit.BytesPerCycle(rate), Units: cus, C0: 0, C1: 1}
	}
	m.levels = []arch.Level{{
		Name: "L2", Bound: arch.BoundL2, Capacity: unit.Bytes(numbers["l2_bytes"]), Partitions: int(numbers["num_xcds"]),
		Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(l2), Units: cus, Linear: true},
	}}
	if mall := numbers["mall_rate"] * numbers["num_xcds"] * numbers["mall_share"]; mall > 0 {
		m.levels = append(m.levels, arch.Level{
			Name: "MALL", Bound: arch.BoundMALL, Capacity: unit.Bytes(numbers["mall_bytes"]), Partitions: 1,
			Bandwidth: flat(mall),
		})
	}
	m.levels = append(m.levels, arch.Level{
		Name: "HBM", Bound: arch.BoundDRAM, Latency: unit.Cycles(numbers["load_latency"]), Partitions: 1,
		Bandwidth: flat(dram),
	})
}

// takes reports whether the kernels multiply a type.
func (m *Model) takes(t gemm.DType) bool {
	t = t.CostsLike()
	return int(t) < len(m.rates) && m.rates[t].flops > 0
}

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

// types are those of operands and results that the kernels multiply.
func (m *Model) types() (list []gemm.Types) {
	for _, in := range gemm.DTypes() {
		for _, out := range gemm.OutputTypes() {
			if t := (gemm.Types{In: in, Out: out}); t.Valid() && !t.Scaled() && m.takes(in) {
				list = append(list, t)
			}
		}
	}
	return list
}

// Describe implements arch.Architecture.
func (m *Model) Describe() *arch.Description { return &m.description }

// Hierarchy implements arch.Architecture.
func (m *Model) Hierarchy() arch.MemoryHierarchy { return m }

// Levels implements arch.MemoryHierarchy.
func (m *Model) Levels() []arch.Level { return m.levels }

// supports reports an error for what the model cannot take.
func (m *Model) supports(p *gemm.Problem, kernel string) error {
	if kernel != "" && kernel != tensile.Name {
		return diag.Inputf("the refined model of %s does not predict the kernel family %q", m.sheet.Arch, kernel).
			Do("use %s", tensile.Name)
	}
	if err := m.description.Supports(tensile.Name, p); err != nil {
		return err
	}
	return p.Validate()
}

// Candidates implements arch.Architecture.
func (m *Model) Candidates(_ context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if err := m.supports(&p, s.Kernel); err != nil {
		return nil, err
	}
	all, err := s.Enumerate(m.cu.Space(p.DType), tensile.Axes...)
	if err != nil {
		return nil, err
	}
	out := &arch.Candidates{}
	var e evaluation
	e.problem(m, &p)
	for position, c := range all {
		reason := e.config(&c)
		if reason == "" {
			out.Configs = append(out.Configs, c)
			continue
		}
		r := arch.Rejection{Config: c, Position: position, Reason: reason, Detail: e.detail(&c, reason)}
		out.Rejected = append(out.Rejected, r)
	}
	return out, nil
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.check(&p, cfgs, len(dst), len(cfgs)); err != nil {
		return err
	}
	var e evaluation
	e.problem(m, &p)
	for i := range cfgs {
		if reason := e.config(&cfgs[i]); reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
			continue
		}
		dst[i] = arch.Estimate{Cycles: unit.Cycles(e.t.total), Bound: e.bound()}
	}
	return nil
}

// Terms implements arch.Architecture.
func (m *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	n := len(terms.Terms)
	if err := m.check(&p, cfgs, len(dst), len(cfgs)*n); err != nil {
		return err
	}
	var e evaluation
	e.problem(m, &p)
	for i := range cfgs {
		e.set(&cfgs[i])
		e.t.compute(&e.in, &m.device)
		columns(dst[i*n:][:n], &m.device, &e.in, &e.t)
	}
	return nil
}

// check reports what cannot be estimated.
func (m *Model) check(p *gemm.Problem, cfgs []gemm.Config, have, want int) error {
	if err := m.supports(p, ""); err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("refined: room for %d results, %d are asked for", have, want)
	}
	for i := range cfgs {
		if c := &cfgs[i]; c.Kernel != "" && c.Kernel != tensile.Name {
			return m.supports(p, c.Kernel)
		}
		if err := cfgs[i].Validate(tensile.Axes...); err != nil {
			return err
		}
	}
	return nil
}

// groups are the work-group mappings that phase two tries, and groupGain is how much faster one has to be than the
// default.
var groups = [...]int{1, 2, 4, 16, 32}

const groupGain = 0.02

// Mapping implements arch.Architecture: the default group, or the one with the shortest time if it is faster by
// groupGain.
func (m *Model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := m.check(&p, []gemm.Config{c}, 1, 1); err != nil {
		return arch.Mapping{}, err
	}
	c.GroupM = terms.DefaultGroup
	var e evaluation
	e.problem(m, &p)
	e.set(&c)
	e.t.compute(&e.in, &m.device)
	best, least := terms.DefaultGroup, e.t.total*(1-groupGain)
	for _, group := range groups {
		c.GroupM = group
		e.set(&c)
		if e.t.compute(&e.in, &m.device); e.t.total < least {
			best, least = group, e.t.total
		}
	}
	return arch.Mapping{GroupM: best, XCDs: m.description.Partitions}, nil
}
