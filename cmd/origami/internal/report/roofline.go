package report

import (
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/unit"
)

// RoofSide is a device of a hierarchical roofline plot with its kernels.
type RoofSide struct {
	Name   string
	Device *roofline.Device
	Points []RoofPoint
}

// RoofPoint is a kernel at one level of memory: X is operations per byte, Y operations per second.
type RoofPoint struct {
	Level    roofline.Level
	X, Y     float64
	Measured bool
}

// levelColours are those of the levels where one device is drawn, levelGlyphs their shapes where several are.
var (
	levelColours = map[roofline.Level]int{
		roofline.DRAM: 0, roofline.L2: 2, roofline.MALL: 5, roofline.Requested: 4, roofline.Shared: 3, roofline.Compute: 6,
	}
	levelGlyphs = map[roofline.Level]draw.GlyphDrawer{
		roofline.DRAM: draw.CircleGlyph{}, roofline.L2: draw.BoxGlyph{}, roofline.MALL: draw.BoxGlyph{},
		roofline.Requested: draw.PyramidGlyph{}, roofline.Shared: diamondGlyph{},
	}
)

const teraOperations = 1e12

// Roofline draws the roofs of devices and their kernels. Of one device it draws all ceilings, in a colour per level. Of
// several it draws the highest ceiling of the instructions, that of the L2 and that of DRAM, in a colour per device.
func Roofline(to Place, name, title string, sides []RoofSide) (Files, error) {
	f := newFigure(title, "arithmetic intensity at the level (FLOP/B)", "TFLOP/s")
	f.grid()
	r := &roofFigure{figure: f, sides: sides}
	r.extent()
	for i := range sides {
		if err := r.roofs(i); err != nil {
			return Files{}, err
		}
	}
	for i := range sides {
		if err := r.points(i); err != nil {
			return Files{}, err
		}
	}
	return f.save(to, name)
}

type roofFigure struct {
	*figure
	sides []RoofSide
}

// extent sets the axes: around the points, and around where the roofs meet.
func (r *roofFigure) extent() {
	low, high := plotter.XY{X: math.Inf(1), Y: math.Inf(1)}, plotter.XY{}
	for _, s := range r.sides {
		peak := s.Device.Peak()
		high.Y = max(high.Y, peak)
		for _, l := range []roofline.Level{roofline.L2, roofline.DRAM} {
			if b := s.Device.Bandwidth(l); b > 0 && peak > 0 {
				low.X, high.X = min(low.X, peak/b/16), max(high.X, peak/b*8)
			}
		}
		for _, p := range s.Points {
			low.X, low.Y, high.X, high.Y = min(low.X, p.X), min(low.Y, p.Y), max(high.X, p.X), max(high.Y, p.Y)
		}
	}
	if !(low.X < high.X) {
		low.X, high.X = 1, 1000
	}
	for _, s := range r.sides {
		if b := s.Device.Bandwidth(roofline.DRAM); b > 0 {
			low.Y = min(low.Y, b*low.X)
		}
	}
	low.Y = min(low.Y, high.Y/30)
	r.logAxes(plotter.XY{X: low.X / 1.3, Y: low.Y / teraOperations / 1.5},
		plotter.XY{X: high.X * 1.5, Y: high.Y / teraOperations * 2})
}

// roofs draws the ceilings of a device.
func (r *roofFigure) roofs(i int) error {
	s := &r.sides[i]
	several := len(r.sides) > 1
	peak := s.Device.Peak()
	ridge := math.Inf(1)
	for k := range s.Device.Ceilings {
		c := &s.Device.Ceilings[k]
		first := s.Device.Ceiling(c.Level) == c
		if c.Level == roofline.Compute || !first || several && c.Level != roofline.L2 && c.Level != roofline.DRAM {
			continue
		}
		meets := peak / c.Roof()
		ridge = min(ridge, meets)
		if err := r.slope(c, meets, r.style(i, c.Level), several && c.Level == roofline.L2, !several); err != nil {
			return err
		}
	}
	ridge = min(ridge, r.X.Max/10)
	for k := range s.Device.Ceilings {
		c := &s.Device.Ceilings[k]
		if c.Level == roofline.Compute && (!several || s.Device.Ceiling(roofline.Compute) == c) {
			if err := r.flat(c, ridge, r.style(i, c.Level), !several); err != nil {
				return err
			}
		}
	}
	return nil
}

// style is the colour of a level, or of a device where several are drawn.
func (r *roofFigure) style(i int, l roofline.Level) color.NRGBA {
	if len(r.sides) > 1 {
		return colourOf(i)
	}
	return colourOf(levelColours[l])
}

// slope draws the roof of a memory up to where it meets the peak.
func (r *roofFigure) slope(c *roofline.Ceiling, meets float64, colour color.NRGBA, dashed, named bool) error {
	at := func(x float64) plotter.XY { return plotter.XY{X: x, Y: x * c.Roof() / teraOperations} }
	from := r.X.Min
	if lowest := r.Y.Min * teraOperations / c.Roof(); lowest > from {
		from = lowest
	}
	if meets <= from {
		return nil
	}
	if err := r.line(plotter.XYs{at(from), at(min(meets, r.X.Max))}, colour, dashed); err != nil || !named {
		return err
	}
	if r.near(c) {
		from *= math.Pow(r.X.Max/r.X.Min, 0.13) // behind the name of the other
	}
	// The line has the slope 1 in decades. The figure's data take about 0.88 of its width and 0.74 of its height.
	decadesX, decadesY := math.Log10(r.X.Max/r.X.Min), math.Log10(r.Y.Max/r.Y.Min)
	angle := math.Atan((float64(figureHeight) * 0.74 / decadesY) / (float64(figureWidth) * 0.88 / decadesX))
	return r.label(c.Name+" "+rateText(c), at(from*1.08), colour, angle, text.XLeft, false)
}

// flat draws the roof of instructions from where the steepest slope meets it.
func (r *roofFigure) flat(c *roofline.Ceiling, from float64, colour color.NRGBA, named bool) error {
	y := c.Roof() / teraOperations
	from *= c.Roof() / r.highest(c)
	line := plotter.XYs{{X: max(from, r.X.Min), Y: y}, {X: r.X.Max, Y: y}}
	if err := r.line(line, colour, false); err != nil || !named {
		return err
	}
	return r.label(c.Name+" "+rateText(c), plotter.XY{X: r.X.Max / 1.03, Y: y}, colour, 0, text.XRight, r.near(c))
}

// highest is the peak of the device of a ceiling.
func (r *roofFigure) highest(c *roofline.Ceiling) float64 {
	for i := range r.sides {
		for k := range r.sides[i].Device.Ceilings {
			if &r.sides[i].Device.Ceilings[k] == c {
				return r.sides[i].Device.Peak()
			}
		}
	}
	return c.Roof()
}

func rateText(c *roofline.Ceiling) string {
	of := ""
	if c.Reached == 0 {
		of = " (limit)"
	}
	return unit.SI(c.Roof(), c.Unit()) + of
}

// near reports whether the ceiling before this one is so close above it that their names would overlap.
func (r *roofFigure) near(c *roofline.Ceiling) bool {
	list := r.sides[0].Device.Ceilings
	for i := range list {
		if o := &list[i]; o != c && (o.Level == roofline.Compute) == (c.Level == roofline.Compute) &&
			o.Roof() >= c.Roof() && o.Roof() < 1.6*c.Roof() {
			return true
		}
	}
	return false
}

// label writes on a line, or below it.
func (r *roofFigure) label(
	of string, at plotter.XY, colour color.NRGBA, angle float64, align text.XAlignment, below bool,
) error {
	l, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{of}})
	if err != nil {
		return err
	}
	style := &l.TextStyle[0]
	style.Color, style.Rotation, style.XAlign = colour, angle, align
	style.Font.Variant, style.Font.Size = sans, vg.Points(8.5)
	l.Offset = vg.Point{X: -vg.Points(3 * math.Sin(angle)), Y: vg.Points(3 * math.Cos(angle))}
	if below {
		style.YAlign, l.Offset.Y = text.YTop, -l.Offset.Y
	}
	r.Add(l)
	return nil
}

// few is up to how many kernels of a figure the points of each are joined.
const few = 24

// points draws the kernels of a device.
func (r *roofFigure) points(i int) error {
	s := &r.sides[i]
	type group struct {
		level    roofline.Level
		measured bool
	}
	groups := map[group]plotter.XYs{}
	ends := map[float64]*[2]float64{}
	for _, p := range s.Points {
		g := group{p.Level, p.Measured}
		groups[g] = append(groups[g], plotter.XY{X: p.X, Y: p.Y / teraOperations})
		if e, ok := ends[p.Y]; ok {
			e[0], e[1] = min(e[0], p.X), max(e[1], p.X)
		} else {
			ends[p.Y] = &[2]float64{p.X, p.X}
		}
	}
	if len(ends) <= few {
		for _, y := range slices.Sorted(maps.Keys(ends)) {
			e, at := ends[y], y/teraOperations
			if err := r.line(plotter.XYs{{X: e[0], Y: at}, {X: e[1], Y: at}}, color.Gray{Y: 0xA0}, true); err != nil {
				return err
			}
		}
	}
	several := len(r.sides) > 1
	if several {
		r.named(s.Name, &plotter.Line{XYs: plotter.XYs{}, LineStyle: draw.LineStyle{Color: colourOf(i),
			Width: vg.Points(1.5)}})
		if i == len(r.sides)-1 {
			grey := draw.LineStyle{Color: color.Gray{Y: 0x60}, Width: vg.Points(1.5)}
			r.named("roof of DRAM", &plotter.Line{LineStyle: grey})
			grey.Width, grey.Dashes = vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
			r.named("roof of the L2", &plotter.Line{LineStyle: grey})
		}
	}
	for _, l := range []roofline.Level{roofline.Shared, roofline.Requested, roofline.L2, roofline.MALL, roofline.DRAM} {
		for _, measured := range []bool{false, true} {
			points := groups[group{l, measured}]
			if len(points) == 0 {
				continue
			}
			scatter := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{
				Color: r.style(i, l), Radius: vg.Points(3.2), Shape: levelGlyphs[l]}}
			if len(points) > few {
				seen := r.style(i, l)
				seen.A = 0x90
				scatter.Color, scatter.Radius = seen, vg.Points(2)
			}
			r.Add(scatter)
			if !several || i == 0 {
				named := *scatter
				named.Radius = vg.Points(3.2)
				if several {
					named.Color = color.Gray{Y: 0x60}
				}
				r.named(pointName(l, measured), &named)
			}
		}
	}
	return nil
}

func pointName(l roofline.Level, measured bool) string {
	name := map[roofline.Level]string{
		roofline.Shared: "per byte read from shared memory", roofline.Requested: "per byte requested by SMs",
		roofline.L2: "per byte at the L2", roofline.MALL: "per byte at the MALL", roofline.DRAM: "per byte at DRAM",
	}[l]
	if measured {
		name += ", measured"
	}
	return name
}
