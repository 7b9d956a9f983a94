package tune

import (
	"math"

	"github.com/origami-gemm/origami/core/unit"
)

// Point is a point of the curve of regret by measurements.
type Point struct {
	Measurements int
	// Mean is the geometric mean over the sizes of the pick's time ÷ the fastest candidate's time − 1, Worst the largest.
	Mean, Worst float64
}

// Curve returns the regret after so many measurements, if the time of every candidate is known: time returns it, 0 if
// there is none. best are the times of the fastest candidates. A size that was not measured yet has the best prediction
// with a time. The points are at 0, at the end, and at about eight powers of √2 of the number of sizes between.
func (t *Tuner) Curve(time func(Task) unit.Seconds, best []unit.Seconds) []Point {
	now := make([]unit.Seconds, len(t.Sizes))
	measured := make([]bool, len(t.Sizes))
	for s := range t.Sizes {
		for i := range t.Sizes[s].Candidates {
			if now[s] = time(Task{s, i}); now[s] > 0 {
				break
			}
		}
	}
	var out []Point
	add := func(n int) {
		p := Point{Measurements: n}
		sum, sizes := 0.0, 0
		for s := range now {
			if now[s] <= 0 || best[s] <= 0 {
				continue
			}
			ratio := float64(now[s] / best[s])
			sum += math.Log(ratio)
			sizes++
			p.Worst = max(p.Worst, ratio-1)
		}
		p.Mean = math.Expm1(sum / float64(max(sizes, 1)))
		out = append(out, p)
	}
	add(0)
	next := float64(len(t.Sizes)) / 4
	for i, m := range t.Log {
		if m.Time > 0 && (!measured[m.Size] || m.Time < now[m.Size]) {
			now[m.Size], measured[m.Size] = m.Time, true
		}
		if n := i + 1; float64(n) >= next || n == len(t.Log) {
			add(n)
			for next <= float64(n) {
				next *= math.Sqrt2
			}
		}
	}
	return out
}
