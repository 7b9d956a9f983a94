package wire

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

// opening is the answer to Open.
type opening struct {
	Description arch.Description
	Levels      []arch.Level
}

func (o *opening) check() error {
	d := &o.Description
	var c check
	if len(d.Kernels) == 0 {
		c.fail("a description without kernels")
	}
	for _, name := range d.Unused {
		if _, ok := hw.Set(d.Params).Lookup(name); !ok {
			c.fail("the unused parameter %q is not among the parameters", name)
		}
	}
	if err := d.CheckFamilies(); err != nil {
		c.fail("%v", err)
	}
	if len(o.Levels) == 0 {
		c.fail("no memory levels")
	}
	return c.err
}
