package mapcmd

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/report"
)

// report writes the outcome into a folder: map.md with the tables and the maps, map.csv and map.json with the numbers.
func (out *outcome) report(folder string, args []string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	place := report.PlaceOf(folder, out.subject, args)
	var page report.Page
	page.Heading(1, out.subject)
	lines := make([]string, len(out.heading))
	for i, line := range out.heading {
		lines[i] = line[0] + ": " + line[1]
	}
	page.List(lines)
	for _, draw := range []func(report.Place) (string, report.Files, error){
		out.rateMap, out.winnerMap, out.pickMap, out.intensityMap, out.splitMap, out.regretMap,
	} {
		what, files, err := draw(place)
		if err != nil {
			return report.Unwritable(folder, err)
		}
		if what != "" {
			page.Image(what, files.SVG)
		}
	}
	if header, rows := out.winners(); len(rows) > 0 {
		page.Table(header, rows)
	}
	if err := to.Numbers("map", out.write); err != nil {
		return err
	}
	return to.Page("map.md", &page)
}

// blank is a map with its title and sizes.
func (out *outcome) blank(what string) *report.Map {
	return &report.Map{
		Title: fmt.Sprintf("%s: %s, %s = %d", what, out.subject, letters[out.fixed()], out.sizes[out.fixed()][0]),
		X:     letters[out.column], Y: letters[out.row], Columns: out.columns(), Rows: out.rows(),
	}
}

// values returns a number of each place of the grid, NaN where there is none.
func (out *outcome) values(of func(c *cell) float64) (values []float64, some bool) {
	values = make([]float64, len(out.laid))
	for i, c := range out.laid {
		if values[i] = math.NaN(); c != nil {
			values[i] = of(c)
		}
		some = some || !math.IsNaN(values[i])
	}
	return values, some
}

func (out *outcome) rateMap(to report.Place) (string, report.Files, error) {
	values, some := out.values(func(c *cell) float64 { return c.best.gflops })
	if !some {
		return "", report.Files{}, nil
	}
	unit := "GFLOP/s"
	if slices.Max(numbers(values)) >= 2e4 {
		unit = "TFLOP/s"
		for i := range values {
			values[i] /= 1e3
		}
	}
	m := out.blank(unit + " of the fastest kernel")
	m.Texts = texts(values)
	files, err := m.Colours(to, "gflops", report.Scale{Values: values, Format: report.Digits})
	return unit + " of the fastest kernel", files, err
}

func texts(values []float64) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = report.Digits(v)
	}
	return all
}

func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

func (out *outcome) winnerMap(to report.Place) (string, report.Files, error) {
	return out.kernelMap(to, "winner", "fastest kernel", func(c *cell) *choice { return &c.best })
}

func (out *outcome) pickMap(to report.Place) (string, report.Files, error) {
	if !out.picks {
		return "", report.Files{}, nil
	}
	return out.kernelMap(to, "pick", "the model's pick", func(c *cell) *choice { return c.pick })
}

// mostTiles is how many tiles have a colour and a texture of their own. Others are white.
const mostTiles = 24

// kernelMap draws the tiles of kernels as colours and their numbers as text. A tile has the same colour in each map:
// the tiles that win most have colours without a texture.
func (out *outcome) kernelMap(to report.Place, name, what string, of func(c *cell) *choice) (
	string, report.Files, error,
) {
	tiles, place := out.tiles()
	if len(tiles) == 0 {
		return "", report.Files{}, nil
	}
	k := report.Classes{Of: make([]int, len(out.laid))}
	m := out.blank(what)
	others, counts := len(tiles), make([]int, len(tiles)+1)
	for i, c := range out.laid {
		k.Of[i] = -1
		text := ""
		if c != nil && of(c) != nil {
			x := of(c)
			if k.Of[i] = slices.Index(tiles, x.tile); k.Of[i] < 0 && x.tile != "" {
				k.Of[i] = others
			}
			if k.Of[i] >= 0 {
				counts[k.Of[i]]++
			}
			text = whole(x.number, 0)
		}
		m.Texts = append(m.Texts, text)
	}
	for i, tile := range tiles {
		k.Names = append(k.Names, fmt.Sprintf("%s (%d)", strings.Replace(tile, "x", "×", 1), counts[i]))
		k.Place = append(k.Place, place[tile])
	}
	if counts[others] > 0 {
		k.Names, k.Place = append(k.Names, fmt.Sprintf("other tiles (%d)", counts[others])), append(k.Place, -1)
	}
	files, err := m.Classes(to, name, k)
	return what + ": the tile as colour, the number of the kernel as text", files, err
}

// tiles returns the tiles that win most, from small to large, and the place of each by the sizes that it wins.
func (out *outcome) tiles() (tiles []string, place map[string]int) {
	wins := map[string]int{}
	for i := range out.kernels {
		wins[out.kernels[i].tile] += out.kernels[i].wins
	}
	delete(wins, "")
	tiles = slices.SortedFunc(maps.Keys(wins), func(x, y string) int {
		return cmp.Or(cmp.Compare(wins[y], wins[x]), cmp.Compare(x, y))
	})
	tiles = tiles[:min(len(tiles), mostTiles)]
	place = map[string]int{}
	for i, tile := range tiles {
		place[tile] = i
	}
	slices.SortFunc(tiles, func(x, y string) int { return cmp.Or(cmp.Compare(area(x), area(y)), cmp.Compare(x, y)) })
	return tiles, place
}

func area(tile string) int {
	var m, n int
	if _, err := fmt.Sscanf(tile, "%dx%d", &m, &n); err != nil {
		return 0
	}
	return m * n
}

func (out *outcome) intensityMap(to report.Place) (string, report.Files, error) {
	return out.orderedMap(to, "flop-per-byte", "FLOP/B of the fastest kernel's tile",
		func(c *cell) float64 { return c.best.perByte })
}

func (out *outcome) splitMap(to report.Place) (string, report.Files, error) {
	return out.orderedMap(to, "split", "split of K of the fastest kernel", func(c *cell) float64 {
		if c.best.split == 0 {
			return math.NaN()
		}
		return float64(c.best.split)
	})
}

// orderedMap draws few values as classes from light to dark.
func (out *outcome) orderedMap(to report.Place, name, what string, of func(c *cell) float64) (
	string, report.Files, error,
) {
	values, some := out.values(of)
	if !some {
		return "", report.Files{}, nil
	}
	distinct := numbers(values)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	k := report.Classes{Ordered: true, Of: make([]int, len(values))}
	m := out.blank(what)
	for _, v := range distinct {
		k.Names = append(k.Names, short(v))
	}
	for i, v := range values {
		m.Texts = append(m.Texts, "")
		if k.Of[i] = slices.Index(distinct, v); k.Of[i] >= 0 {
			m.Texts[i] = short(v)
		}
	}
	files, err := m.Classes(to, name, k)
	return what, files, err
}

// short writes a number with at most one decimal.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// mostRegret is the regret from which on the colour of a map is the same.
const mostRegret = 0.2

func (out *outcome) regretMap(to report.Place) (string, report.Files, error) {
	values, some := out.values(func(c *cell) float64 { return c.regret })
	if !some {
		return "", report.Files{}, nil
	}
	m := out.blank("regret of the model's pick (%)")
	for i, v := range values {
		values[i] = v * 100
		text := ""
		if !math.IsNaN(v) {
			text = strconv.FormatFloat(v*100, 'f', 0, 64)
		}
		m.Texts = append(m.Texts, text)
	}
	files, err := m.Colours(to, "regret", report.Scale{Values: values, Most: mostRegret * 100, Reversed: true,
		Format: func(v float64) string { return short(v) + " %" }})
	return "regret of the model's pick", files, err
}
