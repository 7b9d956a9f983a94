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
func (r *run) requests(m arch.Manifest) []arch.OpenRequest {
	var list []arch.OpenRequest
	for _, a := range m.Archs {
		devices, others := a.Devices, slices.Clone(a.Kernels)
		if r.Short {
			devices = devices[:1]
		}
		for i, d := range devices {
			for _, model := range a.Models {
				request := arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model}
				list = append(list, request)
				if i > 0 {
					continue
				}
				if opened, err := r.client.Open(r, request); err == nil {
					predicted := func(kernel string) bool { return slices.Contains(opened.Describe().Kernels, kernel) }
					others = slices.DeleteFunc(others, predicted)
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
func (r *run) open() ([]*target, error) {
	m, err := r.manifest()
	if err != nil {
		return nil, err
	}
	var targets []*target
	for _, request := range spread(r.requests(m), maxTargets) {
		a, err := r.client.Open(r, request)
		if err != nil {
			continue
		}
		for _, kernel := range a.Describe().Kernels {
			targets = append(targets, &target{a, request, kernel})
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

func (r *run) info() (wire.Info, error)         { return r.client.Info(r) }
func (r *run) manifest() (arch.Manifest, error) { return r.client.Manifest(r) }

// described returns a target of each model and device, without the other kernel families of the same model.
func (r *run) described() ([]*target, error) {
	targets, err := r.open()
	return slices.CompactFunc(targets, func(a, b *target) bool { return a.Describe() == b.Describe() }), err
}

// testcase is a target with a problem.
type testcase struct {
	*target
	problem    gemm.Problem
	candidates *arch.Candidates
	// estimates are the first answer for the candidates.
	estimates []arch.Estimate
	// err is why there is no answer.
	err error
}

func (c *testcase) String() string { return fmt.Sprintf("%s, %s", c.target, c.problem) }

// answered returns the cases in which a target answers. It asks only once. The others are in r.problems: the check
// "answers" reports them, and the other checks ignore them.
func (r *run) answered() ([]*testcase, error) {
	if !r.asked {
		if err := r.ask(); err != nil {
			return nil, err
		}
		r.asked = true
	}
	if len(r.cases) == 0 {
		return nil, skipped(`no problem is answered; see the check "answers"`)
	}
	return r.cases, nil
}

func (r *run) firstAnswered() (*testcase, error) {
	cases, err := r.answered()
	if err != nil {
		return nil, err
	}
	return cases[0], nil
}

// byTarget groups the answered cases, which are ordered by target.
func (r *run) byTarget() (groups [][]*testcase, err error) {
	cases, err := r.answered()
	for i, c := range cases {
		if i == 0 || cases[i-1].target != c.target {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups, err
}

func (r *run) ask() error {
	targets, err := r.open()
	if err != nil {
		return err
	}
	r.cases, r.problems = nil, nil
	for _, t := range targets {
		// By contract candidates depend only on the types and the layout, so several problems share a list.
		lists := map[gemm.Problem]*arch.Candidates{}
		for _, p := range problemsFor(t.Describe(), t.kernel, r.Short) {
			key := gemm.Problem{DType: p.DType, AMajor: p.AMajor, BMajor: p.BMajor, Groups: p.Groups}
			c := &testcase{target: t, problem: p, candidates: lists[key]}
			if c.candidates == nil {
				c.candidates, c.err = t.Candidates(r, p, t.space())
				lists[key] = c.candidates
			}
			if c.err == nil && len(c.candidates.Configs) == 0 {
				c.err = noCandidates(len(c.candidates.Rejected))
			}
			if c.err == nil {
				c.estimates = make([]arch.Estimate, len(c.candidates.Configs))
				c.err = t.Estimate(r, c.estimates, p, c.candidates.Configs)
			}
			switch {
			case r.Err() != nil:
				return r.Err()
			case c.err != nil:
				r.problems = append(r.problems, c)
			default:
				r.cases = append(r.cases, c)
			}
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

// positions are the positions of n candidates, which repeat if there are fewer.
func (c *testcase) positions(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i % len(c.candidates.Configs)
	}
	return list
}

func (c *testcase) all() []int { return c.positions(len(c.candidates.Configs)) }

// configs are the candidates at some positions.
func (c *testcase) configs(positions []int) []gemm.Config {
	list := make([]gemm.Config, len(positions))
	for i, j := range positions {
		list[i] = c.candidates.Configs[j]
	}
	return list
}

// compare estimates candidates with an architecture, and adds a finding for the first estimate that differs from that
// of the same candidate in the first answer.
func (c *testcase) compare(ctx context.Context, f *findings, a arch.Architecture, how string, positions []int) {
	got, configs := make([]arch.Estimate, len(positions)), c.configs(positions)
	if f.fails(a.Estimate(ctx, got, c.problem, configs), "%s: %s", c, how) {
		return
	}
	for i, j := range positions {
		if was := c.estimates[j]; !sameBits(got[i], was) {
			f.when(true, "%s, %s: %s, it is %s and was %s", c, configs[i], how, text(got[i]), text(was))
			return
		}
	}
}

// compareLists asks an architecture for the candidates and adds a finding if they differ from those of the first
// answer. It reports whether they are the same.
func (c *testcase) compareLists(ctx context.Context, f *findings, a arch.Architecture, how string,
	same func(a, b arch.Rejection) bool) bool {
	list, err := a.Candidates(ctx, c.problem, c.space())
	return !f.fails(err, "%s: %s", c, how) && !f.when(!slices.Equal(list.Configs, c.candidates.Configs) ||
		!slices.EqualFunc(list.Rejected, c.candidates.Rejected, same), "%s: %s, the candidates differ", c, how)
}

// problemsFor lists problems of every kind that is difficult for models, of a type that the kernel family takes, and
// one of each type that the model takes.
func problemsFor(d *arch.Description, kernel string, short bool) []gemm.Problem {
	dtype := gemm.FP16
	takes := func(a arch.Atom) bool { return a.DType == dtype }
	if len(d.Atoms) > 0 && !slices.ContainsFunc(d.Atoms, takes) {
		dtype = d.Atoms[0].DType
	}
	types, groups := gemm.Types{In: dtype}, gemm.Groups{}
	for _, f := range d.Families {
		if f.Name != kernel {
			continue
		}
		p := gemm.New(64, 64, 64)
		if p.DType = dtype; len(f.Types) > 0 && d.SupportsTypes(kernel, &p) != nil {
			types = f.Types[0]
		}
		if f.Groups {
			groups, _ = gemm.NewGroups(120, 33, 0, 512)
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
