package reportcmd

import (
	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/roofline"
)

// rooflines shows the pick and the runners-up under the roofs of the device, at each level of memory. It is nil for a
// model that does not predict times, and where no peak is known.
func rooflines(s *subject, a *ask.Ranking) *figure.Figure {
	d := roofline.New(s.Model, a.Problem.DType)
	if a.Arch.RanksOnly || d.Peak() <= 0 {
		return nil
	}
	side := figure.RoofSide{Name: s.Called(), Device: d}
	var rows [][]string
	for k := range d.Ceilings {
		c := &d.Ceilings[k]
		ridge := ""
		if v := d.Ridge(c); v > 0 {
			ridge = digits.ThreeDigits(v) + " (ridge)"
		}
		rows = append(rows, []string{"roof: " + c.Name, c.Level.String(), ridge, digits.Quantity(c.Roof(), c.Unit()), "", ""})
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		k := d.Place(a.Arch, a.Problem, e.Candidate, e.Terms, float64(a.Seconds(e)))
		side.Kernels = append(side.Kernels, figure.RoofKernel{Kernel: k, Name: e.Config.String(), Large: i == 0})
		for _, p := range k.Points {
			rows = append(rows, []string{e.Config.String(), p.Level.String(), digits.ThreeDigits(p.Intensity),
				digits.Quantity(p.Bandwidth, "B/s"), shareCell(p.Share), table.RateCell(a, e)})
		}
	}
	f := figure.Roofline("Hierarchical roofline", []figure.RoofSide{side})
	f.Caption = "A kernel has a point per level of memory: its operations ÷ the bytes that pass there. A sloping line " +
		"is the bandwidth of a level, a flat one the rate of instructions. The large points are the pick."
	f.Header, f.Rows = []string{"configuration", "level", "FLOP/B", "bandwidth", "of the roof", "rate"}, rows
	return f
}

func shareCell(share float64) string {
	if share <= 0 {
		return "–"
	}
	return digits.Percent(share)
}
