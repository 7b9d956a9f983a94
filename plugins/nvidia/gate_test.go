//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// floors are the scores that a model must reach on the recorded H200 sweep of triton, 40 sizes × 856 configurations.
// They are just below its scores at its last change, so that a regression is noticed. docs/evaluating.md defines the
// scores. A commit that lowers a floor says why.
var floors = []struct {
	model string
	rung  arch.Rung // empty: the highest
	// Of the pick, and of the best of the first 8.
	geomean, p10, worst, top8Geomean, top8Worst float64
	tauMean, tauWorst                           float64
	// error is a ceiling on the median |predicted ÷ measured − 1|.
	error float64
}{
	// The reference is never tuned, and its picks often do not run. Its floors guard the scoring, not the model.
	{model: "reference", top8Geomean: 0.661, top8Worst: 0.434, tauMean: 0.534, tauWorst: 0.406, error: 1.44},
	{
		model:       "refined",
		rung:        arch.RungSpec,
		geomean:     0.965,
		p10:         0.91,
		worst:       0.68,
		top8Geomean: 0.99,
		top8Worst:   0.92,
		tauMean:     0.885,
		tauWorst:    0.64,
		error:       0.08,
	},
	{
		model:       "refined",
		rung:        arch.RungCalibrated,
		geomean:     0.975,
		p10:         0.92,
		worst:       0.835,
		top8Geomean: 0.99,
		top8Worst:   0.92,
		tauMean:     0.885,
		tauWorst:    0.64,
		error:       0.08,
	},
	{
		model:       "refined",
		rung:        arch.RungCompiled,
		geomean:     0.975,
		p10:         0.925,
		worst:       0.835,
		top8Geomean: 0.99,
		top8Worst:   0.92,
		tauMean:     0.885,
		tauWorst:    0.64,
		error:       0.08,
	},
	{
		model:       "refined",
		rung:        arch.RungCharacterized,
		geomean:     0.985,
		p10:         0.955,
		worst:       0.88,
		top8Geomean: 0.994,
		top8Worst:   0.92,
		tauMean:     0.888,
		tauWorst:    0.64,
		error:       0.075,
	},
}

// gateFolds is the number of folds of the sizes.
const gateFolds = 5

func sweep(t testing.TB) *score.Subset {
	t.Helper()
	files, err := fs.Sub(data.FS, "h200-triton")
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Read("h200-triton", files)
	if err != nil {
		t.Fatal(err)
	}
	r := score.SubsetOf(data)
	if len(r.Problems) != 40 || r.Group != 8 || r.Split != 1 {
		t.Fatalf("%d sizes at group %d, split %d", len(r.Problems), r.Group, r.Split)
	}
	return r
}

func scored(t testing.TB, r *score.Subset, request arch.OpenRequest) []score.Evaluation {
	t.Helper()
	p, err := nvidia.Provider()
	if err != nil {
		t.Fatal(err)
	}
	request.Arch, request.Device = "sm90", "h200"
	a, err := p.Open(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	rows, bad, err := score.Evaluate(t.Context(), a, r, r.Problems)
	if err != nil {
		t.Fatal(err)
	}
	for i := range bad {
		if bad[i] != nil {
			t.Fatal(bad[i])
		}
	}
	return rows
}

// Every model on every rung is as good as it was.
func TestFloors(t *testing.T) {
	r := sweep(t)
	for _, f := range floors {
		t.Run(f.model+" "+string(f.rung), func(t *testing.T) {
			rows := scored(t, r, arch.OpenRequest{Model: f.model, Rung: f.rung})
			s := score.SummariseEvaluations(rows, nil)
			for _, c := range []struct {
				name       string
				got, floor float64
			}{
				{"geomean", s.Efficiency.Geomean, f.geomean},
				{"p10", s.Efficiency.P10, f.p10},
				{"worst", s.Efficiency.Worst, f.worst},
				{"geomean of the first 8", s.Top[1].Geomean, f.top8Geomean},
				{"worst of the first 8", s.Top[1].Worst, f.top8Worst},
				{"mean tau", s.TauMean, f.tauMean},
				{"worst tau", s.TauWorst, f.tauWorst},
				{"error", -s.Error, -f.error},
			} {
				t.Logf("%-22s %.4f (floor %.4f)", c.name, math.Abs(c.got), math.Abs(c.floor))
				if !(c.got >= c.floor) {
					t.Errorf("%s is %.4f, and was at least %.4f", c.name, math.Abs(c.got), math.Abs(c.floor))
				}
			}

			share := acrossFolds(rows)
			t.Logf("intervals of %.0f %% hold %.4f of the times of other sizes", 100*score.Level, share)
			if share < 0.85 || share > 0.95 {
				t.Errorf("intervals of %.0f %% hold %.4f of the times of other sizes", 100*score.Level, share)
			}
		})
	}
}

// acrossFolds finds intervals on four fifths of the sizes, in turn, and returns their coverage of the other times.
func acrossFolds(rows []score.Evaluation) float64 {
	problems := make([]gemm.Problem, len(rows))
	for i := range rows {
		problems[i] = rows[i].Problem
	}
	folds := score.Folds(problems, gateFolds)
	held, of := 0, 0
	for fold := range gateFolds {
		var known, others []score.Evaluation
		for i := range rows {
			if folds[i] == fold {
				others = append(others, rows[i])
			} else {
				known = append(known, rows[i])
			}
		}
		u := arch.Uncertainty{Ranges: score.ErrorRanges(known)}
		for i := range others {
			h, n := score.Held(others[i].Rows, score.Everywhere(&u))
			held, of = held+h, of+n
		}
	}
	return float64(held) / float64(of)
}

var writeScores = flag.Bool("scores", false, "write experiments/refined-on-h200/scores.csv")

// The recorded scores per rung and class of shape are the scores on the shipped data sets.
func TestRecordedScores(t *testing.T) {
	r := sweep(t)
	var b strings.Builder
	b.WriteString("model,rung,class,sizes,efficiency,p10,worst,top_8,top_8_worst,tau,tau_worst,error,intervals_hold\n")
	for _, f := range floors {
		rows := scored(t, r, arch.OpenRequest{Model: f.model, Rung: f.rung})
		line := func(class string, s score.EvaluationSummary, coverage string) {
			fmt.Fprintf(
				&b,
				"%s,%s,%s,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%s\n",
				f.model,
				f.rung,
				class,
				s.Problems,
				s.Efficiency.Geomean,
				s.Efficiency.P10,
				s.Efficiency.Worst,
				s.Top[1].Geomean,
				s.Top[1].Worst,
				s.TauMean,
				s.TauWorst,
				s.Error,
				coverage,
			)
		}
		for _, c := range score.SummariseByClass(rows, nil) {
			line(c.Class, c.EvaluationSummary, "")
		}
		line("all", score.SummariseEvaluations(rows, nil), fmt.Sprintf("%.3f", acrossFolds(rows)))
	}

	const path = "../../experiments/refined-on-h200/scores.csv"
	if *writeScores {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != b.String() {
		t.Errorf("%s has other scores (%v); run `make scores`:\n%s", path, err, b.String())
	}
}

// The shipped intervals of a model are those that the shipped data sets give.
func TestShippedIntervals(t *testing.T) {
	p, err := nvidia.Provider()
	if err != nil {
		t.Fatal(err)
	}
	r := sweep(t)
	for _, f := range floors {
		a, err := p.Open(t.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200", Model: f.model, Rung: f.rung})
		if err != nil {
			t.Fatal(err)
		}
		problem := r.Problems[0]
		shipped := a.Describe().Scope(r.Kernel, &problem, 1).Uncertainty
		if f.model == "reference" {
			if shipped != nil {
				t.Errorf("the reference says how far it is off: %+v", shipped)
			}
			continue
		}
		rows := scored(t, r, arch.OpenRequest{Model: f.model, Rung: f.rung})
		found, ok := score.Calibrate(r.Kernel, r.Name, rows)
		if !ok || shipped == nil || len(shipped.Ranges) != len(found.Ranges) || shipped.Level != found.Level {
			t.Errorf(
				"%s on %s ships %+v, and the records show %+v; run `make intervals`",
				f.model,
				f.rung,
				shipped,
				found,
			)
			continue
		}
		near := func(what string, a, b float64) {
			if math.Abs(a/b-1) > 0.01 {
				t.Errorf(
					"%s on %s ships a %s of %v, and the records show %v; run `make intervals`",
					f.model,
					f.rung,
					what,
					a,
					b,
				)
			}
		}
		if !reflect.DeepEqual(shipped.Checked, found.Checked) {
			t.Errorf("%s on %s ships %+v, and the records show %+v; run `make intervals`", f.model, f.rung, shipped.Checked,
				found.Checked)
		}
		near("widening", shipped.Widening, found.Widening)
		near("spread", shipped.Sigma, found.Sigma)
		near("spread to plan with", shipped.PlanSigma, found.PlanSigma)
		for i, s := range shipped.Ranges {
			if f := found.Ranges[i]; s.Bound != f.Bound || s.Below != f.Below {
				t.Errorf("range %d is %+v, and the records show %+v; run `make intervals`", i, s, f)
			} else {
				near("low end", s.Low, f.Low)
				near("high end", s.High, f.High)
			}
		}
	}
	// A device that was not measured has what other generations say.
	other, err := p.Open(t.Context(), arch.OpenRequest{Arch: "sm80"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kernel := range other.Describe().Kernels {
		if d := other.Describe(); d.HasUncertainty(kernel) || !d.HasElsewhere(kernel) {
			t.Errorf("%s: %+v", kernel, d.Uncertainty)
		}
	}
}

// Scoring 40 sizes × 856 configurations, without reading the measurements.
func BenchmarkScore(b *testing.B) {
	r := sweep(b)
	p, err := nvidia.Provider()
	if err != nil {
		b.Fatal(err)
	}
	a, err := p.Open(b.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := score.Evaluate(b.Context(), a, r, r.Problems); err != nil {
			b.Fatal(err)
		}
	}
}
