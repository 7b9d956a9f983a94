package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/score"
)

// mostDetailed is how many problems a page shows in detail.
const mostDetailed = 8

// mostAsked is how many architectures a page of a server is about: each takes seconds of computing.
const mostAsked = 8

// subject is an architecture that a page is about.
type subject struct {
	ask.Contender
	// verdict is how the model did against measurements, nil without any, and where nobody asks for it.
	verdict *verdict
}

// builder makes a page.
type builder struct {
	*Options
	subjects []subject
	problems []problems.Problem
	labels   []string
	// failures has the rows that cannot be read, and those that a model does not answer.
	failures *session.Failures
	page     *report.Page
	// done and all count the parts of the work.
	done, all int
	progress  func(done, all int)
}

func (b *builder) step() {
	b.done++
	b.progress(b.done, b.all)
}

// Build makes the page. progress is told how much of it is done. The failures are the problems without an answer, which
// the page shows as such.
func Build(ctx context.Context, o *Options, progress func(done, all int)) (*report.Page, *session.Failures, error) {
	b := &builder{Options: o, progress: progress}
	err := b.open(ctx)
	if err == nil {
		err = b.read(ctx)
	}
	if err == nil {
		err = b.build(ctx)
	}
	return b.page, b.failures, err
}

func (b *builder) build(ctx context.Context) error {
	b.begin()
	detailed := b.problems[:min(len(b.problems), mostDetailed)]
	for i := range b.subjects {
		s := &b.subjects[i]
		s.Contender = *s.For(ctx, &detailed[0].Problem)
	}
	b.all = len(b.subjects)*(len(detailed)+numWhatIfs+mapSteps+1) + 1
	if len(b.subjects) > 1 {
		list := &session.ProblemList{Problems: b.problems, Labels: b.labels, Failures: b.failures}
		if err := comparecmd.AddTo(ctx, b.page, b.Factory, &b.Query.Search, list); err != nil {
			return err
		}
	}
	b.step()
	if err := b.details(ctx, detailed); err != nil {
		return err
	}
	if err := b.maps(ctx, detailed[0].Problem); err != nil {
		return err
	}
	b.scores()
	return nil
}

// open opens the models, each in the family that was asked for or its first.
func (b *builder) open(ctx context.Context) error {
	f := b.Factory
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return err
	}
	if b.Ask != "" && len(targets) > mostAsked {
		return diag.Inputf("%d architectures are asked for, and a page of a server has at most %d", len(targets), mostAsked).
			At("--arch").Do("leave some out")
	}
	sides, err := f.Sides(ctx, targets, &b.Query.Search, false)
	if err != nil {
		return err
	}
	b.subjects = make([]subject, len(sides))
	for i := range sides {
		s := &b.subjects[i]
		s.Contender = sides[i]
		if b.Ask != "" && !b.Measured {
			continue
		}
		if s.verdict, err = b.Memory.verdict(s, func() (*verdict, error) { return b.evaluated(ctx, s, i == 0) }); err != nil {
			return err
		}
	}
	return nil
}

// recordsOf reads the measurements that a model is held against: those that the user names, for the first architecture,
// or those that are shipped. It is nil where there are none.
func (b *builder) recordsOf(ctx context.Context, s *subject, first bool) (*score.Subset, error) {
	named := b.Records != "" && first
	subset, err := session.Subset(ctx, func() (*dataset.Dataset, error) {
		if named {
			return datastore.Folder(ctx, s.Describe(), b.Factory.Settings.Kernel, "--records", b.Records)
		}
		return datastore.Shipped(s.Describe(), s.Kernel, "--records")
	})
	switch {
	case err != nil && !named && diag.KindOf(err) == diag.Input:
		return nil, nil
	case err != nil:
		return nil, err
	case len(subset.Problems) == 0 || subset.OnePerProblem():
		return nil, nil
	}
	return subset, nil
}

// read reads the problems: those that are asked about, or else those of the measurements.
func (b *builder) read(ctx context.Context) error {
	q := &b.Query
	if q.Asks() || b.subjects[0].verdict == nil {
		problems, err := q.Read(ctx, b.Factory)
		if err != nil {
			return err
		}
		defer problems.Close()
		if b.problems, err = problems.List(); err != nil {
			return err
		}
		b.failures = problems.Failures
		if b.labels = problems.Labels(); len(b.problems) == 0 {
			return cmp.Or(problems.Failures.Err(), error(diag.Inputf("there are no problems").At("--problems").Do("add a row")))
		}
		return nil
	}
	b.failures = b.Factory.Failures(ctx)
	for _, p := range largestFirst(b.subjects[0].verdict.problems) {
		b.problems = append(b.problems, problems.Problem{Problem: p})
	}
	return nil
}

// largestFirst puts the problems that take longest first.
func largestFirst(problems []gemm.Problem) []gemm.Problem {
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(x, y gemm.Problem) int { return cmp.Compare(y.Flops(), x.Flops()) })
	return sorted
}

// begin writes the head of the page.
func (b *builder) begin() {
	names := make([]string, len(b.subjects))
	for i := range b.subjects {
		names[i] = b.subjects[i].Describe().DeviceName
		if b.subjects[i].WhatIf != "" {
			names[i] += " with " + b.subjects[i].WhatIf
		}
	}
	about := digits.Plural(len(b.problems), "problem", "problems")
	if len(b.problems) == 1 {
		about = b.problems[0].String()
	}
	b.page = &report.Page{
		Title: printable.Line(strings.Join(names, " beside ") + ": " + about),
		Lead:  "What origami's models predict, why, and how far they are to be trusted. No GPU was used to make this page.",
		Footer: fmt.Sprintf("Written by %s on %s with: %s", session.Software(), time.Now().UTC().Format(time.DateOnly),
			printable.Line("origami "+strings.Join(b.Factory.Args, " "))),
	}
}

// details adds what each model says of each problem.
func (b *builder) details(ctx context.Context, problems []problems.Problem) error {
	title := "Picks, one by one"
	if len(b.subjects)*len(b.problems) == 1 {
		title = "The pick"
	}
	s := b.page.Section(title)
	if left := len(b.problems) - len(problems); left > 0 {
		s.Text(fmt.Sprintf("Details of the first %d of %d problems. `origami serve` answers for any.", len(problems),
			len(b.problems)))
	}
	var titles []string
	for i := range b.subjects {
		for j := range problems {
			titles = append(titles, fmt.Sprintf("%s, %s", problems[j].Problem, b.subjects[i].Called()))
		}
	}
	panels := s.Choice("Problem and device", titles)
	for i := range b.subjects {
		grid, err := b.whatIfs(ctx, &b.subjects[i], problems)
		if err != nil {
			return err
		}
		for j := range problems {
			panel := panels[i*len(problems)+j]
			pick, err := b.detail(ctx, panel, &b.subjects[i], &problems[j])
			if err != nil {
				return err
			}
			grid.add(panel, j, pick, grid.question(b, &b.subjects[i], &problems[j].Problem))
			b.step()
		}
	}
	return nil
}
