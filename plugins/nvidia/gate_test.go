//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// floorsFile has the scores that models reached on data sets of the H200 at their last change, or just below, so that a
// regression is noticed. docs/evaluating.md defines the scores. Of each set, what is scored is the pick of the model's
// candidates, or of the kernels that were measured. An error is a ceiling on the median |predicted ÷ measured − 1|. A
// commit that lowers a floor says why.
//
// The reference is never tuned, and its picks often do not run: its floors guard the scoring. Nothing was fitted to the
// other sets than h200-triton and grouped/h200-fit, though terms were chosen with the scores of h200-triton-other and
// -bt in view. Floors of groups, sizes and mma are of 2026-11-22, except the first set of groups: the pick of one of
// its eight problems, 128×14336×4096, changed on 2026-11-27. Those of wgmma are of 2026-11-28, when its quantities were
// fitted for picks: these became faster on average, and times less exact by one to two per cent.
const floorsFile = "testdata/floors.csv"

// gated is a model on a rung that is scored on h200-triton.
type gated struct {
	model string
	rung  arch.Rung // empty: the highest
}

// gatedModels are the models of floorsFile on h200-triton.
func gatedModels(t testing.TB) (all []gated) {
	t.Helper()
	for _, row := range csvtest.Named(t, floorsFile) {
		if row["set"] == "h200-triton" {
			all = append(all, gated{row["model"], arch.Rung(row["rung"])})
		}
	}
	return all
}

// gateFolds is the number of folds of the sizes.
const gateFolds = 5

// readSet reads a data set of the folder data.
func readSet(t testing.TB, set string) *dataset.Dataset {
	t.Helper()
	return must.Get(dataset.Read(set, os.DirFS("data/"+set)))(t)
}

func sweep(t testing.TB) *score.Subset {
	t.Helper()
	r := score.SubsetOf(readSet(t, "h200-triton"))
	must.Need(t, len(r.Problems) == 40 && r.Group == 8 && r.Split == 1,
		"%d sizes at group %d, split %d", len(r.Problems), r.Group, r.Split)
	return r
}

// evaluated scores a model on a data set.
func evaluated(t testing.TB, a arch.Architecture, r *score.Subset) []score.Evaluation {
	t.Helper()
	rows, bad, err := score.Evaluate(t.Context(), a, r, r.Problems)
	for _, one := range append(bad, err) {
		must.Do(t, one)
	}
	return rows
}

func scored(t testing.TB, r *score.Subset, request arch.OpenRequest) []score.Evaluation {
	t.Helper()
	request.Arch, request.Device = "sm90", "h200"
	return evaluated(t, nvtest.Open(t, request), r)
}

// Every model on every rung is as good as it was.
func TestFloors(t *testing.T) {
	subset := score.SubsetOf(dataset.New("", dataset.Conditions{})) // of the row before
	for _, row := range csvtest.Named(t, floorsFile) {
		t.Run(strings.Join([]string{row["set"], row["model"], row["rung"]}, " "), func(t *testing.T) {
			if subset.Name != row["set"] {
				subset = score.SubsetOf(readSet(t, row["set"]))
			}
			if row["sizes"] != "" && row["sizes"] != strconv.Itoa(len(subset.Problems)) {
				t.Errorf("%d sizes, want %s", len(subset.Problems), row["sizes"])
			}
			request := arch.OpenRequest{Arch: "sm90", Device: "h200", Model: row["model"], Rung: arch.Rung(row["rung"])}
			var s score.EvaluationSummary
			if a := nvtest.Open(t, request); row["of"] == "measured" {
				var picks, errors []float64
				for _, p := range subset.Dataset.Problems() {
					pick, off := pickOfMeasured(t, a, p, considered(subset.Sweep(p)))
					picks, errors = append(picks, pick), append(errors, off...)
				}
				s.Efficiency, s.Error = stats.QuantilesOf(picks), stats.Median(errors)
			} else {
				rows := evaluated(t, a, subset)
				s = score.SummariseEvaluations(rows, nil)
				if row["set"] == "h200-triton" {
					share := acrossFolds(rows)
					must.Hold(t, share >= 0.85 && share <= 0.95, "intervals of %.0f %% hold %.4f of the times of other sizes",
						100*score.Level, share)
				}
			}
			for name, got := range map[string]float64{
				"geomean": s.Efficiency.Geomean, "p10": s.Efficiency.P10, "worst": s.Efficiency.Worst,
				"top8": s.Top[1].Geomean, "top8_worst": s.Top[1].Worst, "tau": s.TauMean, "tau_worst": s.TauWorst,
				"error": s.Error,
			} {
				t.Logf("%-10s %.4f (%s)", name, got, row[name])
				if row[name] == "" {
					continue
				}
				floor, err := strconv.ParseFloat(row[name], 64)
				if err != nil || name == "error" && !(got <= floor) || name != "error" && !(got >= floor) {
					t.Errorf("%s is %.4f, and was %s (%v)", name, got, row[name], err)
				}
			}
		})
	}
}

// pickOfMeasured returns how fast the best predicted of the measured configurations is, relative to the fastest, and
// how far all predicted times are off.
func pickOfMeasured(t *testing.T, a arch.Architecture, p gemm.Problem, measured []dataset.Measurement) (
	pick float64, off []float64,
) {
	t.Helper()
	cfgs := make([]gemm.Config, len(measured))
	for i := range measured {
		cfgs[i] = measured[i].Config
	}
	times := archtest.Estimates(t, a, p, cfgs...)
	best, fastest := 0, measured[0].Median
	var ratios []float64
	for i := range times {
		if times[i].Reject != "" {
			t.Fatalf("%s of %s is rejected: %s", cfgs[i], p, times[i].Reject)
		}
		ratio := float64(times[i].Cycles) / float64(a.Describe().Clock) / float64(measured[i].Median)
		off, ratios = append(off, math.Abs(ratio-1)), append(ratios, ratio)
		if times[i].Cycles < times[best].Cycles {
			best = i
		}
		fastest = min(fastest, measured[i].Median)
	}
	pick = float64(fastest / measured[best].Median)
	t.Logf("%s: %.3f, predicted ÷ measured %.2f, pick %s", p, pick, stats.Median(ratios), cfgs[best])
	return pick, off
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
	for _, f := range gatedModels(t) {
		rows := scored(t, r, arch.OpenRequest{Model: f.model, Rung: f.rung})
		line := func(class string, s score.EvaluationSummary, coverage string) {
			fmt.Fprintf(&b, "%s,%s,%s,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%s\n", f.model, f.rung, class, s.Problems,
				s.Efficiency.Geomean, s.Efficiency.P10, s.Efficiency.Worst, s.Top[1].Geomean, s.Top[1].Worst, s.TauMean,
				s.TauWorst, s.Error, coverage)
		}
		for _, c := range score.SummariseByClass(rows, nil) {
			line(c.Class, c.EvaluationSummary, "")
		}
		line("all", score.SummariseEvaluations(rows, nil), fmt.Sprintf("%.3f", acrossFolds(rows)))
	}
	must.File(t, "../../experiments/refined-on-h200/scores.csv", b.String(), *writeScores)
}

// The shipped intervals of a model are those that the shipped data sets give.
func TestShippedIntervals(t *testing.T) {
	r := sweep(t)
	for _, f := range gatedModels(t) {
		a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Model: f.model, Rung: f.rung})
		problem := r.Problems[0]
		shipped := a.Describe().Scope(r.Kernel, &problem, 1).Uncertainty
		if f.model == "reference" {
			must.That(t, shipped == nil, "the reference says how far it is off: %+v", shipped)
			continue
		}
		rows := scored(t, r, arch.OpenRequest{Model: f.model, Rung: f.rung})
		found, ok := score.Calibrate(r.Kernel, r.Name, rows)
		if !ok || shipped == nil || len(shipped.Ranges) != len(found.Ranges) || shipped.Level != found.Level {
			t.Errorf("%s on %s ships %+v, and the records show %+v; run `make intervals`", f.model, f.rung, shipped, found)
			continue
		}
		near := func(what string, a, b float64) {
			must.That(t, math.Abs(a/b-1) <= 0.01,
				"%s on %s ships a %s of %v, and the records show %v; run `make intervals`", f.model, f.rung, what, a, b)
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
	other := nvtest.Open(t, arch.OpenRequest{Arch: "sm80"})
	for _, kernel := range other.Describe().Kernels {
		d := other.Describe()
		must.That(t, !d.HasUncertainty(kernel) && d.HasElsewhere(kernel), "%s: %+v", kernel, d.Uncertainty)
	}
}
