package wire

import (
	"errors"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func fromDescription(q *pb.Description) (*arch.Description, error) {
	if q == nil {
		return nil, errors.New("no description")
	}
	var c check
	d := c.decodeDescription(q)
	c.ids("a model", d.Model)
	c.ids("a model", d.Models...)
	c.ids("a kernel family", d.Kernels...)
	if len(d.Kernels) == 0 {
		c.fail("a description without kernels")
	}
	for _, name := range q.Unused {
		if _, ok := hw.Set(d.Params).Lookup(name); !ok {
			c.fail("the unused parameter %q is not among the parameters", name)
		}
	}
	if err := d.CheckFamilies(); err != nil {
		c.fail("%v", err)
	}
	return &d, c.err
}

func (c *check) checkConstant(k *arch.Constant) {
	if (k.Low != 0 || k.High != 0) && !k.Fits() {
		c.fail("%v, and is fitted between %v and %v", k.Value, k.Low, k.High)
	}
	if k.Reader() != "" && k.Value < 0 {
		c.fail("the constant %s is %v, below 0", k.Name, k.Value)
	}
}

func (c *check) checkCeiling(x *arch.Ceiling) {
	if x.Level != arch.AtCompute {
		x.DType = 0
	} else if x.DType == 0 {
		c.fail("an unspecified element type")
	}
}

func (c *check) checkTypes(t *gemm.Types) {
	if !t.Valid() {
		c.fail("%s operands are multiplied into %s results", t.In, t.Out)
	}
}

// mostSpread is a standard deviation by a factor of 22,000.
const mostSpread = 10

// mostWidening is the factor that is left of an interval that says nothing.
const mostWidening = 1e6

func (c *check) checkUncertainty(u *arch.Uncertainty) {
	c.atMost("the level of uncertainty", u.Level, 1)
	c.atMost("a spread", u.Sigma, mostSpread)
	c.atMost("a spread", u.PlanSigma, mostSpread)
	c.atMost("a median error", u.MedianError, mostSpread)
	c.atMost("a widening", u.Widening, mostWidening)
	if u.Evidence != "" && !slices.Contains(arch.Grades, u.Evidence) {
		c.fail("the evidence %q", u.Evidence)
	}
	if u.Widening > 0 && u.Widening < 1 {
		c.fail("a widening of %v, below 1", u.Widening)
	}
}

func (c *check) checkErrorRange(r *arch.ErrorRange) { c.ascending("an error range", r.Low, r.High) }
func (c *check) checkRange(r *arch.Range)           { c.ascending("a range", r.Low, r.High) }

func (c *check) ascending(what string, low, high float64) {
	if low > high {
		c.fail("%s from %v to %v", what, low, high)
	}
}

func (c *check) checkFitted(f *arch.Fitted) {
	for i := range f.Problems {
		f.Problems[i] = f.Problems[i].Canonical()
	}
}

func toLevels(levels []arch.Level) []*pb.Level { return each(levels, encodeLevel) }

func fromLevels(levels []*pb.Level) ([]arch.Level, error) {
	if len(levels) == 0 {
		return nil, errors.New("no memory levels")
	}
	var c check
	return all(levels, c.decodeLevel), c.err
}
