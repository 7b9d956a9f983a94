package arch

import (
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
	Checked     *CheckedRecord     `json:"checked"`                // `null` if the model does not say
	Ranges      []ErrorRangeRecord `json:"ranges"`                 // of measured ÷ predicted
	MedianError *float64           `json:"median_error,omitempty"` // absent if it is unknown
}

// CheckedRecord is a Checked in JSON. Ranges have their ends.
type CheckedRecord struct {
	DataSet string         `json:"data_set"`        // the measurements
	Sizes   int            `json:"sizes"`           // how many
	Times   int            `json:"times,omitempty"` // how many; absent if it is unknown
	Layouts []LayoutRecord `json:"layouts"`         // types and layouts
	Divisor [2]float64     `json:"divisor"`         // the ends of each range
	Split   [2]float64     `json:"split_k"`
	M       [2]float64     `json:"m"`
	N       [2]float64     `json:"n"`
	K       [2]float64     `json:"k"`
	Batch   [2]float64     `json:"batch"`
	Flops   [2]float64     `json:"flops"`
}

// LayoutRecord is a Layout in JSON.
type LayoutRecord struct {
	DType  string `json:"dtype"` // the types of the operands and of the result
	Out    string `json:"out_dtype"`
	TransA bool   `json:"trans_a"` // as in `problem`
	TransB bool   `json:"trans_b"`
}

// ErrorRangeRecord is an ErrorRange in JSON. Bound is null where every bound fits, Below where every time does.
type ErrorRangeRecord struct {
	Bound *string  `json:"bound"`         // `null` where every bound fits
	Below *float64 `json:"below_seconds"` // up to which predicted time; `null` where every time fits
	Low   float64  `json:"low"`           // the ends
	High  float64  `json:"high"`
}

// Record returns the uncertainty as JSON has it.
func (u *Uncertainty) Record() UncertaintyRecord {
	out := UncertaintyRecord{Kernel: u.Kernel, Level: u.Level, Spread: u.Sigma, Plan: u.PlanSigma, Source: u.Source,
		Checked: u.Checked.record(), Ranges: []ErrorRangeRecord{}}
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

func (c *Checked) record() *CheckedRecord {
	if len(c.Layouts) == 0 {
		return nil
	}
	ends := func(r Range) [2]float64 { return [2]float64{r.Low, r.High} }
	out := &CheckedRecord{DataSet: c.DataSet, Sizes: c.Sizes, Times: c.Times, Divisor: ends(c.Divisor),
		Split: ends(c.Split), M: ends(c.M), N: ends(c.N), K: ends(c.K), Batch: ends(c.Batch), Flops: ends(c.Flops)}
	for _, l := range c.Layouts {
		out.Layouts = append(out.Layouts, LayoutRecord{DType: l.Types.In.String(), Out: l.Types.Out.String(),
			TransA: l.AMajor == gemm.MajorM, TransB: l.BMajor == gemm.MajorK})
	}
	return out
}

// Uncertainty returns the uncertainty of a record.
func (r *UncertaintyRecord) Uncertainty() (Uncertainty, error) {
	u := Uncertainty{Kernel: r.Kernel, Level: r.Level, Sigma: r.Spread, PlanSigma: r.Plan, Source: r.Source}
	if r.MedianError != nil {
		u.MedianError = *r.MedianError
	}
	if r.Widening != nil {
		u.Widening = *r.Widening
	}
	if r.Checked != nil {
		var err error
		if u.Checked, err = r.Checked.checked(); err != nil {
			return u, err
		}
	}
	for _, one := range r.Ranges {
		e := ErrorRange{Low: one.Low, High: one.High}
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

func (r *CheckedRecord) checked() (Checked, error) {
	of := func(ends [2]float64) Range { return Range{ends[0], ends[1]} }
	out := Checked{
		DataSet: r.DataSet, Sizes: r.Sizes, Times: r.Times, Divisor: of(r.Divisor), Split: of(r.Split), M: of(r.M),
		N: of(r.N), K: of(r.K), Batch: of(r.Batch), Flops: of(r.Flops),
	}
	for _, l := range r.Layouts {
		stored := gemm.Record{M: 2, N: 2, K: 2, Batch: 1, TransA: l.TransA, TransB: l.TransB, DType: l.DType, Out: l.Out}
		p, err := stored.Problem()
		if err != nil {
			return out, err
		}
		out.Layouts = append(out.Layouts, LayoutOf(&p))
	}
	return out, nil
}
