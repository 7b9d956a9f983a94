package logic

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// tableOfPlaces is a table of kernels that are the faster, the nearer their place is to the logarithm of a size. wrong
// are factors by which a model is off.
func tableOfPlaces(kernels int, wrong []float64) (t *Table, predicted [][]float64) {
	t = &Table{}
	for k := range kernels {
		t.Kernels = append(t.Kernels, Kernel{Name: string(rune('a' + k))})
	}
	for m := 16; m <= 4096; m *= 2 {
		for n := 16; n <= 4096; n *= 2 {
			at := math.Log2(float64(m)*float64(n)) / 2
			times, model := make([]float64, kernels), make([]float64, kernels)
			for k := range times {
				times[k] = 1 + math.Abs(at-4-8*float64(k)/float64(max(kernels-1, 1)))
				model[k] = times[k] * wrong[k]
			}
			t.Sizes = append(t.Sizes, Size{n, m, 1, 512})
			t.Times, predicted = append(t.Times, times), append(predicted, model)
		}
	}
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
	trials, err := Trials(table, right, []int{1, 3, 0}, Options{}, 5, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	all := len(table.Sizes)
	for _, way := range []Way{ByModel, ByBoth} {
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
		if !(one.Mean > three.Mean && three.Mean > 0) {
			t.Errorf("by %q one kernel has the regret %v and three %v", way, one.Mean, three.Mean)
		}
	}
}

// TestTableCorrectsModel checks that errors which a model has of a kernel at all sizes do not count beside a table.
func TestTableCorrectsModel(t *testing.T) {
	table, wrong := tableOfPlaces(5, []float64{1, 1.5, 0.7, 1, 1})
	trials, err := Trials(table, wrong, []int{0}, Options{}, 5, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	model, both := regretOf(t, trials, 0, ByModel), regretOf(t, trials, 0, ByBoth)
	if !(both.Mean < model.Mean/2) {
		t.Errorf("the model has the regret %v, corrected %v", model.Mean, both.Mean)
	}
}

func TestTrialsWithoutModel(t *testing.T) {
	table, _ := tableOfPlaces(3, []float64{1, 1, 1})
	trials, err := Trials(table, nil, []int{0}, Options{}, 5, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range trials {
		if x.Way == ByModel || x.Way == ByBoth || x.Way == ByModelOfAll {
			t.Errorf("without a model there is %q", x.Way)
		}
	}
}

// TestTrialsCount checks that every size is asked once, whatever is missing.
func TestTrialsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, predicted := tableOfPlaces(3, []float64{1, 1.2, 0.9})
		keep := rapid.IntRange(2, len(table.Sizes)).Draw(t, "sizes")
		table.Sizes, table.Times, predicted = table.Sizes[:keep], table.Times[:keep], predicted[:keep]
		for i := range table.Times {
			if k := rapid.IntRange(0, 5).Draw(t, "missing"); k < 3 {
				table.Times[i][k] = math.Inf(1)
			}
		}
		parts := rapid.IntRange(2, 7).Draw(t, "parts")
		trials, err := Trials(table, predicted, []int{0}, Options{Loss: 0.1}, parts, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range trials {
			if x.Way != BySize && x.Regret.Sizes+x.Regret.Unanswered != keep || x.Regret.Worst < 0 {
				t.Fatalf("%+v of %d sizes", x, keep)
			}
		}
	})
}
