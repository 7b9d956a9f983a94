package figure

import (
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"github.com/origami-gemm/origami/core/printable"
)

// canvas is a picture as a list of shapes, in pixels from its upper left corner.
type canvas struct {
	width, height float64
	shapes        []shape
}

type point struct{ x, y float64 }

// style is how a shape is painted.
type style struct {
	fill, stroke ink
	// alpha is the opacity, 0 for 1.
	alpha, width float64
	dash         []float64
}

type shape struct {
	style
	points []point
	// closed says that the points are the corners of an area, and not a line.
	closed bool
	// radius makes a circle around the only point.
	radius float64
	label
	tip string
}

// label is text at the only point of a shape.
type label struct {
	text string
	// size is in pixels, angle in degrees clockwise, anchor as SVG has it.
	size, angle float64
	anchor      string
}

const (
	start, middle, end = "start", "middle", "end"
	textSize           = 12.0
)

// dashes tell lines apart where colours do not.
var dashes = [][]float64{nil, {5, 4}, {2, 2}, {8, 2, 2, 2}}

func (c *canvas) line(s style, points ...point) {
	if len(points) > 0 {
		c.shapes = append(c.shapes, shape{style: s, points: points})
	}
}

func (c *canvas) area(s style, tip string, corners ...point) {
	if len(corners) > 0 {
		c.shapes = append(c.shapes, shape{style: s, points: corners, closed: true, tip: tip})
	}
}

// box paints a rectangle.
func (c *canvas) box(s style, tip string, a, b point) {
	c.area(s, tip, a, point{b.x, a.y}, b, point{a.x, b.y})
}

// write writes a text that may be foreign. Its point is on the baseline.
func (c *canvas) write(at point, colour ink, l label) {
	if l.text = printable.Line(l.text); l.text != "" {
		c.shapes = append(c.shapes, shape{style: style{fill: colour}, points: []point{at}, label: l})
	}
}

// symbols are the shapes of series beside the circle, as corners around the middle. All have about the circle's area.
var symbols = [][]point{
	{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
	{{0, -1.4}, {1.3, 0.9}, {-1.3, 0.9}},
	{{0, -1.4}, {1.15, 0}, {0, 1.4}, {-1.15, 0}},
	{{0, 1.4}, {1.3, -0.9}, {-1.3, -0.9}},
	{{-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4}, {0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4},
		{-1.2, 0.4}, {-1.2, -0.4}, {-0.4, -0.4}},
	{{-1.2, -0.7}, {1.2, -0.7}, {1.2, 0.7}, {-1.2, 0.7}},
}

// symbol paints the shape of a series.
func (c *canvas) symbol(which int, at point, radius float64, s style, tip string) {
	which %= len(symbols) + 1
	if which <= 0 {
		c.shapes = append(c.shapes, shape{style: s, points: []point{at}, closed: true, radius: radius, tip: tip})
		return
	}
	var corners []point
	for _, p := range symbols[which-1] {
		corners = append(corners, point{at.x + p.x*radius, at.y + p.y*radius})
	}
	c.area(s, tip, corners...)
}

// face is the font: Go Regular.
var face = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		panic(err) // the font is part of the program
	}
	return f
})

// em is the size at which glyphs are measured and drawn, before they are scaled.
const em = 1024

// glyphs calls a function for each letter of a text with its advance, in pixels at a size.
func glyphs(text string, size float64, each func(b *sfnt.Buffer, i sfnt.GlyphIndex, advance float64)) {
	var b sfnt.Buffer
	for _, r := range text {
		i, err := face().GlyphIndex(&b, r)
		if err != nil {
			continue
		}
		advance, err := face().GlyphAdvance(&b, i, fixed.I(em), font.HintingNone)
		if err != nil {
			continue
		}
		each(&b, i, float64(advance)/64*size/em)
	}
}

// widthOf is the room that a text takes.
func widthOf(text string, size float64) (width float64) {
	glyphs(text, size, func(_ *sfnt.Buffer, _ sfnt.GlyphIndex, advance float64) { width += advance })
	return width
}

// room is what to keep free for a text: a reader's font may be wider than the one that is measured.
func room(text string, size float64) float64 { return 1.12 * widthOf(text, size) }

// longest is the room of the widest text.
func longest(texts []string, size float64) (width float64) {
	for _, t := range texts {
		width = max(width, room(printable.Line(t), size))
	}
	return width
}

// cut shortens a text to the room that there is.
func cut(text string, most, size float64) string {
	text = printable.Line(text)
	if room(text, size) <= most {
		return text
	}
	runes := []rune(text)
	for len(runes) > 1 && room(string(runes)+"…", size) > most {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// wrapped breaks a text between words.
func wrapped(text string, most, size float64) (lines []string) {
	for _, word := range strings.Fields(printable.Line(text)) {
		if last := len(lines) - 1; last >= 0 && room(lines[last]+" "+word, size) <= most {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// towards is the point at a distance on the way to another.
func (p point) towards(q point, distance float64) point {
	length := math.Hypot(q.x-p.x, q.y-p.y)
	return point{p.x + (q.x-p.x)*distance/length, p.y + (q.y-p.y)*distance/length}
}
