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

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
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
			"failed. Problems without a kernel of the executor's first family are measured with its next one,\n" +
			"in a folder of their own. --shard measures a part of the problems; `records merge` puts the parts\n" +
			"together. Without --problems the problems are all of --records, or else the 23 sizes that\n" +
			"tritonBLAS's NVIDIA port was evaluated on. docs/measuring.md has the method.",
		Example: `  origami bench --arch sm90@h200
  origami bench --arch sm90@h200 --problems shapes.csv --json
  origami bench --arch sm90@h200 --executor cuda --records ./my-sweep
  origami bench --arch sm90@h200 --executor cuda --contract 'lik,ljk->ji' --size i=64,j=64,k=8,l=512
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
	var groups []group
	if o.Executor != "" {
		groups, err = o.measure(ctx, a, list.Problems)
	} else {
		groups, err = o.recorded(ctx, a.Describe(), list.Problems)
	}
	if err != nil {
		return err
	}
	for i := range groups {
		if err := o.compare(ctx, a, groups, i, list); err != nil {
			if ctx.Err() != nil && o.Executor != "" {
				return datastore.Stopped(ctx, err, groups[i].data.Len(), groups[i].data.Name)
			}
			return err
		}
	}
	return list.Failures.Err()
}

// compare scores the problems of a group against its data set, and writes the outcome.
func (o *BenchOptions) compare(
	ctx context.Context, a arch.Architecture, groups []group, which int, all *session.ProblemList,
) error {
	data, problems := groups[which].data, groups[which].problems
	if problems == nil {
		problems = listed(data.Problems())
		a = arch.Whole(a, data.Problems()...)
	}
	format := o.Factory.Format()
	if which > 0 && format != show.JSON {
		o.Factory.Streams.Printf("\n") // between two tables
	}
	failures := all.Failures
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
	if err := w.write(o.Factory.Streams, format); err != nil {
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

// recorded reads the measurements of an architecture on a device, for a list of problems or, if it is nil, for all
// that are recorded.
func (o *BenchOptions) recorded(ctx context.Context, d *arch.Description, list []problems.Problem) ([]group, error) {
	data, err := session.UntilCancelled(ctx, func() (*dataset.Dataset, error) {
		return datastore.Folder(ctx, d, o.Factory.Settings.Kernel, "--records", o.Records)
	})
	if err == nil && o.warmL2 && !data.WarmL2 {
		err = diag.Inputf("the measurements were made with a cold L2").At("--timing alone").
			Do("leave it out, or measure with --executor")
	}
	if err != nil {
		return nil, err
	}
	return []group{{problems: list, data: data}}, nil
}

// group is the problems that are measured with one kernel family, nil for all that are recorded, and the measurements.
type group struct {
	kernel   string
	problems []problems.Problem
	data     *dataset.Dataset
}

// measure measures the problems, or a shard of them, on the executor's device or on several. It returns the data set of
// each kernel family, as its folder then holds it.
func (o *BenchOptions) measure(
	ctx context.Context, a arch.Architecture, list []problems.Problem,
) (groups []group, err error) {
	if o.shard, err = o.Share.Part(o.Factory.Getenv); err != nil {
		return nil, err
	}
	memory, err := o.open(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := o.close(); err == nil {
			err = closed
		}
	}()
	gpus := o.gpus
	gpus[0].Data.Source = "origami bench --executor " + o.Executor
	if err := o.offerCalibration(ctx, a.Describe()); err != nil {
		return nil, err
	}
	families, err := o.Factory.FamiliesToMeasure(ctx, gpus[0].Sweep)
	if err != nil {
		return nil, err
	}
	if groups, err = byFamily(ctx, a, families, list); err != nil {
		return nil, err
	}
	for i := range groups {
		g := &groups[i]
		of := make([]*measure.GPU, len(gpus))
		for j, gpu := range gpus {
			of[j] = &measure.GPU{Name: gpu.Name, Sweep: gpu.Of(g.kernel)}
		}
		folder, fitting := o.folder(g, of[0].Data.Conditions, families[0], memory)
		if err := o.fill(ctx, g, of, folder, fitting); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.problems) == 0 }), nil
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

// folder returns the folder of a group, and its problems that fit into the device's memory. A family other than the
// first one has a folder beside it.
func (o *BenchOptions) folder(
	g *group, c dataset.Conditions, first string, memory unit.Bytes,
) (folder string, fitting []problems.Problem) {
	folder = filepath.Clean(o.place(c, ""))
	if g.kernel != first {
		if o.Records != "" {
			folder += "-" + g.kernel
		}
		o.Factory.Streams.Note(fmt.Sprintf("there is no %s kernel for %s; %s measured with %s, in %s", first,
			some(g.problems), isAre(len(g.problems)), g.kernel, folder))
	}
	return folder, slices.DeleteFunc(slices.Clone(g.problems), func(p problems.Problem) bool {
		return !datastore.Fits(o.Factory.Streams, p.Problem, memory)
	})
}

// byFamily groups problems by the first of the families that has a kernel for them. Those without any are the first
// family's, whose sweep then says why.
func byFamily(
	ctx context.Context, a arch.Architecture, families []string, list []problems.Problem,
) (groups []group, err error) {
	of := map[string][]problems.Problem{families[0]: list}
	if len(families) > 1 {
		answers, err := ask.Rankings(ctx, a, ask.Question{Problems: problems.Shapes(list), Kernel: families[0],
			Fallbacks: families[1:], Top: 1})
		if err != nil {
			return nil, err
		}
		clear(of)
		for i := range answers {
			if err := answers[i].Err; err != nil && diag.KindOf(err) != diag.Input {
				return nil, err
			}
			of[answers[i].Kernel] = append(of[answers[i].Kernel], list[i])
		}
	}
	for _, family := range families {
		if of[family] != nil {
			groups = append(groups, group{kernel: family, problems: of[family]})
		}
	}
	return groups, nil
}

// some names problems: the first, and how many others.
func some(problems []problems.Problem) string {
	if len(problems) == 1 {
		return problems[0].String()
	}
	return fmt.Sprintf("%s and %s", problems[0].Problem, digits.Plural(len(problems)-1, "other problem", "other problems"))
}

func isAre(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

// fill measures the candidates of a shard's problems that its folder, and the folder that shards are merged into, do
// not have yet. It leaves the shard's problems in the group.
func (o *BenchOptions) fill(
	ctx context.Context, g *group, gpus []*measure.GPU, folder string, list []problems.Problem,
) (err error) {
	w := &work{name: fmt.Sprintf("bench %s %v", g.kernel, gpus[0].Space)}
	clock := gpus[0].Arch.Describe().Clock
	for _, p := range list {
		entries, err := selector.RankOne(ctx, gpus[0].Arch, p.Problem, selector.Request{Space: gpus[0].Space})
		if err != nil && diag.KindOf(err) != diag.Input { // of one problem, the answer reports it
			return err
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
	if o.shard.Of > 0 {
		if g.problems = nil; len(mine) == 0 {
			o.Factory.Streams.Note(fmt.Sprintf("%d problems are fewer than the parts of --shard %s: it has none", len(list),
				o.shard))
			return nil
		}
		for _, i := range mine {
			g.problems = append(g.problems, list[i])
		}
	}
	bar := show.NewBar(o.Factory.Streams, "measuring")
	defer bar.Stop()
	fresh, begun := 0, time.Now()
	r, err := o.record(ctx, gpus, folder, w, bar, func(m dataset.Measurement) {
		fresh++
		bar.SetMessage(rate(fresh, time.Since(begun).Seconds()) + ", " + m.Problem.String())
	})
	if err != nil {
		return err
	}
	defer func() {
		r.Close()
		if closed := r.store.Close(); err == nil {
			err = closed
		}
	}()
	g.data = r.store.Data
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
			return r.stopped(ctx, err)
		case len(outcomes) == 0:
			return r.finish()
		}
		for i := range outcomes {
			done += costs[outcomes[i].Job.Problem]
		}
		const scale = 1000
		bar.Set(int64(scale*done), int64(scale*all))
	}
}
