package figure

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// ink is a colour: a name of the page's style, or "#rrggbb".
type ink string

// The colours of text and lines. Series have c0 to c6: Okabe and Ito's, which the colour-blind can tell apart, each a
// contrast of at least 3 to the page.
const (
	textInk  ink = "text"
	faintInk ink = "faint"
	lineInk  ink = "line"
	pageInk  ink = "page"
)

const seriesColours = 7

// paper are the colours of files, as the page's style has them in light.
var paper = map[ink]ink{
	textInk: "#1c1f23", faintInk: "#5a6068", lineInk: "#dcdfe4", pageInk: "#ffffff",
	"c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#b8578e", "c4": "#b07500", "c5": "#3794c8", "c6": "#6b7078",
}

func seriesInk(i int) ink {
	if i < 0 {
		return textInk
	}
	return ink("c" + strconv.Itoa(i%seriesColours))
}

// inFile is the ink's colour in a file.
func (i ink) inFile() ink {
	if c, ok := paper[i]; ok {
		return c
	}
	return i
}

// inPage is the ink's colour in a page, which its style may change.
func (i ink) inPage() ink {
	if _, ok := paper[i]; ok {
		return "var(--" + i + ")"
	}
	return i
}

func (i ink) rgba(alpha float64) color.NRGBA {
	c := color.NRGBA{A: uint8(math.Round(255 * alpha))}
	v, _ := strconv.ParseUint(string(i.inFile()[1:]), 16, 32) // colours are written in this file
	c.R, c.G, c.B = uint8(v>>16), uint8(v>>8), uint8(v)
	return c
}

// onTop is the colour of text that can be read on a cell.
func (i ink) onTop() ink {
	linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	c := i.rgba(1)
	// WCAG's relative luminance. Black and white have equal contrast at 0.18.
	if 0.2126*linear(c.R)+0.7152*linear(c.G)+0.0722*linear(c.B) < 0.18 {
		return "#ffffff"
	}
	return "#000000"
}

// classColours are Okabe and Ito's for the cells of a map, black lightened to grey.
var classColours = []ink{"#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#aaaaaa"}

// viridisStops are matplotlib's viridis (CC0) at equal steps. Its lightness grows evenly, also for the colour-blind.
var viridisStops = []ink{"#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59",
	"#b4de2c", "#fde725"}

// viridis is the colour of a share from 0 to 1.
func viridis(share float64) ink {
	at := max(0, min(1, share)) * float64(len(viridisStops)-1)
	i := min(int(at), len(viridisStops)-2)
	a, b := viridisStops[i].rgba(1), viridisStops[i+1].rgba(1)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*(at-float64(i)))) }
	return ink(fmt.Sprintf("#%02x%02x%02x", mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B)))
}
