// Package laddercmd is `origami ladder`: the rungs of a ladder of SGEMM kernels on a device, what limits each, and a
// verdict on each public claim about them.
package laddercmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	M, N, K int
	// Terms asks for every cost in the table.
	Terms bool
	// Records is the folder of a data set, Report a folder to write.
	Records, Report string
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "ladder [--arch ARCH] [-m SIZE -n SIZE -k SIZE]",
		Short: "Put the kernels of an SGEMM ladder side by side",
		Long: "Show the rungs of the SGEMM ladder, from one thread per element of C to register tiles and tensor cores:\n" +
			"FLOP per byte that threads ask for, from the L2 and from DRAM; the degree of bank conflicts, from the\n" +
			"addresses of a warp; the predicted time and what most of it goes to; the measured time. Then come\n" +
			"verdicts on what a public ladder says of its rungs: true, nearly or false, with the evidence.\n\n" +
			"Measured times are those of --records, of a shipped data set of the family sgemm, or published ones: of\n" +
			"an RTX 3060 Laptop, an RTX A6000, an H100 and an RTX PRO 6000 Max-Q, at some square sizes. No GPU is\n" +
			"needed. --terms shows the share of every cost in the predicted time; CSV and JSON have the times.\n" +
			"The device is the RTX 3060 Laptop, which the claims are about, if none is named. docs/ladder.md has the\n" +
			"kernels, the claims and the sources.",
		Example: `  origami ladder
  origami ladder --arch sm86@a6000 -m 4096 -n 4096 -k 4096 --terms
  origami ladder --arch sm90@h200 --report ./ladder
  origami --arch sm90@h200 bench --kernel sgemm --dtype fp32 --executor cuda --records sgemm-h200
  origami --arch sm90@h200 ladder --records sgemm-h200 --json`,
		Args: session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&o.M, "m", "m", 4096, "rows of A and C")
	flags.IntVarP(&o.N, "n", "n", 4096, "columns of B and C")
	flags.IntVarP(&o.K, "k", "k", 4096, "columns of A, rows of B")
	flags.BoolVar(&o.Terms, "terms", false, "show every cost in the table")
	flags.StringVar(&o.Records, "records", "", "`FOLDER` of a data set of the family: its times come first")
	flags.StringVar(&o.Report, "report", "", "also write a page with figures, CSV and JSON into `FOLDER`")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	l, err := o.Factory.Ladder(ctx)
	if err != nil {
		return err
	}
	p := gemm.New(o.M, o.N, o.K)
	p.DType, p.Out = l.Types.In, l.Types.Out
	if err := p.Validate(); err != nil {
		return err
	}
	p = p.Canonical() // as records have it
	a, err := o.open(ctx, l.Family)
	if err != nil {
		return err
	}
	data, err := o.records(ctx, a.Describe(), l.Family)
	if err != nil {
		return err
	}
	out := &outcome{model: a, desc: a.Describe(), ladder: l, problem: p, data: data, terms: o.Terms}
	if err := out.answer(ctx); err != nil {
		return err
	}
	if err := out.write(o.Factory.Streams, o.Factory.Format()); err != nil {
		return err
	}
	return report.Write(ctx, o.Factory, o.Report, report.Contents{Name: "ladder", Subject: out.desc.DeviceName,
		Numbers: out.write, Page: out.page})
}

func (o *Options) open(ctx context.Context, family string) (arch.Architecture, error) {
	s := &o.Factory.Settings
	if s.Kernel != "" && s.Kernel != family {
		return nil, diag.Inputf("the rungs are kernels of the family %s", family).At("kernel in the settings").
			Do("leave the setting out")
	}
	s.Kernel = family
	return o.Factory.Beside(timing.Events, nil, func() (arch.Architecture, error) { return o.Factory.Architecture(ctx) })
}

// records returns the measurements of --records, those that are shipped, or nil.
func (o *Options) records(ctx context.Context, d *arch.Description, family string) (*dataset.Dataset, error) {
	if o.Records != "" {
		return datastore.Folder(ctx, d, family, "--records", o.Records)
	}
	data, err := datastore.Shipped(d, family, "--records")
	if diag.KindOf(err) == diag.Input {
		return nil, nil // of most devices there is none
	}
	return data, err
}

// outcome is what is asked, and what was found.
type outcome struct {
	model    arch.Architecture
	desc     *arch.Description
	ladder   *ladder.Ladder
	problem  gemm.Problem
	data     *dataset.Dataset
	terms    bool // show every cost
	entries  []ladder.Entry
	verdicts []ladder.Judged
}

// answer puts the rungs together: those that are published for the device and the size, and the family's others.
func (q *outcome) answer(ctx context.Context) error {
	published := map[string]bool{}
	for _, t := range q.ladder.Published {
		if !q.about(&t) {
			continue
		}
		published[t.Rung] = true
		e := ladder.Entry{
			Rung: ladder.Rung{Name: t.Rung, Doc: t.Stage}, Source: t.Source,
			Measured: unit.Seconds(q.problem.Flops() / float64(t.Rate)),
		}
		for _, r := range q.ladder.Rungs {
			if r.Name == t.Rung {
				e.Rung = r
			}
		}
		e.Rung.Config = t.Config
		if e.Rung.Label != "" {
			e.Source += fmt.Sprintf(", which does not say whether its %s is %s", t.Rung, e.Rung.Label)
		}
		q.entries = append(q.entries, e)
	}
	for _, r := range q.ladder.Rungs {
		if !published[r.Name] {
			q.entries = append(q.entries, ladder.Entry{Rung: r})
		}
	}
	if e, ok := q.recordedLibrary(); ok && !published[ladder.Library] {
		q.entries = append(q.entries, e)
	}
	all := slices.Clone(q.entries)
	for _, r := range q.ladder.Others {
		all = append(all, ladder.Entry{Rung: r})
	}
	for i := range all {
		if err := q.fill(ctx, &all[i]); err != nil {
			return err
		}
	}
	q.entries = all[:len(q.entries)]
	q.verdicts = q.ladder.Judge(all, q.desc)
	return nil
}

// about reports whether a published time is of the device and the problem.
func (q *outcome) about(t *ladder.Time) bool {
	p := &q.problem
	return t.Device == q.desc.ID() && p.M == t.Size && p.N == t.Size && p.K == t.Size
}

// fill predicts an entry, and looks for its time in the records.
func (q *outcome) fill(ctx context.Context, e *ladder.Entry) error {
	if e.Rung.Name == ladder.Library {
		if err := q.library(ctx, e); err != nil {
			return err
		}
	}
	if e.Rung.Config == (gemm.Config{}) {
		return nil
	}
	problem, configs := e.Rung.Problem(q.problem), []gemm.Config{e.Rung.Config}
	var estimate [1]arch.Estimate
	if err := q.model.Estimate(ctx, estimate[:], problem, configs); err != nil {
		return err
	}
	if estimate[0].Reject != "" {
		e.Rejected = string(estimate[0].Reject)
		e.Detail = ask.WhyRejected(ctx, q.model, problem, e.Rung.Config)
		return nil
	}
	row := make([]float64, len(q.desc.Terms))
	if err := q.model.Terms(ctx, row, problem, configs); err != nil {
		return err
	}
	e.Values = ladder.Values{}
	for _, parameter := range q.desc.Params {
		e.Values[parameter.Name] = parameter.Value
	}
	for i := range q.desc.Terms {
		e.Values[q.desc.Terms[i].Name] = row[i]
	}
	e.Predicted = estimate[0].Cycles.At(q.desc.Clock)
	if q.data == nil || e.Rung.Name == ladder.Library {
		return nil
	}
	if m, ok := q.data.Candidate(problem, e.Rung.Config); ok && m.Status == dataset.OK {
		e.Measured, e.Source = m.Median, q.data.Name
	}
	return nil
}

// recordedLibrary returns the rung of the library with its fastest recorded time.
func (q *outcome) recordedLibrary() (e ladder.Entry, ok bool) {
	if q.data == nil {
		return e, false
	}
	for _, name := range q.data.Libraries() {
		m, there := q.data.FindLibrary(q.problem, name)
		if there && m.Status == dataset.OK && (!ok || m.Median < e.Measured) {
			e, ok = ladder.Entry{Rung: ladder.Rung{Name: ladder.Library}, Measured: m.Median, Source: q.data.Name}, true
		}
	}
	return e, ok
}

// library takes the fastest kernel of the family for the library's, which nobody knows.
func (q *outcome) library(ctx context.Context, e *ladder.Entry) error {
	answers, err := ask.Rankings(ctx, q.model,
		ask.Question{Problems: []gemm.Problem{q.problem}, Kernel: q.ladder.Family, Top: 1})
	if err != nil {
		return err
	}
	if answers[0].Err != nil || len(answers[0].Entries) == 0 {
		return answers[0].Err
	}
	e.Rung.Config = answers[0].Entries[0].Config
	e.Rung.Doc = "the vendor's library, predicted as the fastest of the family"
	return nil
}
