package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// checkUnits checks that the numbers of a description are plausible. A wrong unit makes them implausible.
func checkUnits(_ context.Context, _ *subject, found *findings, t *target) {
	d := t.Describe()
	name := fmt.Sprintf("%s %s", d.ID(), d.Model)
	if d.Clock < 1e6 || d.Clock > 1e11 {
		found.add("%s: a clock of %v Hz is not between 1 MHz and 100 GHz", name, float64(d.Clock))
	}
	if d.Units < 1 || d.Partitions < 1 || d.SharedMemory < 0 {
		found.add("%s: %d units in %d partitions with %v B of shared memory", name, d.Units, d.Partitions,
			float64(d.SharedMemory))
	}
	for _, p := range d.Params {
		if _, err := unit.Convert(p.Value, p.Unit, p.Unit); err != nil {
			found.add("%s: %s: %s", name, p.Name, err)
		}
		if p.Source == "" || p.Method == "" {
			found.add("%s: %s has no source", name, p.Name)
		}
		if hertz, err := unit.Convert(p.Value, p.Unit, "Hz"); p.Name == "clock" &&
			(err != nil || math.Abs(hertz-float64(d.Clock)) > 1e-12*hertz) {
			found.add("%s: the parameter clock is %v %s, and the clock of the description %v Hz", name,
				p.Value, p.Unit,
				float64(d.Clock))
		}
	}
	for _, a := range d.Atoms {
		if a.M < 1 || a.N < 1 || a.K < 1 || !(a.Latency > 0) || a.PerUnit < 1 {
			found.add("%s: the matrix instruction of %s is %dx%dx%d in %v cycles, %d at once", name,
				a.DType, a.M, a.N, a.K,
				float64(a.Latency), a.PerUnit)
			continue
		}
		// This finds a unit with a wrong prefix. The exact distance from the data sheet is not checked.
		rate := 2 * float64(a.M*a.N*a.K) / float64(a.Latency) * float64(a.PerUnit*d.Units) * float64(d.Clock)
		if peak := float64(d.PeakFor(a.DType)); peak != 0 && (rate > 100*peak || rate < peak/100) {
			found.add("%s: the matrix instruction of %s makes %.3g FLOP/s, the peak is %.3g", name,
				a.DType, rate, peak)
		}
	}
	for _, p := range d.Peak {
		if !(p.Rate > 0) {
			found.add("%s: a peak of %v FLOP/s for %s", name, float64(p.Rate), p.DType)
		}
	}
	levels := t.Levels()
	if len(levels) == 0 {
		found.add("%s: it has no memory level", name)
	}
	for i, l := range levels {
		if !(l.Rate() > 0) || l.Bandwidth.Units < 1 || l.Latency < 0 || l.Partitions < 1 {
			found.add("%s: %s has %v B/cycle for %d units, a latency of %v cycles and %d partitions", name, l.Name,
				float64(l.Bandwidth.Peak), l.Bandwidth.Units, float64(l.Latency), l.Partitions)
		}
		// A hierarchy may contain a level with capacity 0 if the device lacks it.
		if outermost := i == len(levels)-1; l.Capacity < 0 || outermost && l.Capacity != 0 {
			found.add("%s: %s has a capacity of %v B; the last level, which holds everything, must have 0, and no "+
				"other a negative one", name, l.Name, float64(l.Capacity))
		}
		for _, active := range []int{1, (d.Units + 1) / 2, d.Units} {
			if f := l.Bandwidth.Fraction(active); !(f > 0 && f <= 1) {
				found.add("%s: %d units reach %v of the bandwidth of %s", name, active, f, l.Name)
			}
		}
	}
}

// checkSchema checks what `origami explain` shows of the terms and constants.
func checkSchema(_ context.Context, _ *subject, found *findings, t *target) {
	d := t.Describe()
	name := fmt.Sprintf("%s %s", d.ID(), d.Model)
	var names []string
	totals := 0
	for _, term := range d.Terms {
		names = append(names, term.Name)
		if term.Kind == arch.KindTotal {
			totals++
		}
		if term.Formula == "" || term.Doc == "" || term.Unit == "" {
			found.add("%s: the term %s lacks its formula, explanation or unit", name, term.Name)
		}
	}
	for _, p := range d.Params {
		names = append(names, p.Name)
	}
	for _, c := range d.Constants {
		names = append(names, c.Name)
		if c.Unit == "" || c.Doc == "" || c.Source == "" {
			found.add("%s: the constant %s lacks its unit, explanation or source", name, c.Name)
		}
	}
	found.unique(name+": term, parameter or constant", names)
	if totals != 1 {
		found.add("%s: %d terms are the total, not one", name, totals)
	}
}

// The tolerances of formulas and shares, because the formulas are evaluated in another order than the model. A small
// term may be the difference of large ones and inherit their rounding errors, so its tolerance is relative to the
// total.
const (
	formulaTolerance = 1e-9
	sharesTolerance  = 1e-9
)

func checkTerms(ctx context.Context, _ *subject, found *findings, c *testcase) {
	d := c.Describe()
	var configs []gemm.Config
	picked := c.feasible(3)
	for _, i := range picked {
		configs = append(configs, c.candidates.Configs[i])
	}
	if len(configs) == 0 || len(d.Terms) == 0 {
		return
	}
	rows := make([]float64, len(configs)*len(d.Terms))
	if err := c.Terms(ctx, rows, c.problem, configs); err != nil {
		found.add("%s: %s", c, err)
		return
	}
	parameters := *d
	parameters.Terms = nil
	for i, config := range configs {
		row := rows[i*len(d.Terms) : (i+1)*len(d.Terms)]
		total, shares, shared := 0.0, 0.0, false
		for j, term := range d.Terms {
			if math.IsNaN(row[j]) || math.IsInf(row[j], 0) {
				found.add("%s, %s: %s is %v", c, config, term.Name, row[j])
			}
			switch term.Kind {
			case arch.KindTotal:
				total = row[j]
			case arch.KindShare:
				shares, shared = shares+row[j], true
			default:
			}
		}
		if cycles := float64(c.estimates[picked[i]].Cycles); math.Float64bits(cycles) != math.Float64bits(total) {
			found.add("%s, %s: Estimate gives %v cycles, the total of Terms is %v", c, config, cycles, total)
		}
		if shared && math.Abs(shares-total) > sharesTolerance*math.Abs(total) {
			found.add("%s, %s: the shares of the total add up to %v, the total is %v", c, config, shares, total)
		}
		// A formula may use the terms before it.
		values := formula.Values(&parameters, c.problem, config, nil)
		for j, term := range d.Terms {
			if !formula.IsRule(term.Formula) {
				got, err := formula.Eval(term.Formula, values)
				scale := math.Abs(row[j])
				if term.Unit == "cycles" {
					scale = max(scale, 1e-3*math.Abs(total))
				}
				if err != nil {
					found.add("%s, %s: %s: %s", c, config, term.Name, err)
				} else if !(math.Abs(got-row[j]) <= formulaTolerance*scale) {
					found.add("%s, %s: %s = %s is %v, and the plugin answers %v", c, config, term.Name,
						term.Formula, got, row[j])
				}
			}
			values[term.Name] = row[j]
		}
	}
}
