package measurecmd

import (
	"context"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/core/unit"
)

// takePart keeps the sizes of this shard. The known kernels come from the whole work, so that all shards time the same
// ones.
func (s *tuning) takePart() error {
	sizes := s.plan.Sizes
	list, costs := make([]gemm.Problem, len(sizes)), make([]unit.Seconds, len(sizes))
	for i := range sizes {
		best := &sizes[i].Candidates[0]
		list[i], costs[i] = sizes[i].Problem, measure.Cost(best.Predicted)
		if s.o.Strategy == all {
			costs[i] = bruteForce(&sizes[i])
		}
		s.bests = append(s.bests, dataset.Measurement{Problem: sizes[i].Problem, Config: best.Config})
		s.predicted = append(s.predicted, best.Predicted)
	}
	s.work = datastore.Work("tune "+s.o.Strategy+" "+s.kernel, list)
	if s.share.Of == 0 {
		return nil
	}
	var part []tune.Size
	for _, i := range s.share.Part(costs) {
		part = append(part, sizes[i])
	}
	if s.plan.Sizes = part; len(part) == 0 {
		return noPart(len(sizes), s.share.Index, s.share)
	}
	return nil
}

// noPart says that there are fewer sizes than parts.
func noPart(sizes, part int, s measure.Shard) error {
	return diag.Inputf("there are %d sizes, and so no size for part %d", sizes, part).At("--shard %s", s).
		Do("use at most %d parts", sizes)
}

// past is what was recorded before this run, by task and in order.
type past struct {
	times map[tune.Task]unit.Seconds
	order []tune.Result
}

// recall looks up what is recorded.
func (s *tuning) recall(t *tune.Tuner) *past {
	p := &past{times: map[tune.Task]unit.Seconds{}}
	for i := range t.Sizes {
		if s.data.SweepLen(t.Sizes[i].Problem) == 0 {
			continue
		}
		for j := range t.Sizes[i].Candidates {
			task := tune.Task{Size: i, Candidate: j}
			if time, there := s.time(t, task); there && (time > 0 || !s.o.RetryFailed) {
				p.times[task] = time
				p.order = append(p.order, tune.Result{Task: task, Time: time})
			}
		}
	}
	return p
}

// team lets a fleet measure what the tuner asks for. What is recorded is not measured again.
type team struct {
	s     *tuning
	t     *tune.Tuner
	fleet *measure.Fleet
	past  *past
	tasks map[measure.Job]tune.Task
	ready []tune.Result
}

// Start implements tune.Team.
func (x *team) Start(tasks []tune.Task) int {
	var jobs []measure.Job
	begun := 0
	for _, task := range tasks {
		if recorded, there := x.past.times[task]; there {
			x.ready = append(x.ready, tune.Result{Task: task, Time: recorded})
		} else if x.s.o.Budget > 0 && time.Since(x.s.begun) > x.s.o.Budget {
			break
		} else {
			size := &x.t.Sizes[task.Size]
			job := measure.Job{Problem: size.Problem, Config: size.Candidates[task.Candidate].Config}
			x.tasks[job] = task
			jobs = append(jobs, job)
		}
		begun++
	}
	if len(jobs) > 0 {
		x.fleet.Add(jobs...)
	}
	return begun
}

// Wait implements tune.Team.
func (x *team) Wait(ctx context.Context) ([]tune.Result, error) {
	if results := x.ready; len(results) > 0 {
		x.ready = nil
		return results, nil
	}
	outcomes, err := x.fleet.Wait(ctx)
	results := make([]tune.Result, len(outcomes))
	for i := range outcomes {
		results[i] = tune.Result{Task: x.tasks[outcomes[i].Job], Time: outcomes[i].Median}
	}
	return results, err
}

// finishShare notes that a shard is finished, if it is.
func (s *tuning) finishShare(t *tune.Tuner) error {
	for i := range t.Picks {
		if t.Picks[i].Why == tune.Budget {
			return nil
		}
	}
	if s.store == nil {
		return nil
	}
	return datastore.FinishShard(s.o.Factory.Streams, s.merged, s.share, s.work)
}
