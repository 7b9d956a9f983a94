//go:build !race

// Arithmetic in one goroutine for the most part, which the race detector would only slow down tenfold. The engine is
// tested with it in core/measure.

package nvidia_test

import (
	"context"
	"math"
	"os"
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

func (c crew) Wait(ctx context.Context) (results []tune.Result, err error) {
	outcomes, err := c.Fleet.Wait(ctx)
	for _, o := range outcomes {
		results = append(results, tune.Result{Task: c.tasks[o.Job], Time: o.Median})
	}
	return results, err
}

// A third of a recorded sweep is tuned by 1, 2 and 4 GPUs in simulated time: 13 s of one GPU. Hardly any of them waits,
// and the picks are about as good as those that one GPU finds: the regret of so few sizes varies by a fifth with the
// order of the measurements, and the time of four GPUs by a tenth.
func TestTuneWithSeveral(t *testing.T) {
	d, err := dataset.Read("slides", os.DirFS("data/grids/slides/h200"))
	if err != nil {
		t.Fatal(err)
	}
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	var sizes []gemm.Problem
	for i, p := range d.Problems() {
		if i%3 == 0 {
			sizes = append(sizes, p)
		}
	}
	file := &tune.File{Types: []tune.Type{{Problem: sizes[0], Sets: []tune.Set{{Sizes: sizes}}}}}
	plan, err := tune.NewPlan(t.Context(), a, d.Kernel, file, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var known []dataset.Measurement
	var predicted []unit.Seconds
	for i := range plan.Sizes {
		size := &plan.Sizes[i]
		var there []tune.Candidate
		for _, c := range size.Candidates {
			if m, ok := d.Candidate(size.Problem, c.Config); ok && m.Status == dataset.OK {
				c.Config.GroupM = m.Config.GroupM
				there = append(there, c)
			}
		}
		size.Candidates = there
		known = append(known, dataset.Measurement{Problem: size.Problem, Config: there[0].Config})
		predicted = append(predicted, there[0].Predicted)
	}
	var alone time.Duration
	var regretAlone float64
	for _, gpus := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := &measure.Fleet{Data: dataset.New("", d.Conditions), Interval: 10 * time.Second,
				Known: measure.KnownFrom(known, predicted), Keep: func(...dataset.Measurement) error { return nil }}
			for i := range gpus {
				f.GPUs = append(f.GPUs, &measure.GPU{Name: strconv.Itoa(i), Sweep: &measure.Sweep{Arch: a, Executor: replayed(d),
					Ahead: 1}})
			}
			if err := f.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			x := &tune.Tuner{Sizes: plan.Sizes, Regret: 0.01, Batch: 8 * gpus}
			x.Team = crew{f, x, map[measure.Job]tune.Task{}}
			begun := time.Now()
			if err := x.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Since(begun)
			f.Close()
			sum := 0.0
			for s, p := range x.Picks {
				best := unit.Seconds(math.Inf(1))
				for _, c := range x.Sizes[s].Candidates {
					m, _ := d.Candidate(x.Sizes[s].Problem, c.Config)
					best = min(best, m.Median)
				}
				sum += math.Log(float64(p.Time / best))
			}
			regret := math.Expm1(sum / float64(len(x.Picks)))
			if gpus == 1 {
				alone, regretAlone = took, regret
			}
			// What more is measured, since less is known at a time, counts too.
			share := alone.Seconds() / float64(gpus) / took.Seconds()
			t.Logf("%d GPUs: %d measurements in %v, %.3f of ideal, regret %.3f %%", gpus, len(x.Log), took, share,
				100*regret)
			if share < map[int]float64{1: 1, 2: 0.84, 4: 0.72}[gpus] || regret > 1.25*regretAlone {
				t.Errorf("%d GPUs: %.3f of ideal, regret %v, and %v alone", gpus, share, regret, regretAlone)
			}
		})
	}
}
