//go:build !race

package amdref_test

import (
	"fmt"
	"slices"
	"strings"
)

// tileColours are those of the tiles in the maps, from small to large.
var tileColours = []struct{ tile, colour string }{
	{"16x16", "#f7fbff"}, {"16x32", "#deebf7"}, {"16x64", "#d0dff0"}, {"16x128", "#c6cfe8"}, {"32x32", "#c6dbef"},
	{"32x64", "#9ecae1"}, {"32x128", "#6baed6"}, {"64x64", "#4292c6"}, {"64x128", "#2171b5"}, {"128x128", "#084594"},
}

// winnerMaps draws the tile of the winner over M and N: the slides' and the model's, side by side.
func winnerMaps(cells []cell, model []string) string {
	const side, left, top, gap = 14, 60, 60, 60
	var axis []int
	for _, c := range cells {
		if !slices.Contains(axis, c.problem.M) {
			axis = append(axis, c.problem.M)
		}
	}
	slices.Sort(axis)
	width := left + 2*len(axis)*side + gap + 170
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="11">`, width, top+len(axis)*side+40)
	b.WriteString("\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	for panel, title := range []string{"winner on the slides (measured)", "winner of the model"} {
		x0 := left + panel*(len(axis)*side+gap)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"24\" font-size=\"13\">%s</text>\n", x0, title)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">N →</text>\n", x0, top-8)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">M ↓</text>\n", x0-30, top-8)
		for i, c := range cells {
			tile := c.tile
			if panel == 1 {
				tile = model[i]
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#ffffff" stroke-width="0.5"/>`+"\n",
				x0+slices.Index(axis, c.problem.N)*side, top+slices.Index(axis, c.problem.M)*side, side, side, colourOf(tile))
		}
		for _, i := range []int{0, len(axis) / 2, len(axis) - 1} {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>\n", x0-3, top+i*side+11, axis[i])
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
				x0+i*side+side/2, top+len(axis)*side+14, axis[i])
		}
	}
	x := left + 2*len(axis)*side + gap + 20
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"24\" font-size=\"13\">tile, either way round</text>\n", x)
	for i, t := range append(slices.Clone(tileColours), struct{ tile, colour string }{"not legible", colourOf("")}) {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="14" height="14" fill="%s" stroke="#999999"/>`+"\n", x, top+i*20, t.colour)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x+20, top+i*20+11, t.tile)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func colourOf(tile string) string {
	for _, t := range tileColours {
		if t.tile == tile {
			return t.colour
		}
	}
	return "#dddddd"
}
