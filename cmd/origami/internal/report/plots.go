package report

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// The colours of the ways: Okabe and Ito's, which the colour-blind can tell apart.
var (
	pickColour  = color.NRGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}
	bestColour  = color.NRGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}
	pointColour = color.NRGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0x40}
	// libraryColours are used in turn.
	libraryColours = []color.Color{color.NRGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
		color.NRGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, color.NRGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF},
		color.NRGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}}
)

// Files are the names of the files of a plot, within its folder.
type Files struct{ SVG, PNG string }

// Scatter draws configurations, predicted against measured time on logarithmic axes, with the
// line on which the two are equal.
func Scatter(folder, name, title string, all []score.Point) (Files, error) {
	var points plotter.XYs
	low, high := math.Inf(1), 0.0
	for _, c := range all {
		x, y := float64(c.Measured)*1e3, float64(c.Predicted)*1e3
		points = append(points, plotter.XY{X: x, Y: y})
		low, high = min(low, x, y), max(high, x, y)
	}
	p := plot.New()
	p.Title.Text = printable.Line(title)
	p.X.Label.Text, p.Y.Label.Text = "measured (ms)", "predicted (ms)"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	if len(points) > 0 {
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return Files{}, err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: pointColour, Radius: vg.Points(1.5), Shape: draw.CircleGlyph{}}
		equal, err := plotter.NewLine(plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
		if err != nil {
			return Files{}, err
		}
		equal.Color = color.Gray{Y: 0x60}
		equal.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(scatter, equal)
		p.Legend.Add("predicted = measured", equal)
		p.Legend.Top, p.Legend.Left = true, true
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low, high, low, high
	}
	return save(p, folder, name, 16*vg.Centimeter, 14*vg.Centimeter)
}

// ThreeWays draws the rate of the pick, of the best candidate and of the vendor's libraries as bars per problem.
func ThreeWays(folder, name, title string, libraries []string, rows []score.Comparison) (Files, error) {
	p := plot.New()
	p.Title.Text = printable.Line(title)
	p.Y.Label.Text = "TFLOP/s"
	if !slices.ContainsFunc(rows, func(r score.Comparison) bool { return !r.Problem.DType.Integer() }) {
		p.Y.Label.Text = "TOPS"
	}
	width := vg.Points(5)
	labels := make([]string, len(rows))
	for i := range rows {
		labels[i] = fmt.Sprintf("%dx%dx%d", rows[i].Problem.M, rows[i].Problem.N, rows[i].Problem.K)
	}
	type way struct {
		name   string
		colour color.Color
		time   func(*score.Comparison) unit.Seconds
	}
	ways := []way{
		{"pick", pickColour, func(r *score.Comparison) unit.Seconds { return r.Pick.Time }},
		{"best", bestColour, func(r *score.Comparison) unit.Seconds { return r.Best.Time }},
	}
	for i, name := range libraries {
		ways = append(ways, way{name, libraryColours[i%len(libraryColours)],
			func(r *score.Comparison) unit.Seconds { return r.Libraries[i] }})
	}
	middle := vg.Length(max(len(ways), 3)-1) / 2
	for i, way := range ways {
		values := make(plotter.Values, len(rows))
		drawn := false
		for j := range rows {
			values[j] = float64(rows[j].Rate(way.time(&rows[j]))) / 1e12
			drawn = drawn || values[j] > 0
		}
		if !drawn {
			continue
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return Files{}, err
		}
		bars.Color, bars.LineStyle.Width, bars.Offset = way.colour, 0, width*(vg.Length(i)-middle)
		p.Add(bars)
		p.Legend.Add(printable.Line(way.name), bars)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.NominalX(labels...)
	p.X.Tick.Label.Rotation = math.Pi / 3
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
	return save(p, folder, name, max(14, vg.Length(len(rows)*max(len(ways), 3))/3+4)*vg.Centimeter, 12*vg.Centimeter)
}

// Series is a named list of numbers. Side is that of a comparison.
type Series struct {
	Name   string
	Side   int
	Values []float64
}

// Sorted draws each series as a curve of its values in ascending order, over the share of them that is not larger.
func Sorted(folder, name, title, x, y string, all []Series) (Files, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = printable.Line(title), x, y
	p.Add(plotter.NewGrid())
	colours := append([]color.Color{pickColour, bestColour}, libraryColours...)
	for i, series := range all {
		sorted := slices.Clone(series.Values)
		slices.Sort(sorted)
		points := make(plotter.XYs, len(sorted))
		for j, v := range sorted {
			points[j] = plotter.XY{X: float64(j+1) / float64(len(sorted)), Y: v}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return Files{}, err
		}
		line.Color, line.Width, line.StepStyle = colours[i%len(colours)], vg.Points(1.5), plotter.PreStep
		p.Add(line)
		p.Legend.Add(printable.Line(series.Name), line)
	}
	p.X.Min, p.X.Max, p.Y.Max = 0, 1, 1
	return save(p, folder, name, 16*vg.Centimeter, 11*vg.Centimeter)
}

func save(p *plot.Plot, folder, name string, width, height vg.Length) (Files, error) {
	files := Files{SVG: name + ".svg", PNG: name + ".png"}
	p.Legend.Padding = vg.Points(2) // lines of the legend would touch
	for _, file := range []string{files.SVG, files.PNG} {
		if err := p.Save(width, height, filepath.Join(folder, file)); err != nil {
			return Files{}, err
		}
	}
	return files, nil
}
