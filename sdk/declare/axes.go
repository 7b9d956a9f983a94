package declare

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
)

// axis is a named axis as formulas see it.
type axis struct {
	gemm.Axis
	slot    int
	initial float64 // the number of its default
}

// compileAxes adds the named axes to the program, as inputs of formulas.
func (m *Model) compileAxes(c *compiled) error {
	d := arch.Description{Families: m.families()}
	for _, k := range m.Kernels {
		d.Kernels = append(d.Kernels, k.Name)
	}
	if err := d.CheckFamilies(); err != nil {
		return err
	}
	for i := range d.Families {
		for _, x := range d.Families[i].Axes {
			if slices.ContainsFunc(c.axes, func(a axis) bool { return a.Name == x.Name }) {
				continue // another family has the same axis
			}
			slot, err := c.Input(x.Name, formula.OnConfig)
			if err != nil {
				return fmt.Errorf("axis %s: %w", x.Name, err)
			}
			c.axes = append(c.axes, axis{x, slot, float64(x.Number(gemm.Axes{}))})
		}
	}
	return nil
}

// families describes the kernel families that have axes or a description.
func (m *Model) families() []arch.Family {
	var families []arch.Family
	for _, k := range m.Kernels {
		if len(k.Axes) > 0 || k.Doc != "" {
			families = append(families, arch.Family{Name: k.Name, Doc: k.Doc, Axes: k.Axes})
		}
	}
	return families
}

// putConfig puts a configuration with its named axes into a frame.
func (c *compiled) putConfig(frame []float64, config *gemm.Config) {
	c.PutConfig(frame, config)
	for i := range c.axes {
		x := &c.axes[i]
		frame[x.slot] = x.initial
		if config.Axes != (gemm.Axes{}) {
			frame[x.slot] = float64(x.Number(config.Axes))
		}
	}
}
