package figure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/printable"
)

// The widths of a figure in pixels: in a file and on a wide page, and on a narrow one.
const (
	broad = 880
	slim  = 400
)

// SVG draws the figure for a file, with a line below it that says where it comes from.
func (f *Figure) SVG(source string) []byte {
	var b bytes.Buffer
	c := f.draw(broad, true, source)
	c.svg(&b, ink.inFile, fmt.Sprintf(`xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" font-family="%s"`,
		number(c.width), number(c.height), "Go,Arial,Helvetica,sans-serif"), f.Title, pageInk)
	return b.Bytes()
}

// Inline draws the figure for a page, wide and narrow. The page's style shows one of them. named is the id of the
// element that names the figure.
func (f *Figure) Inline(named string) string {
	var b bytes.Buffer
	for _, form := range []struct {
		class string
		width float64
	}{{"broad", broad}, {"slim", slim}} {
		c := f.draw(form.width, false, "")
		for i := range c.shapes {
			if s := &c.shapes[i]; s.tip != "" && form.width == slim {
				s.tip = " " // the page's script knows it from the other, which has the same marks
			}
		}
		c.svg(&b, ink.inPage, fmt.Sprintf(`class="%s" width="%s" height="%s" role="img" aria-labelledby="%s"`, form.class,
			number(c.width), number(c.height), named), "", "")
	}
	return b.String()
}

// svg writes the picture. The colours come from a theme.
func (c *canvas) svg(b *bytes.Buffer, theme func(ink) ink, attributes, title string, ground ink) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %s %s" font-size="12" %s>`, number(c.width), number(c.height), attributes)
	if title != "" {
		b.WriteString("<title>" + escaped(printable.Line(title)) + "</title>")
	}
	if ground != "" {
		fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="%s"/>`, theme(ground))
	}
	b.WriteString("\n")
	last := ""
	for i := range c.shapes {
		s := &c.shapes[i]
		if group := s.attributes(theme); group != last {
			if last != "" {
				b.WriteString("</g>\n")
			}
			b.WriteString("<g" + group + ">")
			last = group
		}
		s.svg(b)
	}
	if last != "" {
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
}

// attributes are what shapes that follow each other may share.
func (s *shape) attributes(theme func(ink) ink) string {
	var b strings.Builder
	if s.fill == "" {
		b.WriteString(` fill="none"`)
	} else {
		fmt.Fprintf(&b, ` fill="%s"`, theme(s.fill))
	}
	if s.stroke != "" {
		fmt.Fprintf(&b, ` stroke="%s" stroke-width="%s"`, theme(s.stroke), number(s.width))
	}
	if s.alpha > 0 {
		fmt.Fprintf(&b, ` opacity="%s"`, strconv.FormatFloat(s.alpha, 'f', -1, 64))
	}
	if len(s.dash) > 0 {
		b.WriteString(` stroke-dasharray="` + strings.Trim(fmt.Sprint(s.dash), "[]") + `"`)
	}
	return b.String()
}

// svg writes one element.
func (s *shape) svg(b *bytes.Buffer) {
	at := s.points[0]
	x, y := number(at.x), number(at.y)
	element := "path"
	switch {
	case s.text != "":
		element = "text"
		fmt.Fprintf(b, `<text x="%s" y="%s"`, x, y)
		if s.size != textSize {
			fmt.Fprintf(b, ` font-size="%s"`, number(s.size))
		}
		if s.anchor != "" && s.anchor != start {
			fmt.Fprintf(b, ` text-anchor="%s"`, s.anchor)
		}
		if s.angle != 0 {
			fmt.Fprintf(b, ` transform="rotate(%s %s %s)"`, number(s.angle), x, y)
		}
	case s.radius > 0:
		element = "circle"
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="%s"`, x, y, number(s.radius))
	default:
		b.WriteString(`<path d="M` + x + " " + y)
		for _, p := range s.points[1:] {
			b.WriteString("L" + number(p.x) + " " + number(p.y))
		}
		if s.closed {
			b.WriteString("Z")
		}
		b.WriteString(`"`)
	}
	if s.text == "" && s.tip == "" {
		b.WriteString("/>")
		return
	}
	b.WriteString(">" + escaped(s.text))
	if s.tip != "" {
		lines := strings.Split(s.tip, "\n")
		for i := range lines {
			lines[i] = printable.Line(lines[i])
		}
		b.WriteString("<title>" + escaped(strings.Join(lines, "\n")) + "</title>")
	}
	b.WriteString("</" + element + ">")
}

// number writes pixels with one decimal.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}
