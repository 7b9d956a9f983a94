package report

import (
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// Place is where a figure is written, and the line below it that says where it comes from.
type Place struct{ Folder, Caption string }

// PlaceOf returns the place of figures about a device, made by a command with these words.
func PlaceOf(folder, device string, args []string) Place {
	return Place{folder, fmt.Sprintf("%s · %s · %s · origami %s", device, time.Now().UTC().Format(time.DateOnly),
		session.Software(), strings.Join(args, " "))}
}

// Files are the names of the files of a plot, within its folder.
type Files struct{ SVG, PNG string }

// binsPerDecade is how fine a figure of thousands of times is.
const binsPerDecade = 16

// Scatter draws predicted against measured times on logarithmic axes, as counts: there are too many for a dot each. The
// line is where the two are equal, the bands are 10 % and a factor of 1.5 around it.
func Scatter(to Place, name, title string, all []score.Point) (Files, error) {
	f := newFigure(title, "measured time", "predicted time")
	f.width, f.height = 15*vg.Centimeter, 16*vg.Centimeter
	counts := map[[2]int]int{}
	low, high, most := math.MaxInt, math.MinInt, 0
	bin := func(t unit.Seconds) int { return int(math.Floor(math.Log10(float64(t)) * binsPerDecade)) }
	for _, p := range all {
		if p.Measured <= 0 || p.Predicted <= 0 {
			continue
		}
		at := [2]int{bin(p.Measured), bin(p.Predicted)}
		counts[at]++
		low, high, most = min(low, at[0], at[1]), max(high, at[0]+1, at[1]+1), max(most, counts[at])
	}
	if most == 0 {
		low, high = -3*binsPerDecade, 0
	}
	from, until := edgeOf(low), edgeOf(high)
	f.logAxes(plotter.XY{X: from, Y: from}, plotter.XY{X: until, Y: until})
	f.X.Tick.Marker, f.Y.Tick.Marker = plot.TickerFunc(timeTicks), plot.TickerFunc(timeTicks)
	for _, band := range []struct {
		factor float64
		grey   uint8
		name   string
	}{{1.5, 0xEE, "within a factor of 1.5"}, {1.1, 0xD8, "within 10 %"}} {
		area, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: from}, {X: from, Y: from * band.factor},
			{X: until / band.factor, Y: until}, {X: until, Y: until}, {X: until, Y: until / band.factor},
			{X: from * band.factor, Y: from}})
		if err != nil {
			return Files{}, err
		}
		area.Color, area.Width = color.Gray{Y: band.grey}, 0
		f.Add(area)
		f.named(band.name, area)
	}
	f.grid()
	f.Add(bins{counts, most})
	if err := f.line(plotter.XYs{{X: from, Y: from}, {X: until, Y: until}}, color.Gray{Y: 0x40}, true); err != nil {
		return Files{}, err
	}
	f.named(fmt.Sprintf("1 to %d kernels", most), ramp{})
	return f.save(to, name)
}

// edgeOf is where a bin begins.
func edgeOf(bin int) float64 { return math.Pow(10, float64(bin)/binsPerDecade) }

// timeTicks are logTicks of times.
func timeTicks(low, high float64) []plot.Tick {
	ticks := logTicks(low, high)
	for i := range ticks {
		number, prefixed, _ := strings.Cut(unit.Seconds(ticks[i].Value).String(), " ")
		if strings.Contains(number, ".") {
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		ticks[i].Label = number + " " + prefixed
	}
	return ticks
}

// bins are counts of points, coloured by their logarithm.
type bins struct {
	counts map[[2]int]int
	most   int
}

// Plot implements plot.Plotter.
func (b bins) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, at := range slices.SortedFunc(maps.Keys(b.counts), compareBins) {
		n, share := b.counts[at], 1.0
		if b.most > 1 {
			share = math.Log(float64(n)) / math.Log(float64(b.most))
		}
		c.SetColor(viridis(1 - 0.9*share))
		box := vg.Rectangle{Min: vg.Point{X: x(edgeOf(at[0])), Y: y(edgeOf(at[1]))},
			Max: vg.Point{X: x(edgeOf(at[0] + 1)), Y: y(edgeOf(at[1] + 1))}}
		c.Fill(box.Path())
	}
}

// compareBins orders bins from left to right and from below, so that the same figure is the same file.
func compareBins(x, y [2]int) int { return slices.Compare(x[:], y[:]) }

// ramp is the sign of bins in a legend.
type ramp struct{}

// Thumbnail implements plot.Thumbnailer.
func (ramp) Thumbnail(c *draw.Canvas) {
	const steps = 8
	width := (c.Max.X - c.Min.X) / steps
	for i := range steps {
		box := vg.Rectangle{Min: vg.Point{X: c.Min.X + vg.Length(i)*width, Y: c.Min.Y}}
		box.Max = vg.Point{X: box.Min.X + width, Y: c.Max.Y}
		c.SetColor(viridis(1 - 0.9*float64(i)/(steps-1)))
		c.Fill(box.Path())
	}
}

// ThreeWays draws the speed of the pick and of the vendor's libraries per problem, relative to the fastest candidate,
// which is 100 %: a few percent would not be seen on an axis of rates. Problems without a measured candidate are empty.
func ThreeWays(to Place, name, title string, libraries []string, rows []score.Comparison) (Files, error) {
	f := newFigure(title, "", "speed, fastest candidate = 100 %")
	f.width = max(figureWidth, vg.Length(len(rows))*0.55*vg.Centimeter+3*vg.Centimeter)
	f.height = 13 * vg.Centimeter
	f.Add(&plotter.Grid{Horizontal: draw.LineStyle{Color: color.Gray{Y: 0xDD}, Width: vg.Points(0.25)}})
	labels, low, high := make([]string, len(rows)), 100.0, 100.0
	names := append([]string{"pick"}, libraries...)
	clouds := make([]plotter.XYs, len(names))
	for i := range rows {
		r := &rows[i]
		labels[i] = fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K)
		if r.Best.Time <= 0 {
			continue
		}
		least, most := 100.0, 100.0
		for k, t := range append([]unit.Seconds{r.Pick.Time}, r.Libraries...) {
			if t > 0 {
				v := 100 * float64(r.Best.Time/t)
				clouds[k] = append(clouds[k], plotter.XY{X: float64(i), Y: v})
				least, most = min(least, v), max(most, v)
			}
		}
		low, high = min(low, least), max(high, most)
		if most > least { // what belongs together
			if err := f.thin(plotter.XYs{{X: float64(i), Y: least}, {X: float64(i), Y: most}}); err != nil {
				return Files{}, err
			}
		}
	}
	best, err := plotter.NewLine(plotter.XYs{{X: -1, Y: 100}, {X: float64(len(rows)), Y: 100}})
	if err != nil {
		return Files{}, err
	}
	best.Color, best.Dashes = color.Gray{Y: 0x40}, []vg.Length{vg.Points(4), vg.Points(3)}
	f.Add(best)
	f.named("fastest candidate", best)
	for k := range slices.Backward(names) { // the pick is on top
		if len(clouds[k]) > 0 {
			f.Add(dots(clouds[k], k))
		}
	}
	for k, name := range names {
		if len(clouds[k]) > 0 {
			f.named(name, dots(clouds[k], k))
		}
	}
	room := max(0.05*(high-low), 0.5) // percent
	f.NominalX(labels...)
	f.Y.Tick.Marker = plot.TickerFunc(percentTicks)
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = -0.7, float64(len(rows))-0.3, max(0, low-room), high+room
	f.X.Tick.Label.Rotation = math.Pi / 3
	f.X.Tick.Label.XAlign, f.X.Tick.Label.YAlign = text.XRight, text.YCenter
	return f.save(to, name)
}

// percentTicks are at most eleven whole numbers with the sign.
func percentTicks(low, high float64) (ticks []plot.Tick) {
	step := 1.0
	for i := 0; (high-low)/step > 11; i++ {
		step *= []float64{2, 2.5, 2}[i%3] // 1, 2, 5, 10
	}
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.0f %%", v)})
	}
	return ticks
}

// dots are points in the colour and the shape of a series.
func dots(points plotter.XYs, series int) *plotter.Scatter {
	return &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: colourOf(series), Radius: vg.Points(3.2),
		Shape: glyphs[series%len(glyphs)]}}
}

// thin adds a line that joins what belongs together.
func (f *figure) thin(points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = color.Gray{Y: 0xBB}, vg.Points(0.75)
	f.Add(line)
	return nil
}

// Series is a named list of numbers. Side is that of a comparison.
type Series struct {
	Name   string
	Side   int
	Values []float64
}

// Sorted draws each series as a curve of its values in ascending order, over the share of them that is not larger.
func Sorted(to Place, name, title, x, y string, all []Series) (Files, error) {
	f := newFigure(title, x, y)
	f.grid()
	low := 1.0
	for i, series := range all {
		sorted := slices.Clone(series.Values)
		slices.Sort(sorted)
		points := make(plotter.XYs, len(sorted))
		for j, v := range sorted {
			points[j] = plotter.XY{X: float64(j+1) / float64(len(sorted)), Y: v}
			low = min(low, v)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return Files{}, err
		}
		line.Color, line.Width, line.StepStyle = colourOf(i), vg.Points(1.5), plotter.PreStep
		line.Dashes = dashes[i%len(dashes)]
		f.Add(line)
		f.named(series.Name, line)
	}
	f.X.Min, f.X.Max, f.Y.Min, f.Y.Max = 0, 1, math.Floor(low*20)/20, 1
	return f.save(to, name)
}

// dashes tell lines apart where colours do not.
var dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(2)}, {vg.Points(2), vg.Points(2)},
	{vg.Points(8), vg.Points(2), vg.Points(2), vg.Points(2)}}
