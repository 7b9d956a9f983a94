//go:build !race

package fit_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// mmaDataSets is how the quantities of the family mma name what they are fitted on.
const mmaDataSets = "h200-mma, sweeps"

// mmaSets are these data sets.
var mmaSets = strings.Fields("h200-mma sweeps/split/mma-fit sweeps/fp8/mma-fit sweeps/int8/mma-fit " +
	"sweeps/tf32/mma-fit sweeps/fp32/mma-fit sweeps/layouts/mma-fit sweeps/unaligned/mma-fit")

// openMMA returns the experiment of the family mma, and its problems.
func openMMA(t *testing.T) (e *experiment, problems []gemm.Problem) {
	t.Helper()
	return openSets(t, mmaDataSets, mmaSets)
}

// openSets returns the experiment on all kernels of data sets, and their problems. label is how quantities name them.
func openSets(t *testing.T, label string, names []string) (e *experiment, problems []gemm.Problem) {
	t.Helper()
	return openSetsOn(t, h200, label, names)
}

// openSetsOn is openSets on another device.
func openSetsOn(
	t *testing.T, device arch.OpenRequest, label string, names []string,
) (e *experiment, problems []gemm.Problem) {
	t.Helper()
	e = newExperiment(t, device, label)
	for _, name := range names {
		set := must.Get(dataset.Read(name, os.DirFS("../../data/"+name)))(t)
		e.add(t, set, set.Problems(), func(gemm.Config) bool { return true })
		problems = append(problems, set.Problems()...)
	}
	return e, problems
}

// What is shipped of the family mma is what the fit finds from the middle of the bounds.
func TestMMAShippedIsTheFit(t *testing.T) {
	e, _ := openMMA(t)
	e.checkShipped(t)
}

// Quantities that are fitted without a fifth of the problems predict that fifth as well.
func TestMMACrossValidated(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" {
		t.Skip("refits the model five times; ORIGAMI_TEST_ALL=1 runs it")
	}
	e, problems := openMMA(t)
	e.crossValidated(t, score.Folds(problems, 5))
}

// crossValidated compares the loss on problems that are left out of the fit with that on problems that are in it.
func (e *experiment) crossValidated(t *testing.T, folds []int) {
	t.Helper()
	values := map[string][]float64{}
	var held, inSample float64
	loss := func(v map[string]float64, fold int) float64 {
		l := must.Get(e.sample.Loss(t.Context(), e.model.With(v), func(i int) bool { return folds[i] == fold }))(t)
		return l
	}
	for fold := range 5 {
		found := e.fit(t, e.fitted(), fit.Options{Use: func(i int) bool { return folds[i] != fold }})
		for name, v := range found {
			values[name] = append(values[name], v)
		}
		held += loss(found, fold)
		inSample += loss(nil, fold)
	}
	for _, q := range e.fitted() {
		low, high := slices.Min(values[q.Name]), slices.Max(values[q.Name])
		t.Logf("%-20s %.4g, over folds %.4g to %.4g", q.Name, q.Value, low, high)
	}
	t.Logf("loss %.2f on problems left out, %.2f with them", held, inSample)
	must.That(t, held <= 1.05*inSample,
		"the loss is %.2f on problems that are left out, and %.2f if they are fitted", held, inSample)
}

// What is shipped of the persistent kernel of Triton is what the fit finds on an H100 from the middle of the bounds.
func TestPersistentShippedIsTheFit(t *testing.T) {
	const set = "h100-persistent"
	e, _ := openSetsOn(t, arch.OpenRequest{Arch: "sm90", Device: "h100"}, set, []string{set + "/h100-fit"})
	e.checkShipped(t)
}
