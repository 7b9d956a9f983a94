package comparecmd

import (
	"context"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// open opens the sides, and returns the model that all of them have. What is wrong with a side is in it.
func open(ctx context.Context, o *Options) (sides []ask.Contender, common string, err error) {
	f := o.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, "", err
	}
	if err := checkTargets(targets); err != nil {
		return nil, "", err
	}
	if o.SameModel {
		if err := sameModel(f.Settings.Model, targets); err != nil {
			return nil, "", err
		}
	}
	search := o.search
	if search == nil {
		search = &o.Query.Search
	}
	sides = make([]ask.Contender, len(targets))
	var group ask.Group
	for i := range targets {
		group.Go(func() {
			one, err := f.OpenSide(ctx, &targets[i], search)
			one.Found, one.Err = targets[i], err
			sides[i] = one
		})
	}
	group.Wait()
	for i := range sides {
		if s := &sides[i]; s.Err == nil {
			f.WarnUnused(&s.Found, s.Model.Describe())
		}
	}
	err = o.Price.assign("--price", sides, func(s *ask.Contender, perHour float64) { s.Dollars = perHour / 3600 })
	if err == nil {
		err = o.Watts.assign("--watts", sides, func(s *ask.Contender, watts float64) { s.Watts = watts })
	}
	return sides, models.Common(targets), err
}

// checkTargets refuses what is no comparison.
func checkTargets(targets []models.Found) error {
	if len(targets) < 2 {
		other := session.ExampleDevice
		if targets[0].Device.ID == other {
			other = session.OtherDevice
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

// reportFailures tells the user which sides failed. The error that it returns carries the exit code.
func (c *comparison) reportFailures(s *iostreams.Streams, rows *session.Failures) error {
	var failure error
	c.faults(func(err error) {
		s.Report(err)
		if failure == nil || diag.KindOf(err) == diag.Plugin && diag.KindOf(failure) != diag.Plugin {
			failure = err
		}
	})
	unread := rows.Err()
	if failure == nil {
		return unread
	}
	return &iostreams.Reported{Err: failure}
}

// faults tells which sides failed, and where they have no answer.
func (c *comparison) faults(tell func(error)) {
	for i := range c.sides {
		if err := c.sides[i].Err; err != nil {
			if label := c.sides[i].Label(); !strings.HasPrefix(err.Error(), "--arch ") {
				err = diag.Within(label, err)
			}
			tell(err)
			continue
		}
		for j := range c.rows {
			if err := c.rows[j].Answers[i].Err; err != nil {
				tell(diag.Within(c.rows[j].Where, diag.Within(c.sides[i].Label(), err)))
			}
		}
	}
}
