// Package score holds models against measurements. docs/evaluating.md defines every number.
//
// There are two questions. Compare asks what a model's pick is worth among the candidates of the model, beside a vendor
// library: that is how well the model ranks. Evaluate asks what the pick is worth among everything that was measured,
// whether or not the model would consider it: that is how good the model's choice is.
package score

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Timed is a configuration with its measured time, 0 if it has none.
type Timed struct {
	Config    gemm.Config
	Time      unit.Seconds
	Resources exec.Resources
}

// Point is a configuration with its predicted and its measured time.
type Point struct {
	Config gemm.Config
	// Bound is what the model says limits the kernel.
	Bound               arch.Bound
	Predicted, Measured unit.Seconds
}

// Outcome is what became of a model's pick for one problem.
type Outcome struct {
	Problem gemm.Problem
	// Pick is the model's choice, Predicted its predicted time. Best is the fastest measured configuration.
	Pick, Best Timed
	Predicted  unit.Seconds
	// PickRank is the place of the pick among the measured times, BestRank the place of the best among the predicted
	// times. 1 is the fastest, 0 means that it is not among them.
	PickRank, BestRank int
	// Tau is Kendall's tau-b of predicted against measured times, NaN if undefined.
	Tau float64
	// Points are the configurations that have both a predicted and a measured time.
	Points []Point
}

// Regret returns the measured time of the pick ÷ the best measured time − 1, and false if the pick has no measured
// time.
func (o *Outcome) Regret() (regret float64, ok bool) {
	if o.Pick.Time == 0 {
		return 0, false
	}
	return float64(o.Pick.Time/o.Best.Time) - 1, true
}

// Rate returns 2·m·n·k·batch ÷ a time, 0 for a time of 0.
func (o *Outcome) Rate(t unit.Seconds) unit.FlopsPerSecond {
	if t <= 0 {
		return 0
	}
	return unit.FlopsPerSecond(o.Problem.Flops() / float64(t))
}

// ratio returns a ÷ b, 0 if one of the times is missing.
func ratio(a, b unit.Seconds) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return float64(a / b)
}
