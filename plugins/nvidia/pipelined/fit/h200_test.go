//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package fit_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

var ablation = flag.Bool("ablation", false, "print what the refined model loses without each of its terms")

const dataSet = "h200-triton"

// experiment is the model on the device of the data set, and its measurements.
type experiment struct {
	dataSet string // of the quantities
	model   *pipelined.Model
	subset  *score.Subset
	sample  *fit.Sample
}

// fitted are the quantities that are fitted on the data set, without those that are held.
func (e *experiment) fitted() []model.Quantity {
	other := func(q model.Quantity) bool { return q.DataSet != e.dataSet || strings.HasSuffix(q.Source, terms.Held) }
	return slices.DeleteFunc(e.model.Quantities(), other)
}

// shipped are their values.
func (e *experiment) shipped() map[string]float64 {
	values := map[string]float64{}
	for _, q := range e.fitted() {
		values[q.Name] = q.Value
	}
	return values
}

func open(t *testing.T) *experiment {
	t.Helper()
	files := must.Get(fs.Sub(data.FS, dataSet))(t)
	set := must.Get(dataset.Read(dataSet, files))(t)
	e := newExperiment(t, h200, dataSet)
	e.subset = score.SubsetOf(set)
	e.add(t, set, e.subset.Problems, func(c gemm.Config) bool { return c.GroupM == e.subset.Group })
	return e
}

// h200 is the device of most data sets.
var h200 = arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: arch.RungCompiled}

// newExperiment is without measurements.
func newExperiment(t *testing.T, device arch.OpenRequest, dataSet string) *experiment {
	t.Helper()
	return &experiment{
		dataSet: dataSet, model: nvtest.Open(t, device).(*pipelined.Model), sample: &fit.Sample{},
	}
}

// add adds the times of the configurations of a data set that count.
func (e *experiment) add(
	t *testing.T, set *dataset.Dataset, problems []gemm.Problem, counts func(gemm.Config) bool,
) {
	t.Helper()
	for _, p := range problems {
		var configs []gemm.Config
		var seconds []float64
		for _, m := range set.Sweep(p) {
			if m.Library != "" || !counts(m.Config) || !(m.Median > 0) {
				continue
			}
			configs, seconds = append(configs, m.Config), append(seconds, float64(m.Median))
		}
		must.Do(t, e.sample.Add(p, configs, seconds))
	}
}

func (e *experiment) with(values map[string]float64) (arch.Architecture, error) {
	return e.model.With(values), nil
}

func (e *experiment) fit(t *testing.T, quantities []model.Quantity, o fit.Options) map[string]float64 {
	t.Helper()
	found := must.Get(fit.Run(t.Context(), e.sample, e.with, free(quantities), o))(t)
	return found.Values
}

// free are quantities as the fit takes them.
func free(quantities []model.Quantity) []fit.Quantity {
	list := make([]fit.Quantity, len(quantities))
	for i, q := range quantities {
		list[i] = fit.Quantity{Name: q.Name, Low: q.Low, High: q.High}
	}
	return list
}

func (e *experiment) score(t *testing.T, values map[string]float64) []score.Evaluation {
	t.Helper()
	rows, bad := must.Two(score.Evaluate(t.Context(), e.model.With(values), e.subset, e.subset.Problems))(t)
	for _, err := range bad {
		must.Do(t, err)
	}
	return rows
}

// What is shipped lies within the bounds, and is what the model describes.
func TestFittedQuantitiesAreWithinBounds(t *testing.T) {
	triton := open(t)
	ofMMA := *triton
	ofMMA.dataSet = mmaDataSets
	d := triton.model.Describe()
	if len(triton.fitted()) < 8 || len(ofMMA.fitted()) < 10 {
		t.Errorf("%d quantities are fitted, and %d of mma", len(triton.fitted()), len(ofMMA.fitted()))
	}
	for _, q := range slices.Concat(triton.fitted(), ofMMA.fitted()) {
		i := slices.IndexFunc(d.Constants, func(c arch.Constant) bool { return c.Name == q.Name })
		must.That(t, q.Value >= q.Low && q.Value <= q.High && q.Folds != nil && i >= 0 && d.Constants[i].Value == q.Value,
			"%s is %v, bounds %v to %v, described at %d", q.Name, q.Value, q.Low, q.High, i)
	}
}

// The score does not come from the sizes that the quantities were fitted on: fitted anew on four fifths of the sizes,
// from the middle of their bounds, they pick as well for the others.
func TestRefinedCrossValidated(t *testing.T) {
	e := open(t)
	folds := score.Folds(e.subset.Problems, 5)
	held := make([]score.Evaluation, len(e.subset.Problems))
	values := map[string][]float64{}
	for fold := range 5 {
		found := e.fit(t, e.fitted(), fit.Options{Use: func(i int) bool { return folds[i] != fold }})
		for name, v := range found {
			values[name] = append(values[name], v)
		}
		for i, row := range e.score(t, found) {
			if folds[i] == fold {
				held[i] = row
			}
		}
	}
	for _, q := range e.fitted() {
		v := values[q.Name]
		t.Logf("%-20s %.4g, over folds %.4g to %.4g", q.Name, q.Value, slices.Min(v), slices.Max(v))
	}
	sum := score.SummariseEvaluations(held, nil)
	t.Logf("held out: geomean %.4f, p10 %.4f, worst %.4f, first 8 %.4f, tau %.4f, error %.4f", sum.Efficiency.Geomean,
		sum.Efficiency.P10, sum.Efficiency.Worst, sum.Top[1].Geomean, sum.TauMean, sum.Error)
	if sum.Efficiency.Geomean < 0.98 || sum.Efficiency.Worst < 0.86 || sum.TauMean < 0.9 {
		t.Errorf("on sizes left out the picks reach %.4f, worst %.4f, tau %.4f",
			sum.Efficiency.Geomean, sum.Efficiency.Worst, sum.TauMean)
	}
}

// What is shipped is what the fit finds on all sizes, from the middle of the bounds: no lower loss is to be had.
func TestRefinedShippedIsTheFit(t *testing.T) {
	open(t).checkShipped(t)
}

// checkShipped compares what is shipped with what the fit finds.
func (e *experiment) checkShipped(t *testing.T) {
	t.Helper()
	found := e.fit(t, e.fitted(), fit.Options{})
	for _, q := range e.fitted() {
		t.Logf("%-20s shipped %.7g, fitted %.7g", q.Name, q.Value, found[q.Name])
	}
	loss := func(values map[string]float64) float64 {
		l := must.Get(e.sample.Loss(context.Background(), e.model.With(values), nil))(t)
		return l
	}
	have, want := loss(nil), loss(found)
	must.That(t, math.Abs(have-want) <= 1e-4*want, "what is shipped has a loss of %.4f, the fit finds %.4f", have, want)
}

// TestAblation prints what each term is worth (experiments/README.md).
func TestAblation(t *testing.T) {
	if !*ablation {
		t.Skip("run with -ablation")
	}
	e := open(t)
	show := func(name string, values map[string]float64) {
		sum := score.SummariseEvaluations(e.score(t, values), nil)
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %.1f %% |\n", name, sum.Efficiency.Geomean, sum.Efficiency.Worst,
			sum.TauMean, sum.TauWorst, 100*sum.Error)
	}
	without := func(name, doc string, value float64) {
		values := e.shipped()
		values[name] = value
		show(fmt.Sprintf("%s (`%s`)", doc, name), values)
		others := slices.DeleteFunc(e.fitted(), func(q model.Quantity) bool { return q.Name == name })
		show("… fitted anew", e.fit(t, others, fit.Options{Start: values, Steps: 15}))
	}
	fmt.Println("| without | geomean | worst | tau | worst tau | error |\n| --- | --- | --- | --- | --- | --- |")
	show("–", nil)
	for _, q := range e.fitted() {
		without(q.Name, q.Doc, q.Without)
	}
	later := maps.Clone(e.shipped())
	later["wave_coalescing"] = later["l2_coalescing"]
	show("what a single wave gets of the L2 besides (`wave_coalescing`)", later)
	alone := maps.Clone(e.shipped())
	alone["ctas_limit"] = 1
	show("more than one CTA per SM (`ctas_per_sm`)", alone)
}
