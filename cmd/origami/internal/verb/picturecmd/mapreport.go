package picturecmd

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
)

func (out *outcome) page(r *report.Report) {
	r.Heading(1, out.subject)
	lines := make([]string, len(out.heading))
	for i, line := range out.heading {
		lines[i] = line[0] + ": " + line[1]
	}
	r.List(lines)
	for _, m := range out.maps() {
		r.Figure(m.name, m.what, m.Figure)
	}
	if header, rows := out.winners(nil).Text(out.kernels); len(rows) > 0 {
		r.Table(header, rows)
	}
}

// drawn is a map with the name of its files, and what it shows.
type drawn struct {
	*figure.Figure
	name, what string
}

// maps are the maps that there are numbers for.
func (out *outcome) maps() (all []drawn) {
	add := func(name, what string, f *figure.Figure) {
		if f != nil {
			all = append(all, drawn{f, name, what})
		}
	}
	rates, unit := out.rates()
	add("gflops", unit+" of the fastest kernel", rates)
	const kernel = ": the tile as colour, the number of the kernel as text"
	add("winner", "fastest kernel"+kernel, out.kernelMap("fastest kernel", func(c *ask.Cell) (*int, string, string) {
		return c.Winner, c.Config, c.Tile
	}))
	add("pick", "the model's pick"+kernel, out.kernelMap("the model's pick", func(c *ask.Cell) (*int, string, string) {
		if c.Pick == nil || c.Pick.Kernel == nil {
			return nil, "", ""
		}
		i := slices.IndexFunc(out.kernels, func(w ask.Winner) bool { return w.Number == *c.Pick.Kernel })
		if i < 0 {
			return nil, "", ""
		}
		return c.Pick.Kernel, c.Pick.Config, out.kernels[i].Tile
	}))
	add("flop-per-byte", intensity, out.orderedMap(intensity, func(c *ask.Cell) float64 { return float64(c.PerByte) }))
	add("split", split, out.orderedMap(split, func(c *ask.Cell) float64 {
		if c.Split == nil {
			return math.NaN()
		}
		return float64(*c.Split)
	}))
	add("bound", limited, out.classMap(limited, out.bounds(), false, func(c *ask.Cell) string { return c.Bound }))
	add("occupancy", resident, out.orderedMap(resident, func(c *ask.Cell) float64 { return float64(c.PerUnit) }))
	add("regret", "regret of the model's pick", out.numberMap("regret of the model's pick (%)",
		figure.Scale{Label: "regret", Unit: "%", High: mostRegret, Reversed: true},
		func(c *ask.Cell) float64 {
			if c.Pick == nil {
				return math.NaN()
			}
			return float64(c.Pick.Regret)
		}, func(v float64) string { return strconv.FormatFloat(v*100, 'f', 0, 64) }))
	return all
}

// What the maps of few, ordered numbers show.
const (
	intensity = "FLOP/B of the fastest kernel's tile"
	split     = "split of K of the fastest kernel"
	resident  = "CTAs of the fastest kernel that run at once on an SM or CU"
	limited   = "what limits the fastest kernel"
)

// mostRegret is the regret from which on the colour of a map is the same.
const mostRegret = 0.2

// blank is a map with its title and sizes. Scattered sizes are points: the results to compute, and what each takes.
func (out *outcome) blank(what string) *figure.Figure {
	if out.Scattered > 0 {
		return &figure.Figure{Title: fmt.Sprintf("%s: %s", what, out.subject),
			X: figure.Axis{Label: "M·N", Log: true}, Y: figure.Axis{Label: "K", Log: true}}
	}
	names := func(sizes []int) (names []string) {
		for _, v := range sizes {
			names = append(names, strconv.Itoa(v))
		}
		return names
	}
	return &figure.Figure{
		Title: fmt.Sprintf("%s: %s, %s = %d", what, out.subject, ask.Letters[out.Fixed()], out.Sizes[out.Fixed()][0]),
		X:     figure.Axis{Label: ask.Letters[out.Column], Names: names(out.Columns())},
		Y:     figure.Axis{Label: ask.Letters[out.Row], Names: names(out.Rows())},
	}
}

// mark is a mark of the maps: places of a grid, or points.
func (out *outcome) mark(series int) figure.Mark {
	if out.Scattered > 0 {
		return figure.Mark{Kind: figure.Dots, Series: series}
	}
	return figure.Mark{Kind: figure.Cells, Series: series}
}

// place is a cell on a map, with the kernel that it shows.
func (out *outcome) place(f *figure.Figure, i int, text, config string) figure.Row {
	if out.Scattered > 0 {
		p := &out.laid[i].Size
		return figure.Row{X: float64(p.M) * float64(p.N), Y: float64(p.K), Tip: figure.Tip("%s\n%s", p, config)}
	}
	columns := len(f.X.Names)
	return figure.Row{X: f.X.Names[i%columns], Y: f.Y.Names[i/columns], Text: text,
		Tip: figure.Tip("%s = %s, %s = %s\n%s", f.Y.Label, f.Y.Names[i/columns], f.X.Label, f.X.Names[i%columns],
			config)}
}

// rates is the map of rates, and their unit.
func (out *outcome) rates() (f *figure.Figure, unit string) {
	most, scale := 0.0, 1.0
	for _, c := range out.laid {
		if c != nil && float64(c.GFLOPS) > most {
			most = float64(c.GFLOPS)
		}
	}
	if unit = "GFLOP/s"; most >= 2e4 {
		unit, scale = "TFLOP/s", 1e3
	}
	return out.numberMap(unit+" of the fastest kernel", figure.Scale{Label: unit},
		func(c *ask.Cell) float64 { return float64(c.GFLOPS) / scale }, threeDigits), unit
}

// threeDigits writes a number with about three digits.
func threeDigits(v float64) string {
	switch {
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// numberMap colours places by a number, nil where none has one. Of scattered sizes it shows the number by the FLOP.
func (out *outcome) numberMap(
	what string, s figure.Scale, of func(c *ask.Cell) float64, text func(float64) string,
) *figure.Figure {
	f, m := out.blank(what), out.mark(0)
	if f.Scale = &s; out.Scattered > 0 {
		f.Scale = nil
		f.X, f.Y = figure.Axis{Label: "work", Unit: "FLOP", Log: true}, figure.Axis{Label: s.Label, Unit: s.Unit}
	}
	for i, c := range out.laid {
		if c == nil {
			continue
		}
		if v := of(c); !math.IsNaN(v) {
			row := out.place(f, i, text(v), c.Config)
			if row.Value = v; out.Scattered > 0 {
				row.X, row.Y, row.Value = c.Size.Flops(), v, 0
			}
			m.Rows = append(m.Rows, row)
		}
	}
	if len(m.Rows) == 0 {
		return nil
	}
	f.Marks = []figure.Mark{m}
	return f
}

// mostTiles is how many tiles have a colour and a texture of their own. Others are white.
const mostTiles = 24

// kernelMap shows the tiles of kernels as colours and their numbers as text, nil without a tile. A tile has the same
// colour in each map: the tiles that win most have colours without a texture.
func (out *outcome) kernelMap(what string, of func(c *ask.Cell) (number *int, config, tile string)) *figure.Figure {
	tiles := out.tiles()
	if len(tiles) == 0 {
		return nil
	}
	f := out.blank(what)
	f.Series = tiles
	others := out.mark(figure.Neutral)
	marks := map[string]*figure.Mark{}
	for i, tile := range tiles {
		m := out.mark(i)
		marks[tile] = &m
	}
	for i, c := range out.laid {
		if c == nil {
			continue
		}
		number, config, tile := of(c)
		if tile == "" {
			continue
		}
		m, text := marks[tile], ""
		if m == nil {
			m = &others
		}
		if number != nil {
			text = strconv.Itoa(*number)
		}
		m.Rows = append(m.Rows, out.place(f, i, text, config))
	}
	named := func(m *figure.Mark, name string) {
		m.Name = fmt.Sprintf("%s (%d)", strings.Replace(name, "x", "×", 1), len(m.Rows))
		f.Marks = append(f.Marks, *m)
	}
	bySize := slices.Clone(tiles)
	slices.SortFunc(bySize, func(x, y string) int { return cmp.Or(cmp.Compare(area(x), area(y)), cmp.Compare(x, y)) })
	for _, tile := range bySize {
		named(marks[tile], tile)
	}
	if len(others.Rows) > 0 {
		named(&others, "other tiles")
	}
	return f
}

// tiles lists the tiles that win most, in the order of the sizes that they win.
func (out *outcome) tiles() []string {
	wins := map[string]int{}
	for i := range out.kernels {
		wins[out.kernels[i].Tile] += out.kernels[i].Sizes
	}
	delete(wins, "")
	tiles := slices.SortedFunc(maps.Keys(wins), func(x, y string) int {
		return cmp.Or(cmp.Compare(wins[y], wins[x]), cmp.Compare(x, y))
	})
	return tiles[:min(len(tiles), mostTiles)]
}

func area(tile string) int {
	var m, n int
	if _, err := fmt.Sscanf(tile, "%dx%d", &m, &n); err != nil {
		return 0
	}
	return m * n
}

// orderedMap shows few numbers as steps of one colour, nil without one.
func (out *outcome) orderedMap(what string, of func(c *ask.Cell) float64) *figure.Figure {
	var distinct []float64
	for _, c := range out.laid {
		if c != nil && !math.IsNaN(of(c)) {
			distinct = append(distinct, of(c))
		}
	}
	slices.Sort(distinct)
	var names []string
	for _, v := range slices.Compact(distinct) {
		names = append(names, figure.Number(v, ""))
	}
	f := out.classMap(what, slices.Compact(names), true, func(c *ask.Cell) string { return figure.Number(of(c), "") })
	if f != nil {
		f.Ordered = true
	}
	return f
}

// bounds lists what limits some kernel.
func (out *outcome) bounds() []string {
	found := map[string]bool{}
	for i := range out.cells {
		found[out.cells[i].Bound] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// classMap gives each class of places a colour, and if it is short its name as text. Without a class it is nil.
func (out *outcome) classMap(what string, classes []string, short bool, of func(c *ask.Cell) string) *figure.Figure {
	f := out.blank(what)
	f.Series = classes
	for k, class := range classes {
		m, text := out.mark(k), ""
		if short {
			text = class
		}
		for i, c := range out.laid {
			if c != nil && of(c) == class {
				m.Rows = append(m.Rows, out.place(f, i, text, c.Config))
			}
		}
		f.Marks = append(f.Marks, m)
	}
	if len(f.Marks) == 0 {
		return nil
	}
	return f
}
