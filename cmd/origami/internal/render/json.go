package render

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
)

// Object is one configuration of one problem in JSON; docs/json.md describes it. Keys are never renamed or removed,
// only added.
type Object struct {
	Arch   string    `json:"arch"`
	Device string    `json:"device"`
	Model  string    `json:"model"`
	Kernel string    `json:"kernel"`
	Rung   arch.Rung `json:"rung"`
	// RungReason is that of arch.Description.
	RungReason string `json:"rung_reason,omitempty"`
	// RanksOnly says that the predicted times are none: the model puts configurations in order.
	RanksOnly bool `json:"ranks_only,omitempty"`
	// Validated says that the model has an error for the likes of this. Outside lists how it lies outside of what that was
	// found on.
	Validated bool        `json:"validated"`
	Outside   []string    `json:"outside"`
	Live      *Live       `json:"live,omitempty"`
	Problem   gemm.Record `json:"problem"`
	// Labels are the further columns of a problems file.
	Labels     table.Fields `json:"labels,omitempty"`
	Config     gemm.Config  `json:"config"`
	Predicted  *Predicted   `json:"predicted,omitempty"`
	Mapping    *Mapping     `json:"mapping,omitempty"`
	Candidates int          `json:"candidates"`
	Rejected   int          `json:"rejected"`
	// ExpectedRegret and WorthMeasuring are those of session.Regret.
	ExpectedRegret *float64 `json:"expected_loss,omitempty"`
	WorthMeasuring int      `json:"worth_measuring,omitempty"`

	Measured    *MeasuredJSON    `json:"measured,omitempty"`
	Contraction *ContractionJSON `json:"contraction,omitempty"`
	Logic       *LogicJSON       `json:"logic,omitempty"`
}

// MeasuredJSON is what was measured in JSON.
type MeasuredJSON struct {
	Executor   string          `json:"executor,omitempty"`
	Device     string          `json:"device_name"`
	Auto       bool            `json:"auto"`
	Noise      table.Number    `json:"noise_floor"`
	Candidates []CandidateJSON `json:"candidates"`
}

// CandidateJSON is a measured candidate in JSON; the times of one that could not be measured are null.
type CandidateJSON struct {
	Config    gemm.Config    `json:"config"`
	Predicted float64        `json:"predicted_seconds"`
	Median    *float64       `json:"median_seconds"`
	Spread    *float64       `json:"spread"`
	Runs      int            `json:"runs"`
	Status    dataset.Status `json:"status"`
	Detail    string         `json:"detail,omitempty"`
	Chosen    bool           `json:"chosen"`
}

// measuredJSON converts measurements.
func measuredJSON(a *session.Answer) *MeasuredJSON {
	m := a.Measured
	if m == nil {
		return nil
	}
	out := &MeasuredJSON{Executor: m.Executor, Device: m.Device, Auto: m.Auto, Noise: table.Number(m.Noise),
		Candidates: []CandidateJSON{}}
	for i := range m.Candidates {
		c := &m.Candidates[i]
		candidate := CandidateJSON{
			Config: c.Entry.Config, Predicted: float64(a.Seconds(&c.Entry)), Runs: c.Measurement.Runs,
			Status: c.Measurement.Status,
			Detail: c.Measurement.Detail, Chosen: c.Chosen,
		}
		if median := float64(c.Measurement.Median); median > 0 {
			candidate.Median, candidate.Spread = &median, &c.Measurement.RelativeMAD
		}
		out.Candidates = append(out.Candidates, candidate)
	}
	return out
}

// Live says which hardware numbers of a GPU of this machine its driver reported, and which were scaled from those of
// another device.
type Live struct {
	Name       string   `json:"name"`
	Driver     []string `json:"driver"`
	Scaled     []string `json:"scaled"`
	ScaledFrom string   `json:"scaled_from,omitempty"`
}

// LiveJSON returns where the numbers of a GPU of this machine come from, and nil for a device with a file.
func LiveJSON(d *arch.Description) *Live {
	live := &Live{Name: d.DeviceName, Driver: []string{}, Scaled: []string{}}
	for i := range d.Params {
		p := &d.Params[i]
		if p.Live() {
			live.Driver = append(live.Driver, p.Name)
		} else if from := p.ScaledFrom(); from != "" {
			live.Scaled, live.ScaledFrom = append(live.Scaled, p.Name), from
		}
	}
	if len(live.Driver)+len(live.Scaled) == 0 {
		return nil
	}
	return live
}

// Predicted is a prediction in JSON.
type Predicted struct {
	Cycles    float64   `json:"cycles"`
	Seconds   float64   `json:"seconds"`
	TFLOPS    float64   `json:"tflops"`
	Bound     string    `json:"bound"`
	Why       string    `json:"why,omitempty"`
	ClockHz   float64   `json:"clock_hz"`
	ClockRung arch.Rung `json:"clock_rung"`
	// Interval is where the measured time lies with the probability IntervalLevel.
	Interval      *[2]float64 `json:"interval_seconds,omitempty"`
	IntervalLevel float64     `json:"interval_level,omitempty"`
	// IntervalWidened is that of session.Answer.Widened.
	IntervalWidened float64 `json:"interval_widened,omitempty"`
}

// Mapping is a launch order over several dies in JSON.
type Mapping struct {
	GroupM int `json:"group_m"`
	XCDs   int `json:"xcds"`
	Chunk  int `json:"chunk"`
}

// ObjectOf returns an entry of an answer as a JSON object.
func ObjectOf(a *session.Answer, e *session.Entry) Object {
	o := Object{
		Arch: a.Arch.Arch, Device: a.Arch.Device, Model: a.Arch.Model, Kernel: a.Kernel, Rung: a.Arch.Rung,
		RungReason: a.Arch.RungReason, RanksOnly: a.Arch.RanksOnly,
		Validated: a.Scope(e).Uncertainty != nil, Outside: append([]string{}, a.Outside(e)...),
		Live:    LiveJSON(a.Arch),
		Problem: a.Problem.Record(), Config: e.Config, Candidates: a.Feasible, Rejected: a.RejectedTotal(),
		Measured: measuredJSON(a), Contraction: contractionJSON(a.Contraction), Logic: logicJSON(a.Logic),
	}
	if a.Regret != nil {
		o.ExpectedRegret, o.WorthMeasuring = &a.Regret.Expected, a.Regret.WorthMeasuring
	}
	if e.Estimate.Reject == "" {
		o.Predicted = &Predicted{
			Cycles: float64(e.Estimate.Cycles), Seconds: float64(a.Seconds(e)), TFLOPS: float64(a.Rate(e)) / 1e12,
			Bound:   e.Estimate.Bound.String(),
			ClockHz: float64(a.Arch.Clock), ClockRung: a.Arch.ClockRung,
		}
		if e.Terms != nil {
			o.Predicted.Why = Why(a, e)
		}
		if low, high, ok := a.Interval(e); ok {
			o.Predicted.Interval, o.Predicted.IntervalLevel = &[2]float64{float64(low), float64(high)},
				a.Scope(e).Uncertainty.Level
			if widened, ok := a.Widened(e); ok {
				o.Predicted.IntervalWidened = widened
			}
		}
	}
	if m := e.Mapping; m.XCDs > 0 {
		o.Mapping = &Mapping{m.GroupM, m.XCDs, m.Chunk}
	}
	return o
}

// TermJSON is one term in JSON. Value is null for a number that does not exist, as the total of a rejected candidate.
// Common is the name of the quantity in every model, where it differs from this one's. Used is false for a term that
// does not enter the total of this kernel, and otherwise absent.
type TermJSON struct {
	Value  *table.Number `json:"value"`
	Unit   string        `json:"unit"`
	Share  *table.Number `json:"share,omitempty"`
	Common string        `json:"common,omitempty"`
	Used   *bool         `json:"used,omitempty"`
}

// TermsJSON returns the terms of an entry by name, in the order of the schema.
func TermsJSON(a *session.Answer, e *session.Entry) table.Fields {
	fields := make(table.Fields, 0, len(e.Terms))
	for i := range e.Terms {
		fields = append(fields, table.Field{Name: a.Arch.Terms[i].Name, Value: TermJSONOf(a, e, i)})
	}
	return fields
}

// TermJSONOf returns the i-th term of an entry.
func TermJSONOf(a *session.Answer, e *session.Entry, i int) TermJSON {
	schema := a.Arch.Terms[i]
	t := TermJSON{Unit: schema.Unit, Common: schema.Common}
	if v := table.Number(e.Terms[i]); !session.IsRejectedTotal(schema, e.Terms[i]) {
		t.Value = &v
	}
	if s, ok := a.Share(e, i); ok {
		n := table.Number(s)
		t.Share = &n
	}
	return t
}
