//go:build !race

// Arithmetic in one goroutine for the most part, which the race detector would only slow down tenfold. The engine is
// tested with it in core/measure.

package nvidia_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// replayed is a GPU on which kernels take the recorded times. Its clock runs as fast as nobody waits.
func replayed(d *dataset.Dataset) *exectest.Executor {
	return &exectest.Executor{
		Device: exec.Device{Name: "replayed", Arch: "sm90", Kernels: []string{d.Kernel}},
		Time: func(p gemm.Problem, c gemm.Config) unit.Seconds {
			m, _ := d.Candidate(p, c)
			return m.Median
		},
		Fate: func(p gemm.Problem, c gemm.Config) exectest.Fate {
			if m, there := d.Candidate(p, c); !there || m.Status != dataset.OK {
				return exectest.NotBuilt
			}
			return exectest.Fine
		},
		Takes: func(t unit.Seconds) { time.Sleep(time.Duration(float64(t) * float64(time.Second))) },
	}
}

// crew lets a fleet measure for a tuner.
type crew struct {
	*measure.Fleet
	t     *tune.Tuner
	tasks map[measure.Job]tune.Task
}

func (c crew) Start(tasks []tune.Task) int {
	for _, task := range tasks {
		size := &c.t.Sizes[task.Size]
		job := measure.Job{Problem: size.Problem, Config: size.Candidates[task.Candidate].Config}
		c.tasks[job] = task
		c.Add(job)
	}
	return len(tasks)
}

func (c crew) Wait(ctx context.Context) (results []tune.Measured, err error) {
	outcomes, err := c.Fleet.Wait(ctx)
	for _, o := range outcomes {
		results = append(results, tune.Measured{Task: c.tasks[o.Job], Time: o.Median})
	}
	return results, err
}

// replayedPlan are sizes of a data set with the candidates that have a time.
func replayedPlan(
	t *testing.T, a arch.Architecture, d *dataset.Dataset, list []gemm.Problem,
) (sizes []tune.Size) {
	for some := range slices.Chunk(list, 20) { // a plan has at most a million candidates
		file := &tune.File{Types: []tune.Type{{Problem: list[0], Sets: []tune.Set{{Sizes: some}}}}}
		plan := must.Get(tune.NewPlan(t.Context(), a, d.Kernel, file, 0, 1))(t)
		for _, size := range plan.Sizes {
			var there []tune.Candidate
			for _, c := range size.Candidates {
				if m, ok := d.Candidate(size.Problem, c.Config); ok && m.Status == dataset.OK {
					c.Config.GroupM = m.Config.GroupM
					there = append(there, c)
				}
			}
			size.Candidates = there
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// regretOf is the geometric mean of the time of a pick ÷ that of the fastest candidate, less 1.
func regretOf(d *dataset.Dataset, x *tune.Tuner) float64 {
	sum := 0.0
	for s, p := range x.Picks {
		size := &x.Sizes[s]
		best := unit.Seconds(math.Inf(1))
		for _, c := range size.Candidates {
			m, _ := d.Candidate(size.Problem, c.Config)
			best = min(best, m.Median)
		}
		m, _ := d.Candidate(size.Problem, size.Candidates[p.Candidate].Config)
		sum += math.Log(float64(m.Median / best))
	}
	return math.Expm1(sum / float64(len(x.Picks)))
}

// Whatever the limit is, a budget is spent where it gains most: a smaller limit loses no more than chance, and a larger
// budget nothing. The sizes of these sweeps were drawn at random, and nothing was fitted to them.
func TestTuneBudget(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	budgets, limits := []int{1, 2, 4, 8}, []float64{0.03, 0.01, 0.001, 0.00001}
	regret := map[[2]int]float64{} // by the places of budget and limit, over all sweeps
	for _, name := range []string{"random-fp16", "random2-fp16", "random-bt", "random-split", "random2-fp8"} {
		d := readSet(t, "sweeps/"+name+"/h200-test")
		sizes := replayedPlan(t, a, d, d.Problems())
		for i, budget := range budgets {
			for j, limit := range limits {
				x := &tune.Tuner{Prior: tune.PriorOf(a.Describe()), Sizes: sizes, Regret: limit, Batch: 8,
					Most: budget * len(sizes)}
				x.Executor = tune.Lookup(func(task tune.Task) (unit.Seconds, bool) {
					m, _ := d.Candidate(sizes[task.Size].Problem, sizes[task.Size].Candidates[task.Candidate].Config)
					return m.Median, true
				})
				must.Do(t, x.Run(t.Context()))
				regret[[2]int{i, j}] += regretOf(d, x) / 5
			}
		}
	}
	for at, r := range regret {
		if before, there := regret[[2]int{at[0], at[1] - 1}]; there && r > before+0.001 {
			t.Errorf("%d measurements of each size: a regret of %.4f with a limit of %v, and %.4f with %v", budgets[at[0]], r,
				limits[at[1]], before, limits[at[1]-1])
		}
		if before, there := regret[[2]int{at[0] - 1, at[1]}]; there && r > before {
			t.Errorf("limit %v: a regret of %.4f with %d measurements of each size, and %.4f with %d", limits[at[1]], r,
				budgets[at[0]], before, budgets[at[0]-1])
		}
		t.Logf("%d of each, limit %v: %.4f", budgets[at[0]], limits[at[1]], r)
	}
}

// A sixth of a recorded sweep is tuned by 1, 2 and 4 GPUs in simulated time: 7 s of one GPU. Hardly any of them waits,
// and the picks are about as good as those that one GPU finds: the regret of so few sizes varies by a third with the
// order of the measurements, and the time of four GPUs by a tenth. With ORIGAMI_TEST_ALL it is the whole sweep, in the
// mean over six orders of its sizes.
func TestTuneWithSeveral(t *testing.T) {
	d := readSet(t, "grids/slides/h200")
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	every, orders, several, most := 6, 1, []int{1, 2, 4}, 1.4
	least := map[int]float64{1: 1, 2: 0.84, 4: 0.72}
	if os.Getenv("ORIGAMI_TEST_ALL") != "" {
		every, orders, several, most = 1, 6, []int{1, 2, 4, 8}, 1.12
		least = map[int]float64{1: 1, 2: 0.9, 4: 0.9, 8: 0.9}
	}
	var sizes []gemm.Problem
	for i, p := range d.Problems() {
		if i%every == 0 {
			sizes = append(sizes, p)
		}
	}
	seconds, regrets, measured := map[int]float64{}, map[int]float64{}, map[int]int{}
	for order := range orders {
		if order > 0 {
			rand.New(rand.NewPCG(uint64(order), 0)).Shuffle(len(sizes), func(i, j int) {
				sizes[i], sizes[j] = sizes[j], sizes[i]
			})
		}
		plan := replayedPlan(t, a, d, sizes)
		for _, gpus := range several {
			synctest.Test(t, func(t *testing.T) {
				took, x := tunedBy(t, gpus, a, d, plan)
				seconds[gpus] += took.Seconds()
				regrets[gpus] += regretOf(d, x) / float64(orders)
				measured[gpus] += len(x.Log)
			})
		}
	}
	for _, gpus := range several {
		// What more is measured, since less is known at a time, counts too.
		share := seconds[1] / float64(gpus) / seconds[gpus]
		must.Hold(t, share >= least[gpus] && regrets[gpus] <= most*regrets[1], "%d GPUs: %d measurements in %.3g s, %.3f of "+
			"ideal, regret %.3f %%, and %.3f alone", gpus, measured[gpus]/orders, seconds[gpus]/float64(orders), share,
			100*regrets[gpus], 100*regrets[1])
	}
}

// tunedBy tunes a plan on some GPUs, whose times are the recorded ones.
func tunedBy(
	t *testing.T, gpus int, a arch.Architecture, d *dataset.Dataset, plan []tune.Size,
) (time.Duration, *tune.Tuner) {
	t.Helper()
	var known []dataset.Measurement
	var predicted []unit.Seconds
	for i := range plan {
		first := &plan[i].Candidates[0]
		known = append(known, dataset.Measurement{Problem: plan[i].Problem, Config: first.Config})
		predicted = append(predicted, first.Predicted)
	}
	f := &measure.Fleet{Data: dataset.New("", d.Conditions), Interval: 10 * time.Second,
		Known: measure.KnownFrom(known, predicted), Keep: func(...dataset.Measurement) error { return nil }}
	for i := range gpus {
		f.GPUs = append(f.GPUs, &measure.GPU{Name: strconv.Itoa(i), Sweep: &measure.Sweep{Arch: a, Executor: replayed(d),
			Ahead: 1}})
	}
	must.Do(t, f.Begin(t.Context()))
	x := &tune.Tuner{Prior: tune.PriorOf(a.Describe()), Sizes: plan, Regret: 0.01, Batch: 8 * gpus, Unordered: true}
	x.Executor = crew{f, x, map[measure.Job]tune.Task{}}
	begun := time.Now()
	must.Do(t, x.Run(t.Context()))
	took := time.Since(begun)
	f.Close()
	return took, x
}
