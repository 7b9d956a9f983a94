package measurecmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// gpus returns a sweep on the executor's device, or on each GPU that the flags name. The caller closes the executors.
func (o *BenchOptions) gpus(ctx context.Context, a arch.Architecture) (_ []*measure.GPU, memory unit.Bytes, err error) {
	if o.Share.On() {
		return o.Factory.Sweeps(ctx, a, o.Executor, &o.Share, o.WarmL2)
	}
	sweep, memory, err := o.Factory.Sweep(ctx, a, o.Executor, o.WarmL2)
	return []*measure.GPU{{Sweep: sweep}}, memory, err
}

// fillShared measures the candidates of a shard's problems that its folder, and the folder that shards are merged into,
// do not have yet. It leaves the shard's problems in the group.
func (o *BenchOptions) fillShared(
	ctx context.Context, g *group, gpus []*measure.GPU, shard measure.Shard, folder string, list []problems.Problem,
) (err error) {
	costs := make([]unit.Seconds, len(list))
	var bests []dataset.Measurement
	var predicted []unit.Seconds
	clock := gpus[0].Arch.Describe().Clock
	for i, p := range list {
		entries, err := selector.RankOne(ctx, gpus[0].Arch, p.Problem, selector.Request{Space: gpus[0].Space})
		if err != nil && diag.KindOf(err) != diag.Input {
			return err
		}
		for _, e := range entries {
			costs[i] += measure.Cost(e.Estimate.Cycles.At(clock))
		}
		if len(entries) > 0 {
			bests = append(bests, dataset.Measurement{Problem: p.Problem, Config: entries[0].Config})
			predicted = append(predicted, entries[0].Estimate.Cycles.At(clock))
		}
	}
	work := datastore.Work(fmt.Sprintf("bench %s %v", g.kernel, gpus[0].Space), problems.Shapes(list))
	mine := shard.Part(costs)
	if g.problems = nil; len(mine) == 0 {
		o.Factory.Streams.Note(fmt.Sprintf("%d problems are fewer than the parts of --shard %s: it has none", len(list),
			shard))
		return nil
	}
	for _, i := range mine {
		g.problems = append(g.problems, list[i])
	}
	kept, err := datastore.ContinueShard(ctx, o.Factory.Streams, gpus[0].Data, folder, shard, work)
	if err != nil {
		return err
	}
	defer func() {
		if closed := kept.Close(); err == nil {
			err = closed
		}
	}()
	g.data = kept.Data
	bar := table.NewBar(o.Factory.Streams, "measuring")
	defer bar.Stop()
	// The longest goes first, so that none is left over at the end.
	slices.SortStableFunc(mine, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	run := &sharedRun{bar: bar, begun: time.Now(), all: len(mine), costs: map[gemm.Problem]unit.Seconds{}}
	jobs := make([]measure.Job, len(mine))
	for j, i := range mine {
		p := list[i].Canonical()
		jobs[j] = measure.Job{Problem: p, Whole: true}
		run.costs[p] += costs[i]
		run.total += costs[i]
	}
	fleet := datastore.NewFleet(kept, gpus, o.RetryFailed, bests, predicted, bar, run.measured)
	if err := run.through(ctx, fleet, jobs); err != nil {
		return datastore.Stopped(ctx, err, kept.Data.Len(), datastore.ShardFolder(folder, shard))
	}
	return datastore.FinishShard(o.Factory.Streams, folder, shard, work)
}

// sharedRun shows how far a fleet is.
type sharedRun struct {
	bar         *table.Bar
	begun       time.Time
	all, done   int
	fresh       int
	total, past unit.Seconds
	costs       map[gemm.Problem]unit.Seconds
}

// through waits until all problems are measured.
func (r *sharedRun) through(ctx context.Context, fleet *measure.Fleet, jobs []measure.Job) error {
	if err := fleet.Begin(ctx); err != nil {
		return err
	}
	defer fleet.Close()
	fleet.Add(jobs...)
	for {
		outcomes, err := fleet.Wait(ctx)
		if err != nil || len(outcomes) == 0 {
			return err
		}
		for i := range outcomes {
			if cost, first := r.costs[outcomes[i].Job.Problem]; first {
				delete(r.costs, outcomes[i].Job.Problem)
				r.done++
				r.past += cost
			}
		}
		const scale = 1000
		r.bar.Set(int64(scale*r.past), int64(scale*r.total))
	}
}

// measured shows a measurement. The fleet calls it, one at a time.
func (r *sharedRun) measured(m dataset.Measurement) {
	r.fresh++
	if r.bar.Shown() {
		r.bar.SetMessage(fmt.Sprintf("%d measured, %.1f/s, %s", r.fresh,
			float64(r.fresh)/max(time.Since(r.begun).Seconds(), 1e-3), m.Problem))
	}
}
