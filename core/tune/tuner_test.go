//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package tune

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/costs"
)

// shipped is the prior of models whose errors were measured.
var shipped = PriorOf(&arch.Description{Constants: costs.Of("pipelined", "hopper")})

// world is a made-up device. Its times differ from the predictions by errors of configurations, of sizes, and of both.
type world struct {
	sizes []Size
	times [][]unit.Seconds
}

func newWorld(seed uint64, sizes, candidates int) *world {
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{}
	var configs []gemm.Config
	var errs []float64
	for i := range candidates {
		configs = append(configs, gemm.Config{BlockM: 16 << (i % 4), BlockN: 16 << (i / 4 % 4), BlockK: 32 << (i / 16 % 2),
			NumWarps: 4 << (i / 32 % 2), NumStages: 2 + i/64%4, SplitK: 1, GroupM: 8, Kernel: "k"})
		errs = append(errs, 0.05*random.NormFloat64())
	}
	for range sizes {
		side := 256 * (1 + random.IntN(16))
		s := Size{Problem: gemm.New(side, side, 1024), Usable: candidates}
		var times []unit.Seconds
		base, at := 1e-4*random.Float64(), random.IntN(candidates)
		for i := range configs {
			// Candidates are in predicted order, the best of each size another one.
			k := (at + i) % candidates
			predicted := base * (1 + 0.01*float64(i))
			s.Candidates = append(s.Candidates, Candidate{configs[k], unit.Seconds(predicted)})
			times = append(times, unit.Seconds(predicted*math.Exp(errs[k]+0.02*random.NormFloat64())))
		}
		w.sizes, w.times = append(w.sizes, s), append(w.times, times)
	}
	return w
}

// tuner returns a tuner of the world. calls counts the measurements that were made on it, others than those in cache.
func (w *world) tuner(cache map[Task]unit.Seconds, calls *int) *Tuner {
	return &Tuner{Sizes: w.sizes, Prior: shipped, Regret: 0.01, Batch: 4,
		Executor: Lookup(func(task Task) (unit.Seconds, bool) {
			if _, there := cache[task]; !there {
				*calls++
				cache[task] = w.times[task.Size][task.Candidate]
			}
			return cache[task], true
		})}
}

// broken is an executor that is gone after some measurements.
type broken struct {
	Executor
	gone func() bool
}

var errGone = errors.New("gone")

func (b broken) Start(tasks []Task) int {
	for i := range tasks {
		if b.gone() {
			return i
		}
		b.Executor.Start(tasks[i : i+1])
	}
	return len(tasks)
}

func (b broken) Wait(ctx context.Context) (results []Measured, err error) {
	if results, err = b.Executor.Wait(ctx); b.gone() {
		err = errGone
	}
	return results, err
}

// regret returns the geometric mean of the regret of picks.
func (w *world) regret(picks []Pick) float64 {
	sum := 0.0
	for s, p := range picks {
		best := w.times[s][0]
		for _, t := range w.times[s] {
			best = min(best, t)
		}
		sum += math.Log(float64(w.times[s][p.Candidate] / best))
	}
	return math.Expm1(sum / float64(len(picks)))
}

// A few measurements of each size find kernels that are about as good as was asked for, and better than the model's.
// The errors of this world are not quite those that the tuner assumes.
func TestFewMeasurements(t *testing.T) {
	const worlds = 4
	before, after := 0.0, 0.0
	for seed := range uint64(worlds) {
		w, calls := newWorld(seed, 40, 128), 0
		x := w.tuner(map[Task]unit.Seconds{}, &calls)
		must.Do(t, x.Run(t.Context()))
		before += w.regret(make([]Pick, len(w.sizes))) / worlds
		after += w.regret(x.Picks) / worlds
		must.That(t, calls <= 40*16 && calls == len(x.Log), "%d measurements", calls)
		for s, p := range x.Picks {
			must.That(t, p.Why == Enough && p.Measured != 0 && p.Expected <= 0.01 && p.Time == w.times[s][p.Candidate],
				"size %d: %+v", s, p)
		}
	}
	if t.Logf("regret %v, %v before", after, before); !(before > 0.05) || !(after < 0.012) {
		t.Error("it is too large")
	}
}

// However a run ends, the next one makes the decisions of a run that did not end, and repeats no measurement.
func TestContinued(t *testing.T) {
	w, calls := newWorld(2, 12, 64), 0
	whole := w.tuner(map[Task]unit.Seconds{}, &calls)
	must.Do(t, whole.Run(t.Context()))
	for stop := 1; stop < calls; stop += 13 {
		again, cache := 0, map[Task]unit.Seconds{}
		ended := w.tuner(cache, &again)
		ended.Executor = broken{ended.Executor, func() bool { return again == stop }}
		err := ended.Run(t.Context())
		must.Need(t, errors.Is(err, errGone) && len(ended.Log) == stop, "stopped after %d: %v, %d", stop, err, len(ended.Log))
		next := w.tuner(cache, &again)
		must.Do(t, next.Run(t.Context()))
		diff := cmp.Diff(whole.Log, next.Log)
		must.Need(t, diff == "" && again == calls, "stopped after %d of %d, %d made: %s", stop, calls, again, diff)
	}
}

// A budget is held, and spent where much is to be gained: the fewer measurements, the larger the expected regret.
func TestBudget(t *testing.T) {
	w, last := newWorld(3, 30, 64), math.Inf(1)
	for _, most := range []int{1, 20, 50, 80} {
		calls := 0
		x := w.tuner(map[Task]unit.Seconds{}, &calls)
		x.Most = most
		must.Do(t, x.Run(t.Context()))
		sum := 0.0
		for _, p := range x.Picks {
			if sum += p.Expected; p.Candidate < 0 || p.Why == Enough && p.Time == 0 {
				t.Errorf("%d: %+v", most, p)
			}
		}
		must.That(t, calls == most && sum <= 1.2*last,
			"%d measurements of %d, expected regret %v after %v", calls, most, sum, last)
		last = sum
	}
}

// A budget gets as far with a regret that it is too small for.
func TestBudgetOfALowRegret(t *testing.T) {
	usual, low := 0.0, 0.0
	for seed := range uint64(8) {
		w, calls := newWorld(seed, 30, 64), 0
		reached := func(regret float64) float64 {
			x := w.tuner(map[Task]unit.Seconds{}, &calls)
			x.Regret, x.Most = regret, 60
			must.Do(t, x.Run(t.Context()))
			return w.regret(x.Picks) / 8
		}
		usual += reached(0.01)
		low += reached(0.00001)
	}
	if t.Logf("a regret of %v, and %v if more is asked for", usual, low); low > 1.1*usual {
		t.Error("less is reached")
	}
}

// Candidates without a time are never picked, and one that fails again and again is no longer tried.
func TestFailing(t *testing.T) {
	w, calls := newWorld(4, 20, 64), 0
	bad := map[gemm.Config]bool{}
	for s := range w.sizes {
		for i := range w.sizes[s].Candidates {
			if c := w.sizes[s].Candidates[i].Config; c.BlockM == 16 || s == 7 {
				w.times[s][i] = 0
				bad[c] = bad[c] || s != 7
			}
		}
	}
	x := w.tuner(map[Task]unit.Seconds{}, &calls)
	must.Do(t, x.Run(t.Context()))
	tried := map[gemm.Config]int{}
	for _, m := range x.Log {
		if c := w.sizes[m.Size].Candidates[m.Candidate].Config; m.Size != 7 && bad[c] {
			tried[c]++
		}
	}
	for c, n := range tried {
		must.That(t, n <= mostFailures+x.Batch, "%v was tried %d times", c, n)
	}
	for s, p := range x.Picks {
		must.That(t, s == 7 == (p.Why == Failing && p.Candidate < 0) && (s == 7 || w.times[s][p.Candidate] > 0),
			"size %d: %+v", s, p)
	}
}

// Under a cap, so many kernels are left, each pick is one of them, and no regret is claimed to be small.
func TestCap(t *testing.T) {
	w, calls := newWorld(5, 30, 64), 0
	x := w.tuner(map[Task]unit.Seconds{}, &calls)
	must.Do(t, x.Run(t.Context()))
	must.Do(t, x.Cap(t.Context(), 0, 4))
	l, err := x.Logic(0)
	must.Need(t, err == nil && len(l.Kernels) <= 4 && len(l.Exact) == len(w.sizes),
		"%v: %d kernels, %d sizes", err, len(l.Kernels), len(l.Exact))
	expected, known := 0.0, w.regret(x.Picks)
	for _, p := range x.Picks {
		expected += p.Expected / float64(len(x.Picks))
	}
	must.That(t, known >= 0.01 && expected >= known/2, "regret %v, expected %v", known, expected)
}

// Everything is brute force: all are measured, and the picks are the fastest.
func TestEverything(t *testing.T) {
	w, calls := newWorld(6, 5, 32), 0
	x := w.tuner(map[Task]unit.Seconds{}, &calls)
	if err := x.Everything(t.Context()); err != nil || calls != 5*32 || w.regret(x.Picks) != 0 {
		t.Errorf("%v: %d measurements, regret %v", err, calls, w.regret(x.Picks))
	}
}

// In steps, the values of one parameter are compared at a time, branches go on by themselves, and only what is left is
// measured at all sizes. If the best value of a parameter does not depend on the others, the best kernel is found.
func TestSteps(t *testing.T) {
	f := must.Get(Read("a.yaml", []byte("problems:\n- dtype: fp16\n  sets:\n"+
		"  - sizes: [{range: [[256, 256, 1024], 0, [64]]}]\n"+
		"    fixed: {split_k: 1}\n    initial: {num_warps: 8}\n    steps:\n    - each: {num_stages: [2, 3, 4]}\n"+
		"    - fork: {block_m: [16, 32], block_n: [16, 32]}\n    - each: {num_warps: [4, 8], block_k: [32, 64]}\n"+
		"      sizes: [{exact: [256, 256, 64]}]\n    - join: [block_m]\n"), tensile.Layout))(t)
	x := &Tuner{Prior: shipped, Regret: 0.01, Batch: 4}
	slow := func(c *gemm.Config) unit.Seconds { // the fastest has 32x16x64, 4 warps, 3 stages
		v := 1e-5
		for _, bad := range []bool{c.BlockM == 16, c.BlockN == 32, c.BlockK == 32, c.NumWarps == 8, c.NumStages != 3} {
			if bad {
				v *= 1.2
			}
		}
		return unit.Seconds(v)
	}
	for _, p := range f.Types[0].Sets[0].Sizes {
		s := Size{Problem: p}
		for i := range 2 * 2 * 2 * 2 * 3 {
			c := gemm.Config{BlockM: 16 << (i % 2), BlockN: 16 << (i / 2 % 2), BlockK: 32 << (i / 4 % 2),
				NumWarps: 4 << (i / 8 % 2), NumStages: 2 + i/16, SplitK: 1, GroupM: 8}
			s.Candidates = append(s.Candidates, Candidate{c, unit.Seconds(1e-5)})
		}
		x.Sizes = append(x.Sizes, s)
	}
	x.Executor = Lookup(func(task Task) (unit.Seconds, bool) {
		return slow(&x.Sizes[task.Size].Candidates[task.Candidate].Config), true
	})
	must.Do(t, x.InSteps(t.Context(), f, nil))
	// 3 stages; 4 branches × (2 warps + 1 more block_k) at the first size, joined to 2 at the median one; 2 × 4 sizes.
	want := 3 + 4*3 + 4 + 2*4 - 2 - 2
	must.That(t, len(x.Log) == want, "%d measurements, want %d", len(x.Log), want)
	for s, p := range x.Picks {
		must.That(t, p.Time == 1e-5 && p.Why == Stepped && math.IsNaN(p.Expected), "size %d: %+v", s, p)
	}
}

// A measured residual is expected at its place, halfway between like configurations, and hardly far away.
func TestPosterior(t *testing.T) {
	w := newWorld(7, 1, 128)
	far := w.sizes[0]
	far.Problem = gemm.New(1<<20, 16, 16)
	b := newProcess([]Size{w.sizes[0], far}, shipped, false)
	c := w.sizes[0].Candidates[0]
	b.observe(0, &c, c.Predicted*unit.Seconds(math.Exp(0.2)))
	like := c.Config
	like.NumStages = 5 - like.NumStages // 2 or 3
	here, near, there := b.at(0).mean(&c.Config), b.at(0).mean(&like), b.at(1).mean(&c.Config)
	must.That(t, here > 0.19 && near < here && near > 0.1 && there < near/2 && there > 0,
		"0.2 was measured: %v, %v for a like configuration, %v far away", here, near, there)
}

// crew is an executor of several GPUs that measures in a world. Results come in any order, and some of them are
// corrected at the end.
type crew struct {
	w       *world
	random  *rand.Rand
	begun   []Task
	wrong   map[Task]bool
	results int
	most    int // of tasks at once
}

func (c *crew) Start(tasks []Task) int {
	c.begun = append(c.begun, tasks...)
	c.most = max(c.most, len(c.begun))
	return len(tasks)
}

func (c *crew) Wait(context.Context) ([]Measured, error) {
	if len(c.begun) == 0 {
		var corrected []Measured
		for task := range c.wrong {
			corrected = append(corrected, Measured{Task: task, Time: c.w.times[task.Size][task.Candidate]})
		}
		clear(c.wrong)
		return corrected, nil
	}
	i := c.random.IntN(len(c.begun))
	task := c.begun[i]
	c.begun = append(c.begun[:i], c.begun[i+1:]...)
	c.results++
	r := Measured{Task: task, Time: c.w.times[task.Size][task.Candidate]}
	if c.results%10 == 0 { // by a GPU that turns out to be too fast
		c.wrong[task] = true
		r.Time /= 2
	}
	return []Measured{r}, nil
}

// With several GPUs, whatever the order in which they work, and although some of their results are replaced, what comes
// out follows from the measurements: with all of them known, nothing more is measured.
func TestUnordered(t *testing.T) {
	w := newWorld(6, 20, 64)
	for seed := range uint64(2) {
		c := &crew{w: w, random: rand.New(rand.NewPCG(seed, 1)), wrong: map[Task]bool{}}
		x := &Tuner{Sizes: w.sizes, Prior: shipped, Regret: 0.01, Batch: 12, Executor: c, Unordered: true}
		must.Do(t, x.Run(t.Context()))
		r := w.regret(x.Picks)
		must.That(t, r <= 0.01 && c.most <= 12 && c.most >= 6, "regret %v, %d at once", r, c.most)
		known := map[Task]bool{}
		for _, m := range x.Log {
			must.Need(t, !known[m.Task] && m.Time == w.times[m.Size][m.Candidate],
				"%+v, which takes %v", m, w.times[m.Size][m.Candidate])
			known[m.Task] = true
		}
		again := &Tuner{Sizes: w.sizes, Prior: shipped, Regret: 0.01, Batch: 12, Unordered: true}
		for s := range w.sizes {
			for i := range w.sizes[s].Candidates {
				if task := (Task{s, i}); known[task] {
					again.Earlier = append(again.Earlier, Measured{Task: task, Time: w.times[s][i]})
				}
			}
		}
		again.Executor = Lookup(func(task Task) (unit.Seconds, bool) {
			t.Errorf("%+v is measured", task)
			return 0, false
		})
		must.Do(t, again.Run(t.Context()))
		must.Equal(t, cmp.Diff(x.Picks, again.Picks), "")
	}
	x := &Tuner{Sizes: w.sizes, Prior: shipped, Regret: 0.01, Batch: 16, Unordered: true,
		Executor: &crew{w: w, random: rand.New(rand.NewPCG(9, 1)), wrong: map[Task]bool{}}}
	if err := x.Everything(t.Context()); err != nil || len(x.Log) != 20*64 || w.regret(x.Picks) != 0 {
		t.Error(err, len(x.Log), w.regret(x.Picks))
	}
}
