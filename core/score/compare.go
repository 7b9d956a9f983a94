package score

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Comparison holds a model's pick for one problem against the best of the model's candidates and against vendor
// libraries. The pick is the first candidate in predicted order that has a measured time; Rows are in predicted order.
//
// The times of the pick, the best and the libraries come from the latest block of final measurements that the pick
// took part in, where there is one, and from the sweep otherwise. The best is then the fastest of that block. Both
// times of a ratio thus come from the same pass, and no efficiency exceeds 1. Ranks and tau always come from the
// sweep.
type Comparison struct {
	Evaluation
	// PassedOver counts the candidates that the model ranks before the pick and that have no time: they do not compile,
	// fail, compute something else, or were not measured.
	PassedOver int
	// Phase says where the times come from.
	Phase dataset.Phase
	// Libraries are the times of the vendor libraries in the order of the data set, 0 for a library without a time.
	Libraries []unit.Seconds
	// Noise is the larger ÷ the smaller of the pick's two times in the finals − 1, NaN without finals.
	Noise float64
	// Candidates counts the model's candidates, of which Measured have a time.
	Candidates int
	// Wrong, NotBuilt and Failed count the candidates that were measured with another status, Missing those that
	// were not measured. Excluded lists the wrong and the failed ones, libraries included.
	Wrong, NotBuilt, Failed, Missing int
	Excluded                         []dataset.Measurement
	// ClockMoved counts the measurements during which the clock moved by more than 2 %.
	ClockMoved int
}

// VersusLibrary returns the i-th library's time ÷ the time of the pick, 0 if the library has no time.
func (c *Comparison) VersusLibrary(i int) float64 { return ratio(c.Libraries[i], c.Pick.Measured) }

// Compare holds a model's pick for one problem against the measurements of its candidates.
func Compare(ctx context.Context, a arch.Architecture, data *dataset.Dataset, p gemm.Problem) (Comparison, error) {
	c := Comparison{
		Evaluation: Evaluation{Problem: p, Class: ClassOf(p)},
		Phase:      dataset.Sweep, Noise: math.NaN(), Libraries: make([]unit.Seconds, len(data.Libraries())),
	}
	request := selector.Request{Space: spaceOf(data.Kernel, constantSplit(data, false, p))}
	if data.GroupM > 0 {
		request.Map = 1 // the groups are given, and 1 is the least that can be asked for
	}
	ranked, err := selector.RankOne(ctx, a, p, request)
	if err != nil {
		return c, err
	}
	c.addCandidates(data, ranked, a.Describe().Clock)
	if c.Measured == 0 {
		err := diag.Inputf("none of the %d candidates for %s could be measured%s", c.Candidates, p, c.reasons())
		if c.Missing == c.Candidates {
			return c, err.Do("leave the problem out, or measure it")
		}
		return c, err.Do("check the types, the kernel family and the device")
	}
	for i, name := range data.Libraries() {
		if m, ok := data.FindLibrary(p, name); ok {
			c.count(&m)
			c.Libraries[i] = m.Median
		}
	}
	predicted, measured := make([]float64, c.Measured), make([]float64, c.Measured)
	for i := range c.Rows {
		predicted[i], measured[i] = float64(c.Rows[i].Predicted), float64(c.Rows[i].Measured)
	}
	c.PickRank = 1 + countBelow(measured, measured[0])
	if c.Tau, err = stats.TauB(predicted, measured); err != nil {
		return c, err
	}
	c.Pick, c.Best = c.Rows[0], c.Rows[slices.Index(measured, slices.Min(measured))]
	c.useFinals(data)
	c.BestRank = 1 + c.indexOf(c.Best.Config)
	return c, nil
}

// addCandidates enters the model's candidates, which are in predicted order, with their measurements.
func (c *Comparison) addCandidates(data *dataset.Dataset, ranked []selector.Entry, clock unit.Hertz) {
	for i := range ranked {
		m, ok := data.Candidate(c.Problem, ranked[i].Config)
		if ok {
			c.count(&m)
		} else {
			c.Missing++
		}
		if ok && m.Status == dataset.OK {
			row := Row{Problem: c.Problem}
			row.measure(&m)
			row.predict(&ranked[i].Estimate, clock)
			c.Rows = append(c.Rows, row)
		} else if len(c.Rows) == 0 {
			c.PassedOver++
		}
	}
	c.Candidates, c.Measured = len(ranked), len(c.Rows)
}

// indexOf returns the index of a configuration in Rows, −1 if it is not there.
func (c *Comparison) indexOf(config gemm.Config) int {
	return slices.IndexFunc(c.Rows, func(r Row) bool { return r.Config == config })
}

// count enters the status of a measurement.
func (c *Comparison) count(m *dataset.Measurement) {
	if m.ClockMoved() {
		c.ClockMoved++
	}
	switch m.Status {
	case dataset.OK:
		return
	case dataset.NotBuilt:
		if m.Library == "" {
			c.NotBuilt++
		}
		return
	case dataset.Wrong:
		c.Wrong++
	default:
		c.Failed++
	}
	c.Excluded = append(c.Excluded, *m)
}

// reasons says why candidates have no time, and how many for each reason.
func (c *Comparison) reasons() string {
	var parts []string
	for _, r := range []struct {
		n    int
		what string
	}{{c.Missing, "not recorded"}, {c.NotBuilt, "not built"}, {c.Wrong, "wrong"}, {c.Failed, "failed"}} {
		if r.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// useFinals takes the times of the latest block of final measurements in which the pick has a time.
func (c *Comparison) useFinals(data *dataset.Dataset) {
	for _, block := range slices.Backward(data.Finals(c.Problem)) {
		null, timed := unit.Seconds(0), false
		for i := range block {
			switch m := &block[i]; {
			case m.Status != dataset.OK || m.Config != c.Pick.Config:
			case m.Null:
				null = m.Median
			default:
				c.Pick.measure(m)
				timed = true
			}
		}
		if !timed {
			continue
		}
		c.Phase, c.Best = dataset.Final, c.Pick
		if null > 0 {
			c.Noise = float64(max(null, c.Pick.Measured)/min(null, c.Pick.Measured)) - 1
		}
		clear(c.Libraries)
		for _, m := range block {
			if m.ClockMoved() {
				c.ClockMoved++
			}
			at := c.indexOf(m.Config) // −1 of another model, which may use another group
			switch {
			case m.Status != dataset.OK:
				c.Failed++
				m.Detail = "in the finals: " + m.Detail
				c.Excluded = append(c.Excluded, m)
			case m.Library != "":
				c.Libraries[slices.Index(data.Libraries(), m.Library)] = m.Median
			case !m.Null && m.Median < c.Best.Measured && at >= 0:
				c.Best = c.Rows[at]
				c.Best.measure(&m)
			}
		}
		return
	}
}
