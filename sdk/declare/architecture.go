package declare

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// architecture implements arch.Architecture and arch.MemoryHierarchy with a compiled model.
type architecture struct {
	*compiled
	desc   arch.Description
	memory []arch.Level
	bounds []arch.Bound // by term
	// with opens the model with other values of constants.
	with fit.Model

	// Steps to run once per problem, once per configuration, and for candidates (whose problem has no sizes).
	perProblem, perConfig, static formula.Steps
	frames                        sync.Pool // of *[]float64
}

func (a *architecture) prepare() {
	a.perProblem = a.Steps(func(d formula.Deps) bool { return d != 0 && d&formula.OnConfig == 0 })
	a.perConfig = a.Steps(func(d formula.Deps) bool { return d&formula.OnConfig != 0 })
	a.static = a.Steps(func(d formula.Deps) bool { return d != 0 && d&formula.OnSizes == 0 })
	a.frames.New = func() any { f := a.Frame(); return &f }
}

// Describe implements arch.Architecture.
func (a *architecture) Describe() *arch.Description { return &a.desc }

// Hierarchy implements arch.Architecture.
func (a *architecture) Hierarchy() arch.MemoryHierarchy { return a }

// Levels implements arch.MemoryHierarchy.
func (a *architecture) Levels() []arch.Level { return a.memory }

// atom returns the matrix instruction for the element type of a problem.
func (a *architecture) atom(p gemm.Problem) (*arch.Atom, error) {
	if atom := a.desc.Atom(p.DType); atom != nil {
		return atom, nil
	}
	types := make([]string, len(a.desc.Atoms))
	for i, atom := range a.desc.Atoms {
		types[i] = atom.DType.String()
	}
	return nil, diag.Inputf("%s does not model %s", a.desc.Arch, p.DType).Do("use %s", strings.Join(types, ", "))
}

// kernel returns a kernel family. The empty name means the default.
func (a *architecture) kernel(name string) (*kernel, error) {
	for i := range a.kernels {
		if a.kernels[i].name == name || name == "" {
			return &a.kernels[i], nil
		}
	}
	return nil, diag.Inputf("%s has no kernel %q", a.desc.Arch, name).Do("use %s", strings.Join(a.desc.Kernels, ", "))
}

// begin returns a frame for a problem. The caller returns it to a.frames.
func (a *architecture) begin(p gemm.Problem) (*[]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	atom, err := a.atom(p)
	if err != nil {
		return nil, err
	}
	if err := a.desc.Supports("", &p); err != nil {
		return nil, err
	}
	frame := a.frames.Get().(*[]float64)
	a.PutProblem(*frame, p, atom)
	a.perProblem.Run(*frame)
	return frame, nil
}

// evaluate computes all values of one configuration. It returns the first rule that rejects the configuration, or nil.
func (a *architecture) evaluate(frame []float64, c *gemm.Config) (*rule, error) {
	k, err := a.kernel(c.Kernel)
	if err != nil {
		return nil, err
	}
	if err := c.Validate(k.axes...); err != nil {
		return nil, err
	}
	a.putConfig(frame, c)
	a.perConfig.Run(frame)
	for i := range k.rules {
		if frame[k.rules[i].when] != 0 {
			return &k.rules[i], nil
		}
	}
	return nil, nil
}

// each evaluates configurations and gives their values to do, with the rule that rejects them or nil.
func (a *architecture) each(p gemm.Problem, cfgs []gemm.Config, do func(i int, frame []float64, r *rule) error) error {
	held, err := a.begin(p)
	if err != nil {
		return err
	}
	defer a.frames.Put(held)
	for i := range cfgs {
		r, err := a.evaluate(*held, &cfgs[i])
		if err != nil {
			return err
		}
		if err := do(i, *held, r); err != nil {
			return err
		}
	}
	return nil
}

// Candidates implements arch.Architecture.
func (a *architecture) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	atom, err := a.atom(p)
	if err != nil {
		return nil, err
	}
	k, err := a.kernel(s.Kernel)
	if err != nil {
		return nil, err
	}
	all, err := s.Enumerate(k.space, k.axes...)
	if err != nil {
		return nil, err
	}
	frame := a.Frame()
	a.PutProblem(frame, p, atom)
	list := &arch.Candidates{Configs: make([]gemm.Config, 0, len(all))}
next:
	for i := range all {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a.putConfig(frame, &all[i])
		a.static.Run(frame)
		for j := range k.rules {
			if r := &k.rules[j]; r.static && frame[r.when] != 0 {
				list.Rejected = append(list.Rejected, arch.Rejection{
					Config: all[i], Position: i, Reason: r.reason, Detail: r.text(frame),
				})
				continue next
			}
		}
		list.Configs = append(list.Configs, all[i])
	}
	return list, nil
}

// Estimate implements arch.Architecture.
func (a *architecture) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if len(dst) != len(cfgs) {
		return fmt.Errorf("declare: Estimate of %d configurations into %d", len(cfgs), len(dst))
	}
	return a.each(p, cfgs, func(i int, frame []float64, r *rule) error {
		if r != nil {
			dst[i] = arch.Estimate{Reject: r.reason}
			return nil
		}
		total := frame[a.terms[a.total]]
		if !(total > 0) || math.IsInf(total, 0) {
			return a.fault(a.desc.Terms[a.total].Name, total, p, cfgs[i])
		}
		largest := a.steps[0]
		for _, s := range a.steps[1:] {
			if frame[a.terms[s]] > frame[a.terms[largest]] {
				largest = s
			}
		}
		dst[i] = arch.Estimate{Cycles: unit.Cycles(total), Bound: a.bounds[largest]}
		return nil
	})
}

// EstimateWith implements fit.Tunable.
func (a *architecture) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	return fit.EstimateEach(ctx, a.with, values, sample)
}

// fault is the error for an impossible value of the model.
func (a *architecture) fault(what string, v float64, p gemm.Problem, c gemm.Config) error {
	return &diag.Error{
		Kind: diag.Plugin, Where: a.desc.ID(), Fix: "report it to the model's author",
		What: fmt.Sprintf("%s of the %s model is %v for %s of %s", what, a.desc.Model, v, c, p),
	}
}

// Terms implements arch.Architecture.
func (a *architecture) Terms(_ context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	if len(dst) != len(cfgs)*len(a.terms) {
		return fmt.Errorf("declare: Terms of %d configurations into %d values", len(cfgs), len(dst))
	}
	return a.each(p, cfgs, func(i int, frame []float64, r *rule) error {
		for j, slot := range a.terms {
			v := frame[slot]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				if r == nil {
					return a.fault(a.desc.Terms[j].Name, v, p, cfgs[i])
				}
				v = arch.RejectedTotal // a rejected configuration need not have a value
			}
			dst[i*len(a.terms)+j] = v
		}
		return nil
	})
}

// Mapping implements arch.Architecture.
func (a *architecture) Mapping(_ context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	held, err := a.begin(p)
	if err != nil {
		return arch.Mapping{}, err
	}
	defer a.frames.Put(held)
	if _, err := a.evaluate(*held, &c); err != nil {
		return arch.Mapping{}, err
	}
	var v [3]int
	for i, what := range []string{"GroupM", "XCDs", "Chunk"} {
		x, least := (*held)[a.mapping[i]], 0.0
		if i == 0 {
			least = 1
		}
		if !(x >= least && x <= gemm.MaxConfigNumber && x == math.Trunc(x)) {
			return arch.Mapping{}, a.fault(what, x, p, c)
		}
		v[i] = int(x)
	}
	return arch.Mapping{GroupM: v[0], XCDs: v[1], Chunk: v[2]}, nil
}
