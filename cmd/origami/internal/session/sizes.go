package session

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Sizes is a flag that takes several sizes: a list of numbers and of ranges as in gemm.Steps, with colons.
type Sizes struct {
	values []int
	text   string
}

// String implements pflag.Value.
func (s *Sizes) String() string { return s.text }

// Type implements pflag.Value: the name of the argument in help.
func (s *Sizes) Type() string { return "SIZES" }

// Set implements pflag.Value.
func (s *Sizes) Set(text string) error {
	var values []int
	for _, part := range strings.Split(text, ",") {
		var numbers []int
		for _, cell := range strings.Split(part, ":") {
			v, err := strconv.Atoi(cell)
			if err != nil {
				return errors.New("is no list of sizes: " + strconv.Quote(cell) + " is not a whole number")
			}
			numbers = append(numbers, v)
		}
		steps, err := gemm.Steps(numbers...)
		var d *diag.Error
		if errors.As(err, &d) {
			return errors.New("is no list of sizes: " + d.What)
		}
		if values = append(values, steps...); len(values) > gemm.MostSteps {
			return errors.New("has too many sizes")
		}
	}
	slices.Sort(values)
	s.values, s.text = slices.Compact(values), text
	return nil
}

// Grid are the flags of a command that answers for a grid of sizes.
type Grid struct{ M, N, K Sizes }

// RegisterGrid adds the flags, with those of the type, the layout, the kernel family and the configurations.
func (f *ProblemFlags) RegisterGrid(flags *pflag.FlagSet, g *Grid) {
	f.Batch.value = 1
	flags.SortFlags = false
	flags.VarP(&g.M, "m", "m", "rows of A and C: a list of sizes and of ranges start:stop, start:step:stop or\n"+
		"start:step:increment:stop, where the step grows by the increment")
	flags.VarP(&g.N, "n", "n", "columns of B and C")
	flags.VarP(&g.K, "k", "k", "columns of A, rows of B")
	f.registerLayout(flags)
	f.registerFamily(flags)
	f.Search.Register(flags)
}

// Sizes returns the sizes of the grid in the order m, n, k. Those that are not given are empty.
func (g *Grid) Sizes() [3][]int { return [3][]int{g.M.values, g.N.values, g.K.values} }
