package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// bruteForce counts every pair by the definition.
func bruteForce(x, y []float64) float64 {
	var concordant, discordant, tiedX, tiedY, pairs float64
	for i := range x {
		for j := range i {
			pairs++
			if x[i] == x[j] {
				tiedX++
			}
			if y[i] == y[j] {
				tiedY++
			}
			if x[i] == x[j] || y[i] == y[j] {
				continue
			}
			if (x[i] < x[j]) == (y[i] < y[j]) {
				concordant++
			} else {
				discordant++
			}
		}
	}
	return (concordant - discordant) / math.Sqrt((pairs-tiedX)*(pairs-tiedY))
}

func tau(t *testing.T, x, y []float64) float64 {
	t.Helper()
	v := must.Get(stats.TauB(x, y))(t)
	return v
}

func TestTauBByHand(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"same order", []float64{1, 2, 3}, []float64{10, 20, 30}, 1},
		{"reversed", []float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{"one exchange", []float64{1, 2, 3}, []float64{1, 3, 2}, 1.0 / 3},
		// Of 6 pairs one is tied in x, one in y: C = 4, D = 0, 4/√(5·5).
		{"a tie in each", []float64{1, 1, 2, 3}, []float64{1, 2, 3, 3}, 0.8},
		// Tied in both counts in both: 6 pairs, C = 5, 5/√(5·5).
		{"tied in both", []float64{1, 1, 2, 3}, []float64{5, 5, 6, 7}, 1},
		{"no relation", []float64{1, 1, 2, 2}, []float64{1, 2, 1, 2}, 0},
		{"zeros are equal", []float64{math.Copysign(0, -1), 0, 1}, []float64{2, 2, 3}, 1},
		{"infinities order", []float64{-inf, 0, inf}, []float64{1, 2, 3}, 1},
		// Kendall's example of two tied rankings of ten (Biometrika 33, 1945).
		{"Kendall 1945", []float64{1, 2.5, 2.5, 4.5, 4.5, 6.5, 6.5, 8, 9.5, 9.5},
			[]float64{1, 2, 4.5, 4.5, 4.5, 4.5, 8, 8, 8, 10}, 0.8590},
	} {
		got := tau(t, c.x, c.y)
		must.That(t, math.Abs(got-c.want) <= 5e-5, "%s: %v, want %v", c.name, got, c.want)
	}
}

func TestTauBAgainstTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1945, 1966))
	for range 400 {
		n := 2 + rng.IntN(60)
		levels := 1 + rng.IntN(n) // few levels make many ties
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float64(rng.IntN(levels)) - 3
			y[i] = x[i]*float64(rng.IntN(3)-1) + float64(rng.IntN(levels))
		}
		got, want := tau(t, x, y), bruteForce(x, y)
		must.Need(t, math.IsNaN(want) == math.IsNaN(got) && !(math.Abs(got-want) > 1e-12),
			"TauB(%v, %v) = %v, the definition gives %v", x, y, got, want)
		if math.IsNaN(got) {
			continue
		}
		must.Need(t, got >= -1 && got <= 1, "TauB(%v, %v) = %v is outside [-1, 1]", x, y, got)
		mirrored := tau(t, y, x)
		must.Need(t, mirrored == got, "TauB is not symmetric: %v and %v", got, mirrored)
		negated := make([]float64, n)
		for i := range y {
			negated[i] = -y[i]
		}
		reversed := tau(t, x, negated)
		must.Need(t, reversed == -got, "TauB(x, -y) = %v, TauB(x, y) = %v", reversed, got)
	}
}

// Perfect agreement is exactly 1, for any length and any ties.
func TestTauBOfASampleWithItselfIsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for n := 2; n < 300; n++ {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(rng.IntN(n))
		}
		x[0], x[1] = -1, -2
		got := tau(t, x, x)
		must.Need(t, got == 1, "n = %d: %.17g", n, got)
	}
}

func TestTauBDoesNotChangeItsArguments(t *testing.T) {
	x, y := []float64{3, 1, 2}, []float64{9, 8, 7}
	tau(t, x, y)
	must.That(t, x[0] == 3 && x[1] == 1 && x[2] == 2 && y[0] == 9 && y[1] == 8 && y[2] == 7, "%v %v", x, y)
}

func TestTauBUndefined(t *testing.T) {
	for _, c := range [][2][]float64{
		{nil, nil},
		{{1}, {2}},
		{{1, 1, 1}, {1, 2, 3}},
		{{1, 2, 3}, {5, 5, 5}},
		{{2, 2}, {2, 2}},
	} {
		if got := tau(t, c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("TauB(%v, %v) = %v, want NaN", c[0], c[1], got)
		}
	}
	must.Fail(t, must.Err(stats.TauB([]float64{1, 2}, []float64{1})), "of different length")
	for _, c := range [][2][]float64{{{1, math.NaN()}, {1, 2}}, {{1, 2}, {math.NaN(), 2}}} {
		must.Fail(t, must.Err(stats.TauB(c[0], c[1])), "a NaN at position")
	}
}
