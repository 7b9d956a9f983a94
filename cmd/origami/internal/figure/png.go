package figure

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"math"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is how many pixels of a PNG a pixel of the figure has on each side, so that none can be seen.
const pngScale = 2

// PNG draws what SVG draws, with the font Go Regular.
func (f *Figure) PNG(source string) ([]byte, error) {
	c := f.draw(broad, true, source)
	img := image.NewRGBA(image.Rect(0, 0, int(math.Ceil(c.width*pngScale)), int(math.Ceil(c.height*pngScale))))
	draw.Draw(img, img.Bounds(), image.NewUniform(pageInk.rgba(1)), image.Point{}, draw.Src)
	for i := range c.shapes {
		s := &c.shapes[i]
		alpha := s.alpha
		if alpha == 0 {
			alpha = 1
		}
		if s.fill != "" {
			paint(img, s.inside(), s.fill, alpha)
		}
		if s.stroke != "" {
			paint(img, s.outline(), s.stroke, alpha)
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// fixedPoint is a point in 1/64 pixels. A path is a list of segments between such points, as glyphs are.
func fixedPoint(p point) fixed.Point26_6 {
	return fixed.Point26_6{X: fixed.Int26_6(math.Round(p.x * 64)), Y: fixed.Int26_6(math.Round(p.y * 64))}
}

// polygon is a path along corners.
func polygon(corners ...point) (path sfnt.Segments) {
	for i, c := range corners {
		op := sfnt.SegmentOpLineTo
		if i == 0 {
			op = sfnt.SegmentOpMoveTo
		}
		path = append(path, sfnt.Segment{Op: op, Args: [3]fixed.Point26_6{fixedPoint(c)}})
	}
	return path
}

// circle has the corners of a circle around a point.
func circle(at point, radius float64) (corners []point) {
	for i := range 24 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 12)
		corners = append(corners, point{at.x + radius*cos, at.y + radius*sin})
	}
	return corners
}

// inside is what the fill of a shape covers.
func (s *shape) inside() (path sfnt.Segments) {
	if s.radius > 0 {
		return polygon(circle(s.points[0], s.radius)...)
	}
	if s.text == "" {
		return polygon(s.points...)
	}
	at, x := s.points[0], -widthOf(s.text, s.size)*map[string]float64{middle: 0.5, end: 1}[s.anchor]
	sin, cos := math.Sincos(s.angle * math.Pi / 180)
	glyphs(s.text, s.size, func(b *sfnt.Buffer, i sfnt.GlyphIndex, advance float64) {
		segments, err := face().LoadGlyph(b, i, fixed.I(em), nil)
		if err != nil {
			return // a letter without an outline
		}
		for _, segment := range segments {
			for k, v := range segment.Args {
				dx, dy := x+float64(v.X)/64*s.size/em, float64(v.Y)/64*s.size/em
				segment.Args[k] = fixedPoint(point{at.x + dx*cos - dy*sin, at.y + dx*sin + dy*cos})
			}
			path = append(path, segment)
		}
		x += advance
	})
	return path
}

// outline is what the stroke of a shape covers: a rectangle per stretch, all in the same sense, and circles between.
func (s *shape) outline() (path sfnt.Segments) {
	points := s.points
	if s.radius > 0 {
		points = circle(s.points[0], s.radius)
	}
	if s.closed {
		points = append(slices.Clone(points), points[0])
	}
	r, gone := s.width/2, 0.0
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		long := math.Hypot(b.x-a.x, b.y-a.y)
		if long == 0 {
			continue
		}
		side := point{-(b.y - a.y) / long * r, (b.x - a.x) / long * r}
		for _, on := range dashed(s.dash, gone, long) {
			from, to := a.towards(b, on[0]), a.towards(b, on[1])
			path = append(path, polygon(point{from.x - side.x, from.y - side.y}, point{to.x - side.x, to.y - side.y},
				point{to.x + side.x, to.y + side.y}, point{from.x + side.x, from.y + side.y})...)
		}
		gone += long
		if len(s.dash) == 0 && (i+1 < len(points) || s.closed) && r > 0.5 {
			path = append(path, polygon(circle(b, r)...)...)
		}
	}
	return path
}

// dashed lists the drawn parts of a stretch, where so much of the line is gone before it.
func dashed(pattern []float64, gone, long float64) (on [][2]float64) {
	if len(pattern) == 0 {
		return [][2]float64{{0, long}}
	}
	for at, i := -gone, 0; at < long; i++ {
		next := at + pattern[i%len(pattern)]
		if i%2 == 0 && next > 0 {
			on = append(on, [2]float64{max(0, at), min(long, next)})
		}
		at = next
	}
	return on
}

// paint fills a path.
func paint(img draw.Image, path sfnt.Segments, colour ink, alpha float64) {
	bounds := path.Bounds()
	box := image.Rect(bounds.Min.X.Floor()*pngScale, bounds.Min.Y.Floor()*pngScale, bounds.Max.X.Ceil()*pngScale,
		bounds.Max.Y.Ceil()*pngScale)
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	for _, segment := range path {
		var at [3][2]float32
		for k, p := range segment.Args {
			at[k] = [2]float32{float32(p.X)/64*pngScale - float32(box.Min.X), float32(p.Y)/64*pngScale - float32(box.Min.Y)}
		}
		switch segment.Op {
		case sfnt.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(at[0][0], at[0][1])
		case sfnt.SegmentOpLineTo:
			z.LineTo(at[0][0], at[0][1])
		case sfnt.SegmentOpQuadTo:
			z.QuadTo(at[0][0], at[0][1], at[1][0], at[1][1])
		case sfnt.SegmentOpCubeTo:
			z.CubeTo(at[0][0], at[0][1], at[1][0], at[1][1], at[2][0], at[2][1])
		}
	}
	z.ClosePath()
	z.Draw(img, box, image.NewUniform(colour.rgba(alpha)), image.Point{})
}
