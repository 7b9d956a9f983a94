package session

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

// SearchFlags say which configurations to consider: other values on some axes of the model's space, or a list.
type SearchFlags struct {
	// Space holds "axis=value,value" words. Candidates is a file.
	Space      []string
	Candidates string
	// Invariant leaves out the configurations whose order of sums depends on M.
	Invariant bool

	once sync.Once // reads the file
	text []byte
	err  error
}

// Register adds the flags.
func (f *SearchFlags) Register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.Space, "space", nil,
		"consider these values of an axis, as `AXIS=V,V...`: split_k=1,2,4,8 or stages=2,3; may be repeated")
	flags.StringVar(&f.Candidates, "candidates", "",
		"consider the configurations in this `FILE` only: JSON or CSV with the names of origami or of "+
			"triton.Config; - is stdin")
}

// RegisterInvariant adds the flag for kernels whose order of sums does not depend on M.
func (f *SearchFlags) RegisterInvariant(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Invariant, "invariant", false,
		"consider only configurations whose order of sums does not depend on M: one order for all M")
}

// Restrict returns an architecture whose candidates are those that the flags ask for: a itself if they ask for nothing.
// They belong to the kernel family that is asked about. A family whose axes the flags do not fit has no candidates, and
// the error says why. The given family, or one of all if it is empty, must fit.
func (f *SearchFlags) Restrict(
	ctx context.Context, a arch.Architecture, kernel string, stdin io.Reader,
) (arch.Architecture, error) {
	return f.restrict(ctx, a, kernel, stdin, f.Invariant)
}

func (f *SearchFlags) restrict(
	ctx context.Context, a arch.Architecture, kernel string, stdin io.Reader, invariant bool,
) (arch.Architecture, error) {
	if len(f.Space) == 0 && f.Candidates == "" && !invariant {
		return a, nil
	}
	if len(f.Space) > 0 && f.Candidates != "" {
		return nil, diag.Inputf("--space and --candidates contradict each other").Do("leave one of them out")
	}
	d := a.Describe()
	first, err := ask.KernelFamily(d, kernel)
	if err != nil {
		return nil, err
	}
	space, err := models.ParseSpace("--space", f.Space)
	if err != nil {
		return nil, err
	}
	var text []byte
	if f.Candidates != "" {
		if text, err = f.read(ctx, stdin); err != nil {
			return nil, err
		}
	}
	r := &restricted{Architecture: a, first: first, of: map[string]family{}}
	for _, name := range d.Kernels {
		var one family
		if f.Candidates == "" {
			var of arch.Space
			if of, one.err = space.Of(d, name); one.err == nil && invariant {
				of, _, one.err = d.Invariant(of)
			}
			one.Architecture = arch.WithSpace(a, of)
		} else {
			var list []gemm.Config
			list, one.err = problems.Candidates(f.Candidates, text, name, d)
			if one.err == nil && invariant {
				list, one.err = onlyInvariant(d, name, list)
			}
			one.Architecture = arch.WithCandidates(a, list)
		}
		r.of[name] = one
	}
	for _, name := range d.Kernels {
		if r.of[name].err == nil && (kernel == "" || name == first) {
			return r, nil
		}
	}
	return nil, r.of[first].err
}

// onlyInvariant leaves the invariant configurations of a family in a list.
func onlyInvariant(d *arch.Description, kernel string, list []gemm.Config) ([]gemm.Config, error) {
	sums, err := d.SumsOf(kernel)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c gemm.Config) bool { return !sums.Has(&c, d.Axes(kernel)) })
	if len(list) == 0 {
		return nil, diag.Inputf("the order of sums depends on M in all configurations of the list").At("--candidates").
			Do("leave out --invariant, or list others")
	}
	return list, nil
}

// Searched is Architecture with the candidates that the flags ask for.
func (f *Factory) Searched(ctx context.Context, s *SearchFlags) (arch.Architecture, error) {
	one, err := f.Side(ctx, s)
	return one.Model, err
}

// Side resolves the settings to exactly one architecture and opens it.
func (f *Factory) Side(ctx context.Context, s *SearchFlags) (ask.Contender, error) {
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return ask.Contender{}, err
	}
	if len(targets) > 1 {
		return ask.Contender{}, diag.Inputf("%d architectures are given, and this command answers for one", len(targets)).
			At("--arch").Do("leave one, or use `origami compare`")
	}
	sides, err := f.Sides(ctx, targets, s)
	if err != nil {
		return ask.Contender{}, err
	}
	return sides[0], nil
}

// Sides opens targets.
func (f *Factory) Sides(ctx context.Context, targets []models.Found, s *SearchFlags) ([]ask.Contender, error) {
	sides := make([]ask.Contender, len(targets))
	for i := range targets {
		var err error
		if sides[i], err = f.OpenSide(ctx, &targets[i], s); err != nil {
			return nil, err
		}
		f.WarnUnused(&targets[i], sides[i].Describe())
	}
	return sides, nil
}

// OpenSide opens a target in the kernel family that was asked for, or the device's default, with the candidates that
// the flags ask for. It may be called from several goroutines.
func (f *Factory) OpenSide(ctx context.Context, t *models.Found, s *SearchFlags) (ask.Contender, error) {
	a, err := f.Open(ctx, t)
	if err != nil {
		return ask.Contender{}, err
	}
	one, err := ask.NewContender(f.host, t, a)
	if err != nil {
		return one, err
	}
	one.Fixed = one.Fixed || len(s.Space) > 0 || s.Candidates != "" || s.Invariant
	if one.Model, err = s.Restrict(ctx, a, t.OpenRequest.Kernel, f.Streams.In); err == nil && s.Invariant {
		one.Free, err = s.restrict(ctx, a, t.OpenRequest.Kernel, f.Streams.In, false)
	}
	return one, err
}

// read returns the file of candidates. Several architectures may ask for it.
func (f *SearchFlags) read(ctx context.Context, stdin io.Reader) ([]byte, error) {
	f.once.Do(func() {
		f.text, f.err = source{f.Candidates, "the file", "--candidates " + f.Candidates, limit.Kernels,
			"leave configurations out", "give a JSON or CSV file of configurations"}.readOr(ctx, stdin)
	})
	return f.text, f.err
}

// restricted is an architecture with other candidates of each kernel family. It has no Rank method, so that rankings
// are made from Candidates on this side of the plugin boundary.
type restricted struct {
	arch.Architecture
	first string // the family of a space that names none
	of    map[string]family
}

// family is an architecture whose candidates are those of one kernel family, or why it has none.
type family struct {
	arch.Architecture
	err error
}

// Candidates implements arch.Architecture.
func (r *restricted) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	name := cmp.Or(s.Kernel, r.first)
	one, known := r.of[name]
	switch {
	case !known:
		return r.Architecture.Candidates(ctx, p, s) // which says so
	case one.err != nil:
		return nil, one.err
	}
	return one.Candidates(ctx, p, s)
}

// Mapping implements arch.Architecture.
func (r *restricted) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if one := r.of[cmp.Or(c.Kernel, r.first)]; one.Architecture != nil {
		return one.Mapping(ctx, p, c)
	}
	return r.Architecture.Mapping(ctx, p, c)
}
