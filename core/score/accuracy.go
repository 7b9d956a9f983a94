package score

import (
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Tolerance is the factor by which two times may differ to agree.
const Tolerance = 1.2

// Decided is the factor by which two measured times have to differ to say that one device is faster.
const Decided = 1.1

// agree reports whether two numbers differ by at most Tolerance.
func agree[T ~float64](a, b T) bool { return max(a, b) <= min(a, b)*Tolerance }

// Accuracy sums up predicted ÷ measured times. The numbers are null without times.
type Accuracy struct {
	Count   int           `json:"times"`                // how many
	Geomean digits.Number `json:"geomean" unit:"ratio"` // of predicted ÷ measured
	P10     digits.Number `json:"p10" unit:"ratio"`
	P90     digits.Number `json:"p90" unit:"ratio"`
	Within  digits.Number `json:"within" unit:"fraction"`       // the share within 20 %
	Error   digits.Number `json:"error_median" unit:"fraction"` // of |predicted ÷ measured − 1|
}

// AccuracyOf sums up the ratios of rows.
func AccuracyOf(rows []Row) Accuracy {
	ratios := ratiosOf(rows)
	slices.Sort(ratios)
	quantile := func(q float64) digits.Number {
		if len(ratios) == 0 {
			return digits.Number(math.NaN())
		}
		return digits.Number(stats.Quantile(ratios, q))
	}
	within := 0
	for _, r := range ratios {
		if agree(r, 1) {
			within++
		}
	}
	return Accuracy{
		Count: len(ratios), Geomean: digits.Number(stats.Geomean(ratios)), P10: quantile(0.1), P90: quantile(0.9),
		Within: share(float64(within), len(ratios)), Error: digits.Number(medianError(ratios)),
	}
}

// Ratios sums up predicted ÷ measured time.
type Ratios struct {
	Count  int     `json:"count"`               // how many kernels
	Median float64 `json:"median" unit:"ratio"` // their ratios
	Least  float64 `json:"lowest" unit:"ratio"`
	Large  float64 `json:"highest" unit:"ratio"`
}

// RatiosOf sums up the ratios of the rows that count. Rejected configurations have none.
func RatiosOf(rows []Row, counts func(*Row) bool) Ratios {
	ratios := ratiosOf(slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Reject != "" || !counts(&r) }))
	if len(ratios) == 0 {
		return Ratios{}
	}
	return Ratios{len(ratios), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios)}
}

// share is a part of a number of things, NaN of none.
func share(part float64, of int) digits.Number { return digits.Number(part / float64(of)) }

// Ceiling is how often different software agrees on the time of the same problem on the same GPU. A model agrees with
// one stack about as often at best, and with the median of several more often: that lies between them.
type Ceiling struct {
	// the problems that several stacks timed, and how often these agree
	Count int           `json:"ceiling_problems"`
	Share digits.Number `json:"ceiling" unit:"fraction"`
}

// CeilingOf finds the ceiling from the times of each problem. Problems with one time do not count.
func CeilingOf(problems [][]unit.Seconds) Ceiling {
	count, sum := 0, 0.0
	for _, times := range problems {
		pairs, agreeing := 0, 0
		for i := range times {
			for _, other := range times[:i] {
				if pairs++; agree(times[i], other) {
					agreeing++
				}
			}
		}
		if pairs > 0 {
			count++
			sum += float64(agreeing) / float64(pairs)
		}
	}
	return Ceiling{count, share(sum, count)}
}

// Versus is one problem on two devices: the time on the first ÷ the time on the second.
type Versus struct {
	Predicted, Measured float64
	// Odds is the predicted probability that the first is faster, NaN without intervals. Apart says that the intervals do
	// not touch.
	Odds  float64
	Apart bool
}

// Comparability says how well a model compares two devices. The shares are null where they are of nothing.
type Comparability struct {
	Count     int           `json:"shapes"`                     // that both have a time of
	Within    digits.Number `json:"within" unit:"fraction"`     // the share of the ratios within 20 %
	Decided   int           `json:"decided"`                    // measured ratios over 1.1
	Winner    digits.Number `json:"winner" unit:"fraction"`     // the share of these with the right winner
	Sure      int           `json:"sure"`                       // one of the two has odds of 90 to 95 % to be faster
	SureRight digits.Number `json:"sure_right" unit:"fraction"` // the share of these with the right winner
	// the mean of (odds − 1 or 0)²; a coin has 0.25
	Brier digits.Number `json:"brier"`
	// the same with 1 or 0 where intervals do not touch, 0.5 elsewhere
	BrierApart digits.Number `json:"brier_apart"`
	stated     int           // the number of problems with odds
}

// The odds of Comparability.Sure.
const (
	sureFrom = 0.90
	sureTo   = 0.95
)

// addOdds enters the odds of a problem.
func (c *Comparability) addOdds(v *Versus) {
	if math.IsNaN(v.Odds) {
		return
	}
	c.stated++
	first, rule := 0.0, 0.5
	if v.Measured < 1 {
		first = 1
	}
	if v.Apart {
		rule = math.Round(v.Odds)
	}
	c.Brier += digits.Number((v.Odds - first) * (v.Odds - first))
	c.BrierApart += digits.Number((rule - first) * (rule - first))
	if sure := max(v.Odds, 1-v.Odds); sureFrom <= sure && sure < sureTo {
		c.Sure++
		if (v.Odds > 0.5) == (v.Measured < 1) {
			c.SureRight++
		}
	}
}

// ComparabilityOf sums up the problems of two devices.
func ComparabilityOf(problems []Versus) Comparability {
	c := Comparability{Count: len(problems)}
	for i := range problems {
		v := &problems[i]
		c.addOdds(v)
		if agree(v.Predicted, v.Measured) {
			c.Within++
		}
		if max(v.Measured, 1/v.Measured) > Decided {
			c.Decided++
			if v.Predicted < 1 == (v.Measured < 1) && v.Predicted != 1 {
				c.Winner++
			}
		}
	}
	c.Within /= digits.Number(c.Count) // 0 of 0 is NaN
	c.Winner /= digits.Number(c.Decided)
	c.SureRight /= digits.Number(c.Sure)
	c.Brier, c.BrierApart = c.Brier/digits.Number(c.stated), c.BrierApart/digits.Number(c.stated)
	return c
}
