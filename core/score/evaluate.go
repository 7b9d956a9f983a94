// Package eval scores a model against recorded measurements: how good its picks are over the whole of what was recorded,
// how well its order and its times agree with the measured ones, and whether its intervals hold. docs/evaluating.md
// defines every number.
//
// Package bench asks what a pick is worth among the candidates of its own model; eval asks what it is worth among all that
// was recorded, whichever model could have picked it.
package score

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// TopCounts are the numbers of leading candidates that are scored together: what it is worth to measure so many and keep the
// best.
var TopCounts = [...]int{4, 8, 16}

// Evaluation is the outcome for one problem.
type Evaluation struct {
	Problem gemm.Problem
	Class   Class
	// Pick is the model's first choice among its own candidates, Predicted its predicted time and Measured its recorded one, 0 if
	// it has none: then it is not known to run at all, and its efficiency is 0.
	Pick                gemm.Config
	Bound               arch.Bound
	Predicted, Measured unit.Seconds
	// Best is the fastest recorded configuration.
	Best     gemm.Config
	BestTime unit.Seconds
	// Top are the efficiencies of the fastest of the model's first TopCounts candidates; those without a recorded time are
	// passed over.
	Top [len(TopCounts)]float64
	// PickRank is the place of the pick among the recorded times, BestRank that of the best among the predictions for the recorded
	// configurations; 1 for the fastest, 0 if it is not among them.
	PickRank, BestRank int
	// Tau is Kendall's tau-b of predicted against recorded times; NaN if undefined. A configuration that was recorded and
	// that the model says cannot be used counts as predicted last.
	Tau float64
	// Recorded counts the configurations with a recorded time, Refused those of them that the model says cannot be used.
	Recorded, Refused int
	// Points are the others, with predicted and recorded time.
	Points []Point
	// Leading are the predicted times of the model's first candidates, best first, and LeadingMeasured their recorded ones, 0
	// for those without.
	Leading, LeadingMeasured []unit.Seconds
	// Error is the median of |predicted ÷ recorded − 1| over the points.
	Error float64
}

// Efficiency returns the best recorded time ÷ the recorded time of the pick, 0 for a pick without one.
func (r *Evaluation) Efficiency() float64 { return ratio(r.BestTime, r.Measured) }

// first returns the efficiency of the fastest of the model's first n candidates.
func (r *Evaluation) first(n int) float64 {
	fastest := unit.Seconds(0)
	for _, t := range r.LeadingMeasured[:min(n, len(r.LeadingMeasured))] {
		if t > 0 && (fastest == 0 || t < fastest) {
			fastest = t
		}
	}
	return ratio(r.BestTime, fastest)
}

// Held reports whether the interval of the pick's predicted time holds its recorded one, and false where there is no
// interval or no recorded time.
func (r *Evaluation) Held(u *arch.Uncertainty) (held, ok bool) {
	if u == nil || r.Measured == 0 {
		return false, false
	}
	low, high, ok := u.Interval(r.Bound, r.Predicted)
	return low <= r.Measured && r.Measured <= high, ok
}

// Covered counts the points whose interval holds the recorded time, and those that have an interval.
func (r *Evaluation) Covered(u *arch.Uncertainty) (held, of int) {
	if u == nil {
		return 0, 0
	}
	for i := range r.Points {
		p := &r.Points[i]
		low, high, ok := u.Interval(p.Bound, p.Predicted)
		if !ok {
			continue
		}
		if of++; low <= p.Measured && p.Measured <= high {
			held++
		}
	}
	return held, of
}

// lost returns the recorded loss of not measuring, and false for a pick without a recorded time.
func (r *Evaluation) lost() (float64, bool) {
	if r.Measured == 0 {
		return 0, false
	}
	return float64(r.Measured/r.BestTime) - 1, true
}

func ratio(a, b unit.Seconds) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return float64(a / b)
}

// Subset are measurements as they are scored: at the launch-order group and the split of K that the sweep holds constant.
type Subset struct {
	*dataset.Dataset
	// Group and Split are what is held constant, 0 where each configuration has its own.
	Group, Split int
	// Problems are the problems to be scored. Partial are those left out: fewer than half as many configurations were
	// recorded as for the fullest, and the best of a part is not the best.
	Problems, Partial []gemm.Problem

	rows map[gemm.Problem][]dataset.Measurement
}

// SubsetOf finds out what a dataset holds constant and which problems it has a whole sweep of.
func SubsetOf(data *dataset.Dataset) *Subset {
	r := &Subset{Dataset: data, Group: data.GroupM, rows: map[gemm.Problem][]dataset.Measurement{}}
	splits, total := map[int]int{}, 0
	for _, p := range data.Problems() {
		for _, m := range data.Sweep(p) {
			if m.Status == dataset.OK {
				splits[m.Config.SplitK]++
				total++
			}
		}
	}
	for split, n := range splits {
		if 2*n > total {
			r.Split = split
		}
	}
	most := 0
	for _, p := range data.Problems() {
		for _, m := range data.Sweep(p) {
			if m.Status == dataset.OK && r.holds(m.Config) {
				r.rows[p] = append(r.rows[p], m)
			}
		}
		most = max(most, len(r.rows[p]))
	}
	for _, p := range data.Problems() {
		if len(r.rows[p]) > 0 && 2*len(r.rows[p]) >= most {
			r.Problems = append(r.Problems, p)
		} else {
			r.Partial = append(r.Partial, p)
		}
	}
	return r
}

// holds reports whether a configuration has what the sweep holds constant.
func (r *Subset) holds(c gemm.Config) bool {
	return (r.Group == 0 || c.GroupM == r.Group) && (r.Split == 0 || c.SplitK == r.Split)
}

// space is what the model may choose from: all its candidates, but for the split of K.
func (r *Subset) space() arch.Space {
	s := arch.Space{Kernel: r.Kernel}
	if r.Split > 0 {
		s.SplitK = []int{r.Split}
	}
	return s
}

// held is an architecture whose candidates all have one launch-order group.
type held struct {
	arch.Architecture
	group int
}

// Candidates implements arch.Architecture.
func (h held) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	list, err := h.Architecture.Candidates(ctx, p, s)
	if err != nil {
		return nil, err
	}
	own := &arch.Candidates{Rejected: list.Rejected, Configs: make([]gemm.Config, 0, len(list.Configs))}
	seen := make(map[gemm.Config]bool, len(list.Configs))
	for _, c := range list.Configs {
		if c.GroupM = h.group; !seen[c] {
			seen[c] = true
			own.Configs = append(own.Configs, c)
		}
	}
	return own, nil
}

// Mapping implements arch.Architecture.
func (h held) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: h.group}, nil
}

// Evaluate holds a model against the records of some problems, in their order. What is wrong with one problem is in the
// error beside its row; the last error is for all of them.
func Evaluate(ctx context.Context, a arch.Architecture, r *Subset, problems []gemm.Problem) (rows []Evaluation, bad []error, err error) {
	request := selector.Request{Problems: problems, Space: r.space(), Top: measure.RegretCandidates}
	chooser := a
	if r.Group > 0 {
		chooser = held{a, r.Group}
	}
	results, err := selector.Rank(ctx, chooser, request)
	if err != nil {
		return nil, nil, err
	}
	rows, bad = make([]Evaluation, len(problems)), make([]error, len(problems))
	for i, p := range problems {
		if bad[i] = results[i].Err; bad[i] == nil {
			rows[i], bad[i] = r.score(ctx, a, p, results[i].Entries)
		}
		if bad[i] != nil && diag.KindOf(bad[i]) != diag.Input {
			return nil, nil, bad[i]
		}
	}
	return rows, bad, nil
}

// score holds the model's leading candidates and its predictions for what was recorded against one problem's records.
func (r *Subset) score(ctx context.Context, a arch.Architecture, p gemm.Problem, entries []selector.Entry) (Evaluation, error) {
	recorded := r.rows[p]
	row := Evaluation{Problem: p, Class: ClassOf(p), Recorded: len(recorded), Tau: math.NaN(), Error: math.NaN()}
	if len(recorded) == 0 {
		return row, diag.Inputf("there are no recorded times of %s", p).At("%s", r.Name).Do("choose from the sizes that it holds")
	}
	clock := a.Describe().Clock
	for _, m := range recorded {
		if row.BestTime == 0 || m.Median < row.BestTime {
			row.Best, row.BestTime = m.Config, m.Median
		}
	}
	row.Pick, row.Bound, row.Predicted = entries[0].Config, entries[0].Estimate.Bound, entries[0].Estimate.Cycles.At(clock)
	for i, e := range entries {
		measured := unit.Seconds(0)
		if m, ok := r.Candidate(p, e.Config); ok && m.Status == dataset.OK {
			measured = m.Median
			if i == 0 {
				row.Pick, row.Measured = m.Config, measured
			}
		}
		row.Leading, row.LeadingMeasured = append(row.Leading, e.Estimate.Cycles.At(clock)), append(row.LeadingMeasured, measured)
	}
	for t, n := range TopCounts {
		row.Top[t] = row.first(n)
	}

	configs := make([]gemm.Config, len(recorded))
	for i := range recorded {
		configs[i] = recorded[i].Config
	}
	estimates := make([]arch.Estimate, len(configs))
	if err := a.Estimate(ctx, estimates, p, configs); err != nil {
		return row, err
	}
	predicted, measured := make([]float64, len(recorded)), make([]float64, len(recorded))
	errors := make([]float64, 0, len(recorded))
	best := math.Inf(1)
	for i := range recorded {
		measured[i] = float64(recorded[i].Median)
		if e := &estimates[i]; e.Reject != "" {
			predicted[i] = math.Inf(1)
			row.Refused++
		} else {
			t := e.Cycles.At(clock)
			predicted[i] = float64(t)
			row.Points = append(row.Points, Point{Config: configs[i], Bound: e.Bound, Predicted: t, Measured: recorded[i].Median})
			errors = append(errors, math.Abs(predicted[i]/measured[i]-1))
		}
		if configs[i] == row.Best {
			best = predicted[i]
		}
	}
	row.Error = stats.Median(errors)
	if row.Measured > 0 {
		row.PickRank = 1 + countBelow(measured, float64(row.Measured))
	}
	if !math.IsInf(best, 1) {
		row.BestRank = 1 + countBelow(predicted, best)
	}
	var err error
	row.Tau, err = stats.TauB(predicted, measured)
	return row, err
}

func countBelow(values []float64, limit float64) int {
	n := 0
	for _, v := range values {
		if v < limit {
			n++
		}
	}
	return n
}
