package picturecmd

import (
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/unit"
)

// rooflineKnown returns a number that is 0 if it is unknown as one that JSON writes as null then.
func rooflineKnown(v float64) ask.Number {
	if v == 0 {
		return ask.Number(math.NaN())
	}
	return ask.Number(v)
}

func (p *picture) object() ask.Rooflines {
	out := ask.Rooflines{Devices: []ask.RooflineDevice{}, Kernels: []ask.RooflineKernel{}}
	for i := range p.sides {
		s := &p.sides[i]
		for _, d := range s.roofs {
			j := ask.RooflineDevice{ID: s.Label(), Name: s.Describe().DeviceName, Model: s.Describe().Model,
				ModelClass: s.Describe().ModelClass, Kernel: s.Kernel, DType: d.DType.String(), Ceilings: []ask.Ceiling{}}
			for k := range d.Ceilings {
				c := &d.Ceilings[k]
				j.Ceilings = append(j.Ceilings, ask.Ceiling{Name: c.Name, Level: c.Level.String(), Limit: rooflineKnown(c.Limit),
					Reached: rooflineKnown(c.Reached), Unit: c.Unit(), Ridge: rooflineKnown(d.Ridge(c)), Source: c.Source})
			}
			out.Devices = append(out.Devices, j)
		}
	}
	for i := range p.kernels {
		k := &p.kernels[i]
		j := ask.RooflineKernel{Device: p.sides[k.side].Label(), Problem: k.problem.Record(),
			Labels: k.fields(p.labels), Name: k.name, Measured: k.measured,
			Seconds: k.Seconds, Rate: k.Rate, Attainable: k.Attainable, Share: k.Share(), Bound: k.Bound.String(),
			Above: k.compute.String()}
		if k.config != (gemm.Config{}) {
			j.Config = &k.config
		}
		for _, l := range k.Points {
			j.Levels = append(j.Levels, ask.RooflineLevel{Level: l.Level.String(), Bytes: l.Bytes, Counted: l.Counted,
				Intensity: l.Intensity, Bandwidth: l.Bandwidth, Share: rooflineKnown(l.Share), Above: l.Above.String()})
		}
		out.Kernels = append(out.Kernels, j)
	}
	return out
}

func (p *picture) write(s *iostreams.Streams, format table.Format) error {
	switch format {
	case table.JSON:
		return table.JSONLine(s, p.object())
	case table.Table:
		if err := p.ceilings().Write(s, format, p.roofs()); err != nil || len(p.kernels) == 0 {
			return err
		}
		table.Lines(s, "")
	case table.CSV, table.TSV:
		if len(p.kernels) == 0 {
			return p.ceilings().Write(s, format, p.roofs())
		}
	}
	return p.columns().Write(s, format, p.kernels)
}

type roof struct {
	*roofline.Ceiling
	device, dtype string
	ridge         float64 // FLOP/B, 0 if there is none
}

func (p *picture) roofs() (rows []roof) {
	for i := range p.sides {
		for _, d := range p.sides[i].roofs {
			for k := range d.Ceilings {
				rows = append(rows, roof{&d.Ceilings[k], p.sides[i].Label(), d.DType.String(), d.Ridge(&d.Ceilings[k])})
			}
		}
	}
	return rows
}

func (p *picture) ceilings() table.Columns[roof] {
	return table.Columns[roof]{
		table.Col("device", func(r *roof) string { return r.device }),
		table.Col("type", func(r *roof) string { return r.dtype }),
		table.Col("ceiling", func(r *roof) string { return r.Name }),
		table.Col("limit", func(r *roof) string { return quantity(r.Limit, r.Unit()) }),
		table.Col("reached", func(r *roof) string { return quantity(r.Reached, r.Unit()) }),
		table.Opt("ridge_flop_per_byte||ridge FLOP/B", func(r *roof) float64 { return table.Positive(r.ridge) },
			digits.ThreeDigits),
	}
}

func quantity(v float64, unitName string) string {
	if v == 0 {
		return "–"
	}
	return unit.SI(v, unitName)
}

// at returns the point of a level, nil if there is none.
func (k *placed) at(l roofline.Level) *roofline.Point {
	for i := range k.Points {
		if k.Points[i].Level == l {
			return &k.Points[i]
		}
	}
	return nil
}

func (p *picture) columns() table.Columns[placed] {
	c := table.Columns[placed]{
		table.Col("device", func(k *placed) string { return p.sides[k.side].Label() }),
		table.Group(gemm.Columns[:4], func(k *placed) []string { return k.problem.Cells()[:4] }).In(table.CSV),
		table.Col("dtype||-", func(k *placed) string { return k.problem.DType.String() }),
		table.Col("problem", func(k *placed) string { return k.problem.String() }),
		table.Col("name||-", func(k *placed) string { return k.name }),
		table.Text("kernel", func(k *placed) string {
			if k.measured {
				return k.name + ", measured"
			}
			return k.name
		}),
		table.Col("measured||-", func(k *placed) bool { return k.measured }),
		table.Col("configuration", (*placed).configText),
		table.Col("seconds||time", func(k *placed) float64 { return k.Seconds }, unitOf("s")),
		table.Col("flop_per_second||rate", func(k *placed) float64 { return k.Rate }, unitOf("FLOP/s")),
		table.Col("attainable_flop_per_second||-", func(k *placed) float64 { return k.Attainable }),
		table.Col("of_attainable||of roof", func(k *placed) float64 { return k.Share() }, digits.Percent),
		table.Col("bound||roof", func(k *placed) string { return k.Bound.String() }),
		table.Col("above||-", func(k *placed) string { return k.compute.String() }),
	}
	for _, l := range []struct {
		level        roofline.Level
		name, people string
	}{
		{roofline.Shared, "shared", "FLOP/B shared"}, {roofline.Requested, "requested", "requested"},
		{roofline.L2, "l2", "L2"}, {roofline.DRAM, "dram", "DRAM"},
	} {
		names := []string{"bytes", "flop_per_byte", "bytes_per_second", "of_roof", "above"}
		for i := range names {
			names[i] = l.name + "_" + names[i]
		}
		c = append(c, table.Group(names, func(k *placed) []string {
			point := k.at(l.level)
			if point == nil {
				return make([]string, len(names))
			}
			return []string{digits.Exact(point.Bytes), digits.Exact(point.Intensity), digits.Exact(point.Bandwidth),
				table.Cell(ask.Number(table.Positive(point.Share))), point.Above.String()}
		}).In(table.CSV),
			table.Text(l.people, func(k *placed) string {
				point := k.at(l.level)
				switch {
				case point == nil:
					return "–"
				case point.Above != roofline.Nothing:
					return digits.ThreeDigits(point.Intensity) + " (above)"
				default:
					return digits.ThreeDigits(point.Intensity)
				}
			}))
	}
	return append(c, table.Group(p.labels, func(k *placed) []string { return k.cells(p.labels) }))
}

func unitOf(name string) func(float64) string {
	return func(v float64) string { return unit.SI(v, name) }
}

// fields are the labels by name, none for a problem of a data set.
func (k *placed) fields(names []string) ask.Fields {
	if len(k.labels) == 0 {
		return nil
	}
	return ask.Labels(names, k.labels)
}

// cells are the labels, empty for a problem of a data set.
func (k *placed) cells(names []string) []string {
	if len(k.labels) == 0 {
		return make([]string, len(names))
	}
	return k.labels
}

func (k *placed) configText() string {
	if k.config == (gemm.Config{}) {
		return ""
	}
	return k.config.String()
}
