package arch

import (
	"slices"

	"github.com/origami-gemm/origami/core/unit"
)

// Evidence is whose measured times an interval rests on.
type Evidence string

// The grades of evidence, the best first. Each says less about the device than the one before, so intervals are wider.
const (
	// EvidenceChecked: of the device, in the types and the scheme of scales.
	EvidenceChecked Evidence = "checked"
	// EvidenceRelated: of the device, but of another kind of problem, as another layout or release, or too few of this
	// kind to stand alone.
	EvidenceRelated Evidence = "related"
	// EvidenceSister: of other devices of the architecture, in the types and the scheme of scales.
	EvidenceSister Evidence = "sister"
	// EvidenceUnchecked: of other generations alone.
	EvidenceUnchecked Evidence = "unchecked"
)

// Grades lists the grades of evidence, the best first.
var Grades = []Evidence{EvidenceChecked, EvidenceRelated, EvidenceSister, EvidenceUnchecked}

// Worse reports whether evidence says less about the device than other evidence.
func (e Evidence) Worse(than Evidence) bool {
	return slices.Index(Grades, e) > slices.Index(Grades, than)
}

// Uncertainty says how far a model's predicted times for one kernel family are from measured times. core/score finds it
// from a data set, once per model and rung. Description.Scope says for which problems it holds.
type Uncertainty struct {
	Kernel string
	// Evidence is empty for times of the device itself: Description.EvidenceOf says what they are worth. Of the other
	// grades, the ranges hold for all problems of the types that Checked.Layouts have, and for all types if there are
	// none. With a Checked.Divisor they hold only for the problems that Checked contains.
	Evidence Evidence
	// Level is the share of measured times that the ranges contain, on sizes that they were not found on.
	Level float64
	// Ranges are tried in order, and the first that matches applies. The last one matches everything. There are none if
	// too few times were measured.
	Ranges []ErrorRange
	// Sigma is the standard deviation of log(measured ÷ predicted) among the leading candidates of one problem. It leaves
	// out the error that all of them share, which does not change the choice. 0 means that it is unknown.
	Sigma float64
	// PlanSigma replaces Sigma when deciding how many candidates to measure. It is larger: the leading candidates are
	// alike and so are their errors, so measuring one more gains less than if the errors were independent.
	PlanSigma float64
	// MedianError is the median of |predicted ÷ measured − 1| of the fastest kernels. 0 means that it is unknown.
	MedianError float64
	// Source says how the numbers were found.
	Source string
	// Checked is what they were found on.
	Checked Checked
	// Widening is the factor, at least 1, by which the widest range grows at both ends for sizes outside of Checked. With
	// it, the share Level of the times of every class of shape lies in the range that the other classes give. 0 means that
	// it is unknown, and such sizes have no interval.
	Widening float64
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

// Of returns the interval of a predicted time.
func (r ErrorRange) Of(predicted unit.Seconds) (low, high unit.Seconds) {
	return predicted * unit.Seconds(r.Low), predicted * unit.Seconds(r.High)
}

// Interval returns the interval of a predicted time, and false if no range matches.
func (u *Uncertainty) Interval(b Bound, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	for i := range u.Ranges {
		r := &u.Ranges[i]
		if (r.Bound == BoundUnknown || r.Bound == b) && (r.Below == 0 || predicted < r.Below) {
			low, high = r.Of(predicted)
			return low, high, true
		}
	}
	return 0, 0, false
}

// WideInterval returns the interval of a predicted time for sizes that were not checked: the interval of the widest
// range, times Widening. It returns false without a Widening.
func (u *Uncertainty) WideInterval(predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	if len(u.Ranges) == 0 || u.Widening < 1 {
		return 0, 0, false
	}
	low, high = u.WidestRange().Of(predicted)
	return low / unit.Seconds(u.Widening), high * unit.Seconds(u.Widening), true
}

// WidestRange returns the range from the lowest to the highest end of all ranges.
func (u *Uncertainty) WidestRange() ErrorRange {
	var widest ErrorRange
	for i, r := range u.Ranges {
		if i == 0 {
			widest.Low, widest.High = r.Low, r.High
		}
		widest.Low, widest.High = min(widest.Low, r.Low), max(widest.High, r.High)
	}
	return widest
}
