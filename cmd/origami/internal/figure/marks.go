package figure

import (
	"math"
	"slices"
)

// shape is the shape of dots.
func (m *Mark) shape() int {
	if m.Shape > 0 {
		return m.Shape - 1
	}
	return max(0, m.Series)
}

// style is how one of so many rows is painted.
func (m *Mark) style(rows int) style {
	colour := seriesInk(m.Series)
	switch {
	case m.Kind == Dots && m.Hollow:
		return style{stroke: colour, width: 1.5}
	case m.Kind == Dots && m.Large:
		return style{fill: colour, stroke: pageInk, width: 2}
	case m.Kind == Dots && rows > manyDots:
		return style{fill: colour, alpha: 0.5}
	case m.Kind == Dots:
		return style{fill: colour, alpha: 0.8}
	case m.Kind == Line && m.Series < 0:
		return style{stroke: colour, alpha: 0.65, width: 1.25, dash: dashes[m.Dash%len(dashes)]}
	case m.Kind == Line:
		return style{stroke: colour, width: 2, dash: dashes[m.Dash%len(dashes)]}
	case m.Kind == Band:
		return style{fill: colour, alpha: 0.13}
	}
	return style{fill: colour}
}

// manyDots is from how many dots on each is small.
const manyDots = 150

func (m *Mark) radius() float64 {
	switch {
	case m.Large:
		return 7
	case len(m.Rows) > manyDots:
		return 2.5
	}
	return 4
}

// mark draws the rows of a mark.
func (d *drawing) mark(m *Mark) {
	s, pitch := m.style(len(m.Rows)), math.Abs(d.y.step())
	at := func(r *Row) point { return point{d.x.at(r.X), d.y.at(r.Y)} }
	switch m.Kind {
	case Dots:
		for i := range m.Rows {
			d.taken = append(d.taken, at(&m.Rows[i]))
			d.symbol(m.shape(), at(&m.Rows[i]), m.radius(), s, m.Rows[i].Tip)
		}
	case Line:
		d.line(s, d.points(m)...)
	case Band:
		points := d.points(m)
		for i := range slices.Backward(m.Rows) {
			points = append(points, point{d.x.at(m.Rows[i].X), d.y.at(m.Rows[i].Y2)})
		}
		d.area(s, "", points...)
	case Bars:
		for i := range m.Rows {
			r := &m.Rows[i]
			d.bar(s, r, r.X.(float64), r.X2, d.y.at(r.Y)-pitch*0.42, pitch*0.84)
		}
	case Groups:
		before := 0
		for i := range d.Marks {
			if &d.Marks[i] == m {
				break
			}
			if d.Marks[i].Kind == Groups {
				before++
			}
		}
		for i := range m.Rows {
			r := &m.Rows[i]
			y := d.y.at(r.Y) - pitch/2 + groupGap/2 + float64(before)*barRoom
			to, _ := r.X.(float64)
			d.bar(s, r, 0, to, y+0.5, barRoom-1)
			d.write(point{d.x.at(to) + 4, y + 13}, textInk, label{text: Number(to, d.X.Unit), size: textSize})
		}
	case Cells:
		d.cells(m)
	case Boxes:
		low, high, _ := d.span()
		for i := range m.Rows {
			r := &m.Rows[i]
			d.box(style{fill: d.Scale.colour(share(r.Value, low, high, d.Scale.Log))}, r.Tip, at(r),
				point{d.x.at(r.X2), d.y.at(r.Y2)})
		}
	case Texts:
		for i := range m.Rows {
			r := &m.Rows[i]
			p := at(r)
			d.write(point{p.x + 6, p.y + 4}, textInk, label{text: r.Text, size: textSize})
		}
	}
}

func (d *drawing) points(m *Mark) (points []point) {
	for i := range m.Rows {
		points = append(points, point{d.x.at(m.Rows[i].X), d.y.at(m.Rows[i].Y)})
	}
	return points
}

// bar draws a bar with a thin gap at both ends.
func (d *drawing) bar(s style, r *Row, from, to, y, height float64) {
	a, b := d.x.at(min(from, to)), d.x.at(max(from, to))
	gap := min(0.5, (b-a)/4)
	d.box(s, r.Tip, point{a + gap, y}, point{b - gap, y + height})
}

// cells draws cells with their texts, if these can be read there. The first mark of cells crosses out all places that
// none has.
func (d *drawing) cells(m *Mark) {
	w, h := d.x.step(), math.Abs(d.y.step())
	size, first := 11.0, true
	used := map[[2]any]bool{}
	for i := range d.Marks {
		o := &d.Marks[i]
		if o.Kind == Cells {
			first = first && (len(used) > 0 || o == m)
			for k := range o.Rows {
				used[[2]any{o.Rows[k].X, o.Rows[k].Y}] = true
				size = min(size, 11*w*0.84/max(1, widthOf(o.Rows[k].Text, 11)), h*0.8)
			}
		}
	}
	box := func(x, y any) (point, point) {
		p := point{d.x.at(x), d.y.at(y)}
		return point{p.x - w/2, p.y - h/2}, point{p.x + w/2, p.y + h/2}
	}
	for _, x := range d.X.Names {
		for _, y := range d.Y.Names {
			if a, b := box(x, y); first && !used[[2]any{x, y}] {
				line := style{stroke: faintInk, alpha: 0.4, width: 0.75}
				d.line(line, a, b)
				d.line(line, point{a.x, b.y}, point{b.x, a.y})
			}
		}
	}
	low, high := 0.0, 0.0
	if d.Scale != nil {
		low, high, _ = d.span()
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		a, b := box(r.X, r.Y)
		value := 0.0
		if d.Scale != nil {
			value = share(r.Value, low, high, d.Scale.Log)
		}
		colour := d.cell(m, value, r.Tip, a, b)
		if size >= smallestText {
			d.write(point{(a.x + b.x) / 2, (a.y+b.y)/2 + size*0.36}, colour.onTop(),
				label{text: r.Text, size: size, anchor: middle})
		}
	}
}

// smallestText is the smallest size of a text that can be read, in pixels.
const smallestText = 5.5

// cell paints a cell and returns its colour. Classes beyond the colours have a texture besides.
func (d *drawing) cell(m *Mark, value float64, tip string, a, b point) (colour ink) {
	texture := 0
	switch {
	case d.Scale != nil:
		colour = d.Scale.colour(value)
	case m.Series < 0:
		colour = "#ffffff"
	case d.Ordered:
		colour = viridis(1 - 0.85*float64(m.Series)/float64(max(1, len(d.Series)-1)))
	default:
		colour, texture = classColours[m.Series%len(classColours)], m.Series/len(classColours)%3
	}
	if edge := 0.4; b.x-a.x > 8 {
		a, b = point{a.x + edge, a.y + edge}, point{b.x - edge, b.y - edge}
	}
	d.box(style{fill: colour}, tip, a, b)
	line := style{stroke: "#000000", alpha: 0.55, width: 0.6}
	w, h := b.x-a.x, b.y-a.y
	for _, t := range []float64{0, 1. / 3, 2. / 3} { // lines at thirds of the cell
		switch texture {
		case 1:
			d.line(line, point{a.x, b.y - t*h}, point{b.x - t*w, a.y})
			d.line(line, point{a.x + t*w, b.y}, point{b.x, a.y + t*h})
		case 2:
			d.line(line, point{a.x, a.y + t*h}, point{b.x - t*w, b.y})
			d.line(line, point{a.x + t*w, a.y}, point{b.x, b.y - t*h})
		}
	}
	return colour
}

// labels writes the labels of lines along them, where they cover least.
func (d *drawing) labels() {
	const size, above, reach = 11.0, 8.0, 9.0
	for i := range d.Marks {
		m := &d.Marks[i]
		points := d.points(m)
		if m.Label == "" || len(points) < 2 {
			continue
		}
		covered := slices.Clone(d.taken)
		for k := range d.Marks {
			if line := d.points(&d.Marks[k]); k != i && d.Marks[k].Kind == Line {
				for j := 1; j < len(line); j++ {
					covered = append(covered, between(line[j-1], line[j])...)
				}
			}
		}
		a, b := points[0], points[1]
		long, width := math.Hypot(b.x-a.x, b.y-a.y), room(m.Label, size)
		up := point{(b.y - a.y) / long, (a.x - b.x) / long}
		least, best, text := math.MaxInt, point{}, []point(nil)
		for s := 6.0; s+width < long; s += 12 {
			at := s
			if math.Abs(b.y-a.y) < 1 { // a flat line has its label at the right
				at = long - s - width
			}
			from, to := a.towards(b, at), a.towards(b, at+width)
			over := between(point{from.x + up.x*above, from.y + up.y*above}, point{to.x + up.x*above, to.y + up.y*above})
			clashes := 0
			for _, p := range over {
				if slices.ContainsFunc(covered, func(q point) bool { return math.Hypot(p.x-q.x, p.y-q.y) < reach }) {
					clashes++
				}
			}
			if clashes < least {
				least, best, text = clashes, point{from.x + up.x*above/2, from.y + up.y*above/2}, over
			}
		}
		if text != nil { // a short line has no room, and the table has its name
			d.taken = append(d.taken, text...)
			d.write(best, seriesInk(m.Series), label{text: m.Label, size: size,
				angle: math.Atan2(b.y-a.y, b.x-a.x) * 180 / math.Pi})
		}
	}
}

// between are points every few pixels from one to another.
func between(a, b point) (points []point) {
	n := int(math.Hypot(b.x-a.x, b.y-a.y)/6) + 1
	for i := range n + 1 {
		t := float64(i) / float64(n)
		points = append(points, point{a.x + (b.x-a.x)*t, a.y + (b.y-a.y)*t})
	}
	return points
}
