// Package measurecmd is `origami bench` and `origami tune`. bench sets a model's picks against measurements, beside the
// best candidate and the vendor's libraries. tune finds the fastest kernel of each of many sizes with few measurements.
// The measurements come from a data set, or are made and written to one first.
package measurecmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// BenchOptions are what the command line says.
type BenchOptions struct {
	measuring
	Query session.ProblemFlags
}

// NewBench returns the command.
func NewBench(f *session.Factory) *cobra.Command {
	o := &BenchOptions{measuring: measuring{Factory: f}}
	cmd := &cobra.Command{
		Use:   "bench --arch ARCH",
		Short: "Compare a model's picks with measurements, three ways",
		Long: "For each problem, compare the model's pick with the best of all candidates and with the vendor's\n" +
			"libraries: times, rank, and Kendall's tau-b. The times come from a data set, the shipped one or\n" +
			"the folder of --records; no GPU is needed. With --executor a GPU is measured first: every\n" +
			"candidate is compiled, its results are checked, and its times are written to the folder at once,\n" +
			"so that the same command continues a run that ended early. --retry-failed measures again what has\n" +
			"failed. --shard measures a part of the problems; `records merge` puts the parts together. Without\n" +
			"--problems the problems are all of --records, or else the 23 sizes that tritonBLAS's NVIDIA port\n" +
			"was evaluated on. docs/measuring.md has the method.",
		Example: `  origami bench --arch sm90@h200
  origami bench --arch sm90@h200 --problems shapes.csv --json
  origami bench --arch sm90@h200 --executor cuda --records ./my-sweep
  origami bench --arch sm90@h200 --executor cuda --kernel mma --contract 'lik,ljk->ji' --size i=64,j=64,k=8,l=512
  origami bench --arch sm90@h200 --records ./my-sweep --format csv > three-ways.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Bench(cmd.Context(), o) },
	}
	o.Query.RegisterFile(cmd.Flags())
	session.Register(cmd.Flags(), &o.Query.Contraction)
	session.Register(cmd.Flags(), &o.Query.Product, "alpha", "beta", "epilogue")
	session.Register(cmd.Flags(), o)
	o.Share.Register(cmd.Flags())
	return cmd
}

// Bench answers.
func Bench(ctx context.Context, o *BenchOptions) error {
	if o.RetryFailed && o.Executor == "" {
		return diag.Inputf("nothing is to be measured").At("--retry-failed").Do("add --executor")
	}
	if err := o.Share.Check(o.Executor != ""); err != nil {
		return err
	}
	list, err := o.problems(ctx)
	if err != nil {
		return err
	}
	a, err := o.beside(func() (arch.Architecture, error) { return o.Factory.Searched(ctx, &o.Query) })
	if err != nil {
		return err
	}
	a = arch.Whole(a, problems.Shapes(list.Problems)...)
	var data *dataset.Dataset
	if o.Executor != "" {
		data, list.Problems, err = o.measure(ctx, a, list.Problems)
	} else {
		data, err = o.recorded(ctx, a.Describe())
	}
	if err != nil || data == nil {
		return err
	}
	if err := o.compare(ctx, a, data, list); err != nil {
		if ctx.Err() != nil && o.Executor != "" {
			return datastore.Stopped(ctx, err, data.Len(), data.Name)
		}
		return err
	}
	return list.Failures.Err()
}

// compare scores problems, or all that are recorded, against a data set, and writes the outcome.
func (o *BenchOptions) compare(
	ctx context.Context, a arch.Architecture, data *dataset.Dataset, all *session.ProblemList,
) error {
	problems, failures := all.Problems, all.Failures
	if problems == nil {
		problems = listed(data.Problems())
		a = arch.Whole(a, data.Problems()...)
	}
	w := &writer{arch: a.Describe(), data: data, labels: all.Labels}
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		compared, err := score.Compare(ctx, a, data, p.Problem)
		if err != nil {
			if diag.KindOf(err) != diag.Input {
				return err
			}
			failures.Add(p.Where, err)
			continue
		}
		w.add(compared, p.Labels)
	}
	if err := w.write(o.Factory.Streams, o.Factory.Format()); err != nil {
		return err
	}
	s := score.SummariseComparisons(w.data, w.scores)
	if s.Wrong+s.Failed > 0 {
		o.Factory.Streams.Warn(leftOut(s.Wrong, s.Failed) + " left out; --json lists why")
	}
	if missing := w.unfinished(&s); missing != "" {
		o.Factory.Streams.Warn("the sweep is unfinished: " + missing)
	}
	return nil
}

// problems returns the rows of --problems, the built-in sizes, or nil for all that are recorded.
func (o *BenchOptions) problems(ctx context.Context) (*session.ProblemList, error) {
	switch {
	case o.Query.Problems != "" || o.Query.Contract != "":
		return o.Query.List(ctx, o.Factory)
	case o.Records != "" && o.Executor == "":
		if o.Query.Scaled() {
			return nil, diag.Inputf("--alpha, --beta and --epilogue are for problems of the command line, and --records " +
				"has its own").
				Do("leave them out, or add --problems")
		}
		return &session.ProblemList{Failures: o.Factory.Failures(ctx)}, nil
	default:
		base, err := o.Query.Base(o.Factory.Settings.DType)
		if err != nil {
			return nil, err
		}
		problems := measure.TritonBLASProblems()
		for i := range problems {
			problems[i].DType, problems[i].Out = base.DType, base.Out
			problems[i].Alpha, problems[i].Beta, problems[i].Epilogue = base.Alpha, base.Beta, base.Epilogue
			problems[i] = problems[i].Canonical()
		}
		return &session.ProblemList{Problems: listed(problems), Failures: o.Factory.Failures(ctx)}, nil
	}
}

func listed(shapes []gemm.Problem) []problems.Problem {
	list := make([]problems.Problem, len(shapes))
	for i, p := range shapes {
		list[i].Problem = p
	}
	return list
}

// recorded reads the measurements of an architecture on a device.
func (o *BenchOptions) recorded(ctx context.Context, d *arch.Description) (*dataset.Dataset, error) {
	data, err := session.UntilCancelled(ctx, func() (*dataset.Dataset, error) {
		return datastore.Folder(ctx, d, o.Factory.Settings.Kernel, "--records", o.Records)
	})
	if err == nil && o.warmL2 && !data.WarmL2 {
		err = diag.Inputf("the measurements were made with a cold L2").At("--timing alone").
			Do("leave it out, or measure with --executor")
	}
	return data, err
}

// measure measures the problems, or a shard of them, on the executor's device or on several. It returns the data set,
// as its folder then holds it, and its problems. A shard without problems has no data set.
func (o *BenchOptions) measure(ctx context.Context, a arch.Architecture, list []problems.Problem) (
	_ *dataset.Dataset, _ []problems.Problem, err error,
) {
	if o.shard, err = o.Share.Part(o.Factory.Getenv); err != nil {
		return nil, nil, err
	}
	memory, err := o.open(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if closed := o.close(); err == nil {
			err = closed
		}
	}()
	first := o.gpus[0].Data
	first.Source = "origami bench --executor " + o.Executor
	if err := o.offerCalibration(ctx, a.Describe()); err != nil {
		return nil, nil, err
	}
	fitting := slices.DeleteFunc(slices.Clone(list), func(p problems.Problem) bool {
		return !datastore.Fits(o.Factory.Streams, p.Problem, memory)
	})
	data, part, err := o.fill(ctx, filepath.Clean(o.place(first.Conditions, "")), fitting)
	if o.shard.Of == 0 {
		part = list
	}
	return data, part, err
}

// offerCalibration says so where a model has no measured numbers of the GPU that is there, and they can be measured.
func (o *BenchOptions) offerCalibration(ctx context.Context, d *arch.Description) error {
	if d.Rung != arch.RungSpec {
		return nil
	}
	manifests, err := o.Factory.Manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if m.Calibrates && slices.ContainsFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == d.Arch }) {
			o.Factory.Streams.Note(fmt.Sprintf(
				"the model of %s has the numbers of a data sheet; `origami calibrate` measures this GPU", d.ID()))
			break
		}
	}
	return nil
}

// fill measures the candidates of a shard's problems that its folder, and the folder that shards are merged into, do
// not have yet.
func (o *BenchOptions) fill(ctx context.Context, folder string, list []problems.Problem) (
	_ *dataset.Dataset, part []problems.Problem, err error,
) {
	gpus := o.gpus
	w := &work{name: fmt.Sprintf("bench %s %v", gpus[0].Space.Kernel, gpus[0].Space)}
	clock := gpus[0].Arch.Describe().Clock
	for _, p := range list {
		entries, err := selector.RankOne(ctx, gpus[0].Arch, p.Problem, selector.Request{Space: gpus[0].Space})
		if err != nil && diag.KindOf(err) != diag.Input { // of one problem, the answer reports it
			return nil, nil, err
		}
		cost := unit.Seconds(0)
		for _, e := range entries {
			cost += measure.Cost(e.Estimate.Cycles.At(clock))
		}
		if w.add(p.Problem, cost); len(entries) > 0 {
			w.predict(p.Problem, entries[0].Config, entries[0].Estimate.Cycles.At(clock))
		}
	}
	mine := o.shard.Part(w.costs)
	if len(mine) == 0 && o.shard.Of > 0 {
		o.Factory.Streams.Note(fmt.Sprintf("%d problems are fewer than the parts of --shard %s: it has none", len(list),
			o.shard))
		return nil, nil, nil
	}
	for _, i := range mine {
		part = append(part, list[i])
	}
	bar := show.NewBar(o.Factory.Streams, "measuring")
	defer bar.Stop()
	fresh, begun := 0, time.Now()
	r, err := o.record(ctx, gpus, folder, w, bar, func(m dataset.Measurement) {
		fresh++
		bar.SetMessage(rate(fresh, time.Since(begun).Seconds()) + ", " + m.Problem.String())
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		r.Close()
		if closed := r.store.Close(); err == nil {
			err = closed
		}
	}()
	if !r.Alone { // the longest goes first, so that none is left over at the end
		slices.SortStableFunc(mine, func(a, b int) int { return cmp.Compare(w.costs[b], w.costs[a]) })
	}
	costs, all, done := map[gemm.Problem]unit.Seconds{}, unit.Seconds(0), unit.Seconds(0)
	jobs := make([]measure.Job, len(mine))
	for j, i := range mine {
		jobs[j] = measure.Job{Problem: list[i].Canonical(), Whole: true}
		costs[jobs[j].Problem] = w.costs[i]
		all += w.costs[i]
	}
	r.Add(jobs...)
	for {
		outcomes, err := r.Wait(ctx)
		if err == nil && len(outcomes) > 0 {
			err = r.store.Sync()
		}
		switch {
		case err != nil:
			return nil, nil, r.stopped(ctx, err)
		case len(outcomes) == 0:
			return r.store.Data, part, r.finish()
		}
		for i := range outcomes {
			done += costs[outcomes[i].Job.Problem]
		}
		const scale = 1000
		bar.Set(int64(scale*done), int64(scale*all))
	}
}
