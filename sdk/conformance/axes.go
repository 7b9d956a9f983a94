package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/wire"
)

// checkAxes checks that the kernel families honour the axes that they declare and refuse all others.
func checkAxes(ctx context.Context, s *subject, found *findings, _ wire.Info) error {
	groups, err := s.byTarget(ctx)
	if err != nil {
		return err
	}
	for _, group := range groups {
		c := group[0]
		declared := c.Describe().Axes(c.kernel)
		c.refusesAxis(ctx, found, unusedName(declared), "1")
		for i := range declared {
			x := &declared[i]
			if x.Doc == "" {
				found.add("%s: the axis %s has no explanation", c.target, x.Name)
			}
			c.refusesAxis(ctx, found, x.Name, "no.such-value")
			for _, value := range spread(axisValues(x), 3) {
				c.honoursAxis(ctx, found, x, value)
			}
		}
	}
	return nil
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

// axisValues are the values of an axis, the default first.
func axisValues(x *gemm.Axis) []string {
	values := []string{x.Default}
	for _, v := range x.Values {
		if v != x.Default {
			values = append(values, v)
		}
	}
	return values
}

// refusesAxis checks that the plugin refuses a space and a configuration with an undeclared value. A plugin that
// ignores the value answers for another kernel.
func (c *testcase) refusesAxis(ctx context.Context, found *findings, name, value string) {
	what := func(asked string) string {
		return fmt.Sprintf("%s: %s with the axis %s at %s", c.target, asked, name, value)
	}
	_, err := c.Candidates(ctx, c.problem, arch.Space{Kernel: c.kernel,
		Axes: []arch.AxisValues{{Name: name, Values: []string{value}}}})
	expectInput(found, what("Candidates of a space"), err)
	config := c.candidates.Configs[0]
	if config.Axes, err = config.Axes.With(name, value); err != nil {
		found.add("%s: %s", what("a configuration"), err)
		return
	}
	configs := []gemm.Config{config}
	err = c.Estimate(ctx, make([]arch.Estimate, 1), c.problem, configs)
	expectInput(found, what("Estimate of a configuration"), err)
	err = c.Terms(ctx, make([]float64, len(c.Describe().Terms)), c.problem, configs)
	expectInput(found, what("Terms of a configuration"), err)
	_, err = c.Mapping(ctx, c.problem, config)
	expectInput(found, what("Mapping of a configuration"), err)
}

// honoursAxis checks that a space with one value on an axis has the configurations with that value, and no others.
func (c *testcase) honoursAxis(ctx context.Context, found *findings, x *gemm.Axis, value string) {
	space := arch.Space{Kernel: c.kernel, Axes: []arch.AxisValues{{Name: x.Name, Values: []string{value}}}}
	list, err := c.Candidates(ctx, c.problem, space)
	if err != nil {
		found.add("%s: Candidates with %s at %s: %s", c, x.Name, value, err)
		return
	}
	configs := slices.Clone(list.Configs)
	for _, r := range list.Rejected {
		configs = append(configs, r.Config)
	}
	if len(configs) == 0 {
		found.add("%s: it lists no configurations with %s at %s, not even rejected ones", c, x.Name, value)
	}
	for _, config := range configs {
		if got := x.Value(config.Axes); got != value {
			found.add("%s: asked for %s at %s, it lists %s, which has it at %s", c, x.Name, value, config, got)
			return
		}
	}
	if err := c.Estimate(ctx, make([]arch.Estimate, len(configs)), c.problem, configs); err != nil {
		found.add("%s: Estimate with %s at %s: %s", c, x.Name, value, err)
	}
}
