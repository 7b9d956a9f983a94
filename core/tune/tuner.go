// Package tune finds the fastest kernel of each of many sizes with few measurements, by Bayesian optimisation. The
// prior is a model's predicted times, with Gaussian errors that similar kernels at similar sizes share. The acquisition
// function is the expected improvement (Jones, Schonlau and Welch, J. Global Optimization 13, 1998). It also has the
// way of Tensile, parameter by parameter, and brute force, to compare with.
package tune

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Candidate is a configuration of a size, with its predicted time.
type Candidate struct {
	Config    gemm.Config
	Predicted unit.Seconds
}

// Size is a problem with its candidates, the best prediction first.
type Size struct {
	Problem gemm.Problem
	// Type is the place of its problem type in the file, Sets are the names of its sets.
	Type int
	Sets []string
	// Usable counts the candidates that the model does not reject. Candidates are the best of them, or all.
	Usable     int
	Candidates []Candidate
}

// Task is a measurement to make: a candidate of a size, by their places.
type Task struct{ Size, Candidate int }

// Measured is a measurement, and why it was made.
type Measured struct {
	Task
	// Time is 0 if the candidate has none: it does not build, or fails.
	Time unit.Seconds
	// Chance is the probability that the candidate is the fastest and faster than all that are measured, Gain its expected
	// improvement: the expected speed-up over the fastest measured candidate, where a slower candidate counts 0. Both are
	// 0 for a size's first measurement, and without a model.
	Chance, Gain float64
}

// Executor makes measurements beside each other.
type Executor interface {
	// Start begins tasks in their order, and returns how many it began: fewer mean that no more may be made.
	Start(tasks []Task) int
	// Wait returns results, at least one. Once every task has one, it waits until all are confirmed. A second result of a
	// task corrects the first. No result means that all is done.
	Wait(ctx context.Context) ([]Measured, error)
}

// Lookup returns an executor that looks times up. False means that there is no measurement.
func Lookup(time func(Task) (unit.Seconds, bool)) Executor { return &lookup{time: time} }

type lookup struct {
	time    func(Task) (unit.Seconds, bool)
	results []Measured
}

func (l *lookup) Start(tasks []Task) int {
	for i, task := range tasks {
		time, there := l.time(task)
		if !there {
			return i
		}
		l.results = append(l.results, Measured{Task: task, Time: time})
	}
	return len(tasks)
}

func (l *lookup) Wait(context.Context) ([]Measured, error) {
	results := l.results
	l.results = nil
	return results, nil
}

// Reason says why no more was measured at a size.
type Reason string

// The reasons.
const (
	Enough    Reason = "regret"    // the expected regret is small enough
	Exhausted Reason = "all"       // all candidates were measured
	Budget    Reason = "budget"    // no more measurements were allowed, or there are none
	Failing   Reason = "no_kernel" // no candidate has a time
	Stepped   Reason = "steps"     // the steps are done
)

// Pick is the result for one size.
type Pick struct {
	// Candidate is the place of the pick, −1 if there is none.
	Candidate int
	// Time is its measured time, 0 if it was not measured.
	Time unit.Seconds
	// Expected is the expected regret: the pick's time ÷ the fastest candidate's − 1. It is NaN without a model.
	Expected float64
	// Measured counts the measurements of the size.
	Measured int
	Why      Reason
}

// Tuner tunes. Its fields are set before Run.
type Tuner struct {
	Sizes []Size
	// Prior is what the model states of its errors.
	Prior Prior
	// Unchecked means that the model states no error, so that its predictions may only rank.
	Unchecked bool
	// Regret is the expected regret of a size below which no more is measured there.
	Regret float64
	// Most is how many measurements may be made, 0 for any number.
	Most int
	// Batch is how many measurements the executor has at once, at least 1.
	Batch    int
	Executor Executor
	// Unordered means that chance orders the results, as with several GPUs. Then the posterior is computed in the order of
	// sizes and candidates before tuning ends, so that the outcome follows from the measurements alone.
	Unordered bool
	// Earlier is what was measured before, in the order of sizes and candidates.
	Earlier []Measured
	// Progress, if set, is told after each batch how many sizes are still open.
	Progress func(open int)

	// Log has the measurements in their order, Picks the results so far, by size.
	Log   []Measured
	Picks []Pick

	process *process
	pending map[Task]Measured
	// done tells which candidates of a size were measured. failures counts the failures of a configuration, in any launch
	// order, until it runs once: then it is −1.
	done     [][]bool
	failures map[gemm.Config]int
	// excluded are the candidates that a cap leaves out.
	excluded map[Task]bool
	over     bool
	// ordered is how many measurements the posterior was computed of in the order of sizes.
	ordered int
	// unlearning means that the strategy learns nothing, so that no regret can be expected.
	unlearning bool
}

// The bounds of a decision.
const (
	// leaders is how many candidates are told apart.
	leaders = 48
	// draws is how many times the true times are drawn from the posterior.
	draws = 256
	// few is how many measurements a size takes at least: the first says what the others are to beat.
	few = 3
	// refreshed is how many sizes are evaluated again for each measurement that came in.
	refreshed = 4
	// mostFailures rule out a configuration that never ran, at all sizes.
	mostFailures = 2
	// mostRounds bounds how often the posterior is computed in the order of sizes.
	mostRounds = 32
)

// Run measures until no expected regret is above the limit. After an error, Log and Picks have what was measured.
func (t *Tuner) Run(ctx context.Context) error {
	t.reset(t.Earlier)
	defer t.finish()
	return t.optimise(ctx, t.all())
}

// all are the places of the sizes.
func (t *Tuner) all() []int {
	sizes := make([]int, len(t.Sizes))
	for i := range sizes {
		sizes[i] = i
	}
	return sizes
}

// reset begins with what is known.
func (t *Tuner) reset(known []Measured) {
	t.pending, t.excluded, t.over = map[Task]Measured{}, map[Task]bool{}, false
	t.learn(known)
}

// learn computes the posterior and the picks from measurements alone.
func (t *Tuner) learn(log []Measured) {
	t.process, t.failures = newProcess(t.Sizes, t.Prior, t.Unchecked), map[gemm.Config]int{}
	t.Log, t.Picks, t.done = nil, make([]Pick, len(t.Sizes)), make([][]bool, len(t.Sizes))
	for i := range t.Sizes {
		t.Picks[i].Candidate, t.done[i] = -1, make([]bool, len(t.Sizes[i].Candidates))
	}
	for task := range t.excluded {
		t.done[task.Size][task.Candidate] = true
	}
	inOrder := log
	if t.Unordered {
		inOrder = slices.SortedStableFunc(slices.Values(log), func(a, b Measured) int {
			return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Candidate, b.Candidate))
		})
	}
	for _, m := range inOrder {
		t.update(m)
	}
	t.Log, t.ordered = slices.Clone(log), len(log)
}

// update takes a measurement into account.
func (t *Tuner) update(m Measured) {
	t.Log = append(t.Log, m)
	p, c := &t.Picks[m.Size], &t.Sizes[m.Size].Candidates[m.Candidate]
	p.Measured++
	t.done[m.Size][m.Candidate] = true
	kernel := c.Config
	kernel.GroupM = 0
	if m.Time <= 0 {
		if n := t.failures[kernel]; n >= 0 {
			t.failures[kernel] = n + 1
		}
		return
	}
	t.failures[kernel] = -1
	if !t.unlearning {
		t.process.observe(m.Size, c, m.Time)
	}
	if !t.excluded[m.Task] && (p.Time == 0 || m.Time < p.Time) {
		p.Candidate, p.Time = m.Candidate, m.Time
	}
}

// optimise measures at some sizes until the expected regret of each is small enough, also by the posterior in the order
// of sizes.
func (t *Tuner) optimise(ctx context.Context, sizes []int) error {
	for range mostRounds {
		a := &acquisition{t: t, line: make([]evaluated, len(sizes))}
		for i, s := range sizes {
			a.line[i].size = s
		}
		if err := t.run(ctx, a.next, a.open, t.Batch); err != nil || !t.Unordered || t.ordered == len(t.Log) {
			return err
		}
		t.learn(t.Log)
	}
	return nil
}

// run measures what next proposes, at most so many at once, until it proposes nothing. open, if known, is how
// many sizes are open.
func (t *Tuner) run(ctx context.Context, next func(most int) []Measured, open func() int, most int) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var batch []Measured
		if !t.over {
			batch = next(most - len(t.pending))
		}
		if made := len(t.Log) + len(t.pending); t.Most > 0 && made+len(batch) > t.Most {
			batch, t.over = batch[:max(0, t.Most-made)], true
		}
		tasks := make([]Task, len(batch))
		for i := range batch {
			tasks[i] = batch[i].Task
		}
		if len(tasks) > 0 {
			begun := t.Executor.Start(tasks)
			for _, m := range batch[:begun] {
				t.pending[m.Task] = m
			}
			t.over = t.over || begun < len(tasks)
		}
		results, err := t.Executor.Wait(ctx)
		if t.enter(results); err != nil || len(results) == 0 {
			return err
		}
		if t.Progress != nil && open != nil && len(batch) > 0 {
			t.Progress(open())
		}
	}
}

// enter takes results into account. Where one corrects another, all is as if the other had not been.
func (t *Tuner) enter(results []Measured) {
	corrected := false
	for _, r := range results {
		if m, pending := t.pending[r.Task]; pending {
			delete(t.pending, r.Task)
			m.Time = r.Time
			t.update(m)
			continue
		}
		for i := range t.Log {
			if m := &t.Log[i]; m.Task == r.Task && m.Time != r.Time {
				m.Time, corrected = r.Time, true
			}
		}
	}
	if corrected {
		t.learn(t.Log)
	}
}

// evaluated is what was expected of a size in a step of the acquisition.
type evaluated struct {
	size, step int
	expectation
}

// acquisition chooses what to measure next: at the sizes with the largest expected regret per measurement, the
// candidates with the largest expected improvement.
type acquisition struct {
	t          *Tuner
	line       []evaluated
	step, seen int // seen is how many measurements there were in the last step
}

// wants reports whether more is to be measured at a size.
func (a *acquisition) wants(e *evaluated) bool {
	return e.next >= 0 && (e.regret > a.t.Regret || a.t.Picks[e.size].Time == 0)
}

func (a *acquisition) open() (n int) {
	for i := range a.line {
		if a.wants(&a.line[i]) {
			n++
		}
	}
	return n
}

// value is the expected regret per measurement, if as many are still needed as were made, and a few. Sizes with the
// largest expected improvement first would be as good on average, and now and then stay with one size whose many
// candidates all may gain a little.
func (a *acquisition) value(e *evaluated) float64 {
	return e.regret / float64(few+a.t.Picks[e.size].Measured)
}

// next returns at most so many measurements, each at another size. A measurement changes what is expected at all sizes.
// The sizes in front are evaluated again, and for each measurement that came in a few others, the oldest values first.
// All are if no other is open.
func (a *acquisition) next(most int) []Measured {
	busy := map[int]bool{}
	for task := range a.t.pending {
		busy[task.Size] = true
	}
	a.step++
	again := refreshed * (len(a.t.Log) - a.seen)
	if a.seen = len(a.t.Log); a.step == 1 {
		again = len(a.line)
	}
	slices.SortStableFunc(a.line, func(x, y evaluated) int { return cmp.Compare(x.step, y.step) })
	a.refresh(again, func(e *evaluated) bool { return !busy[e.size] })
	for {
		slices.SortStableFunc(a.line, func(x, y evaluated) int {
			return cmp.Or(cmp.Compare(a.value(&y), a.value(&x)), cmp.Compare(x.size, y.size))
		})
		var batch []Measured
		chosen := map[int]bool{}
		for i := range a.line {
			if e := &a.line[i]; len(batch) < most && a.wants(e) && !busy[e.size] {
				batch = append(batch, Measured{Task: Task{e.size, e.next}, Chance: e.chance, Gain: e.gain})
				chosen[e.size] = true
			}
		}
		if len(batch)+len(busy) == 0 && a.refresh(len(a.line), func(*evaluated) bool { return true }) ||
			a.refresh(most, func(e *evaluated) bool { return chosen[e.size] }) {
			continue
		}
		return batch
	}
}

// refresh evaluates the first of some sizes that were not evaluated in this step, and reports whether there was one.
func (a *acquisition) refresh(most int, some func(*evaluated) bool) bool {
	var old []*evaluated
	var sizes []int
	for i := range a.line {
		if e := &a.line[i]; len(old) < most && e.step < a.step && some(e) {
			old, sizes = append(old, e), append(sizes, e.size)
		}
	}
	for i, e := range a.t.expectAll(sizes) {
		old[i].expectation, old[i].step = e, a.step
	}
	return len(old) > 0
}

// expectation is what is expected of a size.
type expectation struct {
	// regret is the expected regret. next is the candidate with the largest expected improvement, −1 if all are measured.
	regret       float64
	next         int
	chance, gain float64
}

// expectAll evaluates sizes, each on its own, so several at once: many GPUs ask for more decisions than a core makes.
func (t *Tuner) expectAll(sizes []int) []expectation {
	out := make([]expectation, len(sizes))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sizes)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(sizes); i = int(next.Add(1)) - 1 {
				out[i] = t.expect(sizes[i])
			}
		})
	}
	workers.Wait()
	return out
}

// expect draws the true times of the leading candidates of a size from the posterior. The improvement of the fastest
// candidate of a draw is the pick's time ÷ its time − 1, if that is positive, and of all others 0. The expected
// improvement of a candidate is the mean over the draws, and the expected regret is the sum over the candidates.
// Without a measurement, the pick is the candidate with the least expected time.
func (t *Tuner) expect(s int) expectation {
	b, left, means := t.leading(s)
	if len(left) == 0 {
		return expectation{next: -1}
	}
	configs := make([]*gemm.Config, len(left))
	for i, at := range left {
		configs[i] = &t.Sizes[s].Candidates[at].Config
	}
	root := b.joint(configs)
	p := &t.Picks[s]
	if p.Time == 0 {
		p.Candidate = left[0]
	}
	incumbent := math.Log(float64(p.Time))
	regret := 0.0
	wins, gains := make([]float64, len(left)), make([]float64, len(left))
	normal := standardNormal()
	// All draws side by side: sums that wait for each other take several times as long.
	var times, first, least [draws]float64
	var fastest [draws]int
	for i, row := range root {
		for d := range times {
			times[d] = means[i]
		}
		for j, r := range row {
			for d, z := range &normal[j] {
				times[d] += float64(r * z)
			}
		}
		if i == 0 {
			first, least = times, times
			continue
		}
		for d, v := range times {
			if v < least[d] {
				fastest[d], least[d] = i, v
			}
		}
	}
	for d := range draws {
		if p.Time == 0 {
			incumbent = first[d]
		}
		if gain := math.Expm1(incumbent - least[d]); gain > 0 {
			regret += gain / draws
			gains[fastest[d]] += gain / draws
			wins[fastest[d]] += 1.0 / draws
		}
	}
	e := expectation{regret: regret, next: left[0]}
	if p.Time > 0 {
		most := slices.Index(gains, slices.Max(gains))
		e.next, e.gain, e.chance = left[most], gains[most], wins[most]
	}
	return e
}

// leading returns the candidates that are left with the least expected times, and the logarithms of these.
func (t *Tuner) leading(s int) (b *posterior, left []int, means []float64) {
	type expected struct {
		at  int
		log float64
	}
	b = t.process.at(s)
	var all []expected
	for i := range t.Sizes[s].Candidates {
		c := &t.Sizes[s].Candidates[i]
		kernel := c.Config
		kernel.GroupM = 0
		if t.done[s][i] || t.failures[kernel] >= mostFailures {
			continue
		}
		if all = append(all, expected{i, math.Log(float64(c.Predicted)) + b.mean(&c.Config)}); len(all) == Considered {
			break
		}
	}
	slices.SortStableFunc(all, func(x, y expected) int { return cmp.Compare(x.log, y.log) })
	for _, x := range all[:min(leaders, len(all))] {
		left, means = append(left, x.at), append(means, x.log)
	}
	return b, left, means
}

// finish enters the reasons, and the expected regret of all sizes by all that is known.
func (t *Tuner) finish() {
	for s, e := range t.expectAll(t.all()) {
		p := &t.Picks[s]
		p.Expected = e.regret
		switch {
		case e.next < 0 && p.Time == 0:
			p.Why, p.Candidate, p.Expected = Failing, -1, math.NaN()
		case e.next < 0:
			p.Why = Exhausted
		case t.unlearning:
			p.Expected = math.NaN()
			if p.Why = Stepped; t.over {
				p.Why = Budget
			}
		case e.regret <= t.Regret && p.Time > 0:
			p.Why = Enough
		default:
			p.Why = Budget
		}
	}
}

// standardNormal are the draws of every decision, so that decisions differ by what is known alone: a row for each
// candidate.
var standardNormal = sync.OnceValue(func() *[leaders][draws]float64 {
	random := rand.New(rand.NewPCG(3, 4))
	out := new([leaders][draws]float64)
	for d := range draws {
		for i := range out {
			out[i][d] = random.NormFloat64()
		}
	}
	return out
})
