// Package bench holds a model's picks against measurements, three ways: the pick (analytical), the best of every
// candidate (brute force), and the vendor's library.
package bench

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Options say what to measure.
type Options struct {
	Space arch.Space
	// GroupM measures every candidate at this launch-order group; 0 means at the one that phase two gives it.
	GroupM int
	// Library is the kernel family of the vendor's library, empty for none.
	Library string
	Device  int
	Measure exec.MeasureOptions
}

// Measured is a configuration with its measured time.
type Measured struct {
	Config    gemm.Config
	Time      unit.Seconds
	Resources exec.Resources
}

// Row is the outcome for one problem.
type Row struct {
	Problem gemm.Problem
	// Pick is the candidate that the model ranks first of those that could be measured; PassedOver counts the ones it ranks
	// before it, which do not compile or have no record. Best is the fastest of the measured candidates.
	Pick, Best Measured
	PassedOver int
	// Predicted is the model's time for its pick.
	Predicted unit.Seconds
	// Library is the time of the vendor's library, 0 if it was not measured.
	Library unit.Seconds
	// Candidates counts what the model would consider, Measured those that have a time.
	Candidates, Measured int
	// PickRank is the place of the pick among the measured times, 1 for the fastest.
	PickRank int
	// Tau is Kendall's tau-b of predicted against measured times over the measured candidates; NaN if undefined.
	Tau float64
	// Points are the predicted and measured times behind Tau, in predicted order.
	Points []Point
}

// Point is one candidate, predicted and measured.
type Point struct {
	Config              gemm.Config
	Predicted, Measured unit.Seconds
}

// Efficiency returns the best measured time ÷ the time of the pick.
func (r *Row) Efficiency() float64 { return ratio(r.Best.Time, r.Pick.Time) }

// VersusLibrary returns the library's time ÷ the time of the pick, 0 if the library was not measured.
func (r *Row) VersusLibrary() float64 { return ratio(r.Library, r.Pick.Time) }

func ratio(a, b unit.Seconds) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return float64(a / b)
}

// Rate returns 2·m·n·k·batch over a time, 0 without one.
func (r *Row) Rate(t unit.Seconds) unit.FlopsPerSecond {
	if t <= 0 {
		return 0
	}
	return unit.FlopsPerSecond(r.Problem.Flops() / float64(t))
}

// Problem measures every candidate for one problem. A candidate that the executor cannot build or run is left out of
// the measured ones; any other failure is an error.
func Problem(ctx context.Context, a arch.Architecture, x exec.Executor, p gemm.Problem, o Options) (Row, error) {
	row := Row{Problem: p, Tau: math.NaN()}
	request := selector.Request{Problems: []gemm.Problem{p}, Space: o.Space}
	if o.GroupM > 0 {
		request.Map = 1 // the least that can be asked for; the groups are given
	}
	results, err := selector.Rank(ctx, a, request)
	if err != nil {
		return row, err
	}
	if results[0].Err != nil {
		return row, results[0].Err
	}
	ranked := results[0].Entries
	row.Candidates = len(ranked)
	clock := a.Describe().Clock
	for _, e := range ranked {
		c := e.Config
		if o.GroupM > 0 {
			c.GroupM = o.GroupM
		}
		m, ok, err := measure(ctx, x, p, c, o)
		if err != nil {
			return row, err
		}
		if !ok {
			if len(row.Points) == 0 {
				row.PassedOver++
			}
			continue
		}
		if len(row.Points) == 0 {
			row.Pick, row.Predicted = m, e.Estimate.Cycles.At(clock)
		}
		row.Points = append(row.Points, Point{c, e.Estimate.Cycles.At(clock), m.Time})
		if row.Best.Time == 0 || m.Time < row.Best.Time {
			row.Best = m
		}
	}
	row.Measured = len(row.Points)
	if row.Measured == 0 {
		return row, diag.Inputf("none of the %d candidates for %s could be measured", row.Candidates, p).Do("check the kernel family and the device")
	}
	row.PickRank = 1
	for _, point := range row.Points {
		if point.Measured < row.Pick.Time {
			row.PickRank++
		}
	}
	predicted, measured := make([]float64, row.Measured), make([]float64, row.Measured)
	for i, point := range row.Points {
		predicted[i], measured[i] = float64(point.Predicted), float64(point.Measured)
	}
	if row.Tau, err = score.TauB(predicted, measured); err != nil {
		return row, err
	}
	if o.Library != "" {
		m, _, err := measure(ctx, x, p, gemm.Config{Kernel: o.Library}, o)
		if err != nil {
			return row, err
		}
		row.Library = m.Time
	}
	return row, nil
}

// measure returns the median time of one configuration; ok is false when the executor cannot build or run it.
func measure(ctx context.Context, x exec.Executor, p gemm.Problem, c gemm.Config, o Options) (m Measured, ok bool, err error) {
	k, err := x.Compile(ctx, o.Device, p, c)
	if unusable(err) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	defer func() { _ = k.Close() }()
	var times []float64
	if err := k.Measure(ctx, o.Measure, func(s exec.Sample) bool {
		times = append(times, float64(s.Time))
		return true
	}); err != nil {
		return m, false, err
	}
	if len(times) == 0 {
		return m, false, nil
	}
	return Measured{Config: c, Time: unit.Seconds(median(times)), Resources: k.Resources()}, true, nil
}

// unusable reports whether an error is about the configuration rather than the executor.
func unusable(err error) bool {
	var d *diag.Error
	return errors.As(err, &d) && d.Kind == diag.Input
}

// Summary is what a list of rows comes to.
type Summary struct {
	Problems int
	// PassedOver counts the problems where better-ranked candidates could not be measured.
	PassedOver int
	// Efficiency is of the pick against the best candidate, Library against the vendor's library (over the problems that
	// have its time).
	Efficiency, Library Spread
	TauMean, TauWorst   float64
}

// Spread describes a list of ratios. All are 0 for an empty list.
type Spread struct {
	Count                       int
	Median, Geomean, P10, Worst float64
}

// Summarise sums up the rows.
func Summarise(rows []Row) Summary {
	s := Summary{TauWorst: math.Inf(1)}
	var efficiency, library []float64
	taus := 0
	for i := range rows {
		r := &rows[i]
		s.Problems++
		if r.PassedOver > 0 {
			s.PassedOver++
		}
		efficiency = append(efficiency, r.Efficiency())
		if r.Library > 0 {
			library = append(library, r.VersusLibrary())
		}
		if !math.IsNaN(r.Tau) {
			taus++
			s.TauMean += r.Tau
			s.TauWorst = min(s.TauWorst, r.Tau)
		}
	}
	if taus == 0 {
		s.TauMean, s.TauWorst = math.NaN(), math.NaN()
	} else {
		s.TauMean /= float64(taus)
	}
	s.Efficiency, s.Library = spread(efficiency), spread(library)
	return s
}

func spread(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	logs := 0.0
	for _, x := range sorted {
		logs += math.Log(x) // −Inf for 0, which makes the mean 0
	}
	return Spread{
		Count: len(v), Median: quantile(sorted, 0.5), P10: quantile(sorted, 0.1), Worst: sorted[0],
		Geomean: math.Exp(logs / float64(len(v))),
	}
}

func median(v []float64) float64 {
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	return quantile(sorted, 0.5)
}

// quantile interpolates linearly between the order statistics of a sorted list (Hyndman and Fan's type 7).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
