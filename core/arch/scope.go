package arch

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Scope says what a model knows of the error of a prediction.
type Scope struct {
	// Uncertainty applies to this problem. It is nil, and there is no interval, for a model that states none.
	Uncertainty *Uncertainty
	// Evidence is the grade of Uncertainty, EvidenceUnchecked without one.
	Evidence Evidence
	// Wide: only the sizes are outside. The interval is WideInterval.
	Wide bool

	least      unit.Seconds // that any kernel takes, or the problem at the peak; 0 if the model does not say
	conversion *Conversion
	problem    gemm.Problem // of the conversion
}

// interval returns the ends that the model's error gives a predicted time. Errors are of what the kernel takes: what
// the stopwatch adds has none.
func (s Scope) interval(b Bound, predicted unit.Seconds) (low, high unit.Seconds, ok bool) {
	added := unit.Seconds(0)
	if s.conversion != nil {
		added = s.conversion.Added(s.problem)
	}
	switch {
	case s.Uncertainty == nil:
		return 0, 0, false
	case s.Wide:
		low, high, ok = s.Uncertainty.WideInterval(predicted - added)
	default:
		low, high, ok = s.Uncertainty.Interval(b, predicted-added)
	}
	return low + added, high + added, ok
}

// Checked reports whether the error was measured on the device, on problems of this kind.
func (s Scope) Checked() bool { return s.Evidence == EvidenceChecked }

// Scope returns what the model knows of the error of its predictions for a kernel family, a problem and a split of K. A
// split of 0 counts as 1.
func (d *Description) Scope(kernel string, p *gemm.Problem, split int) Scope {
	s := Scope{least: unit.Seconds(d.Constant("timing_least", 0)), conversion: d.Conversion}
	if peak := float64(d.PeakFor(p.DType)); peak > 0 {
		clock, _ := hw.Set(d.Params).Lookup("clock")
		if loaded, ok := hw.Set(d.Params).Lookup("clock_loaded"); ok { // above the boost clock that the peak is of
			peak *= max(1, loaded.Value/clock.Value)
		}
		s.least = max(s.least, unit.Seconds(p.Flops()/peak))
	}
	u, kind, size := d.nearest(kernel, p, split)
	if s.Wide = size > 0; u == nil || len(u.Ranges) == 0 || kind > 0 || s.Wide && u.Widening < 1 ||
		len(d.Overridden()) > 0 {
		u, s.Wide = d.elsewhere(kernel, p, split)
	}
	s.Uncertainty, s.Evidence = u, d.EvidenceOf(u)
	if s.conversion != nil {
		s.problem = *p
	}
	return s
}

// EvidenceOf returns the evidence of an uncertainty for the device as it was opened. It is unchecked without an
// uncertainty, with too few times for a range, and if a hardware number of the device was overridden.
func (d *Description) EvidenceOf(u *Uncertainty) Evidence {
	switch {
	case u == nil || len(u.Ranges) == 0 || len(d.Overridden()) > 0:
		return EvidenceUnchecked
	case u.Evidence == "":
		return EvidenceChecked
	}
	return u.Evidence
}

// elsewhere returns what other errors say of a problem: the errors of the device on other kinds of problems, or else of
// its sisters, or else of other generations. Only the last count for changed hardware, and for a kind of problem that
// no device was timed with. It is nil without any. wide says that only the sizes are outside of what was checked.
func (d *Description) elsewhere(kernel string, p *gemm.Problem, split int) (found *Uncertainty, wide bool) {
	least := [2]int{math.MaxInt} // the grade, and how many sizes are outside
	for i := range d.Uncertainty {
		u := &d.Uncertainty[i]
		if u.Kernel != kernel || !u.Evidence.elsewhere() || !u.Checked.takes(p.DType) {
			continue
		}
		other := u.Evidence == EvidenceUnchecked
		if !other && (len(d.Overridden()) > 0 || len(u.Checked.unchecked(p)) > 0) {
			continue
		}
		kind, size := 0, 0
		if u.Checked.Divisor != (Range{}) { // else all problems of the types are alike
			kind, size = u.Checked.distance(p, max(split, 1))
		} else if other {
			size = math.MaxInt // the last resort
		}
		of := [2]int{slices.Index(Grades, u.Evidence), size}
		if kind > 0 || size > 0 && size < math.MaxInt && u.Widening < 1 || slices.Compare(of[:], least[:]) >= 0 {
			continue
		}
		found, wide, least = u, size > 0 && size < math.MaxInt, of
	}
	return found, wide
}

func (e Evidence) elsewhere() bool { return slices.Index(Grades, e) > 0 }

// takes reports whether a type of operands is one of those that were checked. All are if none is listed.
func (c *Checked) takes(t gemm.DType) bool {
	return len(c.Layouts) == 0 || slices.ContainsFunc(c.Layouts, func(l Layout) bool { return l.Types.In == t })
}

// Nearest returns the uncertainty of a kernel family that was found on the most similar problems, nil if there is none.
// It says what was checked, and Outside what is different here.
func (d *Description) Nearest(kernel string, p *gemm.Problem, split int) *Uncertainty {
	u, _, _ := d.nearest(kernel, p, split)
	return u
}

// nearest returns the uncertainty of a kernel family that was found on the most similar problems, with its distance.
// It is nil if the model states none for the family.
func (d *Description) nearest(kernel string, p *gemm.Problem, split int) (u *Uncertainty, kind, size int) {
	for i := range d.Uncertainty {
		if d.Uncertainty[i].Kernel != kernel || d.Uncertainty[i].Evidence.elsewhere() {
			continue
		}
		k, s := d.Uncertainty[i].Checked.distance(p, max(split, 1))
		if u == nil || k < kind || k == kind && s < size {
			u, kind, size = &d.Uncertainty[i], k, s
		}
	}
	return u, kind, size
}

// HasUncertainty reports whether a kernel family was checked on some problems.
func (d *Description) HasUncertainty(kernel string) bool {
	return slices.ContainsFunc(d.Uncertainty, func(u Uncertainty) bool {
		return u.Kernel == kernel && !u.Evidence.elsewhere()
	})
}

// HasSigma reports whether the model states by how much the errors of candidates of a kernel family differ, on this
// device or on a sister.
func (d *Description) HasSigma(kernel string) bool {
	return slices.ContainsFunc(d.Uncertainty, func(u Uncertainty) bool { return u.Kernel == kernel && u.Sigma > 0 })
}

// HasElsewhere reports whether the model states what errors on other devices say of a kernel family.
func (d *Description) HasElsewhere(kernel string) bool {
	return slices.ContainsFunc(d.Uncertainty, func(u Uncertainty) bool {
		return u.Kernel == kernel && u.Evidence.elsewhere()
	})
}

// Outside lists how a prediction lies outside of what the model was checked on, as in "fp8" and "K = 65536 above
// 32768". It is empty inside.
func (d *Description) Outside(kernel string, p *gemm.Problem, split int) []string {
	u, kind, size := d.nearest(kernel, p, split)
	if u == nil && d.Scope(kernel, p, split).Evidence == EvidenceRelated {
		return nil
	}
	if u == nil {
		what := "no times of this device were compared"
		if slices.ContainsFunc(d.Uncertainty, func(u Uncertainty) bool { return !u.Evidence.elsewhere() }) {
			what = "no times of the kernel family " + kernel + " on this device were compared"
		}
		return []string{what}
	}
	var out []string
	for _, name := range d.Overridden() {
		out = append(out, name+" was overridden")
	}
	c := &u.Checked
	if len(u.Ranges) == 0 && len(c.Layouts) > 0 { // how the problem lies to so few says nothing
		return append(out, "too few measured times")
	}
	if kind > 0 {
		out = append(out, c.otherKind(p, max(split, 1))...)
	}
	if size > 0 && len(c.Layouts) > 0 {
		out = append(out, c.otherSizes(p)...)
	}
	return out
}

// otherKind lists what makes a problem another kind than those that were checked.
func (c *Checked) otherKind(p *gemm.Problem, split int) (out []string) {
	switch l := LayoutOf(p); {
	case len(c.Layouts) == 0:
		return []string{"the model does not say what it was checked on"}
	case !c.hasTypes(l.Types):
		out = append(out, l.Types.Text())
	case !slices.Contains(c.Layouts, l):
		out = append(out, fmt.Sprintf("A contiguous along %c and B along %c", l.AMajor, l.BMajor))
	}
	switch v := float64(p.Divisor()); {
	case v < c.Divisor.Low:
		out = append(out, fmt.Sprintf("rows or addresses that %v does not divide", c.Divisor.Low))
	case v > c.Divisor.High:
		out = append(out, fmt.Sprintf("rows and addresses that %v divides", v))
	}
	if !c.Split.Contains(float64(split)) {
		out = append(out, checkedSize{"split", float64(split), c.Split}.text())
	}
	return append(out, c.unchecked(p)...)
}

// unchecked lists what a problem has that was not checked. Groups were checked only if all problems were in groups.
func (c *Checked) unchecked(p *gemm.Problem) (out []string) {
	grouped := p.Groups != (gemm.Groups{})
	for _, part := range []struct {
		there bool
		name  string
	}{
		{grouped && !c.grouped(), "groups"}, {!grouped && c.grouped(), "no groups"},
		{p.Nest != (gemm.Nest{}), "nested indices"}, {p.Beta != 0, "a beta"},
		{p.Epilogue != (gemm.Epilogue{}), "an epilogue"},
	} {
		if part.there {
			out = append(out, part.name)
		}
	}
	return out
}

// otherSizes lists which sizes of a problem are others than those that were checked. The amount of work is told only if
// every size by itself was checked.
func (c *Checked) otherSizes(p *gemm.Problem) (out []string) {
	sizes := c.sizes(p)
	for _, s := range sizes[:len(sizes)-1] {
		if !s.in.Contains(s.value) {
			out = append(out, s.text())
		}
	}
	if last := sizes[len(sizes)-1]; len(out) == 0 && !last.in.Contains(last.value) {
		out = append(out, last.text())
	}
	return out
}

// text says how a value lies outside.
func (s checkedSize) text() string {
	if s.value > s.in.High {
		return fmt.Sprintf("%s = %s above %s", s.name, s.number(s.value), s.number(s.in.High))
	}
	return fmt.Sprintf("%s = %s below %s", s.name, s.number(s.value), s.number(s.in.Low))
}

// number writes a dimension in full, and an amount of work with three digits.
func (s checkedSize) number(v float64) string {
	if s.name == work {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
