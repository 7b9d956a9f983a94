package conformance

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// changes are copies of a good value with one change each, named by it.
func changes[T any](good T, list []named[func(*T)]) []named[T] {
	var bad []named[T]
	for _, change := range list {
		v := good
		change.value(&v)
		bad = append(bad, named[T]{change.what, v})
	}
	return bad
}

// badConfigs are configurations with an impossible number.
func badConfigs(good gemm.Config) []named[gemm.Config] {
	stages := named[func(*gemm.Config)]{"no pipeline stage", func(c *gemm.Config) { c.NumStages = 0 }}
	if good.NumStages == 0 {
		stages = named[func(*gemm.Config)]{"pipeline stages that nobody knows", func(c *gemm.Config) { c.NumStages = 4 }}
	}
	return changes(good, []named[func(*gemm.Config)]{
		{"a block of 0", func(c *gemm.Config) { c.BlockM = 0 }},
		{"a negative block", func(c *gemm.Config) { c.BlockK = -64 }},
		{"a block of 2^40", func(c *gemm.Config) { c.BlockN = 1 << 40 }},
		{"a block of 2^62", func(c *gemm.Config) { c.BlockM = 1 << 62 }},
		{"-1 warps", func(c *gemm.Config) { c.NumWarps = -1 }},
		stages,
		{"2^40 pipeline stages", func(c *gemm.Config) { c.NumStages = 1 << 40 }},
		{"a split of 0", func(c *gemm.Config) { c.SplitK = 0 }},
		{"a split of 2^40", func(c *gemm.Config) { c.SplitK = 1 << 40 }},
		{"a launch group below 0", func(c *gemm.Config) { c.GroupM = -1 }},
		{"a launch group of 2^40", func(c *gemm.Config) { c.GroupM = 1 << 40 }},
		{"an unknown kernel family", func(c *gemm.Config) { c.Kernel = unknownName }},
	})
}

// badProblems are impossible problems.
func badProblems(good gemm.Problem) []named[gemm.Problem] {
	return changes(good, []named[func(*gemm.Problem)]{
		{"with m = 0", func(p *gemm.Problem) { p.M = 0 }},
		{"with n = -1", func(p *gemm.Problem) { p.N = -1 }},
		{"with k = 0", func(p *gemm.Problem) { p.K = 0 }},
		{"with batch = -7", func(p *gemm.Problem) { p.Batch = -7 }},
		{"of 2^62 by 2^62", func(p *gemm.Problem) { p.M, p.N = 1<<62, 1<<62 }},
		{"without an element type", func(p *gemm.Problem) { p.DType = 0 }},
		{"without a storage order", func(p *gemm.Problem) { p.AMajor = 0 }},
		{"with rows of A that overlap", func(p *gemm.Problem) { p.LDA = 1 }},
		{"with a leading dimension of C of 2^62", func(p *gemm.Problem) { p.LDC = 1 << 62 }},
		{"with B aligned to 3 bytes", func(p *gemm.Problem) { p.AlignB = 3 }},
		{"of results that no hardware has", func(p *gemm.Problem) { p.Out = gemm.TF32 }},
	})
}

// refusesKernel checks that no prediction takes a problem with a configuration.
func (c *testcase) refusesKernel(r *run, what string, p gemm.Problem, config gemm.Config) {
	configs := []gemm.Config{config}
	r.refuses(c.Estimate(r, make([]arch.Estimate, 1), p, configs), "%s: Estimate of %s", c.target, what)
	r.refuses(c.Terms(r, make([]float64, len(c.Describe().Terms)), p, configs), "%s: Terms of %s", c.target, what)
	_, err := c.Mapping(r, p, config)
	r.refuses(err, "%s: Mapping of %s", c.target, what)
}

// refusesSpace checks that Candidates does not take a space.
func (c *testcase) refusesSpace(r *run, what string, space arch.Space) {
	_, err := c.Candidates(r, c.problem, space)
	r.refuses(err, "%s: Candidates of a space with %s", c.target, what)
}

// checkBadInput sends impossible problems, configurations and spaces.
func checkBadInput(r *run, group []*testcase) {
	c := group[0]
	good := c.candidates.Configs[0]
	for _, bad := range append(badProblems(c.problem), named[gemm.Problem]{"of a type that the family does not have",
		untaken(c.Describe(), c.problem, good.Kernel)}) {
		c.refusesKernel(r, "a problem "+bad.what, bad.value, good)
	}
	for _, bad := range badConfigs(good) {
		c.refusesKernel(r, "a configuration with "+bad.what, c.problem, bad.value)
	}
	for _, bad := range changes(c.space(), []named[func(*arch.Space)]{
		{"an unknown kernel family", func(s *arch.Space) { s.Kernel = unknownName }},
		{"a block of 0", func(s *arch.Space) { s.BlockM = []int{0} }},
		{"a negative block", func(s *arch.Space) { s.BlockN = []int{-16} }},
		{"a block of 2^40", func(s *arch.Space) { s.BlockK = []int{1 << 40} }},
	}) {
		c.refusesSpace(r, bad.what, bad.value)
	}
	c.compare(r, &r.findings, c.Architecture, "after bad requests", c.all())
}

// untaken is a problem of a type that a family does not have: by its declared types, or without any by the matrix
// instructions of the device. If the family has all types, the type is zero, which no model takes.
func untaken(d *arch.Description, p gemm.Problem, kernel string) gemm.Problem {
	declares := slices.ContainsFunc(d.Families, func(f arch.Family) bool { return f.Name == kernel && len(f.Types) > 0 })
	p.Out = 0
	for _, p.DType = range gemm.DTypes() {
		if declares && d.SupportsTypes(kernel, &p) != nil || !declares && d.Atom(p.DType) == nil {
			return p
		}
	}
	p.DType = 0
	return p
}

// checkAxes checks that a kernel family honours the axes that it declares and refuses all others. A plugin that ignores
// a value answers for another kernel.
func checkAxes(r *run, group []*testcase) {
	c := group[0]
	declared := c.Describe().Axes(c.kernel)
	c.refusesAxis(r, unusedName(declared), "1")
	for i := range declared {
		x := &declared[i]
		r.when(x.Doc == "", "%s: the axis %s has no explanation", c.target, x.Name)
		c.refusesAxis(r, x.Name, "no.such-value")
		others := slices.DeleteFunc(slices.Clone(x.Values), func(v string) bool { return v == x.Default })
		for _, value := range spread(append([]string{x.Default}, others...), 3) {
			c.honoursAxis(r, x, value)
		}
	}
}

// unusedName is the name of an undeclared axis.
func unusedName(declared []gemm.Axis) string {
	for i := 0; ; i++ {
		name := "undeclared_" + strconv.Itoa(i)
		if _, err := gemm.FindAxis(declared, name); err != nil {
			return name
		}
	}
}

// along is the space of a target with one value on an axis.
func (t *target) along(axis, value string) arch.Space {
	return arch.Space{Kernel: t.kernel, Axes: []arch.AxisValues{{Name: axis, Values: []string{value}}}}
}

// refusesAxis checks that the plugin refuses a space and a configuration with an undeclared value.
func (c *testcase) refusesAxis(r *run, name, value string) {
	what := fmt.Sprintf("the axis %s at %s", name, value)
	c.refusesSpace(r, what, c.along(name, value))
	config := c.candidates.Configs[0]
	var err error
	config.Axes, err = config.Axes.With(name, value)
	if !r.fails(err, "%s: a configuration with %s", c.target, what) {
		c.refusesKernel(r, "a configuration with "+what, c.problem, config)
	}
}

// honoursAxis checks that a space with one value on an axis has the configurations with that value, and no others.
func (c *testcase) honoursAxis(r *run, x *gemm.Axis, value string) {
	list, err := c.Candidates(r, c.problem, c.along(x.Name, value))
	if r.fails(err, "%s: Candidates with %s at %s", c, x.Name, value) {
		return
	}
	configs := slices.Clone(list.Configs)
	for _, rejected := range list.Rejected {
		configs = append(configs, rejected.Config)
	}
	r.when(len(configs) == 0, "%s: it lists no configurations with %s at %s, not even rejected ones", c, x.Name, value)
	for _, config := range configs {
		if got := x.Value(config.Axes); r.when(got != value, "%s: asked for %s at %s, it lists %s, which has it at %s", c,
			x.Name, value, config, got) {
			return
		}
	}
	r.fails(c.Estimate(r, make([]arch.Estimate, len(configs)), c.problem, configs), "%s: Estimate with %s at %s", c,
		x.Name, value)
}
