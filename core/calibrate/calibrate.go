// Package calibrate measures a device with microbenchmarks: it runs each several times, repeats what is not stable,
// refuses what stays unstable, and gives the values to the plan, which computes the numbers of the device from them. It
// knows no vendor, no files and no clock. What it measured is kept as records, from which everything can be computed
// again.
package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Planner is a plugin (arch.Provider) that has microbenchmarks of its devices. arch.Manifest.Calibrates says so.
type Planner interface {
	// Calibration returns the microbenchmarks of a device, by what its driver reports. A device that it has none for is
	// an error of kind diag.Input.
	Calibration(ctx context.Context, d exec.Device) (*Plan, error)
}

// Plan is the microbenchmarks of a device, and what follows from them.
type Plan struct {
	Probes []Probe
	// Numbers computes the numbers of the device, and the matrix instructions of a device file. A number whose probes
	// were refused is left out.
	Numbers func(context.Context, Values) ([]Number, []hw.Atom, error)
}

// Probe is one microbenchmark.
type Probe struct {
	// Name identifies the probe in records, such as "l2/bandwidth/4 MiB".
	Name string
	// Unit is the unit of the value.
	Unit    string
	Program exec.Program
	// Runs is the number of timed runs of a round. The value of a round is their median.
	Runs int
	// Work is how much of something a run does: bytes, operations, instructions. It is recorded with each round, so that
	// records outlive changes of programs.
	Work float64
	// Value is a formula (core/formula) for what a run says, in Unit, and Clock one for the clock during the run, in Hz;
	// empty, or 0, is the executor's clock. They know the names seconds, work, and counter_0, counter_1, …, the
	// program's counters.
	Value, Clock string
	// Limit is the largest value that the hardware allows, 0 if it is unknown.
	Limit float64
}

// The policy of sampling: rounds of each probe, the most rounds of one that is not stable, and the largest coefficient
// of variation of the last MinRounds rounds of one that is.
const (
	MinRounds = 3
	MaxRounds = 9
	MaxSpread = 0.03
)

// Round is some runs of a probe, one after the other. Work is the work of each run.
type Round struct {
	Work        float64          `json:"work"`
	Readings    []exec.Reading   `json:"readings"`
	Environment exec.Environment `json:"environment"`
}

// Values are the values of probes by name.
type Values map[string]Value

// Value is what the rounds of a probe say.
type Value struct {
	// Value is the median of the last MinRounds rounds, Spread their coefficient of variation, the standard deviation
	// of the sample ÷ the mean.
	Value, Spread float64
	Unit          string
	// Clock is the median clock, 0 if unknown.
	Clock unit.Hertz
	// Rounds is how many rounds were measured, Time when the last was.
	Rounds int
	Time   time.Time
	// Refused says why the value cannot be used; empty if it can.
	Refused string
}

// Number is a number of the device.
type Number struct {
	// Name is the name of the hardware parameter, or of a figure for which no model has a parameter.
	Name string
	// Number has the value, and in Source how it was measured. Its date is the last round's, and its spread the
	// largest of the probes.
	hw.Number
	// Probes are the names of the probes that it was computed from.
	Probes []string
	// Parameter says that models know the number as a parameter of a device.
	Parameter bool
}

// NewNumber returns a number that was computed from the values of probes. ok is false if one of them was refused.
func (v Values) NewNumber(name string, value float64, unitName, method string, probes ...string) (n Number, ok bool) {
	n = Number{Name: name, Probes: probes,
		Number: hw.Number{Value: value, Unit: unitName, Source: method, Method: hw.Microbenchmark}}
	var clocks []unit.Hertz
	for _, p := range probes {
		from, known := v[p]
		if !known || from.Refused != "" {
			return Number{}, false
		}
		n.Spread = max(n.Spread, from.Spread)
		if from.Clock > 0 {
			clocks = append(clocks, from.Clock)
		}
		if day := from.Time.UTC().Format(time.DateOnly); day > n.Date {
			n.Date = day
		}
	}
	if len(clocks) > 0 {
		n.Clock = stats.Median(clocks)
	}
	return n, value > 0 && !math.IsInf(value, 0)
}

// Session measures a plan.
type Session struct {
	Plan   *Plan
	Device int
	// Runner and Environment are the executor's.
	Runner      exec.Runner
	Environment func(ctx context.Context, device int) (exec.Environment, error)
	// Rounds are the rounds so far, by probe. Run adds to them.
	Rounds map[string][]Round
	// Keep is called with each round as soon as it is measured. Begin is called before each, with how many rounds are
	// measured and how many will be at least.
	Keep  func(p *Probe, r Round) error
	Begin func(p *Probe, done, total int)
}

// Run measures what is missing: MinRounds rounds of each probe, in turns, so that what changes in between shows as
// spread; then further rounds of the probes that are not stable. A probe whose program the device refuses is left out,
// and Refused says why.
func (s *Session) Run(ctx context.Context) (refused map[string]string, err error) {
	refused = map[string]string{}
	if s.Rounds == nil {
		s.Rounds = map[string][]Round{}
	}
	for pass := 1; pass <= MaxRounds; pass++ {
		for i := range s.Plan.Probes {
			p := &s.Plan.Probes[i]
			have := s.Rounds[p.Name]
			if len(have) >= pass || refused[p.Name] != "" || pass > MinRounds && p.value(have).Refused == "" {
				continue
			}
			if s.Begin != nil {
				done, total := s.progress()
				s.Begin(p, done, total)
			}
			r, err := s.measure(ctx, p)
			if diag.KindOf(err) == diag.Input && err != nil && ctx.Err() == nil {
				refused[p.Name] = err.Error()
				continue
			}
			if err != nil {
				return refused, err
			}
			s.Rounds[p.Name] = append(have, r)
			if err := s.Keep(p, r); err != nil {
				return refused, err
			}
		}
	}
	return refused, nil
}

func (s *Session) measure(ctx context.Context, p *Probe) (r Round, err error) {
	if r.Readings, err = s.Runner.Run(ctx, s.Device, p.Program, p.Runs); err != nil {
		return r, err
	}
	r.Work = p.Work
	r.Environment, err = s.Environment(ctx, s.Device)
	return r, err
}

// progress is the number of rounds so far, and the number that there will be if no further probe is unstable.
func (s *Session) progress() (done, total int) {
	for i := range s.Plan.Probes {
		n := len(s.Rounds[s.Plan.Probes[i].Name])
		done, total = done+n, total+max(MinRounds, n)
	}
	return done, total
}

// Values returns what the rounds of each probe say. A probe without enough rounds is refused.
func (p *Plan) Values(rounds map[string][]Round) Values {
	v := Values{}
	for i := range p.Probes {
		v[p.Probes[i].Name] = p.Probes[i].value(rounds[p.Probes[i].Name])
	}
	return v
}

// value is what the rounds of the probe say.
func (p *Probe) value(rounds []Round) Value {
	v := Value{Unit: p.Unit, Rounds: len(rounds)}
	if len(rounds) < MinRounds {
		v.Refused = fmt.Sprintf("%d of %d rounds were measured", len(rounds), MinRounds)
		return v
	}
	f, err := p.compile()
	if err != nil {
		v.Refused = err.Error()
		return v
	}
	last := rounds[len(rounds)-MinRounds:]
	var values []float64
	var clocks []unit.Hertz
	for _, r := range last {
		var of []float64
		for _, reading := range r.Readings {
			value, c := f.read(reading, r.Work)
			of = append(of, value)
			if c > 0 {
				clocks = append(clocks, c)
			}
		}
		values = append(values, stats.Median(of))
	}
	v.Value, v.Spread, v.Time = stats.Median(values), variation(values), last[MinRounds-1].Environment.Time
	if len(clocks) > 0 {
		v.Clock = stats.Median(clocks)
	}
	switch {
	case !(v.Value > 0) || math.IsInf(v.Value, 0):
		v.Refused = fmt.Sprintf("its value is %v", v.Value)
	case p.Limit > 0 && v.Value > p.Limit:
		v.Refused = fmt.Sprintf("%.5g %s is more than the hardware can do (%.5g): the benchmark does not measure what it "+
			"should", v.Value, p.Unit, p.Limit)
	case v.Spread > MaxSpread:
		v.Refused = fmt.Sprintf("%d rounds differ by %.1f %%, above %.0f %%: %s", MinRounds, 100*v.Spread,
			100*MaxSpread, unrest(last, clocks))
	}
	return v
}

// compiled is the formulas of a probe, with the slots of their inputs.
type compiled struct {
	frame        []float64
	steps        formula.Steps
	value, clock int
	work         int // followed by seconds and the counters
	counters     int
}

// compile compiles the formulas of a probe.
func (p *Probe) compile() (*compiled, error) {
	program, c := formula.NewProgram(), &compiled{counters: p.Program.Counters}
	names := []string{"work", "seconds"}
	for i := range p.Program.Counters {
		names = append(names, fmt.Sprintf("counter_%d", i))
	}
	for i, name := range names {
		slot, err := program.Input(name, formula.OnConfig)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			c.work = slot
		}
	}
	var err error
	if c.value, err = program.Compile(p.Value); err != nil {
		return nil, fmt.Errorf("its value is %q: %w", p.Value, err)
	}
	clock := p.Clock
	if clock == "" {
		clock = "0"
	}
	if c.clock, err = program.Compile(clock); err != nil {
		return nil, fmt.Errorf("its clock is %q: %w", p.Clock, err)
	}
	c.frame, c.steps = program.Frame(), program.Steps(func(formula.Deps) bool { return true })
	return c, nil
}

// read returns what a run says, and its clock. A counter that is not recorded counts as 0.
func (c *compiled) read(r exec.Reading, work float64) (value float64, clock unit.Hertz) {
	in := c.frame[c.work:]
	in[0], in[1] = work, float64(r.Time)
	for i := range c.counters {
		in[2+i] = 0
		if i < len(r.Counters) {
			in[2+i] = float64(r.Counters[i])
		}
	}
	c.steps.Run(c.frame)
	if clock = unit.Hertz(c.frame[c.clock]); !(clock > 0) || math.IsInf(float64(clock), 0) {
		clock = r.Clock
	}
	return c.frame[c.value], clock
}

// Check reports a mistake in a plan that does not depend on what is measured.
func (p *Plan) Check() error {
	names := map[string]bool{}
	for i := range p.Probes {
		probe := &p.Probes[i]
		if probe.Name == "" || names[probe.Name] {
			return fmt.Errorf("two probes are named %q, or one has no name", probe.Name)
		}
		names[probe.Name] = true
		err := probe.Program.Validate()
		if err == nil {
			_, err = probe.compile()
		}
		switch {
		case err != nil:
			return fmt.Errorf("probe %s: %w", probe.Name, err)
		case probe.Runs < 1 || probe.Runs > exec.MaxRuns:
			return fmt.Errorf("probe %s has %d runs", probe.Name, probe.Runs)
		case !(probe.Work > 0) || math.IsInf(probe.Work, 0):
			return fmt.Errorf("probe %s has a work of %v", probe.Name, probe.Work)
		}
	}
	return nil
}

// slowdowns are the reasons of a driver for a clock that a benchmark should not see.
var slowdowns = []string{"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}

// clockMoved is the least relative change of the clock that counts as one.
const clockMoved = 0.01

// unrest says why rounds differ, as far as is known.
func unrest(rounds []Round, clocks []unit.Hertz) string {
	var reasons []string
	for _, r := range rounds {
		for _, reason := range r.Environment.ThrottleReasons {
			if slices.Contains(slowdowns, reason) && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	if len(reasons) > 0 {
		return "the GPU throttles (" + strings.Join(reasons, ", ") + ")"
	}
	if len(clocks) > 0 {
		if low, high := slices.Min(clocks), slices.Max(clocks); float64(high-low) > clockMoved*float64(high) {
			return fmt.Sprintf("the clock moved between %.4g and %.4g GHz", float64(low)/1e9, float64(high)/1e9)
		}
	}
	return "the clock was steady, so something else probably uses the GPU"
}

// variation is the coefficient of variation: the standard deviation of the sample ÷ the mean.
func variation(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares/float64(len(values)-1)) / mean
}
