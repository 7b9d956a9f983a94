package comparecmd

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// libraryFamily is the kernel family of what the vendor's tuned library takes: the one that published times can check.
const libraryFamily = "library"

// side is one architecture of a comparison.
type side struct {
	models.Found
	// dollars per second and watts are 0 if they are unknown.
	dollars, watts float64

	model  arch.Architecture
	desc   *arch.Description
	kernel string
	// err says why it answers no problem.
	err error
}

// open opens the sides. What is wrong with one of them is in it.
func open(ctx context.Context, o *Options) ([]side, error) {
	f := o.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	if err := checkTargets(targets); err != nil {
		return nil, err
	}
	if o.SameModel {
		if err := sameModel(f.Settings.Model, targets); err != nil {
			return nil, err
		}
	}
	sides := make([]side, len(targets))
	var wg sync.WaitGroup
	for i := range targets {
		sides[i].Found = targets[i]
		wg.Go(func() { sides[i].open(ctx, o) })
	}
	wg.Wait()
	for i := range sides {
		if s := &sides[i]; s.err == nil {
			f.WarnUnused(&s.Found, s.desc)
		}
	}
	if err := o.Price.assign("--price", sides, (*side).setPrice); err != nil {
		return nil, err
	}
	return sides, o.Watts.assign("--watts", sides, (*side).setWatts)
}

// checkTargets refuses what is no comparison.
func checkTargets(targets []models.Found) error {
	if len(targets) < 2 {
		other := "h200"
		if targets[0].Device.ID == other {
			other = "mi300x"
		}
		return diag.Inputf("compare needs at least two architectures, and one is given").At("--arch").
			Do("add another, as in --arch %s,%s", targets[0].Named, other)
	}
	for i := range targets {
		for j := range i {
			if targets[i].Label() == targets[j].Label() {
				return diag.Inputf("%s is given twice, which compares it with itself", targets[i].Label()).At("--arch").
					Do("name another, or change a hardware number of one, as in --arch %[1]s,%[1]s:clock=1.2GHz",
						targets[i].Named)
			}
		}
	}
	return nil
}

// sameModel makes the targets answer with one model.
func sameModel(asked string, targets []models.Found) error {
	if asked != "" {
		return diag.Inputf("--same-model and --model contradict each other").Do("leave one of them out")
	}
	model := models.Common(targets)
	if model == "" {
		return diag.Inputf("the architectures have no model in common").At("--same-model").Do("leave it out")
	}
	for i := range targets {
		targets[i].OpenRequest.Model = model
	}
	return nil
}

// open opens the model that a side answers with. It depends on nothing of the other sides.
func (s *side) open(ctx context.Context, o *Options) {
	if s.model, s.err = s.openModel(ctx, o.Factory); s.err != nil {
		return
	}
	s.desc = s.model.Describe()
	if s.kernel, s.err = ask.KernelFamily(s.desc, s.OpenRequest.Kernel); s.err == nil {
		search := o.search
		if search == nil {
			search = &o.Query.Search
		}
		s.model, s.err = search.Restrict(ctx, s.model, s.kernel, o.Factory.Streams.In)
	}
}

// openModel prefers the kernel family library, unless the user names another, or a model without it.
func (s *side) openModel(ctx context.Context, f *session.Factory) (arch.Architecture, error) {
	r := &s.OpenRequest
	if r.Kernel == "" && slices.Contains(s.Arch.Kernels, libraryFamily) {
		r.Kernel = libraryFamily
		a, err := f.Open(ctx, &s.Found)
		if r.Model == "" || err == nil || diag.KindOf(err) != diag.Input {
			return a, err
		}
		r.Kernel = ""
	}
	return f.Open(ctx, &s.Found)
}

// timed reports whether a side predicts times.
func (s *side) timed() bool { return s.err == nil && !s.desc.RanksOnly }

// askSides asks all sides at once. done is told how many predictions are made.
func askSides(
	ctx context.Context, o *Options, sides []side, list []problems.Problem, done func(predictions int),
) (*comparison, error) {
	c := &comparison{sides: sides, rows: make([]row, len(list))}
	targets := make([]models.Found, len(sides))
	for i := range sides {
		targets[i] = sides[i].Found
	}
	c.common = models.Common(targets)
	problems := make([]gemm.Problem, len(list))
	for i := range list {
		problems[i] = list[i].Problem
		c.rows[i] = row{Problem: list[i], sides: sides, answers: make([]ask.Ranking, len(sides))}
	}
	var wg sync.WaitGroup
	for i := range sides {
		wg.Go(func() { c.fill(ctx, i, problems, done) })
	}
	wg.Wait()
	return c, ctx.Err()
}

// fill asks one side about all problems, a few at a time: a plugin has to hold what it is asked at once. done is told
// how many.
func (c *comparison) fill(ctx context.Context, i int, problems []gemm.Problem, done func(int)) {
	const atOnce = 64
	s := &c.sides[i]
	for from := 0; from < len(problems); from += atOnce {
		part := problems[from:min(from+atOnce, len(problems))]
		var answers []ask.Ranking
		if s.err == nil {
			answers, s.err = ask.Rank(ctx, s.model, ask.Question{Problems: part, Kernel: s.kernel, Top: 1, Terms: true})
		}
		done(len(part))
		for j := range part {
			if s.err == nil {
				c.rows[from+j].answers[i] = answers[j]
			} else {
				c.rows[from+j].answers[i].Err = s.err
			}
		}
	}
}

// reportFailures tells the user which sides failed. The error that it returns carries the exit code.
func (c *comparison) reportFailures(s *table.Streams, rows *session.Failures) error {
	var failure error
	keep := func(err error) {
		s.Report(err)
		if failure == nil || diag.KindOf(err) == diag.Plugin && diag.KindOf(failure) != diag.Plugin {
			failure = err
		}
	}
	c.faults(keep)
	unread := rows.Err()
	if failure == nil {
		return unread
	}
	return &iostreams.Reported{Err: failure}
}

// faults tells which sides failed, and where they have no answer.
func (c *comparison) faults(tell func(error)) {
	for i := range c.sides {
		if err := c.sides[i].err; err != nil {
			if label := c.sides[i].Label(); !strings.HasPrefix(err.Error(), "--arch ") {
				err = diag.Within(label, err)
			}
			tell(err)
			continue
		}
		for j := range c.rows {
			if err := c.rows[j].answers[i].Err; err != nil {
				tell(diag.Within(c.rows[j].Where, diag.Within(c.sides[i].Label(), err)))
			}
		}
	}
}
