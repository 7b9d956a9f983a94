// Package explaincmd is `origami explain`: every number behind one prediction, with its formula, the formula with the
// numbers put in, its unit and where it comes from.
package explaincmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	Query   session.ProblemFlags
	// Config is the configuration to explain, empty for the pick. Diff is another one, to be set beside it.
	Config, Diff string
	// Terms asks a page for every number.
	Terms bool
}

// New returns the command. run is Run, or what a test wants to see called.
func New(f *session.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "explain --arch ARCH -m SIZE -n SIZE -k SIZE",
		Short: "Show every number behind a prediction, with formula, unit and source",
		Long: "Show where the predicted time of one configuration goes. With --terms, and in JSON, CSV and TSV,\n" +
			"there is every number behind it: the hardware parameters and the model's constants with their\n" +
			"sources, then each intermediate with its formula, the formula with the numbers put in, its value,\n" +
			"unit and source, and the launch order. Without --config it explains the pick. --diff sets another\n" +
			"configuration beside it.",
		Example: `  origami --arch sm89 explain -m 2048 -n 2048 -k 2048
  origami explain --arch sm89 -m 2048 -n 2048 -k 2048 --diff 64x64x64,w4,s3
  origami explain --arch sm89 -m 2048 -n 2048 -k 2048 --terms
  origami explain --arch sm89 -m 4096 -n 4096 -k 4096 --config 128x256x64,w8,s3,g8
  origami explain --arch gfx942 -m 4096 -n 4096 -k 4096 --json`,
		Args: verb.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	o.Query.Register(cmd.Flags(), false)
	o.Query.Contract.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.Config, "config", "",
		"explain this `CONFIG`, as it is printed (128x256x64 w8 s3 g8 k1) or with commas; what is left out is the first "+
			"candidate's of that tile")
	cmd.Flags().StringVar(&o.Diff, "diff", "", "set this `CONFIG` beside the one that is explained")
	cmd.Flags().BoolVar(&o.Terms, "terms", false, "show every number in a page, with formula, unit and source")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	problem, err := o.Query.One(o.Factory.Settings.DType)
	if err != nil {
		return err
	}
	a, err := o.Factory.Searched(ctx, &o.Query.Search)
	if err != nil {
		return err
	}
	e, err := Explain(ctx, a, problem, o.Factory.Settings.Kernel, o.Config)
	if err != nil {
		return err
	}
	besides := func(e *Explanation) {
		if problem.BeyondProduct() {
			e.Besides = arch.BesidesOf(a, &problem, &e.Config).Parts()
		}
	}
	besides(e)
	if o.Diff == "" {
		return write(o.Factory.Streams, o.Factory.Format(), e, o.Terms)
	}
	other, err := Explain(ctx, a, problem, o.Factory.Settings.Kernel, o.Diff)
	if err != nil {
		return err
	}
	besides(other)
	return writeDiff(o.Factory.Streams, o.Factory.Format(), e, other, o.Terms)
}

// Explanation is one configuration with everything behind its prediction.
type Explanation struct {
	*session.Answer
	session.Entry
	// Besides is what the total has besides that of the model's terms, nil for A·B of matrices.
	Besides []arch.BesidesPart
}

// Explain asks for one configuration: the pick if config is empty.
func Explain(ctx context.Context, a arch.Architecture, p gemm.Problem, kernel, config string) (*Explanation, error) {
	a = arch.Whole(a, p)
	// The whole ranking is needed for the rank of the configuration.
	answers, err := session.Ask(ctx, a, []gemm.Problem{p}, session.Question{Kernel: kernel,
		Rejected: true, Terms: true})
	if err != nil {
		return nil, err
	}
	all := &answers[0]
	if all.Err != nil {
		return nil, all.Err
	}
	e := &Explanation{Answer: all}
	if config == "" {
		if all.Feasible == 0 {
			return nil, diag.Inputf("no configuration of %s fits %s", all.Arch.ID(), p).
				Do("name one with --config to see why it does not")
		}
		e.Entry = all.Entries[0]
		return e, nil
	}

	c, err := configOf(all, config)
	if err != nil {
		return nil, err
	}
	for i := range all.Entries {
		if candidate := &all.Entries[i]; same(candidate.Config, c) {
			e.Entry = *candidate // knows its rank, and why it was rejected
			break
		}
	}
	if e.Rank > 0 && (c.GroupM == 0 || c.GroupM == e.Config.GroupM) {
		return e, nil
	}
	// Not ranked, or with another launch order than the ranked one: ask the model.
	estimates := make([]arch.Estimate, 1)
	if err := a.Estimate(ctx, estimates, p, []gemm.Config{c}); err != nil {
		return nil, err
	}
	terms := make([]float64, len(all.Arch.Terms))
	if err := a.Terms(ctx, terms, p, []gemm.Config{c}); err != nil {
		return nil, err
	}
	if rejected := e.Estimate.Reject; rejected != "" && estimates[0].Reject != rejected {
		estimates[0] = e.Estimate // the candidate list has the last word on what can be used
	}
	if e.Detail == "" && estimates[0].Reject != "" {
		e.Detail = whyRejected(ctx, a, p, c)
	}
	e.Config, e.Candidate, e.Estimate, e.Terms = c, c, estimates[0], terms
	if e.Mapping, err = a.Mapping(ctx, p, c); err != nil {
		return nil, err
	}
	if c.GroupM == 0 {
		e.Config.GroupM = e.Mapping.GroupM
	}
	return e, nil
}

// whyRejected returns why a configuration is not a candidate, in numbers: an estimate has the reason alone. It is empty
// if the configuration is rejected for this problem only.
func whyRejected(ctx context.Context, a arch.Architecture, p gemm.Problem, c gemm.Config) string {
	c.GroupM = 0
	space, numbers := arch.Space{Kernel: c.Kernel}, c.Numbers()
	for i, values := range space.Numbers() {
		if values != nil {
			*values = []int{numbers[i]}
		}
	}
	for name, value := range c.Axes.All() {
		space.Axes = append(space.Axes, arch.AxisValues{Name: name, Values: []string{value}})
	}
	list, err := a.Candidates(ctx, p, space)
	if err != nil {
		return "" // the reason stands without it
	}
	for _, r := range list.Rejected {
		if r.Config == c {
			return r.Detail
		}
	}
	return ""
}

// configOf reads a configuration. A part that the text leaves out comes from the first candidate with that tile, or
// else from the first candidate.
func configOf(all *session.Answer, text string) (gemm.Config, error) {
	if len(all.Entries) == 0 {
		return gemm.Config{}, diag.Inputf("the model has no candidates for %s", all.Problem).
			Do("use another kernel family")
	}
	first := func(matches func(session.Entry) bool) (base gemm.Config, ok bool) {
		position := 0
		for _, e := range all.Entries {
			if matches(e) && (!ok || e.Position < position) {
				base, position, ok = e.Config, e.Position, true
			}
		}
		base.GroupM, base.SplitK = 0, 1
		return base, ok
	}
	axes := all.Arch.Axes(all.Kernel)
	base, _ := first(func(session.Entry) bool { return true })
	c, err := gemm.ParseConfig(text, base, axes...)
	if err != nil {
		return c, diag.Within("--config", err)
	}
	ofTile, ok := first(func(e session.Entry) bool {
		return e.Rank > 0 && e.Config.BlockM == c.BlockM && e.Config.BlockN == c.BlockN && e.Config.BlockK == c.BlockK
	})
	if ok {
		c, err = gemm.ParseConfig(text, ofTile, axes...)
	}
	c.Kernel = all.Kernel
	return c, diag.Within("--config", err)
}

// same compares what the estimate depends on before phase two: everything but the launch order.
func same(a, b gemm.Config) bool {
	a.GroupM, b.GroupM = 0, 0
	a.Kernel, b.Kernel = "", ""
	return a == b
}
