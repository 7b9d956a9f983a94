package main

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// needs names what a kernel of the family mma needs of an SM, and what it loads.
var needs = [...]string{"threads", "registers", "shared memory", "copies of a thread", "CTAs", "workspace"}

type need [len(needs)]int

// aligned is a problem whose rows are aligned to 16 bytes, and unaligned one whose rows are aligned to 2.
var aligned, unaligned = gemm.New(4096, 4096, 4096), gemm.New(4095, 4095, 4095)

// needOf returns what the kernel of a configuration needs for a problem, if there is one.
func needOf(p gemm.Problem, c gemm.Config) (n need, ok bool) {
	r, reason, _ := mma.SpecFor(gemmgen.NewCall(p), p.Output(), c).Resources()
	if reason != "" {
		return n, false
	}
	ceil := func(a, b int) int { return (a + b - 1) / b }
	partials, _ := gemmgen.Workspace(p, c)
	ctas := ceil(p.M, c.BlockM) * ceil(p.N, c.BlockN) * max(c.SplitK, 1)
	return need{r.Threads, r.Accumulators + r.Fragments, int(r.SharedMemory), r.CopiesA + r.CopiesB, ctas, int(partials)},
		true
}

// affected returns what differs among kernels that differ in nothing but what without leaves out.
func affected(all []gemm.Config, problems []gemm.Problem, without func(gemm.Config) gemm.Config) (found []bool) {
	found = make([]bool, len(needs))
	first := map[gemm.Config]need{}
	for _, c := range all {
		for _, p := range problems {
			n, ok := needOf(p, c)
			if !ok {
				continue
			}
			like := without(c)
			was, seen := first[like]
			if !seen {
				first[like] = n
				continue
			}
			for i := range needs {
				found[i] = found[i] || n[i] != was[i]
			}
		}
	}
	return found
}

// kernels returns the configurations of mma, with and without a split, with all values of one of its named axes.
func kernels(axis string) ([]gemm.Config, error) {
	f := mma.Family{}
	space := f.Space()
	space.SplitK = []int{1, 4}
	for _, x := range f.Axes() {
		if x.Name == axis {
			space.Axes = append(space.Axes, arch.AxisValues{Name: x.Name, Values: x.Values})
		}
	}
	return arch.Space{}.Enumerate(space, f.Axes()...)
}

// without returns a configuration without the value of an axis.
func without(c gemm.Config, axis string) gemm.Config {
	numbers := c.Numbers()
	for i, f := range gemm.Fields() {
		if f.Name == axis {
			numbers[i] = 0
		}
	}
	c.SetNumbers(numbers)
	if with, err := c.Axes.With(axis, ""); err == nil {
		c.Axes = with
	}
	return c
}

// marks are the cells of a row of a table.
func marks(found []bool) string {
	var b strings.Builder
	for _, yes := range found {
		b.WriteString(map[bool]string{true: " yes |", false: " |"}[yes])
	}
	return b.String()
}

// affectsTable writes for every axis of mma what it changes, found by changing it alone in every kernel of the family.
func affectsTable(mmaFamily family) (string, error) {
	var b strings.Builder
	b.WriteString("\n| mma's |")
	for _, name := range needs {
		b.WriteString(" " + name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(needs)) + "\n")
	row := func(name string, found []bool) { fmt.Fprintf(&b, "| %s |%s\n", name, marks(found)) }
	for _, axis := range mmaFamily.axes {
		all, err := kernels(axis.name)
		if err != nil {
			return "", err
		}
		row("`"+axis.name+"`", affected(all, []gemm.Problem{aligned},
			func(c gemm.Config) gemm.Config { return without(c, axis.name) }))
	}
	all, err := kernels("")
	if err != nil {
		return "", err
	}
	row("alignment of A and B", affected(all, []gemm.Problem{aligned, unaligned},
		func(c gemm.Config) gemm.Config { return c }))
	return b.String() + "\n", nil
}
