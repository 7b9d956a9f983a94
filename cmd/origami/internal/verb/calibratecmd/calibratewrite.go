package calibratecmd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// probeColumns are the keys of the probes in JSON, of which a row has the name.
func (r *outcome) probeColumns() table.Columns[string] {
	known := func(name *string, v float64) *float64 {
		if r.values[*name].Rounds < calibrate.MinRounds {
			return nil
		}
		return &v
	}
	return table.Columns[string]{
		table.Col("name", func(name *string) string { return *name }),
		table.Col("value", func(name *string) *float64 { return known(name, r.values[*name].Value) }),
		table.Col("unit", func(name *string) string { return r.values[*name].Unit }),
		table.Col("clock_hz", func(name *string) float64 { return float64(r.values[*name].Clock) }).Omit(),
		table.Col("spread", func(name *string) *float64 { return known(name, r.values[*name].Spread) }),
		table.Col("rounds", func(name *string) int { return r.values[*name].Rounds }),
		table.Col("refused", func(name *string) string { return r.refused[*name] }).Omit(),
	}
}

// pickColumns are the keys of a changed pick in JSON.
var pickColumns = table.Columns[pick]{
	table.Col("problem", func(p *pick) gemm.Record { return p.problem.Record() }),
	table.Col("before", func(p *pick) gemm.Config { return p.before }),
	table.Col("after", func(p *pick) gemm.Config { return p.after }),
	table.Col("predicted_before_seconds", func(p *pick) float64 { return float64(p.predictedBefore) }),
	table.Col("predicted_after_seconds", func(p *pick) float64 { return float64(p.predictedAfter) }),
}

// object is the answer in JSON.
func (c *comparison) object() table.Columns[outcome] {
	kernel := ""
	if len(c.inUse.Kernels) > 0 {
		kernel = c.inUse.Kernels[0]
	}
	return table.Columns[outcome]{
		table.Col("driver_device_name", func(r *outcome) string { return r.records.Device.Name }),
		table.Col("arch", func(r *outcome) string { return r.records.Device.Arch }),
		table.Const[outcome]("in_use", c.inUse.ID()),
		table.Col("records", func(r *outcome) string { return r.file }),
		table.Col("numbers", func(r *outcome) []ask.Object { return c.columns().Objects(r.numbers) }),
		table.Col("probes", func(r *outcome) []ask.Object {
			return r.probeColumns().Objects(slices.Sorted(maps.Keys(r.values)))
		}),
		table.Const[outcome]("picks.model", c.inUse.Model),
		table.Const[outcome]("picks.model_class", c.inUse.ModelClass).Omit(),
		table.Const[outcome]("picks.kernel", kernel),
		table.Const[outcome]("picks.rung", c.rung),
		table.Const[outcome]("picks.sizes", len(c.picks)),
		table.Const[outcome]("picks.changed", pickColumns.Objects(c.changed())),
	}
}

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
		return table.JSONLine(o.Factory.Streams, c.object().Object(r))
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
		"(%s)", c.inUse.ID(), len(c.changed()), len(c.picks), c.inUse.Model, c.rung))
	for _, p := range c.changed() {
		s.Note(fmt.Sprintf("%s: %s, was %s, which takes %s longer by these numbers", p.problem, p.after, p.before,
			digits.Percent(float64(p.predictedBefore/p.predictedAfter)-1)))
	}
}
