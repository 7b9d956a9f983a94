package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/wire"
)

// target is one model of one architecture on one device, open, with one of its kernel families.
type target struct {
	*wire.Architecture
	request arch.OpenRequest
	kernel  string
}

func (t *target) String() string {
	return fmt.Sprintf("%s@%s %s %s", t.request.Arch, t.request.Device, t.request.Model, t.kernel)
}

func (t *target) space() arch.Space { return arch.Space{Kernel: t.kernel} }

// requests lists every model on every device of the manifest, and the kernel families that these do not predict: their
// model is opened by the name of the family.
func (s *subject) requests(ctx context.Context, m arch.Manifest) []arch.OpenRequest {
	var list []arch.OpenRequest
	for _, a := range m.Archs {
		devices := a.Devices
		if s.Short {
			devices = devices[:min(1, len(devices))]
		}
		others := slices.Clone(a.Kernels)
		for i, d := range devices {
			for _, model := range a.Models {
				r := arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model}
				list = append(list, r)
				if i > 0 {
					continue
				}
				if opened, err := s.client.Open(ctx, r); err == nil {
					predicted := opened.Describe().Kernels
					others = slices.DeleteFunc(others, func(k string) bool { return slices.Contains(predicted, k) })
				}
			}
			for _, kernel := range others {
				list = append(list, arch.OpenRequest{Arch: a.ID, Device: d.ID, Kernel: kernel})
			}
		}
	}
	return list
}

// maxTargets limits the targets of the checks of predictions. From a longer list they take an even sample.
const maxTargets = 32

// open opens everything that the manifest lists, except what does not open: the check "open" reports that.
func (s *subject) open(ctx context.Context) ([]*target, error) {
	m, err := s.client.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	var targets []*target
	for _, r := range spread(s.requests(ctx, m), maxTargets) {
		a, err := s.client.Open(ctx, r)
		if err != nil {
			continue
		}
		for _, kernel := range a.Describe().Kernels {
			targets = append(targets, &target{a, r, kernel})
		}
	}
	if len(targets) == 0 {
		return nil, skipped(`nothing opens; see the check "open"`)
	}
	return spread(targets, maxTargets), nil
}

// spread returns at most n elements of a list, evenly spread and the first among them.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	short := make([]T, n)
	for i := range short {
		short[i] = list[i*len(list)/n]
	}
	return short
}

func (s *subject) info(ctx context.Context) (wire.Info, error)         { return s.client.Info(ctx) }
func (s *subject) manifest(ctx context.Context) (arch.Manifest, error) { return s.client.Manifest(ctx) }

// described returns a target of each model and device, without the other kernel families of the same model.
func (s *subject) described(ctx context.Context) ([]*target, error) {
	targets, err := s.open(ctx)
	return slices.CompactFunc(targets, func(a, b *target) bool { return a.Describe() == b.Describe() }), err
}

// testcase is a target with a problem that it answers.
type testcase struct {
	*target
	problem    gemm.Problem
	candidates *arch.Candidates
	// estimates are the first answer for the candidates.
	estimates []arch.Estimate
}

func (c *testcase) String() string { return fmt.Sprintf("%s, %s", c.target, c.problem) }

// unanswered is a problem to which a target has no answer.
type unanswered struct {
	target  *target
	problem gemm.Problem
	err     error
}

func (u *unanswered) Error() string {
	return fmt.Sprintf("%s, %s: %s", u.target, u.problem, oneLine(u.err))
}
func (u *unanswered) Unwrap() error { return u.err }

// answered returns the cases in which a target answers. It asks only once. The others are in s.problems: the check
// "answers" reports them, and the other checks ignore them.
func (s *subject) answered(ctx context.Context) ([]*testcase, error) {
	if !s.asked {
		if err := s.ask(ctx); err != nil {
			return nil, err
		}
		s.asked = true
	}
	if len(s.cases) == 0 {
		return nil, skipped(`no problem is answered; see the check "answers"`)
	}
	return s.cases, nil
}

func (s *subject) firstAnswered(ctx context.Context) (*testcase, error) {
	cases, err := s.answered(ctx)
	if err != nil {
		return nil, err
	}
	return cases[0], nil
}

func (s *subject) ask(ctx context.Context) error {
	targets, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.cases, s.problems = nil, nil
	for _, t := range targets {
		// By contract candidates depend only on the types and the layout, so several problems share a list.
		lists := map[gemm.Problem]*arch.Candidates{}
		for _, p := range problemsFor(t.Describe(), t.kernel, s.Short) {
			key := gemm.Problem{DType: p.DType, AMajor: p.AMajor, BMajor: p.BMajor, Groups: p.Groups}
			c := &testcase{target: t, problem: p, candidates: lists[key]}
			var err error
			if c.candidates == nil {
				c.candidates, err = t.Candidates(ctx, p, t.space())
				lists[key] = c.candidates
			}
			if err == nil && len(c.candidates.Configs) == 0 {
				err = noCandidates(len(c.candidates.Rejected))
			}
			if err == nil {
				c.estimates = make([]arch.Estimate, len(c.candidates.Configs))
				err = t.Estimate(ctx, c.estimates, p, c.candidates.Configs)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.problems = append(s.problems, &unanswered{t, p, err})
				continue
			}
			s.cases = append(s.cases, c)
		}
	}
	return nil
}

// noCandidates is the error of a problem without a usable candidate. If all are rejected with reasons, it is of kind
// input.
func noCandidates(rejected int) error {
	if rejected > 0 {
		return diag.Inputf("all %d candidates are rejected", rejected)
	}
	return errors.New("no candidates, not even rejected ones")
}

// feasible returns the positions of at most n feasible candidates, spread over the list and including the best.
func (c *testcase) feasible(n int) []int {
	var all []int
	best := -1
	for i, e := range c.estimates {
		if e.Reject == "" {
			all = append(all, i)
			if best < 0 || e.Cycles < c.estimates[best].Cycles {
				best = i
			}
		}
	}
	some := spread(all, n)
	if best >= 0 && !slices.Contains(some, best) {
		some = append(slices.Clone(some[:len(some)-1]), best)
	}
	return some
}

// problemsFor lists problems of every kind that is difficult for models, of a type that the kernel family takes, and
// one of each type that the model takes.
func problemsFor(d *arch.Description, kernel string, short bool) []gemm.Problem {
	dtype := gemm.FP16
	takes := func(t gemm.DType) bool {
		return slices.ContainsFunc(d.Atoms, func(a arch.Atom) bool { return a.DType == t })
	}
	if !takes(dtype) && len(d.Atoms) > 0 {
		dtype = d.Atoms[0].DType
	}
	supports := func(t gemm.DType) bool {
		p := gemm.New(64, 64, 64)
		p.DType = t
		return d.SupportsTypes(kernel, &p) == nil
	}
	types, groups := gemm.Types{In: dtype}, gemm.Groups{}
	for i := range d.Families {
		if f := &d.Families[i]; f.Name == kernel {
			if len(f.Types) > 0 && !supports(dtype) {
				types = f.Types[0]
			}
			if f.Groups {
				groups, _ = gemm.NewGroups(120, 33, 0, 512)
			}
		}
	}
	problem := func(m, n, k, batch int, transA, transB bool) gemm.Problem {
		p := gemm.New(m, n, k)
		p.Batch, p.DType, p.Out = batch, types.In, types.Out
		p.SetTrans(transA, transB)
		return p.Canonical()
	}
	list := []gemm.Problem{
		problem(2048, 2048, 2048, 1, false, false),
		problem(1, 1, 1, 1, false, false),             // tiny
		problem(1021, 2039, 509, 1, false, true),      // prime
		problem(1, 4096, 4096, 1, true, false),        // one row
		problem(65536, 16, 1024, 1, false, false),     // tall
		problem(64, 64, 1<<20, 1, false, false),       // long K
		problem(8192, 8192, 8192, 1, true, true),      // large
		problem(512, 384, 256, 96, false, false),      // batched
		problem(1<<16, 1<<16, 1<<14, 1, false, false), // huge
	}
	if short {
		list = list[:4]
	}
	if groups != (gemm.Groups{}) {
		list = append(list, problem(1, 768, 512, 1, false, true))
		list[len(list)-1].SetGroups(groups)
	}
	for _, a := range d.Atoms {
		if a.DType != dtype {
			p := problem(1000, 3000, 777, 1, false, false)
			p.DType = a.DType
			list = append(list, p)
		}
	}
	return list
}

// sameBits reports whether two estimates are the same, to the bit.
func sameBits(a, b arch.Estimate) bool {
	return math.Float64bits(float64(a.Cycles)) == math.Float64bits(float64(b.Cycles)) && a.Bound == b.Bound &&
		a.Reject == b.Reject
}

// text is an estimate in a finding.
func text(e arch.Estimate) string {
	if e.Reject != "" {
		return fmt.Sprintf("rejected (%s)", e.Reject)
	}
	return fmt.Sprintf("%v cycles, %s", float64(e.Cycles), e.Bound)
}

// expectInput adds a finding unless an error is one of kind input.
func expectInput(found *findings, what string, err error) {
	var d *diag.Error
	switch {
	case err == nil:
		found.add("%s is accepted; it must be an error of kind input", what)
	case !errors.As(err, &d) || d.Kind != diag.Input:
		found.add("%s: the error is of kind %s, not input: %s", what, diag.KindOf(err), err)
	case d.What == "":
		found.add("%s: the error does not say what is wrong", what)
	}
}
