package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/origami-gemm/origami/core/printable"
)

// palette are the colours of the sides of a comparison: Okabe and Ito's, which the colour-blind can tell apart.
var palette = []color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, {R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}, {R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
	{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, {R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, {R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF},
	{R: 0x40, G: 0x40, B: 0x40, A: 0xFF},
}

func colourOf(i int) color.NRGBA { return palette[i%len(palette)] }

// glyphs tell sides apart where colours do not.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, diamondGlyph{}}

// diamondGlyph is a filled square on its corner: gonum's other glyphs are thin lines, which are lost among these.
type diamondGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamondGlyph) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius * 1.3 // as much area as the square
	var p vg.Path
	p.Move(vg.Point{X: at.X, Y: at.Y - r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X - r, Y: at.Y})
	p.Close()
	c.SetColor(style.Color)
	c.Fill(p)
}

// The sizes of a figure of a comparison, and the sans-serif font of its text.
const (
	figureWidth  = 20 * vg.Centimeter
	figureHeight = 11 * vg.Centimeter
	sans         = "Sans"
)

// figure is a plot with its title and its legend above it, where they hide nothing.
type figure struct {
	*plot.Plot
	title         string
	legend        []legendEntry
	width, height vg.Length
}

type legendEntry struct {
	name  string
	thumb plot.Thumbnailer
}

func newFigure(title, x, y string) *figure {
	f := &figure{Plot: plot.New(), title: printable.Line(title), width: figureWidth, height: figureHeight}
	f.X.Label.Text, f.Y.Label.Text = printable.Line(x), printable.Line(y)
	for _, style := range []*text.Style{
		&f.X.Label.TextStyle, &f.Y.Label.TextStyle, &f.X.Tick.Label, &f.Y.Tick.Label,
	} {
		style.Font.Variant, style.Font.Size = sans, vg.Points(10)
	}
	f.X.Label.Padding, f.Y.Label.Padding = vg.Points(4), vg.Points(4)
	f.X.Padding, f.Y.Padding = 0, 0
	return f
}

// named adds a name to the legend.
func (f *figure) named(name string, thumb plot.Thumbnailer) {
	f.legend = append(f.legend, legendEntry{printable.Line(name), thumb})
}

// grid adds thin lines behind the data.
func (f *figure) grid() {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = color.Gray{Y: 0xDD}, color.Gray{Y: 0xDD}
	f.Add(g)
}

// draw draws the figure.
func (f *figure) draw(c draw.Canvas) {
	const margin, line, thumb = 6, 16, 14
	c = draw.Crop(c, margin, -margin, margin, -margin)
	style := f.X.Tick.Label
	style.XAlign, style.YAlign, style.Rotation = text.XLeft, text.YCenter, 0
	top := c.Max.Y - line/2
	large := style
	large.Font.Size = vg.Points(13)
	c.FillText(large, vg.Point{X: c.Min.X, Y: top}, f.title)
	x := c.Min.X
	top -= line * 1.2
	for _, entry := range f.legend {
		width := thumb + 4 + style.Width(entry.name) + 16
		if x > c.Min.X && x+width > c.Max.X {
			x, top = c.Min.X, top-line
		}
		box := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: x, Y: top - thumb/3}, Max: vg.Point{X: x + thumb, Y: top + thumb/3},
		}}
		entry.thumb.Thumbnail(&box)
		c.FillText(style, vg.Point{X: x + thumb + 4, Y: top}, entry.name)
		x += width
	}
	f.Draw(draw.Crop(c, 0, 0, 0, top-line-c.Max.Y))
}

// save writes the figure as SVG and PNG.
func (f *figure) save(to Place, name string) (Files, error) {
	return drawn(to, name, f.width, f.height, f.draw)
}

// pngDPI is twice what a screen is taken to have, so that the pixels of a PNG cannot be seen.
const pngDPI = 192

// drawn writes what a function draws as SVG and PNG, above the caption.
func drawn(to Place, name string, width, height vg.Length, onto func(draw.Canvas)) (Files, error) {
	const line, margin = 9, 6
	lines := captionLines(to.Caption, width-2*margin)
	below := vg.Length(len(lines))*line + margin
	paint := func(whole vg.CanvasSizer) {
		c := draw.New(whole)
		c.SetColor(color.White)
		c.Fill(c.Path())
		for i, text := range lines {
			c.FillText(captionStyle(), vg.Point{X: margin, Y: below - vg.Length(i+1)*line}, text)
		}
		c.Push()
		c.Translate(vg.Point{Y: below})
		onto(draw.NewCanvas(whole, width, height))
		c.Pop()
	}
	svg := vgsvg.New(width, height+below)
	paint(svg)
	png := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height+below), vgimg.UseDPI(pngDPI))}
	paint(png)
	files := Files{SVG: name + ".svg", PNG: name + ".png"}
	var text bytes.Buffer
	if _, err := svg.WriteTo(&text); err != nil {
		return files, err
	}
	// Arial and Helvetica have the widths of Liberation Sans, for readers who lack it.
	vector := strings.ReplaceAll(text.String(), "font-family:Liberation Sans;",
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	if err := os.WriteFile(filepath.Join(to.Folder, files.SVG), []byte(vector), 0o644); err != nil {
		return files, err
	}
	return files, create(filepath.Join(to.Folder, files.PNG), func(file io.Writer) error {
		_, err := png.WriteTo(file)
		return err
	})
}

func captionStyle() text.Style {
	family := plot.DefaultFont
	family.Variant = sans
	return text.Style{Color: color.Gray{Y: 0x66}, Font: font.From(family, vg.Points(7)), XAlign: text.XLeft,
		YAlign: text.YBottom, Handler: plot.DefaultTextHandler}
}

// captionLines breaks a caption between words.
func captionLines(caption string, width vg.Length) (lines []string) {
	style := captionStyle()
	for _, word := range strings.Fields(printable.Line(caption)) {
		if last := len(lines) - 1; last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// Bars draws a group of bars per name, one for each series, with its value above it, and a line at 1. A value that is
// NaN has no bar.
func Bars(to Place, name, title, y string, groups []string, all []Series) (Files, error) {
	f := newFigure(title, "", y)
	room := float64(figureWidth-6*vg.Centimeter) / float64(len(groups))
	width := vg.Length(min(room*0.8/float64(len(all)), 40))
	most := 1.0
	for i, series := range all {
		values := make(plotter.Values, len(series.Values))
		labels := plotter.XYLabels{}
		for j, v := range series.Values {
			if !math.IsNaN(v) {
				values[j] = v
				most = max(most, v)
				labels.XYs = append(labels.XYs, plotter.XY{X: float64(j), Y: v})
				labels.Labels = append(labels.Labels, fmt.Sprintf("%.2f", v))
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return Files{}, err
		}
		bars.Color, bars.LineStyle.Width = colourOf(series.Side), 0
		bars.Offset = width * (vg.Length(i) - vg.Length(len(all)-1)/2)
		numbers, err := plotter.NewLabels(labels)
		if err != nil {
			return Files{}, err
		}
		numbers.Offset = vg.Point{X: bars.Offset, Y: vg.Points(2)}
		for k := range numbers.TextStyle {
			numbers.TextStyle[k].Font.Variant, numbers.TextStyle[k].XAlign = sans, text.XCenter
			numbers.TextStyle[k].Font.Size = min(vg.Points(9), width*0.42)
		}
		f.Add(bars, numbers)
		f.named(series.Name, bars)
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Color, one.Dashes = color.Gray{Y: 0x60}, []vg.Length{vg.Points(4), vg.Points(3)}
	f.Add(one)
	f.NominalX(inTurns(groups)...)
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = -0.6, float64(len(groups))-0.4, 0, most*1.1
	return f.save(to, name)
}

// mostInLine is how many names of groups fit side by side.
const mostInLine = 8

// inTurns puts every second of many names a line lower.
func inTurns(names []string) []string {
	if len(names) <= mostInLine {
		return names
	}
	names = slices.Clone(names)
	for i := 1; i < len(names); i += 2 {
		names[i] = "\n" + names[i]
	}
	return names
}

// Cloud is a list of points of a side. Sides have a colour each.
type Cloud struct {
	Name   string
	Side   int
	Points []Point
}

// Point is a point of a plot with logarithmic axes: both numbers are positive. Name says what it is.
type Point struct {
	X, Y float64
	Name string
}

// Ratios draws clouds on logarithmic axes, with a line at Y = 1.
func Ratios(to Place, name, title, x, y string, clouds []Cloud) (Files, error) {
	f := newFigure(title, x, y)
	f.grid()
	low, high := plotter.XY{X: math.Inf(1), Y: 1}, plotter.XY{Y: 1}
	for _, c := range clouds {
		for _, p := range c.Points {
			low.X, low.Y, high.X, high.Y = min(low.X, p.X), min(low.Y, p.Y), max(high.X, p.X), max(high.Y, p.Y)
		}
	}
	if low.X > high.X {
		low.X, high.X = 1, 10
	}
	f.logAxes(plotter.XY{X: low.X / 1.3, Y: low.Y / 1.15}, plotter.XY{X: high.X * 1.3, Y: high.Y * 1.15})
	if err := f.line(plotter.XYs{{X: f.X.Min, Y: 1}, {X: f.X.Max, Y: 1}}, color.Gray{Y: 0x40}, true); err != nil {
		return Files{}, err
	}
	for _, c := range clouds {
		f.cloud(c)
	}
	return f.save(to, name)
}

// Roof is a side in a roofline plot.
type Roof struct {
	Cloud
	// Peak is in operations per second, DRAM in bytes per second, both positive.
	Peak, DRAM float64
}

// Rooflines draws rates in TFLOP/s over intensities in FLOP/B, below the roofs of each side.
func Rooflines(to Place, name, title, y string, roofs []Roof) (Files, error) {
	const tera = 1e12
	f := newFigure(title, "arithmetic intensity (FLOP/B)", y)
	f.grid()
	low, high := plotter.XY{X: math.Inf(1), Y: math.Inf(1)}, plotter.XY{}
	for _, r := range roofs {
		ridge := r.Peak / r.DRAM
		low.X, high.X, high.Y = min(low.X, ridge/8), max(high.X, ridge*8), max(high.Y, r.Peak/tera)
		for _, p := range r.Points {
			low.X, low.Y = min(low.X, p.X), min(low.Y, p.Y/tera)
			high.X, high.Y = max(high.X, p.X), max(high.Y, p.Y/tera)
		}
	}
	for _, r := range roofs {
		low.Y = min(low.Y, low.X*r.DRAM/tera)
	}
	f.logAxes(plotter.XY{X: low.X / 1.2, Y: low.Y / 1.5}, plotter.XY{X: high.X * 1.2, Y: high.Y * 1.6})
	for _, r := range roofs {
		ridge := r.Peak / r.DRAM
		err := f.line(plotter.XYs{{X: f.X.Min, Y: f.X.Min * r.DRAM / tera}, {X: ridge, Y: r.Peak / tera},
			{X: f.X.Max, Y: r.Peak / tera}}, colourOf(r.Side), false)
		if err != nil {
			return Files{}, err
		}
	}
	for _, r := range roofs {
		scaled := r.Cloud
		scaled.Points = slices.Clone(r.Points)
		for i := range scaled.Points {
			scaled.Points[i].Y /= tera
		}
		f.cloud(scaled)
	}
	return f.save(to, name)
}

// line adds a line.
func (f *figure) line(points plotter.XYs, colour color.Color, dashed bool) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour, vg.Points(1.5)
	if dashed {
		line.Width, line.Dashes = vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
	}
	f.Add(line)
	return nil
}

// cloud adds points in the colour of their side, and the name to the legend.
func (f *figure) cloud(c Cloud) {
	points := make(plotter.XYs, len(c.Points))
	for i, p := range c.Points {
		points[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	colour := colourOf(c.Side)
	scatter := &plotter.Scatter{XYs: points}
	scatter.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: vg.Points(3.5), Shape: glyphs[c.Side%len(glyphs)]}
	f.named(c.Name, scatter)
	if len(points) > 0 {
		seen := *scatter // so that points below can be seen
		colour.A = 0xB0
		if len(points) > 60 {
			colour.A, seen.Radius = 0x70, vg.Points(2)
		}
		seen.Color = colour
		f.Add(&seen)
	}
}

// logAxes makes both axes logarithmic, with numbers at round values.
func (f *figure) logAxes(low, high plotter.XY) {
	f.X.Scale, f.Y.Scale = plot.LogScale{}, plot.LogScale{}
	f.X.Tick.Marker, f.Y.Tick.Marker = plot.TickerFunc(logTicks), plot.TickerFunc(logTicks)
	f.X.Min, f.Y.Min, f.X.Max, f.Y.Max = low.X, low.Y, high.X, high.Y
}

// logTicks has a number at the powers of ten, and at further values where these are too few.
func logTicks(low, high float64) (ticks []plot.Tick) {
	for _, mantissas := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}} {
		ticks = ticks[:0]
		for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
			for _, m := range mantissas {
				if v := m * math.Pow(10, power); v >= low && v <= high {
					ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
				}
			}
		}
		if len(ticks) >= 4 {
			break
		}
	}
	return ticks
}
