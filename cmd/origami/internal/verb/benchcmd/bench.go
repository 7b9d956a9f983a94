// Package benchcmd is `origami bench`: a model's picks against measurements, beside the best of every candidate and the
// vendor's libraries. The measurements are recorded ones, or are made and recorded first; the outcome is always made from
// the records.
package benchcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/score"
)

// Options are what the command line says.
type Options struct {
	Factory  *session.Factory
	Query    session.ProblemFlags
	Options  []string
	Executor string
	Records  string
	WarmL2   bool
	Report   string
}

// New returns the command. run is Run, or what a test wants to see called.
func New(f *session.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "bench --arch ARCH",
		Short: "Hold a model's picks against measurements, three ways",
		Long: "For each problem, set the model's pick beside the best of all its candidates and beside the vendor's libraries, with\n" +
			"Kendall's tau-b of predicted against measured times and the place of the pick among the measured ones.\n" +
			"Times come from recorded measurements, so that no GPU is needed: the shipped ones of the architecture and device, or\n" +
			"those of --records. With --executor, a GPU is measured first: every candidate is compiled, its results are checked,\n" +
			"and its times are written to a folder at once. Whatever ends such a run, the same command goes on where it was.\n" +
			"Without --problems it uses the 23 sizes that tritonBLAS's NVIDIA port was evaluated on or, without an executor but\n" +
			"with --records, all that are recorded there. docs/measuring.md says how a measurement is made.",
		Example: `  origami bench --arch sm90@h200
  origami bench --arch sm90@h200 --problems shapes.csv --json
  origami bench --arch sm90@h200 --report ./report
  origami bench --arch sm90@h200 --executor cuda --records ./my-sweep
  origami bench --arch sm90@h200 --records ./my-sweep --format csv > three-ways.csv`,
		Args: verb.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Options = session.Options(cmd)
			return run(cmd.Context(), o)
		},
	}
	o.Query.RegisterFile(cmd.Flags())
	cmd.Flags().StringVar(&o.Executor, "executor", "", "measure first, with the executor plugin `NAME`, as in cuda; recorded measurements otherwise")
	cmd.Flags().StringVar(&o.Records, "records", "", "`FOLDER` of recorded measurements, the shipped ones otherwise; with --executor, where to write and resume them")
	cmd.Flags().BoolVar(&o.WarmL2, "warm-l2", false, "measure with what the last run left in the L2, instead of flushing it before each")
	cmd.Flags().StringVar(&o.Report, "report", "", "also write the outcome as Markdown, CSV, JSON and plots into `FOLDER`")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	problems, bad, err := o.problems()
	if err != nil {
		return err
	}
	a, err := o.Factory.Architecture(ctx, o.Options)
	if err != nil {
		return err
	}
	var data *dataset.Dataset
	if o.Executor != "" {
		data, err = o.measure(ctx, a, problems)
	} else {
		data, err = o.recorded(a.Describe())
	}
	if err != nil {
		return err
	}
	if problems == nil {
		problems = listed(data.Problems())
	}
	failures := o.Factory.Failures(bad)
	w := newWriter(o.Factory.Streams, render.FormatOf(o.Factory), a.Describe(), data)
	for _, p := range problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := score.Compare(ctx, a, data, p.Problem)
		if err != nil {
			if diag.KindOf(err) != diag.Input {
				return err
			}
			failures.Add(p.Where, err)
			continue
		}
		if err := w.write(&row); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	if o.Report != "" {
		if err := w.report(o.Report); err != nil {
			return err
		}
	}
	s := score.SummariseComparisons(w.rows)
	if s.Wrong+s.Failed > 0 {
		o.Factory.Streams.Warn(leftOut(s.Wrong, s.Failed) + " left out; --report lists why")
	}
	if holes := w.unfinished(&s); holes != "" {
		o.Factory.Streams.Warn("the sweep is unfinished: " + holes)
	}
	return failures.Err()
}

// problems returns the rows of --problems, the built-in sizes, or nil for all that are recorded.
func (o *Options) problems() (good []session.Problem, bad []error, err error) {
	switch {
	case o.Query.Problems != "":
		return o.Query.Read(o.Factory.Settings.DType, o.Factory.Streams.In)
	case o.Records != "" && o.Executor == "":
		return nil, nil, nil
	default:
		return listed(measure.TritonBLASProblems()), nil, nil
	}
}

func listed(problems []gemm.Problem) []session.Problem {
	list := make([]session.Problem, len(problems))
	for i, p := range problems {
		list[i].Problem = p
	}
	return list
}

// recorded reads the measurements of an architecture on a device.
func (o *Options) recorded(d *arch.Description) (*dataset.Dataset, error) {
	var data *dataset.Dataset
	var err error
	if o.Records != "" {
		data, err = datastore.Folder(d, o.Factory.Settings.Kernel, "--records", o.Records)
	} else {
		data, err = datastore.Shipped(d, o.Factory.Settings.Kernel, "--records")
	}
	if err == nil && o.WarmL2 && !data.WarmL2 {
		err = diag.Inputf("the records were taken with a cold L2").At("--warm-l2").Do("leave it out, or measure with --executor")
	}
	return data, err
}
