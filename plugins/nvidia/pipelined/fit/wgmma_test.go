//go:build !race

package fit_test

import (
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// wgmmaDataSets is how the quantities of the family wgmma name what they are fitted on.
const wgmmaDataSets = "h200-wgmma"

// wgmmaSets are its data sets.
var wgmmaSets = []string{
	"h200-wgmma/skinny/wgmma-fit", "h200-wgmma/large/wgmma-fit", "h200-wgmma/fp8/wgmma-fit", "h200-wgmma/rows/wgmma-fit",
	"h200-wgmma/splits/wgmma-fit", "h200-wgmma/clusters/wgmma-fit",
}

// openWGMMA returns the experiment of the family wgmma, and its problems.
func openWGMMA(t *testing.T) (e *experiment, problems []gemm.Problem) {
	t.Helper()
	return openSets(t, wgmmaDataSets, wgmmaSets)
}

// What is shipped of the family wgmma is what the fit finds from the middle of the bounds.
func TestWGMMAShippedIsTheFit(t *testing.T) {
	if testing.Short() {
		t.Skip("refits the model")
	}
	e, _ := openWGMMA(t)
	e.checkShipped(t)
}

// clusterDataSets is how the quantities of larger clusters name theirs: an H100's.
const clusterDataSets = "h200-wgmma/clusters-h100"

// What is shipped of clusters is what the fit finds, with all else as it is.
func TestClustersShippedAreTheFit(t *testing.T) {
	if testing.Short() {
		t.Skip("refits the model")
	}
	e, _ := openClusters(t)
	e.checkShipped(t)
}

// Fitted without a fifth of the problems, they predict that fifth as well.
func TestClustersCrossValidated(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" {
		t.Skip("refits the model five times; ORIGAMI_TEST_ALL=1 runs it")
	}
	e, problems := openClusters(t)
	e.crossValidated(t, score.Folds(problems, 5))
}

func openClusters(t *testing.T) (e *experiment, problems []gemm.Problem) {
	t.Helper()
	return openSetsOn(t, arch.OpenRequest{Arch: "sm90", Device: "h100"}, clusterDataSets,
		[]string{clusterDataSets + "/wgmma-fit"})
}

// Quantities that are fitted without a fifth of the problems predict that fifth as well.
func TestWGMMACrossValidated(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" {
		t.Skip("refits the model five times; ORIGAMI_TEST_ALL=1 runs it")
	}
	e, problems := openWGMMA(t)
	e.crossValidated(t, score.Folds(problems, 5))
}

// crossValidated compares the loss on problems that are left out of the fit with that on problems that are in it.
func (e *experiment) crossValidated(t *testing.T, folds []int) {
	t.Helper()
	values := map[string][]float64{}
	var held, inSample float64
	loss := func(v map[string]float64, fold int) float64 {
		l, err := e.sample.Loss(t.Context(), e.model.With(v), func(i int) bool { return folds[i] == fold })
		if err != nil {
			t.Fatal(err)
		}
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
	if held > 1.05*inSample {
		t.Errorf("the loss is %.2f on problems that are left out, and %.2f if they are fitted", held, inSample)
	}
}
