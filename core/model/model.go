package model

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Evaluation computes configurations of one problem, one after another. It is used by one caller at a time.
type Evaluation interface {
	// Problem moves to a problem that the model supports.
	Problem(p gemm.Problem)
	// Config moves to a valid configuration of a family of the model. It returns why the configuration cannot be used,
	// if that is so.
	Config(c *gemm.Config) arch.Reason
	// Detail puts a reason of Config in numbers.
	Detail(c *gemm.Config, reason arch.Reason) string
	// Estimate predicts the time of the configuration.
	Estimate() arch.Estimate
	// Row writes the terms of the configuration, also of one that cannot be used.
	Row(dst []float64)
}

// Model is what all models of terms have in common: it implements arch.Architecture over an Evaluation. Set its fields
// before it is used.
type Model struct {
	Description arch.Description
	Memory      []arch.Level // near to far, of the device
	// AnyAccess says that the model has the cost of accesses to memory of any width. Other models refuse problems whose
	// rows are aligned to less than the widest access.
	AnyAccess bool
	// Exact says that which kernels can be used depends on the sizes of a problem. Otherwise a list holds for all problems
	// of the same types and layout.
	Exact bool
	// Refuse, if set, reports an element type that the model cannot predict, if the families say nothing of types.
	Refuse func(t gemm.DType) error
	// Space returns the space of candidates of a family for an element type.
	Space func(kernel string, t gemm.DType) arch.Space
	// Sort, if set, puts the space of candidates for a problem in the order of the list.
	Sort func(p *gemm.Problem, cfgs []gemm.Config)
	// New returns an evaluation.
	New func() Evaluation
	// Share, if set, is told of every list of candidates, which nobody changes.
	Share func([]gemm.Config)

	evaluations sync.Pool
}

// Describe implements arch.Architecture.
func (m *Model) Describe() *arch.Description { return &m.Description }

// Hierarchy implements arch.Architecture.
func (m *Model) Hierarchy() arch.MemoryHierarchy { return m }

// Levels implements arch.MemoryHierarchy.
func (m *Model) Levels() []arch.Level { return m.Memory }

// numbers are the numbers that formulas name: those of the memory levels, the parameters that state nothing of a level,
// and the constants.
func (m *Model) numbers() map[string]float64 {
	d := &m.Description
	values := make(map[string]float64, len(d.Params)+len(d.Constants))
	for i := range d.Params {
		values[d.Params[i].Name] = d.Params[i].Value
	}
	for i := range m.Memory {
		m.Memory[i].Numbers(func(name string, quantity *float64) { values[name] = *quantity })
	}
	for i := range d.Constants {
		values[d.Constants[i].Name] = d.Constants[i].Value
	}
	return values
}

// Numbers returns a function that finds the numbers of formulas by name. It panics for a name that is none: the names
// come from formulas. Memory, Params and Constants have to be set before.
func (m *Model) Numbers() func(name string) float64 {
	values := m.numbers()
	return func(name string) float64 {
		v, ok := values[name]
		if !ok {
			panic("model: " + m.Description.Arch + " has no number " + name)
		}
		return v
	}
}

// Reach sets the bandwidth that kernels reach at a level with all units active.
func (m *Model) Reach(b arch.Bound, rate float64) {
	for i := range m.Memory {
		if l := &m.Memory[i]; l.Bound == b {
			l.Reached = unit.BytesPerCycle(rate)
		}
	}
}

// Supports reports what the model cannot predict: a problem for the families of configurations, or for the default
// family if there are none.
func (m *Model) Supports(p *gemm.Problem, cfgs ...gemm.Config) error {
	if len(cfgs) == 0 {
		return m.supports(p, "")
	}
	for i := range cfgs {
		if i == 0 || cfgs[i].Kernel != cfgs[i-1].Kernel {
			if err := m.supports(p, cfgs[i].Kernel); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Model) supports(p *gemm.Problem, kernel string) error {
	if m.AnyAccess {
		if err := m.Description.SupportsTypes(kernel, p); err != nil {
			return err
		}
	} else if err := m.Description.Supports(kernel, p); err != nil {
		return err
	}
	if err := p.Validate(); err != nil {
		return err
	}
	return m.refuse(p.DType)
}

func (m *Model) refuse(t gemm.DType) error {
	if m.Refuse == nil {
		return nil
	}
	return m.Refuse(t)
}

// Fits reports a destination of the wrong length, which is a bug of the caller.
func (m *Model) Fits(have, want int) error {
	if have != want {
		return fmt.Errorf("the %s model: room for %d results, and %d are asked for", m.Description.Model, have, want)
	}
	return nil
}

// Check reports a configuration that no kernel of the model can have: its family is unknown, or a number of it is out
// of range.
func (m *Model) Check(c *gemm.Config) error {
	_, f, err := m.family(c.Kernel)
	if err != nil {
		return err
	}
	return valid(f, c)
}

// undeclared is a family that declares nothing.
var undeclared arch.Family

// family returns the name and the description of a family, of the default one for an empty name.
func (m *Model) family(name string) (string, *arch.Family, error) {
	name, err := m.Description.Kernel(name)
	if err != nil {
		return "", nil, err
	}
	for i := range m.Description.Families {
		if f := &m.Description.Families[i]; f.Name == name {
			return name, f, nil
		}
	}
	return name, &undeclared, nil
}

func valid(f *arch.Family, c *gemm.Config) error {
	if f.Opaque {
		return c.ValidateKnown()
	}
	return c.Validate(f.Axes...)
}

// begin returns an evaluation of a problem. The caller gives it back to m.evaluations.
func (m *Model) begin(p gemm.Problem) Evaluation {
	e, ok := m.evaluations.Get().(Evaluation)
	if !ok {
		e = m.New()
	}
	e.Problem(p)
	return e
}

// Aligned returns a problem of the same types and layout whose kernels make the widest accesses: a list of candidates
// holds for all of them.
func Aligned(p gemm.Problem) gemm.Problem {
	const size = 4096
	q := gemm.New(size, size, size)
	q.DType, q.Out, q.AMajor, q.BMajor = p.DType, p.Out, p.AMajor, p.BMajor
	return q
}

// Candidates implements arch.Architecture.
func (m *Model) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	name, f, err := m.family(s.Kernel)
	if err != nil {
		return nil, err
	}
	if m.Exact {
		err = m.supports(&p, name)
	} else if err = m.Description.SupportsTypes(name, &p); err == nil {
		err = m.refuse(p.DType)
		p = Aligned(p)
	}
	if err != nil {
		return nil, err
	}
	all, err := s.Enumerate(m.Space(name, p.DType), f.Axes...)
	if err != nil {
		return nil, err
	}
	if m.Sort != nil {
		m.Sort(&p, all)
	}
	e := m.begin(p)
	defer m.evaluations.Put(e)
	out := &arch.Candidates{Configs: all[:0]} // what is kept never overtakes what is read
	for i := range all {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		reason := e.Config(&all[i])
		if reason == "" {
			out.Configs = append(out.Configs, all[i])
			continue
		}
		out.Rejected = append(out.Rejected, arch.Rejection{
			Config: all[i], Position: i, Reason: reason, Detail: e.Detail(&all[i], reason),
		})
	}
	if m.Share != nil {
		out.Configs = slices.Clone(out.Configs) // without the space that they were chosen from
		m.Share(out.Configs)
	}
	return out, nil
}

// each moves an evaluation of a problem through configurations. It tells use of each, and why it cannot be used.
func (m *Model) each(p gemm.Problem, cfgs []gemm.Config, use func(e Evaluation, i int, reason arch.Reason)) error {
	e := m.begin(p)
	defer m.evaluations.Put(e)
	var f *arch.Family
	for i := range cfgs {
		c := &cfgs[i]
		if i == 0 || c.Kernel != cfgs[i-1].Kernel {
			var err error
			if _, f, err = m.family(c.Kernel); err != nil {
				return err
			}
		}
		if err := valid(f, c); err != nil {
			return err
		}
		use(e, i, e.Config(c))
	}
	return nil
}

// Estimate implements arch.Architecture.
func (m *Model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.Supports(&p, cfgs...); err != nil {
		return err
	}
	if err := m.Fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	return m.each(p, cfgs, func(e Evaluation, i int, reason arch.Reason) {
		if reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
		} else {
			dst[i] = e.Estimate()
		}
	})
}

// Terms implements arch.Architecture.
func (m *Model) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if err := m.Supports(&p, cfgs...); err != nil {
		return err
	}
	n := len(m.Description.Terms)
	if err := m.Fits(len(dst), len(cfgs)*n); err != nil {
		return err
	}
	return m.each(p, cfgs, func(e Evaluation, i int, _ arch.Reason) { e.Row(dst[i*n:][:n]) })
}

// Mapping implements arch.Architecture for kernels with an order of their own, which the model does not know.
func (m *Model) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if err := m.supports(&p, c.Kernel); err != nil {
		return arch.Mapping{}, err
	}
	return arch.Mapping{}, m.Check(&c)
}

// groupGain is how much faster another launch-order group than the default has to be: models do not tell closer ones
// apart.
const groupGain = 0.02

// Group returns the launch-order group with the shortest time if that is shorter than the time of the default group by
// groupGain, and the default otherwise.
func Group(byDefault int, others []int, cycles func(group int) float64) int {
	best, least := byDefault, cycles(byDefault)*(1-groupGain)
	for _, group := range others {
		if c := cycles(group); c < least {
			best, least = group, c
		}
	}
	return best
}

// One is 1 for true and 0 for false, as formulas have them.
func One(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
