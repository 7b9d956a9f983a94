package tune

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// File is a tuning file: what to tune.
type File struct {
	// Kernel is the kernel family, empty if the file names none.
	Kernel string
	Types  []Type
}

// Of returns a file for problems, each once, with all candidates of the model. where is their place in errors.
func Of(problems []gemm.Problem, where string) *File {
	f := &File{}
	for _, p := range problems {
		kind := p
		kind.M, kind.N, kind.K, kind.Batch = 0, 0, 0, 0
		i := slices.IndexFunc(f.Types, func(t Type) bool { return t.Problem == kind })
		if i < 0 {
			i = len(f.Types)
			f.Types = append(f.Types, Type{Problem: kind, Sets: []Set{{Where: where}}})
		}
		if set := &f.Types[i].Sets[0]; !slices.Contains(set.Sizes, p) {
			set.Sizes = append(set.Sizes, p)
		}
	}
	return f
}

// Type is a problem type with its candidate sets.
type Type struct {
	// Problem has the types and the layout, and no sizes.
	Problem gemm.Problem
	// Most is the largest number of kernels of the type, 0 for any number.
	Most int
	Sets []Set
}

// Set is a set of candidates with the sizes that they are for.
type Set struct {
	Name, Where string
	// Configs lists the candidates. If there are none, they are the product of Fixed and of the values in Steps, and
	// parameters that neither has take the model's values.
	Configs []Text
	// Fixed and Initial are single values. Initial is where the steps start from.
	Fixed, Initial []Axis
	Steps          []Step
	Sizes          []gemm.Problem
	// Usable counts the candidates of all its sizes in a plan.
	Usable int

	space arch.Space
	list  []gemm.Config // Configs
}

// Text is a text of a file, and where it stands.
type Text struct{ Text, Where string }

// Axis is a parameter with its values.
type Axis struct {
	Name, Where string
	Values      []string
}

// Action is what a step does.
type Action string

// The actions of steps.
const (
	// Each measures the values of one parameter after the other, and keeps the fastest.
	Each Action = "each"
	// Fork makes a branch of each combination of values.
	Fork Action = "fork"
	// Join keeps the fastest of the branches that have equal values.
	Join Action = "join"
)

// Step is a step of the search.
type Step struct {
	Action Action
	// Axes are the parameters. Those of Join have no values.
	Axes  []Axis
	Where string
	// Sizes are those that the step is measured at, none for the set's median size.
	Sizes []gemm.Problem
}
