package figure

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/unit"
)

// RoofSide is a device of a hierarchical roofline with its kernels.
type RoofSide struct {
	Name    string
	Device  *roofline.Device
	Kernels []RoofKernel
}

// RoofKernel is a kernel with its points. Large makes it stand out.
type RoofKernel struct {
	roofline.Kernel
	Name            string
	Measured, Large bool
}

// levels are the levels of the points, far to near, with the series of their colour and what the legend calls them.
var levels = []struct {
	level  roofline.Level
	series int
	name   string
}{
	{roofline.Shared, 3, "per byte read from shared memory"}, {roofline.Requested, 4, "per byte requested by SMs"},
	{roofline.L2, 2, "per byte at the L2"}, {roofline.MALL, 5, "per byte at the MALL"},
	{roofline.DRAM, 0, "per byte at DRAM"},
}

// fewJoined is up to how many kernels of a figure the points of each are joined.
const fewJoined = 24

// Roofline shows kernels under the roofs of devices, at each level of memory that they have points at. Of one device it
// has all ceilings, in a colour per level. Of several it has the highest ceilings of instructions, L2 and DRAM, in a
// colour per device, and shapes for the levels if there are several.
func Roofline(title string, sides []RoofSide) *Figure {
	f := &Figure{Title: title, X: Axis{Label: "arithmetic intensity at the level (FLOP/B)", Log: true},
		Y: Axis{Label: "rate", Unit: "FLOP/s", Log: true}}
	several := len(sides) > 1
	low, high := roofEnds(sides)
	if several {
		for i := range sides {
			f.Series = append(f.Series, sides[i].Name)
		}
	} else {
		f.Series = make([]string, seriesColours)
		for _, l := range levels {
			f.Series[l.series] = l.name
		}
	}
	for i := range sides {
		f.Marks = append(f.Marks, sides[i].roofs(i, several, low, high)...)
	}
	for i := range sides {
		f.Marks = append(f.Marks, sides[i].joints()...)
	}
	for i := range sides {
		f.Marks = append(f.Marks, sides[i].points(i, several)...)
	}
	if several { // shapes and dashes have no colour of their own in the legend
		var shapes []Mark
		for _, l := range levels {
			if slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Kind == Dots && m.Shape == l.series+1 }) {
				shapes = append(shapes, Mark{Kind: Dots, Series: Neutral, Shape: l.series + 1, Name: l.name})
			}
		}
		if len(shapes) > 1 {
			shapes = append(shapes, Mark{Kind: Line, Series: Neutral, Name: "roof of DRAM"},
				Mark{Kind: Line, Series: Neutral, Name: "roof of the L2", Dash: 1})
			f.Marks = append(f.Marks, shapes...)
		} else {
			for i := range f.Marks {
				f.Marks[i].Shape = 0
			}
		}
	}
	return f
}

// roofEnds are around the points, and around where the roofs meet.
func roofEnds(sides []RoofSide) (low, high float64) {
	low = math.Inf(1)
	for i := range sides {
		s := &sides[i]
		for _, l := range []roofline.Level{roofline.L2, roofline.DRAM} {
			if meets := s.Device.Peak() / s.Device.Bandwidth(l); meets > 0 && finite(meets) {
				low, high = min(low, meets/16), max(high, meets*8)
			}
		}
		for k := range s.Kernels {
			for _, p := range s.Kernels[k].Points {
				low, high = min(low, p.Intensity), max(high, p.Intensity)
			}
		}
	}
	if !(low < high) {
		return 1, 1000
	}
	return low / 1.2, high * 1.2
}

// roofs are the ceilings of a device. Ceilings of instructions begin where the highest bandwidth reaches them.
func (s *RoofSide) roofs(i int, several bool, low, high float64) (marks []Mark) {
	d, steepest := s.Device, 0.0
	for k := range d.Ceilings {
		c := &d.Ceilings[k]
		first := d.Ceiling(c.Level) == c
		if c.Level == roofline.Compute || !first || several && c.Level != roofline.L2 && c.Level != roofline.DRAM {
			continue
		}
		steepest = max(steepest, c.Roof())
		m := s.ceiling(c, i, several)
		if meets := d.Peak() / c.Roof(); meets > low {
			m.Rows = []Row{{X: low, Y: low * c.Roof()}, {X: min(meets, high), Y: min(meets, high) * c.Roof()}}
			marks = append(marks, m)
		}
	}
	for k := range d.Ceilings {
		c := &d.Ceilings[k]
		if c.Level == roofline.Compute && (!several || d.Ceiling(c.Level) == c) {
			m := s.ceiling(c, i, several)
			m.Rows = []Row{{X: max(low, min(c.Roof()/steepest, high/10)), Y: c.Roof()}, {X: high, Y: c.Roof()}}
			marks = append(marks, m)
		}
	}
	return marks
}

func (s *RoofSide) ceiling(c *roofline.Ceiling, i int, several bool) Mark {
	m := Mark{Kind: Line, Series: i}
	if several {
		if c.Level == roofline.L2 {
			m.Dash = 1
		}
		return m
	}
	m.Series = seriesColours - 1 // of instructions
	for _, l := range levels {
		if l.level == c.Level {
			m.Series = l.series
		}
	}
	m.Label = c.Name + " " + unit.SI(c.Roof(), c.Unit())
	if c.Reached == 0 {
		m.Label += " (limit)"
	}
	return m
}

// joints join the points of each kernel, if there are few. Kernels that stand out are joined alone.
func (s *RoofSide) joints() (marks []Mark) {
	large := slices.ContainsFunc(s.Kernels, func(k RoofKernel) bool { return k.Large })
	for k := range s.Kernels {
		one := &s.Kernels[k]
		if len(s.Kernels) > fewJoined || large && !one.Large || len(one.Points) < 2 {
			continue
		}
		m := Mark{Kind: Line, Series: Neutral, Dash: 1}
		for _, p := range one.Points {
			m.Rows = append(m.Rows, Row{X: p.Intensity, Y: one.Rate})
		}
		marks = append(marks, m)
	}
	return marks
}

// points are the kernels at each level, those that are large on top.
func (s *RoofSide) points(i int, several bool) (marks []Mark) {
	for _, large := range []bool{false, true} {
		for _, l := range levels {
			for _, measured := range []bool{false, true} {
				m := Mark{Kind: Dots, Series: l.series, Large: large}
				if several {
					m.Series, m.Shape = i, l.series+1
				}
				if measured && !several {
					m.Name = l.name + ", measured"
				}
				for k := range s.Kernels {
					one := &s.Kernels[k]
					for _, p := range one.Points {
						if p.Level == l.level && one.Measured == measured && one.Large == large {
							tip := Tip("%s\n%s: %s FLOP/B", one.Name, p.Level, Number(p.Intensity, ""))
							if p.Share > 0 {
								tip += Tip(", %s of the roof", Number(p.Share, "%"))
							}
							m.Rows = append(m.Rows, Row{X: p.Intensity, Y: one.Rate, Tip: tip})
						}
					}
				}
				if len(m.Rows) > 0 {
					marks = append(marks, m)
				}
			}
		}
	}
	return marks
}
