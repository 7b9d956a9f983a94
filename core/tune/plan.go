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
	// Usable counts the candidates of all sizes of a set, by type and set.
	Usable [][]int

	places map[gemm.Problem]int
	held   int            // the candidates of all sizes
	spaces [][]arch.Space // of the sets, by type
	listed [][][]gemm.Config
	kernel string

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
	p := &Plan{File: f, places: map[gemm.Problem]int{}, kernel: kernel, top: top, mapped: mapped}
	if err := p.bind(a.Describe()); err != nil {
		return nil, err
	}
	for i := range f.Types {
		p.Usable = append(p.Usable, make([]int, len(f.Types[i].Sets)))
		for j := range f.Types[i].Sets {
			if err := p.rank(ctx, a, i, j); err != nil {
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

// bind checks the parameters and configurations of a file against the kernel family.
func (p *Plan) bind(d *arch.Description) error {
	axes := d.Axes(p.kernel)
	for i := range p.File.Types {
		var spaces []arch.Space
		var lists [][]gemm.Config
		for j := range p.File.Types[i].Sets {
			s := &p.File.Types[i].Sets[j]
			space, err := s.space(p.kernel, axes)
			if err != nil {
				return err
			}
			var list []gemm.Config
			listed := map[gemm.Config]bool{}
			for _, text := range s.Configs {
				c, err := gemm.ParseConfig(text.Text, gemm.Config{Kernel: p.kernel, SplitK: 1}, axes...)
				if err == nil {
					err = c.Validate(axes...)
				}
				if err == nil && listed[c] {
					err = diag.Inputf("the set lists %s twice", c).Do("leave one of them out")
				}
				if err != nil {
					return diag.Within(text.Where, err)
				}
				list, listed[c] = append(list, c), true
			}
			spaces, lists = append(spaces, space), append(lists, list)
		}
		p.spaces, p.listed = append(p.spaces, spaces), append(p.listed, lists)
	}
	return nil
}

// space returns the product of the values of a set.
func (s *Set) space(kernel string, declared []gemm.Axis) (arch.Space, error) {
	space := arch.Space{Kernel: kernel}
	all := slices.Clone(s.Fixed)
	for i := range s.Steps {
		if s.Steps[i].Action != Join {
			all = append(all, s.Steps[i].Axes...)
		}
	}
	for _, x := range append(all, s.Initial...) {
		to := &space
		if slices.ContainsFunc(s.Initial, func(y Axis) bool { return y.Where == x.Where }) {
			to = &arch.Space{Kernel: kernel} // it is checked, and widens nothing
		}
		if _, err := to.Set(x.Name, x.Values, declared); err != nil {
			return space, diag.Within(x.Where, err)
		}
	}
	return space, nil
}

// mostHeld bounds the candidates of all sizes of a plan together, which are held in memory, some 200 bytes each: 4,096
// sizes with all that a strategy considers.
const mostHeld = 4096 * Considered

// rank adds the candidates of a set to its sizes.
func (p *Plan) rank(ctx context.Context, a arch.Architecture, at, set int) error {
	s := &p.File.Types[at].Sets[set]
	if list := p.listed[at][set]; len(list) > 0 {
		a = arch.WithCandidates(a, list)
	}
	for problems := range slices.Chunk(s.Sizes, problemsAtOnce) {
		results, err := selector.Rank(ctx, a, selector.Request{Problems: problems, Space: p.spaces[at][set], Top: p.top,
			Map: p.mapped})
		if err != nil {
			return err
		}
		for i := range results {
			r := &results[i]
			if r.Err != nil {
				p.Unfit = append(p.Unfit, Unfit{s.Where, r.Err})
				continue
			}
			p.Usable[at][set] += r.Feasible
			if p.held += len(r.Entries); p.held > mostHeld {
				return diag.Inputf("up to this size the plan has more than %d candidates", mostHeld).At("%s", s.Where).
					Do("tune fewer sizes at once: give several files, or take longer steps")
			}
			p.add(a.Describe(), at, s, problems[i], r)
		}
	}
	return nil
}

// add adds ranked candidates to a size, those that it has from another set once.
func (p *Plan) add(d *arch.Description, at int, s *Set, problem gemm.Problem, r *selector.Result) {
	place, there := p.places[problem]
	if !there {
		place = len(p.Sizes)
		p.places[problem] = place
		p.Sizes = append(p.Sizes, Size{Problem: problem, Type: at})
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
