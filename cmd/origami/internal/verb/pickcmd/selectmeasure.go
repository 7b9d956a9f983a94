package pickcmd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/timing"
)

// auto is the --measure that leaves the number to the model's uncertainty.
const auto = "auto"

// runMeasured answers with the fastest of the leading candidates.
func (o *SelectOptions) runMeasured(ctx context.Context) error {
	list, err := o.Query.Read(ctx, o.Factory)
	if err != nil {
		return err
	}
	defer list.Close()
	var side ask.Contender
	_, err = o.Factory.Beside(timing.Events, nil, func() (_ arch.Architecture, err error) {
		side, err = o.Factory.Side(ctx, &o.Query.Search, o.Query.Invariant)
		return side.Model, err
	})
	if err != nil {
		return err
	}
	m := &measurer{executor: o.Executor}
	if m.count, err = o.count(); err != nil {
		return err
	}
	if m.sweep, _, err = o.Factory.Sweep(ctx, side.Model, o.Executor, false); err != nil {
		return err
	}
	defer func() { _ = m.sweep.Executor.Close() }() // the measurements are done
	d, kernel := side.Model.Describe(), m.sweep.Space.Kernel
	if m.count == 0 && !d.HasSigma(kernel) {
		return howMany("the %s model of %s does not say how far its times for %s are from measured ones", d.Model, d.ID(),
			kernel)
	}
	families, err := o.Factory.FamiliesToMeasure(ctx, m.sweep)
	if err != nil {
		return err
	}
	q := ask.Question{Kernel: families[0], Fallbacks: families[1:], Top: max(o.Top, m.count),
		Regret: o.Regret || o.Measure == auto}
	return o.each(ctx, side.Rankings, list, q, func(one *ask.Ranking, write func(*ask.Ranking) error) error {
		err := m.measure(ctx, one)
		switch {
		case err == nil:
			return write(one)
		case o.Query.Problems != "" && diag.KindOf(err) == diag.Input:
			list.Failures.Add("", err)
			return nil
		default:
			return err
		}
	})
}

// count is how many candidates to measure, 0 for as many as are worth it.
func (o *SelectOptions) count() (int, error) {
	switch n, err := strconv.Atoi(o.Measure); {
	case o.Measure == "":
		return 0, diag.Inputf("nothing is to be measured").At("--executor").Do("add --measure auto")
	case o.Measure == auto:
		return 0, nil
	case err != nil || n < 1 || n > measure.RegretCandidates:
		return 0, diag.Inputf("%q is neither auto nor a whole number from 1 to %d", o.Measure, measure.RegretCandidates).
			At("--measure").Do("write auto, or how many candidates to measure")
	default:
		return n, nil
	}
}

// howMany is the error of a model that cannot say how many candidates are worth measuring.
func howMany(format string, args ...any) error {
	return diag.Inputf(format, args...).At("--measure auto").Do("say how many candidates to measure, as in --measure 8")
}

// measurer measures the leading candidates of answers and puts what they turn out to be into them.
type measurer struct {
	count    int
	executor string
	sweep    *measure.Sweep
}

// measure measures the first candidates of an answer, if that is worth it, and puts the one to use first.
func (m *measurer) measure(ctx context.Context, a *ask.Ranking) error {
	n := m.count
	if n == 0 {
		if a.Regret == nil {
			return howMany("the %s model was not checked on the likes of %s: %s", a.Arch.Model, a.Problem,
				strings.Join(a.Outside(&a.Entries[0]), "; "))
		}
		if n = a.Regret.WorthMeasuring; n < 2 {
			n = 0 // the pick stays whatever its time is
		}
	}
	measured := &ask.Measurements{Executor: m.executor, Device: m.sweep.Data.DriverName, Auto: m.count == 0,
		Noise: math.NaN()}
	a.Measured = measured
	if n == 0 {
		return nil
	}
	n = min(n, len(a.Entries))
	configs := make([]gemm.Config, n)
	for i := range configs {
		configs[i] = a.Entries[i].Config
	}
	block, err := m.sweep.MeasureInTurns(ctx, a.Problem, configs)
	if err != nil {
		return err
	}
	choice, noise := measure.Choose(block)
	if choice < 0 {
		return diag.Inputf("none of %d candidates for %s could be measured: %s", n, a.Problem, block[0].Detail).
			Do("leave --measure out")
	}
	measured.Noise = noise
	for i := range configs {
		measured.Candidates = append(measured.Candidates, ask.Timed{Entry: a.Entries[i], Measurement: block[i],
			Chosen: i == choice})
	}
	chosen := a.Entries[choice]
	copy(a.Entries[1:choice+1], a.Entries[:choice])
	a.Entries[0] = chosen
	return nil
}

// measured writes what was measured and what came of it.
func (w *selectWriter) measured(m *ask.Measured) {
	if len(m.Candidates) == 0 {
		show.Line(w.s, "measured", "nothing: measuring one more candidate is expected to gain less than the noise, %s",
			percent(measure.AssumedNoise))
		return
	}
	chosen := &m.Candidates[slices.IndexFunc(m.Candidates, func(c ask.MeasuredCandidate) bool { return c.Chosen })]
	verdict, noise := "", percent(float64(m.Noise))
	switch pick := &m.Candidates[0]; {
	case pick.Chosen && math.IsNaN(float64(m.Noise)):
		verdict = "the model's pick"
	case pick.Chosen:
		verdict = "the model's pick: no other is faster by more than the noise, " + noise
	case pick.Median != nil:
		verdict = fmt.Sprintf("%s, %s faster than the model's pick; the noise is %s", chosen.Config,
			percent(*pick.Median / *chosen.Median - 1), noise)
	default:
		verdict = fmt.Sprintf("%s; the model's pick has no time: %s", chosen.Config, pick.Detail)
	}
	show.Line(w.s, "measured", "%s", verdict)
	w.s.Printf("\n")
	type candidate = ask.MeasuredCandidate
	_ = show.Write(w.s, show.Table, m.Candidates, show.Key[candidate]("config", "candidate"),
		show.Key[candidate]("predicted_seconds", "predicted"), show.Key[candidate]("median_seconds", "measured").Or("–"),
		show.Key[candidate]("spread").Or("–"),
		show.Text("of the choice", func(c *candidate) string {
			if c.Median == nil {
				return "–"
			}
			return percent(*chosen.Median / *c.Median)
		}),
		show.Text("", func(c *candidate) string {
			switch {
			case c.Chosen:
				return "the choice"
			case c.Median != nil:
				return ""
			}
			return string(c.Status)
		})) // an error of the screen shows when it is flushed
}
