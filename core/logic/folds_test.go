package logic

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"pgregory.net/rapid"
)

// tableOfPlaces is a table of kernels that are the faster, the nearer their place is to the logarithm of a size. wrong
// are factors by which a model is off, here and at all sizes between these.
func tableOfPlaces(kernels int, wrong []float64) (t *Table, predicted *Predictions) {
	t = &Table{}
	for k := range kernels {
		t.Kernels = append(t.Kernels, Kernel{Name: string(rune('a' + k))})
	}
	for m := 16; m <= 4096; m *= 2 {
		for n := 16; n <= 4096; n *= 2 {
			t.Sizes = append(t.Sizes, Size{n, m, 1, 512})
		}
	}
	times := func(sizes []Size, wrong []float64) (rows [][]float64) {
		for _, s := range sizes {
			at, row := math.Log2(float64(s[I])*float64(s[J]))/2, make([]float64, kernels)
			for k := range row {
				row[k] = (1 + math.Abs(at-4-8*float64(k)/float64(max(kernels-1, 1)))) * wrong[k]
			}
			rows = append(rows, row)
		}
		return rows
	}
	t.Times = times(t.Sizes, slices.Repeat([]float64{1}, kernels))
	predicted = &Predictions{Times: times(t.Sizes, wrong), Sizes: Between(t.Sizes)}
	predicted.Elsewhere = times(predicted.Sizes, wrong)
	return t, predicted
}

// regretOf finds a trial.
func regretOf(t *testing.T, trials []Trial, most int, way Way) Regret {
	t.Helper()
	for _, x := range trials {
		if x.Most == most && x.Way == way {
			return x.Regret
		}
	}
	t.Fatalf("there is no trial of %d kernels by %q", most, way)
	return Regret{}
}

func TestTrials(t *testing.T) {
	table, right := tableOfPlaces(5, []float64{1, 1, 1, 1, 1})
	trials := must.Get(Trials(table, []int{1, 3, 0}, Options{Model: right}, 5, func(int) {}))(t)
	all := len(table.Sizes)
	for _, way := range []Way{ByModel} {
		if r := regretOf(t, trials, 0, way); r.Mean != 0 || r.Worst != 0 || r.Sizes != all || r.Unanswered != 0 {
			t.Errorf("a model that is right has the regret %+v by %q", r, way)
		}
	}
	if r := regretOf(t, trials, 0, BySize); r.Mean != 0 || r.Sizes != 4*all {
		t.Errorf("a table of all kernels has the regret %+v at its sizes", r)
	}
	if r := regretOf(t, trials, 0, ByNearest); !(r.Mean > 0) || r.Sizes != all {
		t.Errorf("the nearest size has the regret %+v", r)
	}
	if r := regretOf(t, trials, 0, ByModelOfAll); r.Mean != 0 {
		t.Errorf("of all kernels, the model has the regret %+v", r)
	}
	for _, way := range []Way{BySize, ByModel} {
		one, three := regretOf(t, trials, 1, way), regretOf(t, trials, 3, way)
		must.That(t, one.Mean > three.Mean && three.Mean > 0,
			"by %q one kernel has the regret %v and three %v", way, one.Mean, three.Mean)
	}
}

// TestKernelsSuitModel checks that a kernel which the model overrates is left out, although it is the fastest at some
// sizes: the model would take it at others too.
func TestKernelsSuitModel(t *testing.T) {
	table, wrong := tableOfPlaces(5, []float64{1, 1, 0.2, 1, 1})
	for _, model := range []*Predictions{nil, wrong} {
		kept := must.Get(table.choose(&Options{Most: 4, Model: model}))(t)
		must.Equal(t, slices.Contains(kept, 2), model == nil, model != nil, kept)
	}
}

// TestNoExchangeIsBetter checks, for random times, that a library of one kernel has the best one, and that no exchange
// of a kernel lowers the mean loss of a larger library.
func TestNoExchangeIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kernels := rapid.IntRange(2, 6).Draw(t, "kernels")
		table := &Table{Kernels: make([]Kernel, kernels)}
		row := rapid.SliceOfN(rapid.Float64Range(1, 9), kernels, kernels)
		for i, times := range rapid.SliceOfN(row, 1, 5).Draw(t, "times") {
			table.Sizes, table.Times = append(table.Sizes, Size{16, 16, 1, 16 << i}), append(table.Times, times)
		}
		kept, err := table.choose(&Options{Most: rapid.IntRange(1, kernels).Draw(t, "most")})
		if err != nil {
			t.Fatal(err)
		}
		mean := func(kept []int) (sum float64) {
			for _, times := range table.Times {
				fastest := math.Inf(1)
				for _, k := range kept {
					fastest = min(fastest, times[k])
				}
				sum += math.Log(fastest)
			}
			return sum
		}
		for i := range kept {
			for k := range kernels {
				other := slices.Clone(kept)
				if other[i] = k; mean(other) < mean(kept)-1e-9 {
					t.Fatalf("%v are better than %v", other, kept)
				}
			}
		}
	})
}

// TestBetween checks that sizes between others are inside of their box, and aligned as they are.
func TestBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.IntRange(1, 1<<20)
		sizes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Size {
			return Size{value.Draw(t, "n"), value.Draw(t, "m"), 1, value.Draw(t, "k")}
		}), 1, 9).Draw(t, "sizes")
		low, high := box(sizes)
		for i, s := range Between(sizes) {
			for j, v := range s {
				like := sizes[i%len(sizes)][j]
				if v < low[j] || v > high[j] || v%min(64, like&-like) != 0 {
					t.Fatalf("%v is like %v of %v", s, sizes[i%len(sizes)], sizes)
				}
			}
		}
	})
}

func TestTrialsWithoutModel(t *testing.T) {
	table, _ := tableOfPlaces(3, []float64{1, 1, 1})
	trials := must.Get(Trials(table, []int{0}, Options{}, 5, func(int) {}))(t)
	for _, x := range trials {
		must.That(t, x.Way != ByModel && x.Way != ByModelOfAll, "without a model there is %q", x.Way)
	}
}

// TestTrialsCount checks that every size is asked once, whatever is missing.
func TestTrialsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, predicted := tableOfPlaces(3, []float64{1, 1.2, 0.9})
		keep := rapid.IntRange(2, len(table.Sizes)).Draw(t, "sizes")
		table.Sizes, table.Times, predicted.Times = table.Sizes[:keep], table.Times[:keep], predicted.Times[:keep]
		for i := range table.Times {
			if k := rapid.IntRange(0, 5).Draw(t, "missing"); k < 3 {
				table.Times[i][k] = math.Inf(1)
			}
		}
		parts := rapid.IntRange(2, 7).Draw(t, "parts")
		trials, err := Trials(table, []int{0}, Options{Loss: 0.1, Model: predicted}, parts, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range trials {
			if x.Way != BySize && x.Sizes+x.Unanswered != keep || x.Worst < 0 {
				t.Fatalf("%+v of %d sizes", x, keep)
			}
		}
	})
}
