package report

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/origami-gemm/origami/core/printable"
)

// Map is a figure of cells over two sizes. The first row is at the top.
type Map struct {
	Title string
	// X and Y name the sizes, Columns and Rows are their values.
	X, Y          string
	Columns, Rows []int
	// Texts are written into the cells, row by row, where they fit. Some may be empty.
	Texts []string
}

// The sizes of a map. A cell is as large as its room allows, within bounds.
const (
	mapRoom      = 17 * vg.Centimeter
	smallestCell = 1.6 * vg.Millimeter
	largestCell  = 11 * vg.Millimeter
	// smallestEdged is the smallest cell with an edge.
	smallestEdged = 6
	mapMargin     = 8
	legendLine    = 15
	barWidth      = 10
)

// Scale colours the cells of a map by a number: dark is the smallest, or the largest with Reversed. The colours are
// those of matplotlib's viridis (CC0), which has equal steps of lightness, also for the colour-blind.
type Scale struct {
	// Values are those of the cells, row by row. A NaN has no colour.
	Values []float64
	// Most is the value from which on all have the same colour, 0 for the largest.
	Most     float64
	Reversed bool
	// Format writes a number beside the colours.
	Format func(float64) string
}

// Colours draws a map with a scale beside it.
func (m *Map) Colours(to Place, name string, s Scale) (Files, error) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 0, 1
	}
	clipped := s.Most > 0 && high > s.Most
	if clipped {
		high = s.Most
	}
	at := func(v float64) color.NRGBA {
		share := 1.0
		if high > low {
			share = (min(v, high) - low) / (high - low)
		}
		if s.Reversed {
			share = 1 - share
		}
		return viridis(share)
	}
	l := m.layout(3*vg.Centimeter, 0)
	return drawn(to, name, l.width, l.height, func(c draw.Canvas) {
		l.frame(c)
		l.cells(c, func(i int) (fill, bool) {
			if math.IsNaN(s.Values[i]) {
				return fill{}, false
			}
			return fill{colour: at(s.Values[i])}, true
		})
		l.scale(c, low, high, clipped, at, s.Format)
	})
}

// Classes colours the cells of a map by class.
type Classes struct {
	// Names are those of the classes. Of is the class of each cell, row by row, −1 for none.
	Names []string
	Of    []int
	// Ordered gives the classes colours from light to dark, in their order. Others get Okabe and Ito's colours, which the
	// colour-blind can tell apart, and where these do not reach, a texture besides.
	Ordered bool
	// Place, for classes that are not Ordered, are the numbers that choose the colours; nil for the order of the names. A
	// negative one is white.
	Place []int
}

// Classes draws a map with a legend above it.
func (m *Map) Classes(to Place, name string, k Classes) (Files, error) {
	fills := make([]fill, len(k.Names))
	for i := range fills {
		switch {
		case k.Ordered && len(fills) > 1:
			fills[i].colour = viridis(1 - 0.85*float64(i)/float64(len(fills)-1))
		case k.Ordered:
			fills[i].colour = viridis(1)
		case k.Place != nil:
			fills[i] = classFill(k.Place[i])
		default:
			fills[i] = classFill(i)
		}
	}
	l := m.layout(mapMargin, 0)
	lines, places := l.legend(k.Names)
	l = m.layout(mapMargin, vg.Length(lines)*legendLine+4)
	return drawn(to, name, l.width, l.height, func(c draw.Canvas) {
		l.frame(c)
		for i, at := range places {
			box := vg.Rectangle{Min: vg.Point{X: at.X, Y: l.height - at.Y}}
			box.Max = box.Min.Add(vg.Point{X: 12, Y: 10})
			fills[i].paint(c, box)
			c.FillText(l.style(8.5, text.XLeft), vg.Point{X: box.Max.X + 4, Y: box.Min.Y + 5}, k.Names[i])
		}
		l.cells(c, func(i int) (fill, bool) {
			if k.Of[i] < 0 {
				return fill{}, false
			}
			return fills[k.Of[i]], true
		})
	})
}

// mapLayout is where the parts of a map are, in points from the lower left corner.
type mapLayout struct {
	*Map
	cell, left, top, width, height vg.Length
}

func (m *Map) layout(right, legend vg.Length) *mapLayout {
	l := &mapLayout{Map: m}
	l.cell = max(smallestCell, min(largestCell, mapRoom/vg.Length(max(len(m.Columns), len(m.Rows)))))
	labels := l.style(7.5, text.XRight)
	l.left = mapMargin + 16
	for _, v := range m.Rows {
		l.left = max(l.left, mapMargin+20+labels.Width(strconv.Itoa(v)))
	}
	below := vg.Length(0)
	for _, v := range m.Columns {
		below = max(below, labels.Width(strconv.Itoa(v)))
	}
	l.width = l.left + vg.Length(len(m.Columns))*l.cell + right
	l.width = max(l.width, l.left+mapMargin+l.style(12, text.XLeft).Width(printable.Line(m.Title)))
	above := mapMargin + 20 + legend
	l.height = above + vg.Length(len(m.Rows))*l.cell + below + 20 + mapMargin
	l.top = l.height - above
	return l
}

func (l *mapLayout) style(size float64, x text.XAlignment) text.Style {
	family := plot.DefaultFont
	family.Variant = sans
	return text.Style{
		Color: color.Black, Font: font.From(family, vg.Points(size)), XAlign: x, YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler,
	}
}

// legend returns the lines that names take, and the place of each, in points from the upper left corner.
func (l *mapLayout) legend(names []string) (lines int, places []vg.Point) {
	style, x, y := l.style(8.5, text.XLeft), l.left, vg.Length(mapMargin+20+legendLine)
	for i, name := range names {
		names[i] = printable.Line(name)
		width := 16 + style.Width(names[i]) + 12
		if x > l.left && x+width > l.width {
			x, y = l.left, y+legendLine
		}
		places = append(places, vg.Point{X: x, Y: y})
		x += width
	}
	return int((y-mapMargin-20)/legendLine + 0.5), places
}

// frame draws the title and the sizes.
func (l *mapLayout) frame(c draw.Canvas) {
	c.FillText(l.style(12, text.XLeft), vg.Point{X: l.left, Y: l.height - mapMargin - 6}, printable.Line(l.Title))
	every := int(math.Ceil(float64(8 / l.cell)))
	for i := 0; i < len(l.Rows); i += every {
		c.FillText(l.style(7.5, text.XRight), vg.Point{X: l.left - 3, Y: l.top - (vg.Length(i)+0.5)*l.cell},
			strconv.Itoa(l.Rows[i]))
	}
	bottom := l.top - vg.Length(len(l.Rows))*l.cell
	for i := 0; i < len(l.Columns); i += every {
		style := l.style(7.5, text.XRight)
		style.Rotation = math.Pi / 2
		c.FillText(style, vg.Point{X: l.left + (vg.Length(i)+0.5)*l.cell, Y: bottom - 3}, strconv.Itoa(l.Columns[i]))
	}
	name := l.style(10, text.XCenter)
	c.FillText(name, vg.Point{X: l.left + vg.Length(len(l.Columns))*l.cell/2, Y: mapMargin + 4}, printable.Line(l.X))
	name.Rotation = math.Pi / 2
	c.FillText(name, vg.Point{X: mapMargin + 4, Y: (l.top + bottom) / 2}, printable.Line(l.Y))
}

// cells paints the cells and writes into them. A cell without a fill is crossed out.
func (l *mapLayout) cells(c draw.Canvas, of func(i int) (fill, bool)) {
	inside := l.textStyle()
	for i := range len(l.Rows) * len(l.Columns) {
		row, column := i/len(l.Columns), i%len(l.Columns)
		box := vg.Rectangle{Min: vg.Point{X: l.left + vg.Length(column)*l.cell, Y: l.top - vg.Length(row+1)*l.cell}}
		box.Max = box.Min.Add(vg.Point{X: l.cell, Y: l.cell})
		f, ok := of(i)
		if !ok {
			fill{colour: color.NRGBA{R: 0xF4, G: 0xF4, B: 0xF4, A: 0xFF}}.paint(c, box)
			line := draw.LineStyle{Color: color.Gray{Y: 0xBB}, Width: vg.Points(0.4)}
			c.StrokeLine2(line, box.Min.X, box.Min.Y, box.Max.X, box.Max.Y)
			c.StrokeLine2(line, box.Min.X, box.Max.Y, box.Max.X, box.Min.Y)
			continue
		}
		f.paint(c, box)
		if inside.Font.Size > 0 && i < len(l.Texts) && l.Texts[i] != "" {
			inside.Color = f.ink()
			c.FillText(inside, vg.Point{X: (box.Min.X + box.Max.X) / 2, Y: (box.Min.Y + box.Max.Y) / 2}, l.Texts[i])
		}
	}
}

// textStyle returns a style in which the widest text fits into a cell, of size 0 if that would be too small to read.
func (l *mapLayout) textStyle() text.Style {
	const smallest, largest = 4.2, 8
	style, widest := l.style(largest, text.XCenter), vg.Length(0)
	for _, s := range l.Texts {
		widest = max(widest, style.Width(s))
	}
	if widest > 0 {
		style.Font.Size = min(vg.Points(largest), vg.Points(largest)*l.cell*0.84/widest, l.cell*0.8)
	}
	if style.Font.Size < vg.Points(smallest) {
		style.Font.Size = 0
	}
	return style
}

// scale draws the colours of numbers, with some of them.
func (l *mapLayout) scale(c draw.Canvas, low, high float64, clipped bool, at func(float64) color.NRGBA,
	format func(float64) string,
) {
	const steps = 128
	length := max(vg.Length(len(l.Rows))*l.cell, 2*vg.Centimeter)
	x := l.left + vg.Length(len(l.Columns))*l.cell + 14
	for i := range steps {
		box := vg.Rectangle{Min: vg.Point{X: x, Y: l.top - length + length*vg.Length(i)/steps}}
		box.Max = box.Min.Add(vg.Point{X: barWidth, Y: length/steps + 0.3})
		c.SetColor(at(low + (high-low)*(float64(i)+0.5)/steps))
		c.Fill(box.Path())
	}
	for _, v := range scaleTicks(low, high) {
		share := 0.0
		if high > low {
			share = (v - low) / (high - low)
		}
		y := l.top - length + length*vg.Length(share)
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)}, x+barWidth, y, x+barWidth+3, y)
		label := format(v)
		if clipped && v == high {
			label = "≥ " + label
		}
		c.FillText(l.style(8, text.XLeft), vg.Point{X: x + barWidth + 5, Y: y}, label)
	}
}

// scaleTicks are about six round numbers, and the largest.
func scaleTicks(low, high float64) []float64 {
	if !(high > low) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/5)))
	for _, f := range []float64{5, 2} {
		if (high-low)/(step*f) >= 4 {
			step *= f
			break
		}
	}
	var ticks []float64
	for v := math.Ceil(low/step) * step; v < high-step/2; v += step {
		ticks = append(ticks, v)
	}
	return append(ticks, high)
}

// fill is how a cell is painted.
type fill struct {
	colour color.NRGBA
	hatch  hatch
}

// hatch is a texture: the directions of its lines.
type hatch int

const (
	plain hatch = iota
	rising
	falling
	crossed
	level
	upright
)

func (f fill) paint(c draw.Canvas, box vg.Rectangle) {
	if box.Max.X-box.Min.X > smallestEdged { // leave an edge
		box.Min, box.Max = box.Min.Add(vg.Point{X: 0.15, Y: 0.15}), box.Max.Add(vg.Point{X: -0.15, Y: -0.15})
	}
	c.SetColor(f.colour)
	c.Fill(box.Path())
	line := draw.LineStyle{Color: color.NRGBA{A: 0x90}, Width: vg.Points(0.5)}
	w, h := box.Max.X-box.Min.X, box.Max.Y-box.Min.Y
	for _, t := range []vg.Length{1. / 3, 2. / 3, 1} { // lines at thirds of the box
		x, y := box.Min.X+t*w, box.Min.Y+t*h
		if f.hatch == rising || f.hatch == crossed {
			c.StrokeLine2(line, box.Min.X, box.Max.Y-t*h, box.Max.X-(1-t)*w, box.Max.Y)
			if t < 1 {
				c.StrokeLine2(line, x, box.Min.Y, box.Max.X, box.Max.Y-t*h)
			}
		}
		if f.hatch == falling || f.hatch == crossed {
			c.StrokeLine2(line, box.Min.X, y, x, box.Min.Y)
			if t < 1 {
				c.StrokeLine2(line, x, box.Max.Y, box.Max.X, y)
			}
		}
		if f.hatch == level && t < 1 {
			c.StrokeLine2(line, box.Min.X, y, box.Max.X, y)
		}
		if f.hatch == upright && t < 1 {
			c.StrokeLine2(line, x, box.Min.Y, x, box.Max.Y)
		}
	}
}

// ink is the colour of text that can be read on the fill.
func (f fill) ink() color.Color {
	if luminance(f.colour) < 0.18 { // where black and white have equal contrast
		return color.White
	}
	return color.Black
}

// luminance is WCAG's relative luminance.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// classColours are Okabe and Ito's, black lightened to grey.
var classColours = []color.NRGBA{
	{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}, {R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, {R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
	{R: 0xF0, G: 0xE4, B: 0x42, A: 0xFF}, {R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, {R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF},
	{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, {R: 0xAA, G: 0xAA, B: 0xAA, A: 0xFF},
}

func classFill(i int) fill {
	if i < 0 {
		return fill{colour: color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 0xFF}}
	}
	return fill{classColours[i%len(classColours)], hatch(i / len(classColours) % (int(upright) + 1))}
}

// viridisStops are viridis at equal steps.
var viridisStops = []color.NRGBA{
	{R: 0x44, G: 0x01, B: 0x54, A: 0xFF}, {R: 0x48, G: 0x28, B: 0x78, A: 0xFF}, {R: 0x3E, G: 0x49, B: 0x89, A: 0xFF},
	{R: 0x31, G: 0x68, B: 0x8E, A: 0xFF}, {R: 0x26, G: 0x82, B: 0x8E, A: 0xFF}, {R: 0x1F, G: 0x9E, B: 0x89, A: 0xFF},
	{R: 0x35, G: 0xB7, B: 0x79, A: 0xFF}, {R: 0x6D, G: 0xCD, B: 0x59, A: 0xFF}, {R: 0xB4, G: 0xDE, B: 0x2C, A: 0xFF},
	{R: 0xFD, G: 0xE7, B: 0x25, A: 0xFF},
}

// viridis returns the colour of a share from 0 to 1.
func viridis(share float64) color.NRGBA {
	at := max(0, min(1, share)) * float64(len(viridisStops)-1)
	i := min(int(at), len(viridisStops)-2)
	t := at - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-t) + float64(b)*t)) }
	a, b := viridisStops[i], viridisStops[i+1]
	return color.NRGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 0xFF}
}

// Digits writes a number with about three digits, for a cell of a map.
func Digits(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return ""
	case abs >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case abs >= 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
