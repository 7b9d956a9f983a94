package gemm

import "github.com/origami-gemm/origami/core/diag"

// MostSteps bounds the values of Steps.
const MostSteps = 1 << 14

// mostStep bounds its numbers, so that no sum overflows.
const mostStep = 1 << 40

// Steps lists sizes in Tensile's form of a range: [v] is one value, [start, stop] has a step of start, [start, step,
// stop] a constant step, and [start, step, increment, stop] a step that grows by the increment after each value. A
// value above stop is left out.
func Steps(v ...int) ([]int, error) {
	start, step, increment, stop := 0, 1, 0, 0
	switch len(v) {
	case 1:
		start, stop = v[0], v[0]
	case 2:
		start, step, stop = v[0], v[0], v[1]
	case 3:
		start, step, stop = v[0], v[1], v[2]
	case 4:
		start, step, increment, stop = v[0], v[1], v[2], v[3]
	default:
		return nil, diag.Inputf("a range has %d numbers", len(v)).Do(
			"give one value, or start and stop, start, step and stop, or start, step, increment and stop")
	}
	switch {
	case start < 1:
		return nil, diag.Inputf("a range starts at %d", start).Do("start at 1 or above")
	case stop < start:
		return nil, diag.Inputf("a range ends at %d, below its start %d", stop, start).Do("give the larger number last")
	case step < 1 || increment < 0:
		return nil, diag.Inputf("a range has the step %d and the increment %d", step, increment).
			Do("give a step of at least 1 and an increment of at least 0")
	}
	for _, x := range v {
		if x > mostStep {
			return nil, diag.Inputf("a range has the number %d", x).Do("give numbers up to %d", mostStep)
		}
	}
	out := []int{start}
	for at := start; step <= stop-at; step += increment {
		if len(out) == MostSteps {
			return nil, diag.Inputf("a range has more than %d values", MostSteps).Do("take a larger step")
		}
		at += step
		out = append(out, at)
	}
	return out, nil
}
