package score

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// world makes up sizes whose errors have a common and an individual part, and depend on the bound and on the time.
type world struct {
	common, single float64
	uneven         bool // some kinds of prediction are three times as uncertain, and biased
	heavy          bool // with heavy tails
}

func (w world) sizes(random *rand.Rand, n int) []Evaluation {
	rows := make([]Evaluation, n)
	for i := range rows {
		shift := w.common * random.NormFloat64()
		scale := unit.Seconds(math.Exp(-12 + 5*random.Float64()))
		for range 30 {
			predicted := scale * unit.Seconds(1+3*random.Float64())
			b := arch.Bound(1 + random.IntN(3))
			e := random.NormFloat64()
			if w.heavy && random.IntN(10) == 0 {
				e *= 5
			}
			r := shift + w.single*e
			if w.uneven && b == arch.BoundL2 {
				r = 3*r + 0.4
			}
			if w.uneven && predicted < 20e-6 {
				r *= 2
			}
			rows[i].Rows = append(rows[i].Rows, Row{Bound: b, Predicted: predicted,
				Measured: predicted * unit.Seconds(math.Exp(r))})
		}
	}
	return rows
}

// The coverage on new sizes is the level, however much the errors of one size have in common. A single set of 40
// sizes can be lucky or not, so the mean over many sets must be right.
func TestCoverageOnNewSizes(t *testing.T) {
	for name, w := range map[string]world{
		"single errors":  {single: 0.1},
		"common errors":  {common: 0.2},
		"both":           {common: 0.15, single: 0.1},
		"uneven":         {common: 0.1, single: 0.1, uneven: true},
		"heavy tails":    {common: 0.05, single: 0.1, heavy: true},
		"all at a time":  {common: 0.1, single: 0.05, uneven: true, heavy: true},
		"common, uneven": {common: 0.2, single: 0.02, uneven: true},
	} {
		random := rand.New(rand.NewPCG(7, 11))
		const sets = 20
		held, of, predicted := 0, 0, 0.0
		for set := range sets {
			rows := w.sizes(random, 40)
			u := arch.Uncertainty{Ranges: ErrorRanges(rows)}
			for _, row := range w.sizes(random, 60) {
				h, n := Held(row.Rows, Everywhere(&u))
				held, of = held+h, of+n
			}
			if set%10 == 0 {
				predicted += LeaveOneOut(rows, func(int) {}).Points / (sets / 10)
			}
		}
		share := float64(held) / float64(of)
		must.That(t, of == sets*60*30 && share >= 0.87 && share <= 0.94,
			"%s: the coverage on new sizes is %.3f", name, share)
		// And leaving one out predicts it.
		must.That(t, math.Abs(predicted-share) <= 0.03,
			"%s: leaving one out promises %.3f, new sizes show %.3f", name, predicted, share)
	}
}

// Kinds of prediction with different errors have different ranges.
func TestRangesFollowTheKind(t *testing.T) {
	w := world{common: 0.02, single: 0.1, uneven: true}
	u := arch.Uncertainty{Ranges: ErrorRanges(w.sizes(rand.New(rand.NewPCG(3, 4)), 60))}
	width := func(b arch.Bound, predicted unit.Seconds) float64 {
		low, high, ok := u.Interval(b, predicted)
		must.Need(t, ok, "no interval for %s at %s", b, predicted)
		return math.Log(float64(high / low))
	}
	l2, compute := width(arch.BoundL2, 100e-6), width(arch.BoundCompute, 100e-6)
	must.That(t, l2 >= 2*compute, "widths %v of what L2 limits and %v of the rest", l2, compute)
	short, long := width(arch.BoundCompute, 10e-6), width(arch.BoundCompute, 100e-6)
	must.That(t, short >= 1.5*long, "widths %v of short and %v of long times", short, long)
	// A bound that no size has uses the range of its time.
	if low, high, ok := u.Interval(arch.BoundLatency, 1); !ok || low <= 0 || high <= low {
		t.Errorf("an unseen kind: %v to %v, %v", low, high, ok)
	}
}

func TestIntervalsOfLittle(t *testing.T) {
	for _, rows := range [][]Evaluation{nil, {{}}, world{single: 0.1}.sizes(rand.New(rand.NewPCG(1, 1)), 1)} {
		LeaveOneOut(rows, func(int) {})
		ranges := ErrorRanges(rows)
		must.That(t, ranges == nil, "of %d sizes: %+v", len(rows), ranges)
	}
}

// Sigma is found from the regret of the picks.
func TestSigma(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const sigma = 0.07
	rows := make([]Evaluation, 800)
	for i := range rows {
		r := &rows[i]
		shift := math.Exp(0.3 * random.NormFloat64())
		predicted := unit.Seconds(1e-4)
		for j := range 30 {
			measured := predicted * unit.Seconds(shift*math.Exp(sigma*random.NormFloat64()))
			if j == 0 {
				r.Pick.Measured, r.Best.Measured = measured, measured
			}
			r.Best.Measured = min(r.Best.Measured, measured)
			r.Leading = append(r.Leading, predicted)
			predicted *= unit.Seconds(1 + 0.03*random.Float64())
		}
	}
	got := sigmaOfPicks(rows)
	must.That(t, math.Abs(got-sigma) <= 0.006, "sigma %v, made with %v", got, sigma)
}

// If the leading candidates have errors in common, PlanSigma is larger than Sigma, so that the regret left after
// measuring is the noise. If they do not, it is about the same.
func TestPlanSigma(t *testing.T) {
	for _, tc := range []struct {
		name   string
		shared float64 // the error that each three neighbours share
		more   bool
	}{{"independent", 0, false}, {"alike", 0.15, true}} {
		random := rand.New(rand.NewPCG(8, 9))
		made := func(n int) []Evaluation {
			rows := make([]Evaluation, n)
			for i := range rows {
				r := &rows[i]
				predicted, shared := unit.Seconds(1e-4), 0.0
				for j := range 36 {
					if j%3 == 0 {
						shared = tc.shared * random.NormFloat64()
					}
					measured := predicted * unit.Seconds(math.Exp(shared+0.03*random.NormFloat64()))
					r.Leading, r.LeadingMeasured = append(r.Leading, predicted), append(r.LeadingMeasured, measured)
					predicted *= 1.005
				}
				r.Pick.Measured, r.Best.Measured = r.LeadingMeasured[0], slices.Min(r.LeadingMeasured)
			}
			return rows
		}
		rows := made(200)
		u := arch.Uncertainty{Sigma: sigmaOfPicks(rows)}
		u.PlanSigma = planSigma(rows, u.Sigma)
		must.That(t, u.PlanSigma > 1.2*u.Sigma == tc.more, "%s: sigma %v, to plan with %v", tc.name, u.Sigma, u.PlanSigma)
		s := SummariseEvaluations(made(1000), Everywhere(&u))
		left := 1/s.AutoEfficiency.Geomean - 1
		must.That(t, left <= 1.4*measure.AssumedNoise && s.CandidatesMeasured >= 2 &&
			s.CandidatesMeasured <= 50,
			"%s: the regret after measuring %.1f candidates of other sizes is %v", tc.name, s.CandidatesMeasured, left)
		must.That(t, math.Abs(s.ExpectedRegret/s.Regret-1) <= 0.15,
			"%s: expected regret %v, measured %v", tc.name, s.ExpectedRegret, s.Regret)
	}
}

func TestFolds(t *testing.T) {
	var problems []gemm.Problem
	for m := 16; m <= 8192; m *= 2 {
		for _, n := range []int{64, 1024, 8192} {
			problems = append(problems, gemm.New(m, n, 4096), gemm.New(n, m, 128))
		}
	}
	folds := Folds(problems, 5)
	byClass := map[Class]*[5]int{}
	for i, f := range folds {
		c := ClassOf(problems[i])
		if byClass[c] == nil {
			byClass[c] = &[5]int{}
		}
		byClass[c][f]++
	}
	for c, counts := range byClass {
		least, most := counts[0], counts[0]
		for _, n := range counts {
			least, most = min(least, n), max(most, n)
		}
		must.That(t, most-least <= 1, "%s is spread over the folds as %v", c, *counts)
	}
	// The order of the problems does not matter.
	of := map[gemm.Problem]int{}
	for i, f := range folds {
		of[problems[i]] = f
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(problems), func(i, j int) {
		problems[i], problems[j] = problems[j], problems[i]
	})
	for i, f := range Folds(problems, 5) {
		must.Equal(t, of[problems[i]], f, problems[i])
	}
}

// simulated are groups of parts, whose times have an error in common in each group.
func simulated(random *rand.Rand, parts, groups int) (all []Group) {
	for part := range parts {
		for g := range groups {
			out := Group{Name: fmt.Sprint("source ", g), Part: fmt.Sprint("device ", part)}
			common := 0.1 * random.NormFloat64()
			for range 60 {
				p := gemm.New(64, 64*(1+random.IntN(40)), 64*(1+random.IntN(40)))
				off := math.Exp(common + 0.05*random.NormFloat64())
				out.Rows = append(out.Rows, Row{
					Problem: p, Predicted: 1e-3, Measured: unit.Seconds(1e-3 * off),
				})
			}
			all = append(all, out)
		}
	}
	return all
}

// Ranges that are widened by what left-out groups need hold the times of groups that were never seen; those that are
// not widened hold far fewer.
func TestWidenedRangesHoldForNewGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	f := LeaveGroupsOut(simulated(random, 80, 2))
	must.Need(t, len(f.Left) == 160 && f.Held >= 0.85 && f.Held <= 0.95 && f.Width > 1,
		"%d left out, %.3f held, width %.2f", len(f.Left), f.Held, f.Width)
	share := func(widening float64) float64 {
		held, of := 0, 0
		for range 40 {
			new := simulated(random, 1, 2)
			ranges := GroupRanges(new[:1], widening)
			for i := range new[1].Rows {
				s := &new[1].Rows[i]
				low, high := ranges[0].Of(s.Predicted)
				if of++; low <= s.Measured && s.Measured <= high {
					held++
				}
			}
		}
		return float64(held) / float64(of)
	}
	if wide, narrow := share(f.Widening), share(0); wide < 0.83 || wide > 0.97 || narrow > 0.75 {
		t.Errorf("%.3f of the times of new groups are held, %.3f without the widening", wide, narrow)
	}
}

// A group alone in its part, one of few times and one beside no ranges say nothing.
func TestGroupsThatCannotBeLeftOut(t *testing.T) {
	all := simulated(rand.New(rand.NewPCG(1, 2)), 1, 2)
	all[1].Rows = all[1].Rows[:minLeftOut-1]
	all = append(all, Group{Name: "alone", Part: "elsewhere", Rows: all[0].Rows})
	f := LeaveGroupsOut(all)
	must.That(t, len(f.Left) == 0 && f.Widening == 0, "%+v", f)
}
