package declare

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
)

// architecture is a compiled model. Its lists of candidates know the rules that no size changes, its estimates all.
type architecture struct {
	*compiled
	model.Model
	lists model.Model
	// with opens the model with other values of constants.
	with fit.Model
}

func (a *architecture) prepare() {
	a.Refuse = a.refuse
	a.New = func() model.Evaluation { return &evaluation{architecture: a, frame: a.Frame()} }
	a.lists.Description, a.lists.Refuse, a.lists.Space = a.Description, a.refuse, a.space
	a.lists.New = func() model.Evaluation { return &evaluation{architecture: a, frame: a.Frame(), list: true} }
}

// refuse reports an element type without a matrix instruction.
func (a *architecture) refuse(t gemm.DType) error {
	if a.Description.Atom(t) != nil {
		return nil
	}
	types := make([]string, len(a.Description.Atoms))
	for i, atom := range a.Description.Atoms {
		types[i] = atom.DType.String()
	}
	return diag.Inputf("%s does not model %s", a.Description.Arch, t).Do("use %s", strings.Join(types, ", "))
}

// kernel returns a kernel family of the model. The empty name means the default.
func (a *architecture) kernel(name string) *kernel {
	for i := range a.kernels {
		if a.kernels[i].name == name {
			return &a.kernels[i]
		}
	}
	return &a.kernels[0]
}

func (a *architecture) space(kernel string, _ gemm.DType) arch.Space { return a.kernel(kernel).space }

// Candidates implements arch.Architecture.
func (a *architecture) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	return a.lists.Candidates(ctx, p, s)
}

// EstimateWith implements fit.Tunable.
func (a *architecture) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	return fit.EstimateEach(ctx, a.with, values, sample)
}

// Mapping implements arch.Architecture.
func (a *architecture) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if _, err := a.Model.Mapping(ctx, p, c); err != nil {
		return arch.Mapping{}, err
	}
	e := evaluation{architecture: a, frame: a.Frame()}
	e.Problem(p)
	e.Config(&c)
	var v [3]int
	for i, what := range []string{"GroupM", "XCDs", "Chunk"} {
		x, least := e.frame[a.mapping[i]], 0.0
		if i == 0 {
			least = 1
		}
		if !(x >= least && x <= gemm.MaxConfigNumber && x == math.Trunc(x)) {
			return arch.Mapping{}, &diag.Error{
				Kind: diag.Plugin, Where: a.Description.ID(), Fix: "report it to the model's author",
				What: fmt.Sprintf("%s of the %s model is %v for %s of %s", what, a.Description.Model, x, c, p),
			}
		}
		v[i] = int(x)
	}
	return arch.Mapping{GroupM: v[0], XCDs: v[1], Chunk: v[2]}, nil
}

// evaluation implements model.Evaluation with the values of all formulas.
type evaluation struct {
	*architecture
	frame []float64
	list  bool  // it knows the rules that no size changes
	rule  *rule // why the configuration cannot be used
}

func (e *evaluation) Problem(p gemm.Problem) {
	e.PutProblem(e.frame, p, e.Description.Atom(p.DType))
	e.perProblem.Run(e.frame)
}

func (e *evaluation) Config(c *gemm.Config) arch.Reason {
	e.putConfig(e.frame, c)
	e.perConfig.Run(e.frame)
	rules := e.kernel(c.Kernel).rules
	for i := range rules {
		if e.rule = &rules[i]; (e.rule.static || !e.list) && e.frame[e.rule.when] != 0 {
			return e.rule.reason
		}
	}
	e.rule = nil
	return ""
}

func (e *evaluation) Detail(*gemm.Config, arch.Reason) string { return e.rule.text(e.frame) }

func (e *evaluation) Estimate() arch.Estimate {
	largest := e.steps[0]
	for _, s := range e.steps[1:] {
		if e.frame[s.slot] > e.frame[largest.slot] {
			largest = s
		}
	}
	return arch.Estimate{Cycles: unit.Cycles(e.frame[e.terms[e.total]]), Bound: largest.bound}
}

func (e *evaluation) Row(dst []float64) {
	for i, slot := range e.terms {
		dst[i] = e.frame[slot]
		if e.rule != nil && (math.IsNaN(dst[i]) || math.IsInf(dst[i], 0)) {
			dst[i] = arch.RejectedTotal // a rejected configuration need not have a value
		}
	}
}
