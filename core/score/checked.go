package score

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/stats"
)

// CheckedOn returns what evaluations compare a model's times with measured times on.
func CheckedOn(dataSet string, evaluations []Evaluation) arch.Checked {
	c := arch.Checked{DataSet: dataSet}
	for i := range evaluations {
		e := &evaluations[i]
		if len(e.Points) > 0 {
			c.Sizes++
		}
		for j := range e.Points {
			c.Add(&e.Problem, e.Points[j].Config.SplitK)
		}
	}
	return c
}

// Widening finds arch.Uncertainty.Widening from evaluations. Each class of shape is left out in turn: the widest range
// of the others, times the factor, contains the share Level of the times of the class. It is 0 if no class can be left
// out, because fewer than MinSizes sizes would remain.
func Widening(evaluations []Evaluation) float64 {
	factor := 0.0
	for _, class := range Classes() {
		var left, others []Evaluation
		for i := range evaluations {
			if evaluations[i].Class == class {
				left = append(left, evaluations[i])
			} else {
				others = append(others, evaluations[i])
			}
		}
		u := arch.Uncertainty{Ranges: ErrorRanges(others)}
		if len(left) == 0 || u.Ranges == nil {
			continue
		}
		factor = max(factor, 1, distanceOutside(left, &u))
	}
	return factor
}

// distanceOutside returns the factor by which the share Level of the measured times lie at most outside of the widest
// range. Each size has the same weight.
func distanceOutside(evaluations []Evaluation, u *arch.Uncertainty) float64 {
	var points []stats.Weighted
	total := 0.0
	for i := range evaluations {
		of := evaluations[i].Points
		for _, p := range of {
			low, high := u.WidestRange().Of(p.Predicted - evaluations[i].Added)
			measured := max(p.Measured-evaluations[i].Added, shortest)
			points = append(points, stats.Weighted{
				Value: max(float64(low/measured), float64(measured/high)), Weight: 1 / float64(len(of)),
			})
			total += 1 / float64(len(of))
		}
	}
	return stats.UpperQuantile(points, Level*total)
}
