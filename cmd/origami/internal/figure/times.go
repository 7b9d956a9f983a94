package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/score"
)

// binsPerDecade is how fine a figure of thousands of times is.
const binsPerDecade = 16

// Agreement shows predicted against measured times, as counts: there are too many for a dot each. It is nil without a
// time.
func Agreement(title string, all []score.Point) *Figure {
	type bin struct{ x, y int }
	counts, ratios := map[bin]int{}, []float64(nil)
	low, high, most := math.MaxInt, math.MinInt, 0
	place := func(v float64) int { return int(math.Floor(math.Log10(v) * binsPerDecade)) }
	edge := func(i int) float64 { return math.Pow(10, float64(i)/binsPerDecade) }
	for _, p := range all {
		if p.Predicted > 0 && p.Measured > 0 {
			b := bin{place(float64(p.Measured)), place(float64(p.Predicted))}
			counts[b]++
			low, high, most = min(low, b.x, b.y), max(high, b.x+1, b.y+1), max(most, counts[b])
			ratios = append(ratios, float64(p.Predicted/p.Measured))
		}
	}
	if most == 0 {
		return nil
	}
	from, until := edge(low), edge(high)
	f := &Figure{Title: title,
		Caption: fmt.Sprintf("All %d kernels that were measured and predicted, counted in boxes. On the line the two times "+
			"are equal.", len(ratios)),
		X:      Axis{Label: "measured time", Unit: "s", Log: true, Low: from, High: until},
		Y:      Axis{Label: "predicted time", Unit: "s", Log: true, Low: from, High: until},
		Square: true, Scale: &Scale{Label: "kernels", Log: true, Low: 1, High: float64(max(2, most)), Reversed: true},
		Header: []string{"predicted ÷ measured", "kernels", "share"}, Rows: steps(ratios)}
	for _, band := range []struct {
		factor float64
		name   string
	}{{1.5, "within a factor of 1.5"}, {1.1, "within 10 %"}} {
		m := Mark{Kind: Band, Series: Neutral, Name: band.name}
		for _, x := range []float64{from, from * band.factor, until / band.factor, until} {
			m.Rows = append(m.Rows, Row{X: x, Y: max(from, x/band.factor), Y2: min(until, x*band.factor)})
		}
		slices.SortFunc(m.Rows, func(a, b Row) int { return cmp.Compare(a.X.(float64), b.X.(float64)) })
		f.Marks = append(f.Marks, m)
	}
	boxes := Mark{Kind: Boxes, Series: Neutral}
	for b, n := range counts {
		boxes.Rows = append(boxes.Rows, Row{X: edge(b.x), Y: edge(b.y), X2: edge(b.x + 1), Y2: edge(b.y + 1),
			Value: float64(n),
			Tip: Tip("measured %s to %s\npredicted %s to %s\nkernels: %d", Number(edge(b.x), "s"), Number(edge(b.x+1), "s"),
				Number(edge(b.y), "s"), Number(edge(b.y+1), "s"), n)})
	}
	slices.SortFunc(boxes.Rows, func(a, b Row) int { // the same figure is the same file
		return cmp.Or(cmp.Compare(a.X.(float64), b.X.(float64)), cmp.Compare(a.Y.(float64), b.Y.(float64)))
	})
	f.Marks = append(f.Marks, boxes, Mark{Kind: Line, Series: Neutral, Dash: 1,
		Rows: []Row{{X: from, Y: from}, {X: until, Y: until}}})
	return f
}

// steps counts predicted ÷ measured.
func steps(ratios []float64) (rows [][]string) {
	limits := []float64{0.5, 1 / 1.5, 1 / 1.1, 1.1, 1.5, 2, math.Inf(1)}
	counts := make([]int, len(limits))
	for _, r := range ratios {
		counts[slices.IndexFunc(limits, func(l float64) bool { return r <= l })]++
	}
	for i, name := range []string{"below 0.5", "0.5 to 0.67", "0.67 to 0.91", "0.91 to 1.1", "1.1 to 1.5", "1.5 to 2",
		"above 2"} {
		rows = append(rows, []string{name, fmt.Sprint(counts[i]), fmt.Sprintf("%.2f %%",
			100*float64(counts[i])/float64(len(ratios)))})
	}
	return rows
}

// Curve is a named list of numbers.
type Curve struct {
	Name   string
	Values []float64
}

// Sorted shows each list as its values in ascending order, over the share of them that is not larger.
func Sorted(title, x, y string, all []Curve) *Figure {
	f := &Figure{Title: title, X: Axis{Label: x, Unit: "%", High: 1}, Y: Axis{Label: y, High: 1}}
	low := 1.0
	for i, c := range all {
		f.Series = append(f.Series, c.Name)
		m := Mark{Kind: Line, Series: i, Dash: i % len(dashes)}
		sorted, last := slices.Sorted(slices.Values(c.Values)), 0.0
		for k, v := range sorted {
			next := float64(k+1) / float64(len(sorted))
			m.Rows = append(m.Rows, Row{X: last, Y: v}, Row{X: next, Y: v})
			last, low = next, min(low, v)
		}
		f.Marks = append(f.Marks, m)
	}
	f.Y.Low = math.Floor(low*20) / 20
	return f
}
