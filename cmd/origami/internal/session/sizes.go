package session

import "github.com/spf13/pflag"

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
