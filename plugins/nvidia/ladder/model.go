// Package ladder is the refined model of the kernel family sgemm: kernels that multiply fp32 with FMA instructions,
// from one thread per element of C to register tiles, and one with tensor cores. What such kernels wait for is not what
// pipelined matrix kernels do, so the model has its own table of terms: issue of loads and stores, passes through
// shared memory with their bank conflicts, cache lines, FMA, issue slots, barriers, latencies, and the traffic of L2
// and DRAM. All counts come from the addresses and instructions of a kernel's loop. No kernel is a special case.
//
// The equations are the table in terms.go, which is also what `origami explain` shows. docs/ladder.md says where the
// numbers come from and what they were checked on.
package ladder

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
)

// Model is the model on one device.
type Model struct {
	description arch.Description
	levels      []arch.Level
	gpu         *gpu.Device
	program     *formula.Program
	inputs      map[string]int // slots of what code sets
	slots       []int          // of the terms
	total       int            // slot of the total
	bounds      []boundSlot
	constant    formula.Steps // what depends on the problem alone
	perConfig   formula.Steps
	frames      sync.Pool // of *[]float64

	mu     sync.RWMutex
	counts map[counting]*counted
}

// boundSlot is a resource of the SM, or beyond it, and where its share of a K step is.
type boundSlot struct {
	bound arch.Bound
	slot  int
}

// Family is the kernel family that the model predicts, and the model's name in requests and descriptions.
var Family = family.Family{}.Name()

var (
	_ arch.Architecture    = (*Model)(nil)
	_ arch.MemoryHierarchy = (*Model)(nil)
)

// New opens the model for a device.
func New(g *gpu.Device) (*Model, error) {
	m := &Model{description: g.Description(), gpu: g, program: formula.NewProgram(), inputs: map[string]int{},
		counts: map[counting]*counted{}}
	d := &m.description
	d.Model, d.Kernels, d.Rung = Family, []string{Family}, arch.RungSpec
	if g.BandwidthsMeasured() {
		d.Rung = arch.RungCalibrated
	}
	d.Families = kernel.Declared([]family.Family{{}}, func(gemm.Types) bool { return true })
	d.Families[0].Doc = "fp32 with FMA instructions: the kernels of the public SGEMM ladders"
	d.Constants, d.Terms = constantsOf(g), schema()
	read := constantsRead(g)
	d.Unused = formula.Unused(g.Params, append(formula.Of(d.Terms), append(read, gpu.Limits...)...))
	if err := m.compile(); err != nil {
		return nil, fmt.Errorf("ladder: %w", err)
	}
	m.levels = []arch.Level{
		{
			Name: "L2", Capacity: unit.Bytes(m.number("l2_bytes")), Partitions: 1, Bound: arch.BoundL2,
			Latency: unit.Cycles(m.number("l2_latency_cycles")),
			Bandwidth: arch.Bandwidth{
				Peak: unit.BytesPerCycle(m.number("l2_perf_ratio")), Units: g.SMs, Linear: true,
			},
		},
		{
			Name: "DRAM", Latency: unit.Cycles(m.number("hbm_latency_penalty")), Partitions: 1, Bound: arch.BoundDRAM,
			Bandwidth: arch.Bandwidth{Peak: unit.BytesPerCycle(m.number("dram_perf_ratio")), Units: g.SMs, C1: 1},
		},
	}
	return m, nil
}

// compile compiles the terms for the numbers of the device.
func (m *Model) compile() error {
	p := m.program
	for i := range m.description.Params {
		if err := p.Constant(m.description.Params[i].Name, m.description.Params[i].Value); err != nil {
			return err
		}
	}
	for _, c := range m.description.Constants {
		if err := p.Constant(c.Name, c.Value); err != nil {
			return err
		}
	}
	for i := range terms {
		t := &terms[i]
		var slot int
		var err error
		if t.Input {
			slot, err = p.Input(t.Name, formula.OnConfig)
			m.inputs[t.Name] = slot
		} else {
			slot, err = p.Define(t.Name, t.Formula)
		}
		if err != nil {
			return fmt.Errorf("term %s: %w", t.Name, err)
		}
		m.slots = append(m.slots, slot)
		if t.Kind == arch.KindTotal {
			m.total = slot
		}
	}
	for _, b := range []struct {
		bound   arch.Bound
		formula string
	}{
		{arch.BoundCompute, "max(load_issue_step, shared_step, l1_step, fma_step + tensor_step, issue_step)"},
		{arch.BoundL2, "l2_step"}, {arch.BoundDRAM, "dram_step"},
		{arch.BoundLatency, "waiting_step"},
	} {
		slot, err := p.Compile(b.formula)
		if err != nil {
			return err
		}
		m.bounds = append(m.bounds, boundSlot{b.bound, slot})
	}
	m.constant = p.Steps(func(d formula.Deps) bool { return d != 0 && d&formula.OnConfig == 0 })
	m.perConfig = p.Steps(func(d formula.Deps) bool { return d&formula.OnConfig != 0 })
	m.frames.New = func() any { f := p.Frame(); return &f }
	return nil
}

// number returns a parameter or a constant.
func (m *Model) number(name string) float64 {
	for i := range m.description.Params {
		if m.description.Params[i].Name == name {
			return m.description.Params[i].Value
		}
	}
	for _, c := range m.description.Constants {
		if c.Name == name {
			return c.Value
		}
	}
	panic("ladder: no number " + name)
}

// Describe implements arch.Architecture.
func (m *Model) Describe() *arch.Description { return &m.description }

// Hierarchy implements arch.Architecture.
func (m *Model) Hierarchy() arch.MemoryHierarchy { return m }

// Levels implements arch.MemoryHierarchy.
func (m *Model) Levels() []arch.Level { return m.levels }

// begin returns a frame with a problem in it. The caller returns it to m.frames.
func (m *Model) begin(p *gemm.Problem) (*[]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := m.description.SupportsTypes("", p); err != nil {
		return nil, err
	}
	frame := m.frames.Get().(*[]float64)
	m.program.PutProblem(*frame, *p, &arch.Atom{})
	m.constant.Run(*frame)
	return frame, nil
}

// evaluate computes all values of one configuration, or returns the reason against it.
func (m *Model) evaluate(
	frame []float64, p *gemm.Problem, o *operands, c *gemm.Config,
) (arch.Reason, error) {
	f := family.Family{}
	if c.Kernel != Family && c.Kernel != "" {
		return "", kernel.Unknown(&m.description, c.Kernel)
	}
	if err := c.Validate(f.Axes()...); err != nil {
		return "", err
	}
	counts := m.count(o, c)
	for _, v := range counts.values {
		frame[v.slot] = v.value
	}
	m.program.PutConfig(frame, c)
	m.perConfig.Run(frame)
	if counts.guarded {
		if _, why := generator.Guard(p, *c); why != "" {
			return generator.ReasonGuard, nil
		}
	}
	return counts.reason, nil
}

// Candidates implements arch.Architecture: the family's space, as far as it fits the device.
func (m *Model) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	f := family.Family{}
	if _, err := m.description.Kernel(s.Kernel); err != nil {
		return nil, err
	}
	if err := m.description.SupportsTypes("", &p); err != nil {
		return nil, err
	}
	all, err := s.Enumerate(f.Space(), f.Axes()...)
	if err != nil {
		return nil, err
	}
	operands, list := operandsOf(&p).Operands, &arch.Candidates{}
	for i := range all {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		reason, detail := f.Check(m.gpu, operands, all[i], f.Resources(m.gpu, operands, all[i], false))
		if reason == "" {
			if _, why := generator.Guard(&p, all[i]); why != "" {
				reason, detail = generator.ReasonGuard, why
			}
		}
		if reason == "" {
			list.Configs = append(list.Configs, all[i])
			continue
		}
		list.Rejected = append(list.Rejected, arch.Rejection{Config: all[i], Position: i, Reason: reason, Detail: detail})
	}
	return list, nil
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if len(dst) != len(cfgs) {
		return fmt.Errorf("ladder: Estimate of %d configurations into %d", len(cfgs), len(dst))
	}
	held, err := m.begin(&p)
	if err != nil {
		return err
	}
	defer m.frames.Put(held)
	frame, operands := *held, operandsOf(&p)
	for i := range cfgs {
		reason, err := m.evaluate(frame, &p, &operands, &cfgs[i])
		if err != nil {
			return err
		}
		if reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
			continue
		}
		most := m.bounds[0]
		for _, b := range m.bounds[1:] {
			if frame[b.slot] > frame[most.slot] {
				most = b
			}
		}
		dst[i] = arch.Estimate{Cycles: unit.Cycles(frame[m.total]), Bound: most.bound}
	}
	return nil
}

// Terms implements arch.Architecture.
func (m *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if len(dst) != len(cfgs)*len(m.slots) {
		return fmt.Errorf("ladder: Terms of %d configurations into %d values", len(cfgs), len(dst))
	}
	held, err := m.begin(&p)
	if err != nil {
		return err
	}
	defer m.frames.Put(held)
	frame, operands := *held, operandsOf(&p)
	for i := range cfgs {
		if _, err := m.evaluate(frame, &p, &operands, &cfgs[i]); err != nil {
			return err
		}
		for j, slot := range m.slots {
			v := frame[slot]
			if math.IsNaN(v) || math.IsInf(v, 0) { // of a configuration that is no kernel
				v = arch.RejectedTotal
			}
			dst[i*len(m.slots)+j] = v
		}
	}
	return nil
}

// groups are the launch orders that Mapping tries.
var groups = [...]int{1, 2, 4, 8, 16}

// groupGain is how much faster another order has to be than the one before.
const groupGain = 0.02

// Mapping implements arch.Architecture.
func (m *Model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	var estimate [1]arch.Estimate
	if err := m.Estimate(ctx, estimate[:], p, []gemm.Config{c}); err != nil { // the group that c came with counts too
		return arch.Mapping{}, err
	}
	best, least := groups[0], math.Inf(1)
	for _, group := range groups {
		c.GroupM = group
		if err := m.Estimate(ctx, estimate[:], p, []gemm.Config{c}); err != nil {
			return arch.Mapping{}, err
		}
		if estimate[0].Reject != "" {
			break
		}
		if v := float64(estimate[0].Cycles); v < least*(1-groupGain) {
			best, least = group, v
		}
	}
	return arch.Mapping{GroupM: best}, nil
}
