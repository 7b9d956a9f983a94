package calibratecmd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/gemm"
)

// The JSON of `calibrate`.
type (
	object struct {
		Device  string       `json:"driver_device_name"`
		Arch    string       `json:"arch"`
		InUse   string       `json:"in_use"`
		Records string       `json:"records"`
		Numbers []number     `json:"numbers"`
		Probes  []probeValue `json:"probes"`
		Picks   picksJSON    `json:"picks"`
	}
	number struct {
		Name      string   `json:"name"`
		Value     float64  `json:"value"`
		Unit      string   `json:"unit"`
		Parameter bool     `json:"parameter"`
		InUse     *float64 `json:"in_use"`
		Tier      string   `json:"in_use_tier,omitempty"`
		Method    string   `json:"method"`
		Date      string   `json:"date"`
		Clock     float64  `json:"clock_hz,omitempty"`
		Spread    float64  `json:"spread"`
		Probes    []string `json:"probes"`
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
		Model   string     `json:"model"`
		Kernel  string     `json:"kernel"`
		Rung    arch.Rung  `json:"rung"`
		Sizes   int        `json:"sizes"`
		Changed []pickJSON `json:"changed"`
	}
	pickJSON struct {
		Problem         gemm.Record `json:"problem"`
		Before          gemm.Config `json:"before"`
		After           gemm.Config `json:"after"`
		PredictedBefore float64     `json:"predicted_before_seconds"`
		PredictedAfter  float64     `json:"predicted_after_seconds"`
	}
)

func (o *Options) write(r *outcome, c *comparison, format table.Format) error {
	if format == table.JSON {
		return table.JSONLine(o.Factory.Streams, newObject(r, c))
	}
	header := []string{"number", "value", "unit", "in_use", "tier", "spread", "clock_ghz", "method"}
	var rows [][]string
	for i := range r.numbers {
		n := &r.numbers[i]
		inUse, tier, clock := "", "", ""
		if p, ok := c.used(n); ok {
			inUse, tier = table.SixDigits(p.Value), p.Tier.String()
		}
		if n.Clock > 0 {
			clock = table.SixDigits(float64(n.Clock) / 1e9)
		}
		rows = append(rows, []string{n.Name, table.SixDigits(n.Value), n.Unit, inUse, tier, table.Percent(n.Spread), clock,
			n.Source})
	}
	if format == table.Table { // the methods are in the device file and in docs
		header = header[:len(header)-1]
		for i := range rows {
			rows[i] = rows[i][:len(header)]
		}
	}
	if err := table.WriteRows(o.Factory.Streams, format, header, rows); err != nil {
		return err
	}
	o.notes(c)
	return nil
}

// notes says what the numbers do to the picks.
func (o *Options) notes(c *comparison) {
	s := o.Factory.Streams
	s.Note(fmt.Sprintf("the numbers in use are those of %s; with the measured ones %d of %d picks of the model %s change "+
		"(%s)", c.inUse.ID(), c.changed(), len(c.picks), c.inUse.Model, c.rung))
	for _, p := range c.picks {
		if p.before != p.after {
			s.Note(fmt.Sprintf("%s: %s, was %s, which takes %s longer by these numbers", p.problem, p.after, p.before,
				table.Percent(float64(p.predictedBefore/p.predictedAfter)-1)))
		}
	}
}

func newObject(r *outcome, c *comparison) object {
	out := object{Device: r.records.Device.Name, Arch: r.records.Device.Arch, InUse: c.inUse.ID(), Records: r.file,
		Picks: picksJSON{Model: c.inUse.Model, Rung: c.rung, Sizes: len(c.picks), Changed: []pickJSON{}}}
	if len(c.inUse.Kernels) > 0 {
		out.Picks.Kernel = c.inUse.Kernels[0]
	}
	for i := range r.numbers {
		n := &r.numbers[i]
		j := number{Name: n.Name, Value: n.Value, Unit: n.Unit, Parameter: n.Parameter, Method: n.Source, Date: n.Date,
			Clock: float64(n.Clock), Spread: n.Spread, Probes: n.Probes}
		if p, ok := c.used(n); ok {
			j.InUse, j.Tier = &p.Value, p.Tier.String()
		}
		out.Numbers = append(out.Numbers, j)
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
