//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package fit_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/plugins/library/published"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

var (
	ablation = flag.Bool("ablation", false, "print what the model loses without each of its quantities")
	heldout  = flag.Bool("heldout", false, "leave out more, as docs/decisions/models.md has it")
)

// few is the number of times of a series in these tests.
func few() int {
	if *heldout || *ablation {
		return 250
	}
	return 120
}

// within is the share of errors within a factor of 1.2.
func within(errors []float64) float64 {
	in := 0
	for _, e := range errors {
		if math.Abs(e) <= math.Log(1.2) {
			in++
		}
	}
	return float64(in) / float64(len(errors))
}

// fold is one of four, by the shape.
func fold(t *published.Time) int {
	h := fnv.New32a()
	fmt.Fprint(h, t.K, t.N, t.M)
	return int(h.Sum32()>>8) % 4
}

// heldOut fits the first stage of a generation without the times that out names, and returns the errors of those.
func heldOut(t *testing.T, g terms.Generation, out func(*published.Time) bool) (errors []float64) {
	t.Helper()
	s := stages(g)[0]
	others := func(x *published.Time) bool { return s.times(x) && x.Source.ID != "origami" } // TestBlind has those
	sample := read(t, g, others, few())
	kept := sample.Without(out)
	values, quantities := start(s, nil)
	r, err := fit.Minimise(t.Context(), kept.Residuals, quantities, fit.Options{Start: values, Steps: 10})
	if err != nil {
		t.Fatal(err)
	}
	err = sample.Errors(t.Context(), r.Values, func(x *published.Time, e float64) {
		if out(x) {
			errors = append(errors, e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return errors
}

// Shapes that the quantities were not fitted on are predicted as well as the others.
func TestShapesHeldOut(t *testing.T) {
	if testing.Short() {
		t.Skip("fits the model several times")
	}
	cases, folds := map[terms.Generation]float64{terms.Ampere: 0.85}, 2
	if *heldout {
		cases = map[terms.Generation]float64{terms.Hopper: 0.95, terms.Ampere: 0.88, terms.CDNA4: 0.89, terms.CDNA2: 0.8}
		folds = 4
	}
	for g, floor := range cases {
		var errors []float64
		for f := range folds {
			errors = append(errors, heldOut(t, g, func(x *published.Time) bool { return fold(x) == f })...)
		}
		share := within(errors)
		t.Logf("%s: %.1f %% of %d times of shapes left out are within 20 %%", g, 100*share, len(errors))
		if share < floor {
			t.Errorf("%s: %.1f %%, want %.0f %%", g, 100*share, 100*floor)
		}
	}
}

// A device that the quantities of its generation were not fitted on is predicted nearly as well as the others.
func TestDevicesHeldOut(t *testing.T) {
	if testing.Short() {
		t.Skip("fits the model several times")
	}
	type left struct {
		generation terms.Generation
		floor      float64
	}
	cases := map[string]left{"sm90@h200": {terms.Hopper, 0.92}}
	if *heldout {
		cases = map[string]left{
			"sm90@h100": {terms.Hopper, 0.93}, "sm90@h200": {terms.Hopper, 0.92}, "sm100@b200": {terms.Blackwell, 0.88},
			"sm103@gb300": {terms.Blackwell, 0.86},
		}
	}
	for device, c := range cases {
		errors := heldOut(t, c.generation, func(x *published.Time) bool { return x.Device == device })
		share := within(errors)
		t.Logf("%s: %.1f %% of %d times are within 20 %% if it is left out", device, 100*share, len(errors))
		if share < c.floor {
			t.Errorf("%s: %.1f %%, want %.0f %%", device, 100*share, 100*c.floor)
		}
	}
}

// TestAblation prints what each quantity is worth, with the others fitted anew.
func TestAblation(t *testing.T) {
	if !*ablation {
		t.Skip("run with -ablation")
	}
	s := stages(terms.Hopper)[0]
	sample := read(t, terms.Hopper, s.times, few())
	score := func(values map[string]float64) float64 {
		var errors []float64
		err := sample.Errors(t.Context(), values, func(_ *published.Time, e float64) { errors = append(errors, e) })
		if err != nil {
			t.Fatal(err)
		}
		return 100 * within(errors)
	}
	values, quantities := start(s, terms.Fitted())
	fmt.Println("| quantity | without it | the others fitted anew |\n| --- | --- | --- |")
	fmt.Printf("| – | %.1f %% | |\n", score(values))
	for _, q := range terms.Quantities {
		if !s.fitted(q.Name) || q.Without == q.Low {
			continue
		}
		without := maps.Clone(values)
		without[q.Name] = min(q.Without, 1e9)
		others := slices.DeleteFunc(slices.Clone(quantities), func(o fit.Quantity) bool { return o.Name == q.Name })
		r, err := fit.Minimise(t.Context(), sample.Residuals, others, fit.Options{Start: without, Steps: 8})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("| `%s` | %.1f %% | %.1f %% |\n", q.Name, score(without), score(r.Values))
	}
}

// read returns the times of a generation.
func read(t *testing.T, g terms.Generation, keep func(*published.Time) bool, most int) *sampled {
	t.Helper()
	return readOf(t, []terms.Generation{g}, keep, most)
}

// readOf returns the times of generations.
func readOf(t *testing.T, all []terms.Generation, keep func(*published.Time) bool, most int) *sampled {
	t.Helper()
	opened, of := open(t)
	in := func(x *published.Time) bool { return slices.Contains(all, of(x.Device)) && keep(x) }
	sample, err := readSample(opened, in, most)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

// Half of the shapes of origami's own measurements are kept for this test: no number was fitted to them.
func TestBlind(t *testing.T) {
	floors := map[string]float64{"bf16": 0.9, "fp16": 0.89, "tf32": 0.72, "fp32": 0.62, "fp8": 0.87, "int8": 0.83}
	own := func(x *published.Time) bool { return x.Source.ID == "origami" && blind(x) }
	sample := read(t, terms.Hopper, own, 1<<20)
	errors := map[string][]float64{}
	err := sample.Errors(t.Context(), nil, func(x *published.Time, e float64) {
		errors[x.DType] = append(errors[x.DType], e)
		errors[x.DType+" "+string(x.Timing)] = append(errors[x.DType+" "+string(x.Timing)], e)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		share := within(errors[name])
		t.Logf("%-12s %.1f %% of %d times are within 20 %%", name, 100*share, len(errors[name]))
		if share < floors[name] {
			t.Errorf("%s: %.1f %%, want %.0f %%", name, 100*share, 100*floors[name])
		}
	}
	if len(errors) < 4*len(floors) {
		t.Errorf("%d kinds of times", len(errors))
	}
}

// What was kept from every fit, by device, type and source: the share within 20 %, and the geometric mean of predicted
// ÷ published.
func TestKept(t *testing.T) {
	errors := map[string][]float64{}
	for _, g := range terms.Generations() {
		sample := read(t, g, func(x *published.Time) bool { return blind(x) && !doubtful(x) }, 1<<20)
		err := sample.Errors(t.Context(), nil, func(x *published.Time, e float64) {
			key := fmt.Sprintf("%-24s %s %s", x.Device, x.DType, strings.TrimPrefix(x.Scheme, "none"))
			errors[key] = append(errors[key], e)
			errors[key+" "+x.Source.ID] = append(errors[key+" "+x.Source.ID], e)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(errors)) {
		mean := 0.0
		for _, e := range errors[key] {
			mean += e / float64(len(errors[key]))
		}
		t.Logf("%-60s %6d times, %5.1f %% within 20 %%, mean %.2f", key, len(errors[key]), 100*within(errors[key]),
			math.Exp(mean))
	}
}
