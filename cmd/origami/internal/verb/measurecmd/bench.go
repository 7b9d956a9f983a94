// Package measurecmd is `origami bench` and `origami tune`. bench sets a model's picks against measurements, beside the
// best candidate and the vendor's libraries. tune finds the fastest kernel of each of many sizes with few measurements.
// The measurements come from a data set, or are made and written to one first.
package measurecmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
)

// BenchOptions are what the command line says.
type BenchOptions struct {
	measuring
	Query  session.ProblemFlags
	Report string
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
  origami bench --arch sm90@h200 --report bench.html
  origami bench --arch sm90@h200 --executor cuda --records ./my-sweep
  origami bench --arch sm90@h200 --executor cuda --contract 'lik,ljk->ji' --size i=64,j=64,k=8,l=512
  origami bench --arch sm90@h200 --records ./my-sweep --format csv > three-ways.csv`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Bench(cmd.Context(), o) },
	}
	o.Query.RegisterFile(cmd.Flags())
	session.Register(cmd.Flags(), &o.Query.Contraction)
	session.Register(cmd.Flags(), &o.Query.Product, "alpha", "beta", "epilogue")
	cmd.Flags().StringVar(&o.Executor, "executor", "", "measure first, with the executor plugin `NAME`, as in cuda")
	cmd.Flags().StringVar(&o.Records, "records", "",
		"`FOLDER` of a data set, the shipped one otherwise; with --executor, where to write and continue it")
	o.Share.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.RetryFailed, "retry-failed", false,
		"with --executor, measure again what has failed")
	cmd.Flags().StringVar(&o.Report, "report", "", report.Usage)
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
	writers := make([]*writer, len(groups))
	for i := range groups {
		if writers[i], err = o.compare(ctx, a, groups, i, list); err != nil {
			if ctx.Err() != nil && o.Executor != "" {
				return datastore.Stopped(ctx, err, groups[i].data.Len(), groups[i].data.Name)
			}
			return err
		}
	}
	err = report.Write(ctx, o.Factory, o.Report, func(s *iostreams.Streams, format table.Format) error {
		for _, w := range writers {
			if err := w.write(s, format); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, list.Failures.Err())
}

// compare scores the problems of a group against its data set, and writes the outcome.
func (o *BenchOptions) compare(
	ctx context.Context, a arch.Architecture, groups []group, which int, all *session.ProblemList,
) (*writer, error) {
	data, problems := groups[which].data, groups[which].problems
	if problems == nil {
		problems = listed(data.Problems())
		a = arch.Whole(a, data.Problems()...)
	}
	format := o.Factory.Format()
	if which > 0 && format != table.JSON {
		o.Factory.Streams.Printf("\n") // between two tables
	}
	failures := all.Failures
	w := &writer{arch: a.Describe(), data: data, labels: all.Labels}
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		compared, err := score.Compare(ctx, a, data, p.Problem)
		if err != nil {
			if diag.KindOf(err) != diag.Input {
				return nil, err
			}
			failures.Add(p.Where, err)
			continue
		}
		w.add(compared, p.Labels)
	}
	if err := w.write(o.Factory.Streams, format); err != nil {
		return nil, err
	}
	s := score.SummariseComparisons(w.data, w.scores)
	if s.Wrong+s.Failed > 0 {
		o.Factory.Streams.Warn(leftOut(s.Wrong, s.Failed) + " left out; --json lists why")
	}
	if missing := w.unfinished(&s); missing != "" {
		o.Factory.Streams.Warn("the sweep is unfinished: " + missing)
	}
	return w, nil
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
