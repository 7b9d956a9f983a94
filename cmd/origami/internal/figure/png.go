package figure

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"math"

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
			s.inside().paint(img, s.fill, alpha)
		}
		if s.stroke != "" {
			s.outline().paint(img, s.stroke, alpha)
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// path is an outline of straight and curved pieces. move begins a new one.
type path []piece

type piece struct {
	op sfnt.SegmentOp
	to [3]point
}

// polygon is a path along corners.
func polygon(corners ...point) (p path) {
	for i, c := range corners {
		op := sfnt.SegmentOpLineTo
		if i == 0 {
			op = sfnt.SegmentOpMoveTo
		}
		p = append(p, piece{op, [3]point{c}})
	}
	return p
}

// circle is a path around a point.
func circle(at point, radius float64) path {
	var corners []point
	for i := range 24 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 12)
		corners = append(corners, point{at.x + radius*cos, at.y + radius*sin})
	}
	return polygon(corners...)
}

// inside is what the fill of a shape covers.
func (s *shape) inside() path {
	if s.radius > 0 {
		return circle(s.points[0], s.radius)
	}
	if s.text == "" {
		return polygon(s.points...)
	}
	at, x := s.points[0], 0.0
	switch s.anchor {
	case middle:
		x = -widthOf(s.text, s.size) / 2
	case end:
		x = -widthOf(s.text, s.size)
	}
	sin, cos := math.Sincos(s.angle * math.Pi / 180)
	var p path
	glyphs(s.text, s.size, func(b *sfnt.Buffer, i sfnt.GlyphIndex, advance float64) {
		segments, err := face().LoadGlyph(b, i, fixed.I(em), nil)
		if err != nil {
			return // a letter without an outline
		}
		for _, segment := range segments {
			one := piece{op: segment.Op}
			for k, v := range segment.Args {
				dx, dy := x+float64(v.X)/64*s.size/em, float64(v.Y)/64*s.size/em
				one.to[k] = point{at.x + dx*cos - dy*sin, at.y + dx*sin + dy*cos}
			}
			p = append(p, one)
		}
		x += advance
	})
	return p
}

// outline is what the stroke of a shape covers: a rectangle per stretch, all in the same sense, and circles between.
func (s *shape) outline() (p path) {
	points := s.points
	if s.radius > 0 {
		points = nil
		for _, c := range circle(s.points[0], s.radius) {
			points = append(points, c.to[0])
		}
	}
	if s.closed {
		points = append(points[:len(points):len(points)], points[0])
	}
	r, gone := s.width/2, 0.0
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		long := math.Hypot(b.x-a.x, b.y-a.y)
		if long == 0 {
			continue
		}
		for _, on := range dashed(s.dash, gone, long) {
			from, to := a.towards(b, on[0]), a.towards(b, on[1])
			side := point{-(b.y - a.y) / long * r, (b.x - a.x) / long * r}
			p = append(p, polygon(point{from.x - side.x, from.y - side.y}, point{to.x - side.x, to.y - side.y},
				point{to.x + side.x, to.y + side.y}, point{from.x + side.x, from.y + side.y})...)
		}
		gone += long
		if len(s.dash) == 0 && (i+1 < len(points) || s.closed) && r > 0.5 {
			p = append(p, circle(b, r)...)
		}
	}
	return p
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
func (p path) paint(img draw.Image, colour ink, alpha float64) {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, one := range p {
		for _, q := range one.to[:points(one.op)] {
			low, high = point{min(low.x, q.x), min(low.y, q.y)}, point{max(high.x, q.x), max(high.y, q.y)}
		}
	}
	box := image.Rect(int(math.Floor(low.x*pngScale)), int(math.Floor(low.y*pngScale)),
		int(math.Ceil(high.x*pngScale)), int(math.Ceil(high.y*pngScale)))
	if len(p) == 0 || box.Empty() {
		return
	}
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	at := func(q point) (float32, float32) {
		return float32(q.x*pngScale - float64(box.Min.X)), float32(q.y*pngScale - float64(box.Min.Y))
	}
	for _, one := range p {
		ax, ay := at(one.to[0])
		bx, by := at(one.to[1])
		cx, cy := at(one.to[2])
		switch one.op {
		case sfnt.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			z.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			z.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			z.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	z.ClosePath()
	z.Draw(img, box, image.NewUniform(colour.rgba(alpha)), image.Point{})
}

// points is how many points a piece has.
func points(op sfnt.SegmentOp) int {
	switch op {
	case sfnt.SegmentOpQuadTo:
		return 2
	case sfnt.SegmentOpCubeTo:
		return 3
	}
	return 1
}
