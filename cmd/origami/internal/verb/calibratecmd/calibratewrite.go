package calibratecmd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// The JSON of `calibrate`.
type (
	calibrateObject struct {
		Device  string       `json:"driver_device_name"`
		Arch    string       `json:"arch"`
		InUse   string       `json:"in_use"`
		Records string       `json:"records"`
		Numbers []ask.Object `json:"numbers"`
		Probes  []probeValue `json:"probes"`
		Picks   picksJSON    `json:"picks"`
	}
	probeValue struct {
		Name    string   `json:"name"`
		Value   *float64 `json:"value"`
		Unit    string   `json:"unit"`
		Clock   float64  `json:"clock_hz,omitempty"`
		Spread  *float64 `json:"spread"`
		Rounds  int      `json:"rounds"`
		Refused string   `json:"refused,omitempty"`
	}
	picksJSON struct {
		Model      string          `json:"model"`
		ModelClass arch.ModelClass `json:"model_class,omitempty"`
		Kernel     string          `json:"kernel"`
		Rung       arch.Rung       `json:"rung"`
		Sizes      int             `json:"sizes"`
		Changed    []pickJSON      `json:"changed"`
	}
	pickJSON struct {
		Problem         gemm.Record `json:"problem"`
		Before          gemm.Config `json:"before"`
		After           gemm.Config `json:"after"`
		PredictedBefore float64     `json:"predicted_before_seconds"`
		PredictedAfter  float64     `json:"predicted_after_seconds"`
	}
)

// columns are the columns of the numbers. The methods are too long for people; they are in the device file and in docs.
func (c *comparison) columns() table.Columns[calibrate.Number] {
	type number = calibrate.Number
	used := func(n *number) *float64 {
		if p, ok := c.used(n); ok {
			return &p.Value
		}
		return nil
	}
	clock := func(n *number) float64 { return float64(n.Clock) }
	method := func(n *number) string { return n.Source }
	return table.Columns[number]{
		table.Col("name|number", func(n *number) string { return n.Name }),
		table.Col("value", func(n *number) float64 { return n.Value }, digits.SixDigits).Same(),
		table.Col("unit", func(n *number) string { return n.Unit }),
		table.Col("parameter|-", func(n *number) bool { return n.Parameter }),
		table.Opt("in_use", func(n *number) float64 { return table.Known(used(n)) }, digits.SixDigits).Same(),
		table.Col("in_use_tier|tier", func(n *number) string {
			if p, ok := c.used(n); ok {
				return p.Tier.String()
			}
			return ""
		}).Omit(),
		table.Col("method|-", method),
		table.Col("date|-", func(n *number) string { return n.Date }),
		table.Col("clock_hz|-", clock).Omit(),
		table.Col("spread", func(n *number) float64 { return n.Spread }, digits.Percent).Same(),
		table.Col("probes|-", func(n *number) []string { return n.Probes }),
		table.Opt("-|clock_ghz", func(n *number) float64 { return table.Positive(clock(n) / 1e9) }, digits.SixDigits).Same(),
		table.Col("-|method|-", method),
	}
}

func (o *CalibrateOptions) write(r *outcome, c *comparison, format table.Format) error {
	if format == table.JSON {
		return table.JSONLine(o.Factory.Streams, newCalibrateObject(r, c))
	}
	if err := c.columns().Write(o.Factory.Streams, format, r.numbers); err != nil {
		return err
	}
	o.notes(c)
	return nil
}

// notes says what the numbers do to the picks.
func (o *CalibrateOptions) notes(c *comparison) {
	s := o.Factory.Streams
	s.Note(fmt.Sprintf("the numbers in use are those of %s; with the measured ones %d of %d picks of the model %s change "+
		"(%s)", c.inUse.ID(), c.changed(), len(c.picks), c.inUse.Model, c.rung))
	for _, p := range c.picks {
		if p.before != p.after {
			s.Note(fmt.Sprintf("%s: %s, was %s, which takes %s longer by these numbers", p.problem, p.after, p.before,
				digits.Percent(float64(p.predictedBefore/p.predictedAfter)-1)))
		}
	}
}

func newCalibrateObject(r *outcome, c *comparison) calibrateObject {
	out := calibrateObject{Device: r.records.Device.Name, Arch: r.records.Device.Arch, InUse: c.inUse.ID(),
		Records: r.file, Numbers: c.columns().Objects(r.numbers),
		Picks: picksJSON{Model: c.inUse.Model, ModelClass: c.inUse.ModelClass, Rung: c.rung,
			Sizes: len(c.picks), Changed: []pickJSON{}}}
	if len(c.inUse.Kernels) > 0 {
		out.Picks.Kernel = c.inUse.Kernels[0]
	}
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		out.Probes = append(out.Probes, newProbeValue(name, r.values[name], r.refused[name]))
	}
	for _, p := range c.picks {
		if p.before != p.after {
			out.Picks.Changed = append(out.Picks.Changed, pickJSON{p.problem.Record(), p.before, p.after,
				float64(p.predictedBefore), float64(p.predictedAfter)})
		}
	}
	return out
}

func newProbeValue(name string, v calibrate.Value, refused string) probeValue {
	p := probeValue{Name: name, Unit: v.Unit, Clock: float64(v.Clock), Rounds: v.Rounds, Refused: refused}
	if v.Rounds >= calibrate.MinRounds {
		p.Value, p.Spread = &v.Value, &v.Spread
	}
	return p
}
