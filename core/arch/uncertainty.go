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
	Kernel string  `json:"kernel"` // the kernel family
	Level  float64 `json:"level"`  // the share of measured times that the ranges contain, on other sizes
	// the standard deviation of log(measured ÷ predicted) among the leading candidates of one problem, without the error
	// that all of them share, which does not change the choice; 0 if it is unknown
	Sigma float64 `json:"spread"`
	// the spread to plan measurements with: larger, as the leading candidates are alike and so are their errors, so that
	// one measurement more gains less
	PlanSigma float64 `json:"plan_spread"`
	Source    string  `json:"source"` // how the numbers were found
	// the factor, at least 1, by which the widest range grows at both ends for sizes that were not checked: it then has
	// the same share of the times of every class of shape; absent if it is unknown, and such sizes have no interval
	Widening float64 `json:"widening,omitempty"`
	Checked  Checked `json:"checked,omitzero"` // what the numbers were found on
	// of measured ÷ predicted time: the first that matches applies, and the last matches everything; none if too few times
	// were measured
	Ranges []ErrorRange `json:"ranges,omitempty"`
	// the median of |predicted ÷ measured − 1| of the fastest kernels, absent if it is unknown
	MedianError float64 `json:"median_error,omitempty"`
	// whose times these are, absent for times of the device (Description.EvidenceOf). Ranges from other devices hold for
	// every problem of a checked type, or of any type if none was checked, and with a divisor only for what was checked
	Evidence Evidence `json:"evidence,omitempty"`
}

// ErrorRange is the range of measured ÷ predicted time for one kind of prediction.
type ErrorRange struct {
	Bound Bound `json:"bound,omitempty"` // what the model says limits the kernel, absent where every bound fits
	// an exclusive upper limit of the predicted time, absent where every time fits
	Below unit.Seconds `json:"below_seconds,omitempty" unit:"s"`
	Low   float64      `json:"low"` // the ends, 0 < low ≤ high
	High  float64      `json:"high"`
}

// Contain extends the ranges to 1 where all measured times of a kind were on one side of the predicted ones: an
// interval contains its prediction.
func (u *Uncertainty) Contain() {
	for i := range u.Ranges {
		r := &u.Ranges[i]
		r.Low, r.High = min(r.Low, 1), max(r.High, 1)
	}
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
