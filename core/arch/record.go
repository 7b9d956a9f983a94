package arch

import (
	"encoding/json"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// UncertaintyRecord is an Uncertainty in JSON, as commands write it and models ship it.
type UncertaintyRecord struct {
	Kernel      string             `json:"kernel"`                 // the kernel family
	Level       float64            `json:"level"`                  // the probability that a time lies in its interval
	Spread      float64            `json:"spread"`                 // sigma
	Plan        float64            `json:"plan_spread"`            // sigma for planning measurements
	Source      string             `json:"source"`                 // where it comes from
	Widening    *float64           `json:"widening"`               // `null` if it is unknown
	Checked     *Checked           `json:"checked"`                // `null` if the model does not say
	Ranges      []ErrorRangeRecord `json:"ranges"`                 // of measured ÷ predicted
	MedianError *float64           `json:"median_error,omitempty"` // absent if it is unknown
	Evidence    Evidence           `json:"evidence,omitempty"`     // absent, too, if the device was checked
}

// ErrorRangeRecord is an ErrorRange in JSON. Bound is null where every bound fits, Below where every time does.
type ErrorRangeRecord struct {
	Bound *string  `json:"bound"`                  // `null` where every bound fits
	Below *float64 `json:"below_seconds" unit:"s"` // up to which predicted time
	Low   float64  `json:"low"`                    // the ends
	High  float64  `json:"high"`
}

// Record returns the uncertainty as JSON has it.
func (u *Uncertainty) Record() UncertaintyRecord {
	out := UncertaintyRecord{Kernel: u.Kernel, Level: u.Level, Spread: u.Sigma, Plan: u.PlanSigma, Source: u.Source,
		Evidence: u.Evidence, Ranges: []ErrorRangeRecord{}}
	if len(u.Checked.Layouts) > 0 {
		checked := u.Checked
		out.Checked = &checked
	}
	if u.MedianError > 0 {
		out.MedianError = &u.MedianError
	}
	if u.Widening > 0 {
		out.Widening = &u.Widening
	}
	for _, r := range u.Ranges {
		converted := ErrorRangeRecord{Low: r.Low, High: r.High}
		if r.Bound != BoundUnknown {
			name := r.Bound.String()
			converted.Bound = &name
		}
		if below := float64(r.Below); below > 0 {
			converted.Below = &below
		}
		out.Ranges = append(out.Ranges, converted)
	}
	return out
}

// Uncertainty returns the uncertainty of a record. Ranges grow to 1 where all measured times of a kind were on one side
// of the predicted ones: an interval contains its prediction.
func (r *UncertaintyRecord) Uncertainty() (Uncertainty, error) {
	u := Uncertainty{Kernel: r.Kernel, Level: r.Level, Sigma: r.Spread, PlanSigma: r.Plan, Source: r.Source,
		Evidence: r.Evidence}
	if r.MedianError != nil {
		u.MedianError = *r.MedianError
	}
	if r.Widening != nil {
		u.Widening = *r.Widening
	}
	if r.Checked != nil {
		u.Checked = *r.Checked
	}
	for _, one := range r.Ranges {
		e := ErrorRange{Low: min(one.Low, 1), High: max(one.High, 1)}
		if one.Bound != nil {
			var ok bool
			if e.Bound, ok = boundNamed(*one.Bound); !ok {
				return u, diag.Inputf("unknown bound %q", *one.Bound)
			}
		}
		if one.Below != nil {
			e.Below = unit.Seconds(*one.Below)
		}
		u.Ranges = append(u.Ranges, e)
	}
	return u, nil
}

func boundNamed(name string) (Bound, bool) {
	for b, known := range boundNames {
		if known == name {
			return Bound(b), true
		}
	}
	return BoundUnknown, false
}

// MarshalJSON writes the ends of the range.
func (r Range) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{r.Low, r.High}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Range) UnmarshalJSON(text []byte) error {
	var ends [2]float64
	err := json.Unmarshal(text, &ends)
	r.Low, r.High = ends[0], ends[1]
	return err
}

// writtenLayout is a Layout in JSON.
type writtenLayout struct {
	DType  string `json:"dtype"`
	Out    string `json:"out_dtype"`
	TransA bool   `json:"trans_a"`
	TransB bool   `json:"trans_b"`
}

// MarshalJSON writes types and storage as of a problem.
func (l Layout) MarshalJSON() ([]byte, error) {
	return json.Marshal(writtenLayout{l.Types.In.String(), l.Types.Out.String(), l.AMajor == gemm.MajorM,
		l.BMajor == gemm.MajorK})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Layout) UnmarshalJSON(text []byte) error {
	var w writtenLayout
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	stored := gemm.Record{M: 2, N: 2, K: 2, Batch: 1, TransA: w.TransA, TransB: w.TransB, DType: w.DType, Out: w.Out}
	p, err := stored.Problem()
	*l = LayoutOf(&p)
	return err
}
