package arch

import "github.com/origami-gemm/origami/core/unit"

// Uncertainty says how far the times that a model predicts for one kernel family are from measured ones. It is found on
// recorded measurements (core/score), once per model and rung, and does not depend on the problem asked for.
type Uncertainty struct {
	Kernel string
	// Level is the share of the measured times, on sizes that were not used to find the ranges, that lie within them.
	Level float64
	// Ranges are tried in order, and the first that fits applies. The last one fits everything.
	Ranges []ErrorRange
	// Spread is the standard deviation of log(measured ÷ predicted) among the leading candidates of one problem: what all of
	// them have in common is not in it, since it changes no choice.
	Spread float64
	// PlanSpread is the one to plan measurements with. It is larger: the leading candidates are alike and err alike, so that
	// measuring another one of them brings less than if their errors were independent.
	PlanSpread float64
	// Source says what it was found on.
	Source string
}

// ErrorRange is the range of measured ÷ predicted time for one kind of prediction.
type ErrorRange struct {
	// Bound is what the model says limits the kernel; BoundUnknown fits every bound.
	Bound Bound
	// Below is what the predicted time must be less than; 0 fits every time.
	Below unit.Seconds
	// Low and High are the ends of the range, 0 < Low ≤ High.
	Low, High float64
}

// Interval returns the ends of the interval of a predicted time, and false if none of the ranges fits.
func (u *Uncertainty) Interval(b Bound, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	for i := range u.Ranges {
		r := &u.Ranges[i]
		if (r.Bound == BoundUnknown || r.Bound == b) && (r.Below == 0 || predicted < r.Below) {
			return predicted * unit.Seconds(r.Low), predicted * unit.Seconds(r.High), true
		}
	}
	return 0, 0, false
}

// UncertaintyOf returns how uncertain the model's times for a kernel family are, nil if that is not known.
func (d *Description) UncertaintyOf(kernel string) *Uncertainty {
	for i := range d.Uncertainty {
		if d.Uncertainty[i].Kernel == kernel {
			return &d.Uncertainty[i]
		}
	}
	return nil
}
