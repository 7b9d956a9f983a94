package question

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Search says which configurations to consider: other values on some axes of the model's space, or a list.
type Search struct {
	Space      []string `json:"space" arg:"AXIS=V,V..." help:"consider these values of an axis: split_k=1,2,4,8 or stages=2,3; may be repeated" rare:"yes"`
	Candidates Document `json:"candidates" arg:"FILE" file:"yes" rare:"yes" help:"consider the configurations in this file only: JSON or CSV with the names of origami or of triton.Config; - is stdin"`
}

// Orders asks for one order of sums.
type Orders struct {
	Invariant bool `json:"invariant" help:"consider only configurations whose order of sums does not depend on M: one order for all M"`
}

// Document is a file: its name on the command line, and its text once it is read. A request in JSON has the text.
type Document struct{ Name, Text string }

// String returns what Set reads.
func (d *Document) String() string { return d.Name }

// Set names the file.
func (d *Document) Set(name string) error {
	d.Name = name
	return nil
}

// UnmarshalJSON reads the text of the file, or a list of objects that it would have.
func (d *Document) UnmarshalJSON(value []byte) error {
	if value[0] != '"' {
		d.Text = string(value)
		return nil
	}
	return json.Unmarshal(value, &d.Text)
}

// Asked reports whether there is a file.
func (d *Document) Asked() bool { return *d != Document{} }

// Asked reports whether other configurations than the model's are considered.
func (q *Search) Asked() bool { return len(q.Space) > 0 || q.Candidates.Asked() }

// Restrict returns an architecture whose candidates are those that are asked for: a itself if nothing is. They belong
// to the kernel family that is asked about. A family whose axes the question does not fit has no candidates, and the
// error says why. The given family, or one of all if it is empty, must fit. The text of the candidates has been read.
func (q *Search) Restrict(a arch.Architecture, kernel string, invariant bool) (arch.Architecture, error) {
	if !q.Asked() && !invariant {
		return a, nil
	}
	if len(q.Space) > 0 && q.Candidates.Asked() {
		return nil, diag.Inputf("--space and --candidates contradict each other").Do("leave one of them out")
	}
	d := a.Describe()
	first, err := ask.KernelFamily(d, kernel)
	if err != nil {
		return nil, err
	}
	space, err := models.ParseSpace("--space", q.Space)
	if err != nil {
		return nil, err
	}
	r := &restricted{Architecture: a, first: first, of: map[string]family{}}
	for _, name := range d.Kernels {
		var one family
		if !q.Candidates.Asked() {
			if one.space, one.err = space.Of(d, name); one.err == nil && invariant {
				one.space, _, one.err = d.Invariant(one.space)
			}
		} else {
			var list []gemm.Config
			list, one.err = problems.Candidates(cmp.Or(q.Candidates.Name, "candidates"), []byte(q.Candidates.Text), name, d)
			if one.err == nil && invariant {
				list, one.err = onlyInvariant(d, name, list)
			}
			one.list = arch.WithCandidates(a, list)
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

// Reach makes targets answer with what their devices reach (models.Found.Reach), unless configurations are asked for.
func (q *Search) Reach(targets []models.Found, invariant bool) {
	if q.Asked() || invariant {
		return
	}
	for i := range targets {
		targets[i].Reach()
	}
}

// Side returns a target that was opened as a, with the candidates that are asked for. Several goroutines may call it.
func (q *Search) Side(s models.Source, t *models.Found, a arch.Architecture, invariant bool) (ask.Contender, error) {
	one, err := ask.NewContender(s, t, a)
	if err != nil {
		return one, err
	}
	one.Fixed = one.Fixed || q.Asked() || invariant
	if one.Model, err = q.Restrict(a, t.OpenRequest.Kernel, invariant); err == nil && invariant {
		one.Free, err = q.Restrict(a, t.OpenRequest.Kernel, false)
	}
	return one, err
}

// restricted is an architecture with other candidates of each kernel family. It has no Rank method, so that rankings
// are made from Candidates on this side of the plugin boundary.
type restricted struct {
	arch.Architecture
	first string // the family of a space that names none
	of    map[string]family
}

// family has the candidates of one kernel family, as a list or as a space, or the error why it has none.
type family struct {
	list  arch.Architecture // nil for a space
	space arch.Space
	err   error
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
	case one.list != nil:
		return one.list.Candidates(ctx, p, s)
	}
	return r.Architecture.Candidates(ctx, p, one.space)
}

// Mapping implements arch.Architecture.
func (r *restricted) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	if one := r.of[cmp.Or(c.Kernel, r.first)]; one.list != nil {
		return one.list.Mapping(ctx, p, c)
	}
	return r.Architecture.Mapping(ctx, p, c)
}
