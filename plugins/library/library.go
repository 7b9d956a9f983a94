// Package library predicts what the tuned library of a vendor takes for a matrix multiplication: cuBLAS, hipBLASLt,
// rocBLAS. The prediction is the fastest of the library's tiles and splits of K. The package knows no vendor: a plugin
// says how the numbers of a machine follow from the parameters of its devices. The equations are in package terms, and
// on docs/model-library.md, which says how the quantities were found.
package library

import (
	"context"
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

const (
	// Name is the model's name in requests and descriptions.
	Name = "refined"
	// Family is the kernel family that it predicts.
	Family = "library"
)

//go:generate go run ./internal/gen

// Model is the model on one machine.
type Model struct {
	description arch.Description
	levels      []arch.Level
	machine     Machine
	options     options
	device      device
	kernels     kernels
	peaks       [maxTypes]float64 // FLOP/s by element type, 0 for those that the machine does not multiply
}

// maxTypes is more than the number of any element type.
const maxTypes = 32

var (
	_ arch.Architecture    = (*Model)(nil)
	_ arch.MemoryHierarchy = (*Model)(nil)
)

// New opens the model on a machine. The options are those of Options.
func New(machine Machine, given map[string]string) (*Model, error) {
	o, err := parseOptions(given)
	if err != nil {
		return nil, err
	}
	numbers, err := machine.numbers()
	if err != nil {
		return nil, err
	}
	m := newModel(machine, numbers, o, nil)
	m.description.Uncertainty = checked.Of(m.description.ID(), Name, o.scheme, o.release)
	return m, nil
}

func newModel(machine Machine, numbers []arch.Constant, o options, values map[string]float64) *Model {
	m := &Model{
		description: machine.Description, machine: machine, options: o, kernels: kernelsOf(machine.Generation, o.scheme),
	}
	d := &m.description
	variant := terms.Variant{Generation: machine.Generation, Scheme: o.scheme, Release: o.release}
	d.Model, d.Kernels, d.Rung, d.ClockRung = Name, []string{Family}, arch.RungSpec, arch.RungSpec
	d.Options = o.inForce()
	for _, t := range gemm.DTypes() {
		m.peaks[t] = float64(d.PeakFor(t))
	}
	d.Families = []arch.Family{{Name: Family, Doc: "the kernels of the vendor's library", Types: m.types(), Opaque: true}}
	d.Terms, d.Unused = terms.Schema(), machine.unused()
	d.Monotone = []arch.Dim{arch.DimM, arch.DimN, arch.DimK}
	d.Fitted = []arch.Fitted{{DataSet: "published times"}} // at most 1,000 of each series: package fit
	d.Constants = append(numbers, o.constants()...)
	for i := range terms.Quantities {
		c := terms.Quantities[i].Constant(variant)
		if v, ok := values[c.Name]; ok {
			c.Value = v
		}
		d.Constants = append(d.Constants, c)
	}
	value := m.value
	m.device.compute(value)
	m.levels = []arch.Level{
		{
			Name: "L2", Capacity: unit.Bytes(value("l2_size")), Partitions: max(d.Partitions, 1), Bound: arch.BoundL2,
			Bandwidth: arch.Bandwidth{
				Peak: unit.BytesPerCycle(value("l2_share_16") * value("units")), Units: d.Units, Linear: true,
			},
		},
		{
			Name: "DRAM", Partitions: 1, Bound: arch.BoundDRAM,
			Bandwidth: arch.Bandwidth{
				Peak:  unit.BytesPerCycle(value("dram_speed") / value("clock") * value("read_share")),
				Units: d.Units, C1: 1,
			},
		},
	}
	return m
}

// value returns a parameter or constant of the description.
func (m *Model) value(name string) float64 {
	if p, ok := hw.Set(m.description.Params).Lookup(name); ok {
		return p.Value
	}
	for _, c := range m.description.Constants {
		if c.Name == name {
			return c.Value
		}
	}
	panic("library: no number " + name)
}

// With returns the model with other values of quantities, by name.
func (m *Model) With(values map[string]float64) (*Model, error) {
	numbers, err := m.machine.numbers()
	if err != nil {
		return nil, err
	}
	return newModel(m.machine, numbers, m.options, values), nil
}

// types are those that the machine multiplies.
func (m *Model) types() (all []gemm.Types) {
	for _, in := range gemm.DTypes() {
		if m.peaks[in] > 0 && m.options.takes(in) {
			for _, out := range in.Outputs() {
				all = append(all, gemm.Types{In: in, Out: out})
			}
		}
	}
	return all
}

// Describe implements arch.Architecture.
func (m *Model) Describe() *arch.Description { return &m.description }

// Hierarchy implements arch.Architecture.
func (m *Model) Hierarchy() arch.MemoryHierarchy { return m }

// Levels implements arch.MemoryHierarchy.
func (m *Model) Levels() []arch.Level { return m.levels }

// prepare computes what depends on the problem.
func (m *Model) prepare(q *problem, p *gemm.Problem) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := m.description.Supports(Family, p); err != nil {
		return err
	}
	*q = problem{
		m: float64(p.M), n: float64(p.N), k: float64(p.K), batch: float64(p.Batch),
		elementBytes: float64(p.DType.Bits()) / 8, outputBytes: float64(p.Output().Bits()) / 8,
		transA: truth(p.TransA()), transB: truth(p.TransB()), peak: m.peaks[p.DType],
		kernels: kernelsFor(p.DType),
	}
	q.compute(&m.device)
	return nil
}

// kernelsFor is the term kernels.
func kernelsFor(t gemm.DType) float64 {
	switch t {
	case gemm.FP4:
		return 4
	case gemm.FP8, gemm.FP8E5M2:
		return 8
	case gemm.INT8:
		return 8.5
	case gemm.TF32:
		return 19
	case gemm.FP32:
		return 32
	default:
		return 16
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// place sets a configuration, or says why none of the family's can be it.
func (t *timing) place(c *gemm.Config) error {
	if c.Kernel != Family && c.Kernel != "" {
		return diag.Inputf("the model of vendor libraries does not predict the kernel family %q", c.Kernel).
			Do("use %s", Family)
	}
	t.blockM, t.blockN, t.blockK = float64(c.BlockM), float64(c.BlockN), float64(c.BlockK)
	t.splitK = float64(c.SplitK)
	return c.ValidateKnown()
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	var (
		q problem
		t timing
	)
	if err := m.prepare(&q, &p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	kernels := m.kernels.of(p.DType)
	for i := range cfgs {
		if err := t.place(&cfgs[i]); err != nil {
			return err
		}
		if reason := kernels.reject(&cfgs[i]); reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
			continue
		}
		t.compute(&m.device, &q)
		dst[i] = arch.Estimate{Cycles: unit.Cycles(t.total), Bound: t.bound(&q)}
	}
	return nil
}

// fits reports a destination of the wrong length, which is the caller's bug.
func fits(have, want int) error {
	if have != want {
		return fmt.Errorf("library: room for %d results, %d are asked for", have, want)
	}
	return nil
}

// Terms implements arch.Architecture.
func (m *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	var (
		q problem
		t timing
	)
	if err := m.prepare(&q, &p); err != nil {
		return err
	}
	if err := fits(len(dst), len(cfgs)*len(terms.Terms)); err != nil {
		return err
	}
	for i := range cfgs {
		if err := t.place(&cfgs[i]); err != nil {
			return err
		}
		t.compute(&m.device, &q)
		columns(dst[i*len(terms.Terms):][:len(terms.Terms)], &m.device, &q, &t)
	}
	return nil
}

// Mapping implements arch.Architecture. The library has an order of its own, which the model does not know.
func (m *Model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	var t timing
	if err := m.prepare(&problem{}, &p); err != nil {
		return arch.Mapping{}, err
	}
	return arch.Mapping{}, t.place(&c)
}

// busyEnough is the share of the total from which on a resource limits a kernel. A kernel that keeps none of them busy
// for so long waits.
const busyEnough = 0.5

// bound is the resource that is busy for most of the time.
func (t *timing) bound(q *problem) arch.Bound {
	matrix, dram := max(t.matrix, q.computeFloor), max(t.dram, q.dramFloor)
	switch most := max(matrix, t.l2, dram); {
	case most < busyEnough*t.total:
		return arch.BoundLatency
	case most == dram:
		return arch.BoundDRAM
	case most == t.l2:
		return arch.BoundL2
	default:
		return arch.BoundCompute
	}
}

// Generation is that of the machine.
func (m *Model) Generation() terms.Generation { return m.machine.Generation }
