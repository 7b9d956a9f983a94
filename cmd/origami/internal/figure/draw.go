package figure

import (
	"math"
	"slices"
)

// drawing is a figure on its way to shapes.
type drawing struct {
	canvas
	*Figure
	x, y scaled
	// taken is what labels should not cover.
	taken []point
}

// The sizes of the parts of a figure, in pixels.
const (
	legendLine, titleLine, captionLine = 20.0, 28.0, 13.0
	nameRoom, tightRoom                = 22.0, 15.0
	barRoom, groupGap                  = 18.0, 12.0
	largestCell, tallestCell           = 64.0, 34.0
	smallestCell, tightCell            = 6.0, 14.0
	manyNames                          = 40
)

// draw lays a figure out for a width. A map with many places may be wider. A page has the title beside the figure, a
// file in it, and the source below.
func (f *Figure) draw(width float64, file bool, source string) *canvas {
	d := &drawing{Figure: f.shown(), canvas: canvas{width: width}}
	d.x.Axis, d.y.Axis = &d.X, &d.Y
	d.x.ends(d.along(func(r *Row) (any, float64, bool) { return r.X, r.X2, r.X2 != 0 }, &d.X))
	d.y.ends(d.along(func(r *Row) (any, float64, bool) { return r.Y, r.Y2, r.Y2 != 0 }, &d.Y))
	if d.has(Groups) || d.has(Bars) {
		d.x.low = min(0, d.x.low)
	}
	right, below := 28.0, 44.0
	if d.has(Groups) || d.has(Texts) {
		right = 64
	}
	height, left := max(220, min(width*0.48, 420)), 0.0
	if d.Square {
		height = min(width*0.85, 560)
	}
	xTicks, yTicks := []float64(nil), []float64(nil)
	if len(d.Y.Names) > 0 {
		left = min(longest(d.Y.Names, textSize)+14, width*0.45)
		height = float64(len(d.Y.Names)) * d.pitch()
	} else {
		yTicks = d.y.ticks(int(height / 45))
		left = longest(d.numbers(&d.y, yTicks), textSize) + 14
	}
	wide := width - left - right
	if d.has(Cells) {
		cell := max(smallestCell, min(largestCell, wide/float64(max(1, len(d.X.Names)))))
		wide = cell * float64(len(d.X.Names))
		height = min(max(cell, tightCell), tallestCell) * float64(len(d.Y.Names))
		if cell < tightCell {
			height = cell * float64(len(d.Y.Names))
		}
		if widest := longest(d.X.Names, textSize); widest > cell-4 {
			below = widest + 30
		}
		d.width = max(left+wide+right, min(width, left+400))
	}
	if d.Square {
		wide = min(wide, 560)
		height, d.width = wide, left+wide+right
	}
	if len(d.X.Names) == 0 {
		xTicks = d.x.ticks(int(wide / 80))
	}
	top := d.above(file)
	d.x.from, d.x.to = left, left+wide
	d.y.from, d.y.to = top+height, top
	if len(d.Y.Names) > 0 { // the first is at the top
		d.y.from, d.y.to = top, top+height
	}
	d.height = top + height + below
	d.axes(xTicks, yTicks, below)
	for i := range d.Marks {
		d.mark(&d.Marks[i])
	}
	d.labels()
	if file {
		for _, line := range wrapped(source, d.width-12, 9) {
			d.write(point{6, d.height + 9}, faintInk, label{text: line, size: 9})
			d.height += captionLine
		}
		d.height += 4
	}
	return &d.canvas
}

// along lists the numbers that are drawn along an axis.
func (d *drawing) along(of func(r *Row) (any, float64, bool), a *Axis) (values []float64) {
	for i := range d.Marks {
		for k := range d.Marks[i].Rows {
			first, second, has := of(&d.Marks[i].Rows[k])
			if v, ok := first.(float64); ok {
				values = append(values, v)
			}
			if has && (second > 0 || !a.Log) {
				values = append(values, second)
			}
		}
	}
	return values
}

// pitch is the room of a name of the axis Y.
func (d *drawing) pitch() float64 {
	if n := d.groups(); n > 0 {
		return float64(n)*barRoom + groupGap
	}
	if len(d.Y.Names) > manyNames {
		return tightRoom
	}
	return nameRoom
}

// groups counts the bars of a group.
func (d *drawing) groups() (n int) {
	for i := range d.Marks {
		if d.Marks[i].Kind == Groups {
			n++
		}
	}
	return n
}

func (d *drawing) numbers(s *scaled, ticks []float64) (texts []string) {
	for _, v := range ticks {
		texts = append(texts, Number(v, s.Unit))
	}
	return texts
}

// above draws what is above the axes, and returns where they begin.
func (d *drawing) above(file bool) (top float64) {
	if file {
		d.width = max(d.width, room(d.Title, 16)+12)
		d.write(point{6, 20}, textInk, label{text: d.Title, size: 16})
		top = titleLine
	}
	x := 0.0
	if file {
		x = 6
	}
	left, entries := x, d.legend()
	for i := range entries {
		e := &entries[i]
		long := e.room + 6 + room(e.name, textSize) + 14
		if x > left && x+long > d.width {
			x, top = left, top+legendLine
		}
		e.paint(point{x, top + 10})
		d.write(point{x + e.room + 6, top + 14}, textInk, label{text: e.name, size: textSize})
		x += long
	}
	if len(entries) > 0 {
		top += legendLine + 4
	}
	if d.Y.Label != "" && (len(d.Y.Names) == 0 || d.has(Cells)) {
		d.write(point{left, top + 12}, faintInk, label{text: d.Y.Label, size: textSize})
		top += legendLine
	}
	return top + 6
}

// axes draws the frame, the numbers or names, and thin lines at the numbers.
func (d *drawing) axes(xTicks, yTicks []float64, below float64) {
	grid := style{stroke: lineInk, width: 1}
	bottom := max(d.y.from, d.y.to)
	for i, text := range d.numbers(&d.x, xTicks) {
		x := d.x.at(xTicks[i])
		d.line(grid, point{x, d.y.from}, point{x, d.y.to})
		d.write(point{x, bottom + 17}, textInk, label{text: text, size: textSize, anchor: middle})
	}
	for i, text := range d.numbers(&d.y, yTicks) {
		y := d.y.at(yTicks[i])
		d.line(grid, point{d.x.from, y}, point{d.x.to, y})
		d.write(point{d.x.from - 7, y + 4}, textInk, label{text: text, size: textSize, anchor: end})
	}
	reference := style{stroke: textInk, alpha: 0.65, width: 1.25, dash: dashes[1]}
	if v := d.X.Reference; v != 0 {
		d.line(reference, point{d.x.at(v), d.y.from}, point{d.x.at(v), d.y.to})
	}
	if v := d.Y.Reference; v != 0 {
		d.line(reference, point{d.x.from, d.y.at(v)}, point{d.x.to, d.y.at(v)})
	}
	every := max(1, int(math.Ceil(9/math.Abs(d.y.step()))))
	for i := 0; i < len(d.Y.Names); i += every {
		text := cut(d.Y.Names[i], d.x.from-14, textSize)
		d.write(point{d.x.from - 7, d.y.at(d.Y.Names[i]) + 4}, textInk, label{text: text, size: textSize, anchor: end})
	}
	every = max(1, int(math.Ceil(9/d.x.step())))
	for i := 0; i < len(d.X.Names); i += every {
		x := d.x.at(d.X.Names[i])
		if below > 44 { // there is no room side by side
			d.write(point{x + 4, bottom + 7}, textInk, label{text: d.X.Names[i], size: textSize, anchor: end, angle: -90})
		} else {
			d.write(point{x, bottom + 17}, textInk, label{text: d.X.Names[i], size: textSize, anchor: middle})
		}
	}
	d.write(point{(d.x.from + d.x.to) / 2, d.height - 8}, faintInk, label{text: d.X.Label, size: textSize, anchor: middle})
}

// entry is a name of the legend with its sign.
type entry struct {
	name  string
	room  float64
	paint func(at point)
}

// legend lists what colours and shapes mean, in the order of the marks. One series needs no legend.
func (d *drawing) legend() (entries []entry) {
	if d.Scale != nil {
		entries = append(entries, d.ramp()...)
	}
	var seen []string
	for i := range d.Marks {
		m := &d.Marks[i]
		name := m.Name
		if name == "" && m.Series >= 0 && m.Series < len(d.Series) {
			name = d.Series[m.Series]
			for k := i + 1; k < len(d.Marks) && m.Kind == Line; k++ { // dots say more than a line
				o := &d.Marks[k]
				if o.Series == m.Series && (o.Kind == Dots && o.Shape == 0 || o.Kind == Line && o.Dash < m.Dash) {
					m = o
				}
			}
		}
		if name != "" && !slices.Contains(seen, name) && (d.Scale == nil || m.Kind == Band || m.Kind == Line) {
			seen = append(seen, name)
			entries = append(entries, entry{name, 14, func(at point) { d.sign(m, at) }})
		}
	}
	if d.Scale == nil && len(entries) < 2 {
		return nil
	}
	return entries
}

// sign draws what a mark looks like, in the legend.
func (d *drawing) sign(m *Mark, at point) {
	switch m.Kind {
	case Dots:
		one := *m
		one.Large = false
		d.symbol(one.shape(), point{at.x + 7, at.y}, 5, one.style(1), "")
	case Line:
		d.line(m.style(1), point{at.x, at.y}, point{at.x + 14, at.y})
	case Cells:
		d.cell(m, 0, "", point{at.x, at.y - 6}, point{at.x + 14, at.y + 6})
	default:
		d.box(m.style(1), "", point{at.x, at.y - 6}, point{at.x + 14, at.y + 6})
	}
}

// ramp says what the colours of numbers mean.
func (d *drawing) ramp() []entry {
	low, high, beyond := d.span()
	most := Number(high, d.Scale.Unit)
	if beyond {
		most = "≥ " + most
	}
	const steps, width = 32, 120.0
	text := d.Scale.Label + ": " + Number(low, d.Scale.Unit)
	before := room(text, textSize) + 6
	return []entry{{most, before + width, func(at point) {
		d.write(point{at.x, at.y + 4}, textInk, label{text: text, size: textSize})
		for i := range steps {
			x := at.x + before + width*float64(i)/steps
			d.box(style{fill: d.Scale.colour(float64(i) / (steps - 1))}, "", point{x, at.y - 6},
				point{x + width/steps + 0.3, at.y + 6})
		}
	}}}
}

// span is from the smallest to the largest number of a scale, and whether marks are beyond it.
func (d *drawing) span() (low, high float64, beyond bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range d.Marks {
		for k := range d.Marks[i].Rows {
			if m := &d.Marks[i]; m.Kind == Cells || m.Kind == Boxes {
				low, high = min(low, m.Rows[k].Value), max(high, m.Rows[k].Value)
			}
		}
	}
	if d.Scale.Low != 0 || d.Scale.High != 0 {
		return d.Scale.Low, d.Scale.High, high > d.Scale.High
	}
	return low, high, false
}

// colour returns the colour of a share.
func (s *Scale) colour(share float64) ink {
	share = max(0, min(1, share))
	if s.Reversed {
		share = 1 - share*0.9 // darker is lost on a dark page
	}
	return viridis(share)
}
