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
	"testing"

	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
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

// fold is one of four, by the shape.
func fold(t *published.Time) int {
	h := fnv.New32a()
	fmt.Fprint(h, t.K, t.N, t.M)
	return int(h.Sum32()>>8) % 4
}

// heldOut fits the first stage of a generation without the times that out names, and returns the rows of those.
func heldOut(t *testing.T, g terms.Generation, out func(*published.Time) bool) []score.Row {
	t.Helper()
	s := stages(g)[0]
	others := func(x *published.Time) bool { return s.times(x) && x.Source.ID != "origami" } // TestBlind has those
	sample := read(t, g, others, few())
	kept := sample.Without(out)
	values, quantities := start(t, s, nil)
	r := must.Get(fit.Minimise(t.Context(), kept.Residuals, quantities, fit.Options{Start: values, Steps: 10}))(t)
	return rowsBy(t, sample, r.Values, func(x *published.Time) []string { return []string{fmt.Sprint(out(x))} })["true"]
}

// rowsBy are the predictions of a sample under other values of quantities, by the groups that each time belongs to.
func rowsBy(
	t *testing.T, s *sampled, values map[string]float64, groups func(*published.Time) []string,
) map[string][]score.Row {
	t.Helper()
	by := map[string][]score.Row{}
	must.Do(t, s.Errors(t.Context(), values, func(x *published.Time, e float64) {
		row := score.Row{Predicted: x.Median * unit.Seconds(math.Exp(e)), Measured: x.Median}
		for _, group := range groups(x) {
			by[group] = append(by[group], row)
		}
	}))
	return by
}

// atLeast holds the share of predictions within 20 % to a floor.
func atLeast(t *testing.T, name string, rows []score.Row, floor float64) {
	t.Helper()
	a := score.AccuracyOf(rows)
	t.Logf("%-60s %6d times, %5.1f %% within 20 %%, mean %.2f", name, a.Count, 100*a.Within, a.Geomean)
	must.That(t, float64(a.Within) >= floor, "%s: %.1f %% are within 20 %%, want %.0f %%", name, 100*a.Within, 100*floor)
}

// Shapes that the quantities were not fitted on are predicted as well as the others.
func TestShapesHeldOut(t *testing.T) {
	cases, folds := map[terms.Generation]float64{terms.Ampere: 0.85}, 2
	if *heldout {
		cases = map[terms.Generation]float64{terms.Hopper: 0.95, terms.Ampere: 0.88, terms.CDNA4: 0.89, terms.CDNA2: 0.8}
		folds = 4
	}
	for g, floor := range cases {
		var rows []score.Row
		for f := range folds {
			rows = append(rows, heldOut(t, g, func(x *published.Time) bool { return fold(x) == f })...)
		}
		atLeast(t, string(g)+", shapes left out", rows, floor)
	}
}

// A device that the quantities of its generation were not fitted on is predicted nearly as well as the others.
func TestDevicesHeldOut(t *testing.T) {
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
		rows := heldOut(t, c.generation, func(x *published.Time) bool { return x.Device == device })
		atLeast(t, device+", left out", rows, c.floor)
	}
}

// TestAblation prints what each quantity is worth, with the others fitted anew.
func TestAblation(t *testing.T) {
	if !*ablation {
		t.Skip("run with -ablation")
	}
	s := stages(terms.Hopper)[0]
	sample := read(t, terms.Hopper, s.times, few())
	share := func(values map[string]float64) float64 {
		all := rowsBy(t, sample, values, func(*published.Time) []string { return []string{""} })
		return 100 * float64(score.AccuracyOf(all[""]).Within)
	}
	values, quantities := start(t, s, terms.Fitted())
	fmt.Println("| quantity | without it | the others fitted anew |\n| --- | --- | --- |")
	fmt.Printf("| – | %.1f %% | |\n", share(values))
	for _, q := range terms.Quantities {
		if !s.fitted(q.Name) || q.Without == q.Low {
			continue
		}
		without := maps.Clone(values)
		without[q.Name] = min(q.Without, 1e9)
		others := slices.DeleteFunc(slices.Clone(quantities), func(o fit.Quantity) bool { return o.Name == q.Name })
		r := must.Get(fit.Minimise(t.Context(), sample.Residuals, others, fit.Options{Start: without, Steps: 8}))(t)
		fmt.Printf("| `%s` | %.1f %% | %.1f %% |\n", q.Name, share(without), share(r.Values))
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
	return must.Get(sampleOf(opened, published.Times(), in, most))(t)
}

// Half of the shapes of origami's own measurements are kept for this test: no number was fitted to them.
func TestBlind(t *testing.T) {
	floors := map[string]float64{"bf16": 0.9, "fp16": 0.89, "tf32": 0.72, "fp32": 0.62, "fp8": 0.87, "int8": 0.83}
	own := func(x *published.Time) bool { return x.Source.ID == "origami" && blind(x) }
	sample := read(t, terms.Hopper, own, 1<<20)
	rows := rowsBy(t, sample, nil, func(x *published.Time) []string {
		return []string{x.DType, x.DType + " " + string(x.Timing)}
	})
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		atLeast(t, name, rows[name], floors[name])
	}
	must.That(t, len(rows) >= 4*len(floors), "%d kinds of times", len(rows))
}

// The geometric mean of predicted ÷ published of a group of times lies between these.
const (
	leastMean = 0.8
	mostMean  = 1.25
)

// off are groups of published times whose geometric mean does not, each with the reason. Names are those of groupOf.
var off = map[string]string{
	"gfx942@mi300x bf16 bf16 none events current tritonblas": "1024x1024x1024 takes 36 µs with other GPUs of the host " +
		"busy; the two larger sizes are 1.00 and 1.05",
	"gfx942@mi325x bf16 bf16 none events current hipkittens": launched,
	"gfx950@mi355x bf16 bf16 none events current hipkittens": launched,
	"sm100@b200 fp4 bf16 block16 cold current flashinfer": "it is one time, 9.3 µs of 1x512x7168; GB200's of the same " +
		"source are within these bounds",
	"sm120@rtxpro6000 fp16 fp16 none warm current torch-issues": "1024x1024x1024 is 0.60, as in bf16: 18.8 µs of the " +
		"host's loop; the two larger sizes are 0.88 and 0.93",
	"sm70@v100 fp16 fp16 none warm current torch-issues": "no other time of a V100 in 16 bits is published: it has the " +
		"numbers of the A100, whose matrix units are fed better",
	"sm75@t4 int8 int32 none warm current deepbench": "an old library reaches 21 to 24 TOP/s at nearly all sizes, " +
		"those of instructions without matrix units",
	"sm80@a100 fp16 fp16 none host current llmcompass": "its least time is 29.6 µs, and what the timing host " +
		"adds was found elsewhere",
}

// launched is why HipKittens' small sizes are off.
const launched = "events around one call have its launch in them, as its source says: 1024x1024x1024 takes 25 and " +
	"27 µs. The two sizes from 4096 on are within 13 %"

// groupOf names what times of a group have in common.
func groupOf(t *published.Time) string {
	return fmt.Sprint(t.Device, " ", t.DType, " ", t.Out, " ", t.Scheme, " ", t.Timing, " ", t.Release, " ", t.Source.ID)
}

// Of every group of published times, however small, the predictions are right at the geometric mean, or it is known why
// they are not.
func TestEveryGroup(t *testing.T) {
	rows := map[string][]score.Row{}
	for _, g := range terms.Generations() {
		sample := read(t, g, func(x *published.Time) bool { return x.Doubt == "" }, math.MaxInt32)
		maps.Copy(rows, rowsBy(t, sample, nil, func(x *published.Time) []string { return []string{groupOf(x)} }))
	}
	must.That(t, len(rows) >= 150, "%d groups", len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		mean, reason := float64(score.AccuracyOf(rows[name]).Geomean), off[name]
		switch right := leastMean <= mean && mean <= mostMean; {
		case !right && reason == "":
			t.Errorf("%s: predicted ÷ published is %.2f, of %d times", name, mean, len(rows[name]))
		case right && reason != "":
			t.Errorf("%s: predicted ÷ published is %.2f, and it is named as off", name, mean)
		}
	}
	for name := range off {
		must.That(t, rows[name] != nil, "%s has no times", name)
	}
}
