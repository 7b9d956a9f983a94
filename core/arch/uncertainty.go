package arch

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Uncertainty says how far a model's predicted times for one kernel family are from measured times. core/score finds it
// from a data set, once per model and rung. It does not depend on the sizes of a problem, and holds for the default
// type of results only.
type Uncertainty struct {
	Kernel string
	// Level is the share of measured times that the ranges contain, on sizes that they were not found on.
	Level float64
	// Ranges are tried in order, and the first that matches applies. The last one matches everything.
	Ranges []ErrorRange
	// Sigma is the standard deviation of log(measured ÷ predicted) among the leading candidates of one problem. It leaves
	// out the error that all of them share, which does not change the choice.
	Sigma float64
	// PlanSigma replaces Sigma when deciding how many candidates to measure. It is larger: the leading candidates are
	// alike and so are their errors, so measuring one more gains less than if the errors were independent.
	PlanSigma float64
	// Source names the data set that the numbers were found on.
	Source string
}

// ErrorRange is the range of measured ÷ predicted time for one kind of prediction.
type ErrorRange struct {
	// Bound is what the model says limits the kernel. BoundUnknown matches every bound.
	Bound Bound
	// Below is an exclusive upper limit of the predicted time. 0 matches every time.
	Below unit.Seconds
	// Low and High are the ends of the range, 0 < Low ≤ High.
	Low, High float64
}

// Interval returns the interval of a predicted time, and false if no range matches.
func (u *Uncertainty) Interval(b Bound, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	for i := range u.Ranges {
		r := &u.Ranges[i]
		if (r.Bound == BoundUnknown || r.Bound == b) && (r.Below == 0 || predicted < r.Below) {
			return predicted * unit.Seconds(r.Low), predicted * unit.Seconds(r.High), true
		}
	}
	return 0, 0, false
}

// UncertaintyOf returns the uncertainty of the model's times for a kernel family, nil if it is unknown.
func (d *Description) UncertaintyOf(kernel string) *Uncertainty {
	for i := range d.Uncertainty {
		if d.Uncertainty[i].Kernel == kernel {
			return &d.Uncertainty[i]
		}
	}
	return nil
}

// UncertaintyFor is UncertaintyOf for a problem. It is nil for what the data sets behind it do not have: groups, and
// other types of results than the default.
func (d *Description) UncertaintyFor(kernel string, p *gemm.Problem) *Uncertainty {
	if p.Output() != p.DType.Output() || p.Groups != (gemm.Groups{}) {
		return nil
	}
	return d.UncertaintyOf(kernel)
}
