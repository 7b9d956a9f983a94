package tune

import (
	"cmp"
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
)

// Plan is a tuning file with a model's answers: each size with its candidates.
type Plan struct {
	File  *File
	Sizes []Size
	// Unfit are the sizes that a set has no usable candidate for.
	Unfit []Unfit

	places      map[gemm.Problem]int
	held        int // the candidates of all sizes
	top, mapped int
}

// Unfit is a size of a set without a usable candidate.
type Unfit struct {
	Where string
	Err   error
}

// Considered is how many candidates of a size a decision looks at: the best predictions. The fastest kernel is hardly
// ever behind them.
const Considered = 256

// problemsAtOnce is how many problems a model is asked about at once.
const problemsAtOnce = 64

// NewPlan asks a model for the candidates of each size: the best predictions of each set, or all if top is 0. mapped is
// how many of a set get a launch order, 0 for all.
func NewPlan(ctx context.Context, a arch.Architecture, kernel string, f *File, top, mapped int) (*Plan, error) {
	p := &Plan{File: f, places: map[gemm.Problem]int{}, top: top, mapped: mapped}
	for i := range f.Types {
		for j := range f.Types[i].Sets {
			if err := f.Types[i].Sets[j].bind(kernel, a.Describe().Axes(kernel)); err != nil {
				return nil, err
			}
		}
	}
	for i := range f.Types {
		for j := range f.Types[i].Sets {
			if err := p.rank(ctx, a, i, &f.Types[i].Sets[j]); err != nil {
				return nil, err
			}
		}
	}
	if len(p.Sizes) == 0 {
		return nil, diag.Within(p.Unfit[0].Where, p.Unfit[0].Err)
	}
	for i := range p.Sizes {
		slices.SortStableFunc(p.Sizes[i].Candidates, func(x, y Candidate) int {
			return cmp.Compare(x.Predicted, y.Predicted)
		})
	}
	return p, nil
}

// bind checks the parameters and configurations of a set against the kernel family.
func (s *Set) bind(kernel string, axes []gemm.Axis) error {
	s.space = arch.Space{Kernel: kernel}
	widen := func(to *arch.Space, list []Axis) error {
		for _, x := range list {
			if _, err := to.Set(x.Name, x.Values, axes); err != nil {
				return diag.Within(x.Where, err)
			}
		}
		return nil
	}
	err := widen(&s.space, s.Fixed)
	for i := 0; i < len(s.Steps) && err == nil; i++ {
		if s.Steps[i].Action != Join {
			err = widen(&s.space, s.Steps[i].Axes)
		}
	}
	if err == nil {
		err = widen(&arch.Space{Kernel: kernel}, s.Initial) // they are checked, and widen nothing
	}
	listed := map[gemm.Config]bool{}
	for _, text := range s.Configs {
		c, e := gemm.ParseConfig(text.Text, gemm.Config{Kernel: kernel, SplitK: 1}, axes...)
		if e == nil {
			e = c.Validate(axes...)
		}
		if e == nil && listed[c] {
			e = diag.Inputf("the set lists %s twice", c).Do("leave one of them out")
		}
		if e != nil {
			return diag.Within(text.Where, e)
		}
		s.list, listed[c] = append(s.list, c), true
	}
	return err
}

// mostHeld bounds the candidates of all sizes of a plan together, which are held in memory, some 200 bytes each: 4,096
// sizes with all that a strategy considers.
const mostHeld = 4096 * Considered

// rank adds the candidates of a set to its sizes.
func (p *Plan) rank(ctx context.Context, a arch.Architecture, kind int, s *Set) error {
	if len(s.list) > 0 {
		a = arch.WithCandidates(a, s.list)
	}
	for problems := range slices.Chunk(s.Sizes, problemsAtOnce) {
		results, err := selector.Rank(ctx, a, selector.Request{Problems: problems, Space: s.space, Top: p.top, Map: p.mapped})
		if err != nil {
			return err
		}
		for i := range results {
			r := &results[i]
			if r.Err != nil {
				p.Unfit = append(p.Unfit, Unfit{s.Where, r.Err})
				continue
			}
			s.Usable += r.Feasible
			if p.held += len(r.Entries); p.held > mostHeld {
				return diag.Inputf("up to this size the plan has more than %d candidates", mostHeld).At("%s", s.Where).
					Do("tune fewer sizes at once: give several files, or take longer steps")
			}
			p.add(a.Describe(), kind, s, problems[i], r)
		}
	}
	return nil
}

// add adds ranked candidates to a size, those that it has from another set once.
func (p *Plan) add(d *arch.Description, kind int, s *Set, problem gemm.Problem, r *selector.Result) {
	place, there := p.places[problem]
	if !there {
		place = len(p.Sizes)
		p.places[problem] = place
		p.Sizes = append(p.Sizes, Size{Problem: problem, Type: kind})
	}
	size := &p.Sizes[place]
	have := map[gemm.Config]bool{}
	for i := range size.Candidates {
		have[size.Candidates[i].Config] = true
	}
	size.Sets = append(size.Sets, s.Name)
	size.Usable += r.Feasible
	for _, e := range r.Entries {
		if !have[e.Config] {
			size.Candidates = append(size.Candidates, Candidate{e.Config, e.Estimate.Cycles.At(d.Clock)})
		}
	}
}

// BruteForce returns how many measurements it takes to measure every candidate at every size.
func (p *Plan) BruteForce() (n int) {
	for i := range p.Sizes {
		n += p.Sizes[i].Usable
	}
	return n
}
