// Package tune finds the fastest kernel of each of many sizes with few measurements. A model's predicted times and what
// was measured so far, at the same and at other sizes, say which measurement is worth making next, and when no further
// one is. It also has the way of Tensile, parameter by parameter, and brute force, to compare with.
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

// Measured is a measurement that was made, and why.
type Measured struct {
	Task
	// Time is 0 if the candidate has none: it does not build, or fails.
	Time unit.Seconds
	// Chance is how likely it seemed that the candidate is the fastest, and faster than what was measured of the size.
	// Gain is the expected speed-up over the fastest measured candidate; a candidate that turns out slower counts 0.
	// Both are 0 for a size's first measurement, and without a model.
	Chance, Gain float64
}

// Result is the time of a task, 0 if it has none.
type Result struct {
	Task
	Time unit.Seconds
}

// Team makes measurements beside each other.
type Team interface {
	// Start begins some tasks, the first ones first, and returns how many. Fewer than asked for mean that no more can be.
	Start(tasks []Task) int
	// Wait returns what has been measured since, at least one result. If nothing was begun that is not returned yet, it
	// waits until everything is confirmed. A second result of a task replaces the first; without one, there are none.
	Wait(ctx context.Context) ([]Result, error)
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
	// Expected is the expected regret: the pick's time ÷ the fastest candidate's − 1, by what is known. It is NaN without
	// a model.
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
	// Batch is how many measurements are asked for at once, at least 1.
	Batch int
	// Measure makes measurements and returns their times in order, 0 where there is none. Fewer times than tasks mean
	// that no more can be made.
	Measure func(ctx context.Context, tasks []Task) ([]unit.Seconds, error)
	// Team, if set, measures instead of Measure, several things at once.
	Team Team
	// Known is what others have measured already, in the order of sizes and candidates. Run begins with it.
	Known []Result
	// Progress, if set, is told after each batch how many sizes are still open.
	Progress func(open int)

	// Log has the measurements in their order, Picks the results so far, by size.
	Log   []Measured
	Picks []Pick

	belief *belief
	// flying are the measurements that the team has begun.
	flying map[Task]Measured
	// done tells which candidates of a size were measured. failed counts the failures of a configuration, in any launch
	// order, until it runs once: then it is −1.
	done   [][]bool
	failed map[gemm.Config]int
	// barred are the candidates that a cap leaves out.
	barred map[Task]bool
	over   bool
	// arranged is how many measurements the belief has learnt in the order of sizes.
	arranged int
	// blind means that measurements change no expectation.
	blind bool
}

// The bounds of a decision.
const (
	// leaders is how many candidates are told apart.
	leaders = 48
	// draws is how many times the true times are drawn.
	draws = 256
	// few is how many measurements a size takes at least: the first says what the others are to beat.
	few = 3
	// reweighed is how many sizes are weighed again for each measurement that came in.
	reweighed = 4
	// mostFailures rule out a configuration that never ran, at all sizes.
	mostFailures = 2
)

// Run measures until it is not worth it. What is expected to gain most is measured first, at whatever size, so that a
// budget is spent where it gains most. After an error, Log and Picks have what was measured.
func (t *Tuner) Run(ctx context.Context) error {
	t.prepare()
	for _, r := range t.Known {
		t.enter(Measured{Task: r.Task, Time: r.Time})
	}
	t.arranged = len(t.Log)
	defer t.finish()
	return t.settle(ctx, rand.New(rand.NewPCG(1, 2)).Perm(len(t.Sizes))) // of equals, those of all parts of the list
}

// land waits until all that the team has begun is measured and confirmed, and reports whether that changed anything.
func (t *Tuner) land(ctx context.Context) (changed bool, err error) {
	for t.Team != nil {
		waiting := len(t.flying) > 0
		results, err := t.Team.Wait(ctx)
		if err != nil {
			return changed, err
		}
		t.arrive(results)
		if changed = changed || len(results) > 0; !waiting && len(results) == 0 {
			break
		}
	}
	return changed, nil
}

// settle measures at some sizes until nothing there is worth it. What the team corrects, or is learnt in another order,
// can change that, so they are looked at again until nothing changes, or at most a few times.
func (t *Tuner) settle(ctx context.Context, sizes []int) error {
	most := 4
	if t.Team != nil || t.Known != nil {
		most = 32 // what is arranged again changes what is expected, mostly by little
	}
	for range most {
		before := len(t.Log)
		if err := t.spend(ctx, sizes); err != nil {
			return err
		}
		changed, err := t.land(ctx)
		if err != nil {
			return err
		}
		if len(t.Log) == before && !changed && !t.arrange() {
			return nil
		}
	}
	t.arrange()
	return nil
}

// arrange learns what is measured again in the order of sizes and candidates, if there is a team, or something that
// others measured: their order is chance, and what comes out should follow from the measurements alone. It reports
// whether the order was another one.
func (t *Tuner) arrange() bool {
	if t.arranged == len(t.Log) || t.Team == nil && t.Known == nil {
		return false
	}
	log := slices.Clone(t.Log)
	slices.SortStableFunc(log, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Candidate, b.Candidate))
	})
	t.belief, t.arranged = newBelief(t.Sizes, t.Prior, t.Unchecked), len(log)
	for i := range log {
		if m := &log[i]; m.Time > 0 {
			t.belief.observe(m.Size, &t.Sizes[m.Size].Candidates[m.Candidate], m.Time)
		}
	}
	return true
}

// prepare empties what Run fills.
func (t *Tuner) prepare() {
	t.belief = newBelief(t.Sizes, t.Prior, t.Unchecked)
	t.Log, t.Picks, t.done = nil, make([]Pick, len(t.Sizes)), make([][]bool, len(t.Sizes))
	t.failed, t.over, t.flying, t.barred = map[gemm.Config]int{}, false, map[Task]Measured{}, map[Task]bool{}
	for i := range t.Sizes {
		t.Picks[i].Candidate = -1
		t.done[i] = make([]bool, len(t.Sizes[i].Candidates))
	}
}

// spend measures what is expected to gain most, again and again, until the expected regret of each size is below the
// limit and each was measured.
func (t *Tuner) spend(ctx context.Context, sizes []int) error {
	line := make([]place, len(sizes))
	for i, s := range sizes {
		line[i].size = s
	}
	for now, before := 1, 0; !t.over; now++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		again := len(line)
		if now > 1 {
			again = reweighed * (len(t.Log) - before)
		}
		before = len(t.Log)
		ready := t.front(line, t.atOnce()-len(t.flying), again, now)
		if len(ready) == 0 && len(t.flying) == 0 {
			return nil
		}
		batch := make([]Measured, len(ready))
		for i, p := range ready {
			batch[i] = Measured{Task: Task{p.size, p.next}, Chance: p.chance, Gain: p.gain}
		}
		if err := t.measure(ctx, batch); err != nil {
			return err
		}
		if t.Progress != nil && len(batch) > 0 {
			open := 0
			for i := range line {
				if t.open(&line[i]) {
					open++
				}
			}
			t.Progress(open)
		}
	}
	return nil
}

// place is a size with what was known there when it was weighed last.
type place struct {
	size, when int
	weighed
}

// open reports whether more is to be measured at a size.
func (t *Tuner) open(p *place) bool {
	return p.next >= 0 && (p.regret > t.Regret || t.Picks[p.size].Time == 0)
}

// worth is what the next measurement of a size is expected to gain, if what the size has to gain takes as many as were
// made, and a few. Sizes with the largest single gain first would be as good on average, and now and then stay with one
// size whose many candidates all may gain a little.
func (t *Tuner) worth(p *place) float64 { return p.regret / float64(few+t.Picks[p.size].Measured) }

// front orders the sizes and returns the first of the open ones, at most so many, as they are now. A measurement
// changes what is expected at all sizes. Those in front are weighed again, and of the others as many as again says,
// those that were not for the longest time first. All are if no other is open.
func (t *Tuner) front(line []place, most, again, now int) []*place {
	flying := map[int]bool{}
	for task := range t.flying {
		flying[task.Size] = true
	}
	slices.SortStableFunc(line, func(x, y place) int { return cmp.Compare(x.when, y.when) })
	t.reweigh(line, now, func(p *place) bool { return !flying[p.size] }, again)
	for {
		slices.SortStableFunc(line, func(x, y place) int {
			return cmp.Or(cmp.Compare(t.worth(&y), t.worth(&x)), cmp.Compare(x.size, y.size))
		})
		var ready []*place
		for i := range line {
			if p := &line[i]; len(ready) < most && t.open(p) && !flying[p.size] {
				ready = append(ready, p)
			}
		}
		if len(ready)+len(flying) == 0 && t.reweigh(line, now, func(*place) bool { return true }, len(line)) ||
			t.reweigh(line, now, func(p *place) bool { return slices.Contains(ready, p) }, most) {
			continue
		}
		return ready
	}
}

// reweigh weighs the first of some sizes that were not weighed now, and reports whether there was one.
func (t *Tuner) reweigh(line []place, now int, some func(*place) bool, most int) bool {
	var old []*place
	var sizes []int
	for i := range line {
		if p := &line[i]; len(old) < most && p.when < now && some(p) {
			old, sizes = append(old, p), append(sizes, p.size)
		}
	}
	for i, w := range t.weighAll(sizes) {
		old[i].weighed, old[i].when = w, now
	}
	return len(old) > 0
}

// atOnce is how many measurements are asked for at once. Of few sizes they are fewer, so that one is learnt from before
// the next is chosen. A team goes on while results come in.
func (t *Tuner) atOnce() int {
	if t.Team != nil {
		return t.Batch
	}
	return min(t.Batch, (len(t.Sizes)+3)/4)
}

// measure makes measurements, as many as are allowed, and takes them into account. A team may have some of them, and
// earlier ones, done.
func (t *Tuner) measure(ctx context.Context, batch []Measured) error {
	if made := len(t.Log) + len(t.flying); t.Most > 0 && made+len(batch) > t.Most {
		batch, t.over = batch[:max(0, t.Most-made)], true
	}
	if len(batch)+len(t.flying) == 0 {
		return nil
	}
	tasks := make([]Task, len(batch))
	for i := range batch {
		tasks[i] = batch[i].Task
	}
	if t.Team != nil {
		return t.fly(ctx, tasks, batch)
	}
	times, err := t.Measure(ctx, tasks)
	for i, time := range times {
		batch[i].Time = time
		t.enter(batch[i])
	}
	t.over = t.over || len(times) < len(tasks)
	return err
}

// fly lets the team begin measurements, and takes into account what it has done.
func (t *Tuner) fly(ctx context.Context, tasks []Task, batch []Measured) error {
	begun := t.Team.Start(tasks)
	for _, m := range batch[:begun] {
		t.flying[m.Task] = m
	}
	t.over = t.over || begun < len(tasks)
	if len(t.flying) == 0 {
		return nil
	}
	results, err := t.Team.Wait(ctx)
	t.arrive(results)
	return err
}

// arrive takes results of the team into account. After one that replaces another, all is as if the other had not been.
func (t *Tuner) arrive(results []Result) {
	replaced := map[Task]unit.Seconds{}
	for _, r := range results {
		if m, flew := t.flying[r.Task]; flew {
			delete(t.flying, r.Task)
			m.Time = r.Time
			t.enter(m)
		} else {
			replaced[r.Task] = r.Time
		}
	}
	log, flying, over, barred := t.Log, t.flying, t.over, t.barred
	if len(replaced) == 0 || !slices.ContainsFunc(log, func(m Measured) bool {
		time, there := replaced[m.Task]
		return there && time != m.Time
	}) {
		return
	}
	t.prepare()
	t.flying, t.over, t.barred, t.arranged = flying, over, barred, 0
	for task := range barred {
		t.done[task.Size][task.Candidate] = true
	}
	for _, m := range log {
		if time, there := replaced[m.Task]; there {
			m.Time = time
		}
		t.enter(m)
	}
}

// enter takes a measurement into account.
func (t *Tuner) enter(m Measured) {
	t.Log = append(t.Log, m)
	p, c := &t.Picks[m.Size], &t.Sizes[m.Size].Candidates[m.Candidate]
	p.Measured++
	t.done[m.Size][m.Candidate] = true
	kernel := c.Config
	kernel.GroupM = 0
	if m.Time <= 0 {
		if n := t.failed[kernel]; n >= 0 {
			t.failed[kernel] = n + 1
		}
		return
	}
	t.failed[kernel] = -1
	if !t.blind {
		t.belief.observe(m.Size, c, m.Time)
	}
	if !t.barred[m.Task] && (p.Time == 0 || m.Time < p.Time) {
		p.Candidate, p.Time = m.Candidate, m.Time
	}
}

// weighed is what is known at a size.
type weighed struct {
	// regret is the expected one. next is what to measure next, −1 if nothing is left. It has the largest gain.
	regret       float64
	next         int
	chance, gain float64
}

// weighAll weighs sizes, each on its own, so several at once: many GPUs ask for more decisions than one core makes.
func (t *Tuner) weighAll(sizes []int) []weighed {
	out := make([]weighed, len(sizes))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sizes)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(sizes); i = int(next.Add(1)) - 1 {
				out[i] = t.weigh(sizes[i])
			}
		})
	}
	workers.Wait()
	return out
}

// weigh looks at what is left to measure of a size: it draws the true times of the leading candidates from what is
// known, and sees by how much the fastest one beats the pick. Without a measurement, the pick is the candidate with the
// least expected time.
func (t *Tuner) weigh(s int) weighed {
	b, left, means := t.leading(s)
	if len(left) == 0 {
		return weighed{next: -1}
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
	w := weighed{regret: regret, next: left[0]}
	if p.Time > 0 {
		most := slices.Index(gains, slices.Max(gains))
		w.next, w.gain, w.chance = left[most], gains[most], wins[most]
	}
	return w
}

// leading returns the candidates that are left with the least expected times, and the logarithms of these.
func (t *Tuner) leading(s int) (b *conditional, left []int, means []float64) {
	type expected struct {
		at  int
		log float64
	}
	b = t.belief.at(s)
	var all []expected
	for i := range t.Sizes[s].Candidates {
		c := &t.Sizes[s].Candidates[i]
		if t.done[s][i] || t.hopeless(c.Config) {
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

func (t *Tuner) hopeless(c gemm.Config) bool {
	c.GroupM = 0
	return t.failed[c] >= mostFailures
}

// finish enters the reasons, and the expected regret of all sizes by all that is known.
func (t *Tuner) finish() {
	sizes := make([]int, len(t.Picks))
	for s := range sizes {
		sizes[s] = s
	}
	for s, w := range t.weighAll(sizes) {
		p := &t.Picks[s]
		p.Expected = w.regret
		switch {
		case w.next < 0 && p.Time == 0:
			p.Why, p.Candidate, p.Expected = Failing, -1, math.NaN()
		case w.next < 0:
			p.Why = Exhausted
		case t.blind:
			p.Expected = math.NaN() // nothing was learnt of those that are left
			if p.Why = Stepped; t.over {
				p.Why = Budget
			}
		case w.regret <= t.Regret && p.Time > 0:
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
