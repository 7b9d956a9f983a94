//go:build !race

package amdref_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
)

// known are the rows whose unit is known, without the per cent of an unknown clock.
func known(r *recorded) bool { return r.Known && r.CUs != 104 }

// The times of the recorded kernels are predicted to within a tenth or so at the median, where the unit of the speed is
// known.
func TestRecordedTimes(t *testing.T) {
	for name, limit := range map[string]float64{"gfx900": 0.12, "gfx942": 0.1} {
		i := slices.IndexFunc(generations, func(g generation) bool { return g.name == name })
		e := newExperiment(t, &generations[i], 1)
		got := e.median(t, nil, known)
		must.Hold(t, got <= limit, "%s: times are off by %.1f %% at the median", name, 100*got)
	}
}

// What is shipped is a minimum of the loss: a fit that starts there finds little more.
func TestShippedIsTheFit(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" && !*refit {
		t.Skip("refits the models; ORIGAMI_TEST_ALL=1 runs it")
	}
	for i := range generations {
		g := &generations[i]
		every, steps := 6, 12
		if *refit {
			every, steps = 1, 30
		}
		e := newExperiment(t, g, every)
		// The clocks and overheads are not shipped: they are found first.
		harness := *g
		for _, q := range terms.Quantities {
			harness.fixed = append(slices.Clone(harness.fixed), q.Name)
		}
		shipped := 0.0
		start := map[string]float64{}
		if len(e.quantities) > 0 {
			found := e.fit(t, &harness, fit.Options{Steps: steps}, "")
			shipped = found.Loss
			for _, q := range e.quantities {
				start[q.Name] = found.Values[q.Name]
			}
		} else {
			shipped = must.Get(e.sample.Loss(t.Context(), must.Get(e.with(nil))(t), nil))(t)
		}
		found := e.fit(t, g, fit.Options{Steps: steps, Start: start}, "")
		must.Hold(t, found.Loss >= 0.85*shipped, "%s: %d rows, what is shipped loses %.2f, the fit finds %.2f", g.name,
			len(e.rows), shipped, found.Loss)
		if *refit {
			for name, v := range found.Values {
				fmt.Printf("%s | %s | %.4g\n", g.name, name, v)
			}
		}
	}
}

// Fitted to three quarters of the sizes, the model predicts the others as well.
func TestHeldOut(t *testing.T) {
	g := &generations[0]
	e := newExperiment(t, g, 1)
	held := func(r *recorded) bool {
		h := fnv.New32a()
		fmt.Fprint(h, r.Problem.M, r.Problem.N, r.Problem.K)
		return h.Sum32()%4 == 0
	}
	var use []bool
	for i := range e.rows {
		use = append(use, !held(&e.rows[i]), !held(&e.rows[i])) // its time and its choice
	}
	found := e.fit(t, g, fit.Options{Steps: 10, Use: func(i int) bool { return use[i] }}, "")
	got := e.median(t, found.Values, held)
	must.Hold(t, got <= 0.13, "%s: held out, times are off by %.1f %% at the median", g.name, 100*got)
}

// TestAblation prints what each term is worth, as docs/decisions/models.md has it.
func TestAblation(t *testing.T) {
	if !*ablation {
		t.Skip("run with -ablation")
	}
	fmt.Println("| without | loss on gfx942 | … fitted anew |\n| --- | --- | --- |")
	i := slices.IndexFunc(generations, func(g generation) bool { return g.name == "gfx942" })
	g := &generations[i]
	e := newExperiment(t, g, 8)
	full := e.fit(t, g, fit.Options{Steps: 15}, "")
	fmt.Printf("| – | %.2f | |\n", full.Loss)
	for _, off := range []struct {
		doc    string
		values map[string]float64
	}{
		{"the power limit", map[string]float64{"energy_per_flop": 1e-16, "energy_per_byte": 1e-16}},
		{"the L2's rate", map[string]float64{"l2_share": 100}},
		{"the MALL's rate", map[string]float64{"mall_share": 100}},
		{"the output's rates", map[string]float64{"store_rate": 1e4, "store_share": 100}},
		{"the latency of loads", map[string]float64{"load_latency": 1}},
		{"the launch", map[string]float64{"launch_seconds": 1e-9}},
	} {
		values := maps.Clone(full.Values)
		without := *g
		for name, v := range off.values {
			values[name] = v
			without.fixed = append(slices.Clone(without.fixed), name)
		}
		m := must.Get(e.with(values))(t)
		loss := must.Get(e.sample.Loss(t.Context(), m, nil))(t)
		anew := e.fit(t, &without, fit.Options{Steps: 12, Start: values}, "")
		fmt.Printf("| %s | %.2f | %.2f |\n", off.doc, loss, anew.Loss)
	}
}
