package measurecmd

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/core/unit"
)

// sampled is how many sizes a dry run tunes with made-up times.
const sampled = 48

// planned is a dry run in JSON.
type planned struct {
	Sizes             int     `json:"sizes"`                    // how many there are
	BruteForce        int     `json:"brute_force_measurements"` // what measuring everything takes
	BruteForceSeconds float64 `json:"brute_force_seconds"`
	Expected          int     `json:"expected_measurements"` // what tuning is expected to take
	ExpectedSeconds   float64 `json:"expected_seconds"`
	Sets              []set   `json:"sets"`      // the sets of sizes
	First             []first `json:"first"`     // the first measurement of each size; the others depend on it
	TimeFrom          string  `json:"time_from"` // what the seconds rest on
}

// first is the first measurement of a size in a dry run.
type first struct {
	Problem   gemm.Record `json:"problem"`                     // the size
	Config    string      `json:"config"`                      // its best prediction
	Predicted float64     `json:"predicted_seconds,omitempty"` // its predicted time; missing for a model that only ranks
	Seconds   float64     `json:"seconds" unit:"s"`            // how long the measurement is expected to take
	Usable    int         `json:"candidates"`                  // what brute force takes
}

// set is a set of candidates in a dry run.
type set struct {
	Type       string `json:"type"`                     // the type of the elements
	Name       string `json:"name"`                     // its name
	Sizes      int    `json:"sizes"`                    // how many it has
	BruteForce int    `json:"brute_force_measurements"` // what measuring everything takes
}

// dryRun prints what brute force takes, and what tuning is expected to: some of the sizes are tuned with times that
// differ from the predictions as measured times did. Sizes learn from each other, so many take fewer measurements each.
func (s *tuning) dryRun(ctx context.Context, t *tune.Tuner) error {
	plan := planned{Sizes: len(t.Sizes), BruteForce: s.plan.BruteForce()}
	plan.Sets = s.sets()
	d := s.arch.Describe()
	plan.TimeFrom = fmt.Sprintf("times predicted by %s, run as often as measuring does, and %v for each measurement "+
		"besides, as in the shipped sweeps", d.Model, measure.Overhead)
	for i := range t.Sizes {
		size := &t.Sizes[i]
		best := &size.Candidates[0]
		one := first{Problem: size.Problem.Record(), Config: best.Config.String(),
			Seconds: float64(measure.Cost(best.Predicted)), Usable: size.Usable}
		if !d.RanksOnly {
			one.Predicted = float64(best.Predicted)
		}
		plan.First = append(plan.First, one)
		plan.BruteForceSeconds += float64(bruteForce(&t.Sizes[i]))
	}
	plan.Expected, plan.ExpectedSeconds = plan.BruteForce, plan.BruteForceSeconds
	if simulate := map[string]func(context.Context, *tune.Tuner, *planned) error{byModel: s.simulate,
		inSteps: s.walk}[s.o.Strategy]; simulate != nil {
		_, err := session.UntilCancelled(ctx, func() (struct{}, error) { return struct{}{}, simulate(ctx, t, &plan) })
		if err != nil {
			return err
		}
	}
	streams, format := s.o.Factory.Streams, s.o.Factory.Format()
	err := show.Answer(streams, format, plan, func() {
		key := show.Key[planned]
		show.Facts(streams, &plan, key("sizes"), key("brute_force_measurements", "brute force"),
			show.Text("all take", func(p *planned) string { return rounded(p.BruteForceSeconds) }),
			key("expected_measurements", "expected"),
			show.Text("these take", func(p *planned) string { return rounded(p.ExpectedSeconds) }),
			key("time_from", "time from"))
		streams.Printf("\n")
	}, plan.Sets, show.Key[set]("type"), show.Key[set]("name", "set"), show.Key[set]("sizes"),
		show.Key[set]("brute_force_measurements", "brute force"))
	if err != nil || format != show.Table {
		return err
	}
	streams.Printf("\n")
	return show.Write(streams, format, plan.First, show.Key[first]("problem"),
		show.Key[first]("config", "first measurement"),
		show.Number("predicted", func(x *first) float64 { return x.Predicted }, seconds),
		show.Key[first]("seconds", "takes"), show.Key[first]("candidates"))
}

// sets counts the sizes and measurements of each set.
func (s *tuning) sets() []set {
	var out []set
	for i := range s.plan.File.Types {
		typ := &s.plan.File.Types[i]
		for j := range typ.Sets {
			p := typ.Problem
			p.M, p.N, p.K, p.Batch = 1, 1, 1, 1
			out = append(out, set{Type: p.String()[len("1x1x1 "):], Name: typ.Sets[j].Name, Sizes: len(typ.Sets[j].Sizes),
				BruteForce: typ.Sets[j].Usable})
		}
	}
	return out
}

// bruteForce is about how long it takes to measure all candidates of a size.
func bruteForce(s *tune.Size) (t unit.Seconds) {
	for i := range s.Candidates {
		t += measure.Cost(s.Candidates[i].Predicted) / unit.Seconds(len(s.Candidates)) * unit.Seconds(s.Usable)
	}
	return t
}

// walk goes through the steps with the predicted times.
func (s *tuning) walk(ctx context.Context, t *tune.Tuner, plan *planned) error {
	t.Executor = tune.Lookup(func(task tune.Task) (unit.Seconds, bool) {
		time := t.Sizes[task.Size].Candidates[task.Candidate].Predicted
		plan.ExpectedSeconds += float64(measure.Cost(time))
		return time, true
	})
	plan.ExpectedSeconds = 0
	err := t.InSteps(ctx, s.plan.File, s.arch.Describe().Axes(s.kernel))
	plan.Expected = len(t.Log)
	return err
}

// simulate tunes some of the sizes with made-up times, and extrapolates.
func (s *tuning) simulate(ctx context.Context, t *tune.Tuner, plan *planned) error {
	all := t.Sizes
	t.Sizes = nil
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(all))[:min(sampled, len(all))] {
		t.Sizes = append(t.Sizes, all[i])
	}
	var spent unit.Seconds
	t.Executor = tune.Lookup(func(task tune.Task) (unit.Seconds, bool) {
		c := &t.Sizes[task.Size].Candidates[task.Candidate]
		kernel := c.Config
		kernel.GroupM = 0
		shared := draw(kernel.String()) * simulatedShared
		alone := draw(kernel.String()+t.Sizes[task.Size].Problem.String()) * simulatedAlone
		time := c.Predicted * unit.Seconds(math.Exp(shared+alone))
		spent += measure.Cost(time)
		return time, true
	})
	t.Batch = min(batch, (len(t.Sizes)+3)/4)
	if err := t.Run(ctx); err != nil {
		return err
	}
	factor := float64(len(all)) / float64(len(t.Sizes))
	plan.Expected = int(math.Ceil(float64(len(t.Log)) * factor))
	if t.Most > 0 {
		plan.Expected = min(plan.Expected, t.Most)
	}
	plan.ExpectedSeconds = float64(plan.Expected) * float64(spent) / float64(max(1, len(t.Log)))
	return nil
}

// The standard deviations of log(measured ÷ predicted) in a simulation: of errors that a configuration has at all
// sizes, and of errors of one size. Together they are as large as in the shipped sweeps.
const simulatedShared, simulatedAlone = 0.04, 0.03

// draw returns a normal number that follows from a text.
func draw(text string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return rand.New(rand.NewPCG(h.Sum64(), 7)).NormFloat64()
}
