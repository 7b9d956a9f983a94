package picturecmd

import (
	"math"

	"github.com/origami-gemm/origami/ask"
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
			j := ask.RooflineDevice{ID: s.label, Name: s.desc.DeviceName, Model: s.desc.Model,
				ModelClass: s.desc.ModelClass, Kernel: s.kernel, DType: d.DType.String(), Ceilings: []ask.Ceiling{}}
			for k := range d.Ceilings {
				c := &d.Ceilings[k]
				j.Ceilings = append(j.Ceilings, ask.Ceiling{Name: c.Name, Level: c.Level.String(), Limit: rooflineKnown(c.Limit),
					Reached: rooflineKnown(c.Reached), Unit: c.Unit(), Source: c.Source})
			}
			out.Devices = append(out.Devices, j)
		}
	}
	for i := range p.kernels {
		k := &p.kernels[i]
		j := ask.RooflineKernel{Device: p.sides[k.side].label, Problem: k.problem.Record(),
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

func (p *picture) write(s *table.Streams, format table.Format) error {
	switch format {
	case table.JSON:
		return table.JSONLine(s, p.object())
	case table.Table:
		header, rows := p.ceilings()
		if err := table.WriteRows(s, format, header, rows); err != nil || len(p.kernels) == 0 {
			return err
		}
		table.Lines(s, "")
		header, rows = p.table()
		return table.WriteRows(s, format, header, rows)
	default:
		header, rows := p.ceilings()
		if len(p.kernels) > 0 {
			header, rows = p.records()
		}
		return table.WriteRows(s, format, header, rows)
	}
}

// ceilings are a row per ceiling.
func (p *picture) ceilings() (header []string, rows [][]string) {
	for i := range p.sides {
		s := &p.sides[i]
		for _, d := range s.roofs {
			for k := range d.Ceilings {
				c := &d.Ceilings[k]
				rows = append(rows, []string{s.label, d.DType.String(), c.Name, quantity(c.Limit, c.Unit()),
					quantity(c.Reached, c.Unit())})
			}
		}
	}
	return []string{"device", "type", "ceiling", "limit", "reached"}, rows
}

func quantity(v float64, unitName string) string {
	if v == 0 {
		return "–"
	}
	return unit.SI(v, unitName)
}

// levels are the columns of intensities.
var levels = []roofline.Level{roofline.Shared, roofline.Requested, roofline.L2, roofline.DRAM}

// at returns the point of a level, nil if there is none.
func (k *placed) at(l roofline.Level) *roofline.Point {
	for i := range k.Points {
		if k.Points[i].Level == l {
			return &k.Points[i]
		}
	}
	return nil
}

// table are the kernels for a reader.
func (p *picture) table() (header []string, rows [][]string) {
	header = []string{"device", "problem", "kernel", "configuration", "time", "rate", "of roof", "roof",
		"FLOP/B shared", "requested", "L2", "DRAM"}
	for i := range p.kernels {
		k := &p.kernels[i]
		name := k.name
		if k.measured {
			name += ", measured"
		}
		row := []string{p.sides[k.side].label, k.problem.String(), name, k.configText(), unit.SI(k.Seconds, "s"),
			unit.SI(k.Rate, "FLOP/s"), digits.Percent(k.Share()), k.Bound.String()}
		for _, l := range levels {
			cell := "–"
			if point := k.at(l); point != nil {
				cell = digits.ThreeDigits(point.Intensity)
				if point.Above != roofline.Nothing {
					cell += " (above)"
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, append(row, k.cells(p.labels)...))
	}
	return append(header, p.labels...), rows
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

// records are the kernels for a program.
func (p *picture) records() (header []string, rows [][]string) {
	header = []string{"device", "m", "n", "k", "batch", "dtype", "problem", "name", "measured", "configuration", "seconds",
		"flop_per_second", "attainable_flop_per_second", "of_attainable", "bound", "above"}
	for _, l := range []string{"shared", "requested", "l2", "dram"} {
		header = append(header, l+"_bytes", l+"_flop_per_byte", l+"_bytes_per_second", l+"_of_roof", l+"_above")
	}
	for i := range p.kernels {
		k := &p.kernels[i]
		row := []string{p.sides[k.side].label, digits.Exact(float64(k.problem.M)), digits.Exact(float64(k.problem.N)),
			digits.Exact(float64(k.problem.K)), digits.Exact(float64(k.problem.Batch)), k.problem.DType.String(),
			k.problem.String(), k.name, table.Flag(k.measured), k.configText(), digits.Exact(k.Seconds),
			digits.Exact(k.Rate), digits.Exact(k.Attainable), digits.Exact(k.Share()), k.Bound.String(), k.compute.String()}
		for _, l := range levels {
			point := k.at(l)
			if point == nil {
				row = append(row, "", "", "", "", "")
				continue
			}
			share := ""
			if point.Share > 0 {
				share = digits.Exact(point.Share)
			}
			row = append(row, digits.Exact(point.Bytes), digits.Exact(point.Intensity), digits.Exact(point.Bandwidth), share,
				point.Above.String())
		}
		rows = append(rows, append(row, k.cells(p.labels)...))
	}
	return append(header, p.labels...), rows
}
