package ask

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Question is what to ask a model. It is a plain value.
type Question struct {
	// the products
	Problems []gemm.Problem
	// the kernel family; the first one of the architecture otherwise
	Kernel string
	// the configurations to choose from; the model's otherwise
	Space models.Space
	// how many entries to return, best first; 0 means all
	Top int
	// whether to return the terms of each entry
	Terms bool
	// whether to return Ranking.Regret, and at least as many entries as are worth measuring
	Regret bool
	// whether to return the picks of the other kernel families of the device
	Ways bool
	// whether to return what would be faster than the pick
	Advice bool
	// whether to append the configurations that cannot be used, by Position, after the ranked ones
	Rejected bool
}

// Rankings ranks the candidates for each problem. What is wrong with one problem is in its Ranking; the error is for
// the question as a whole.
func Rankings(ctx context.Context, a arch.Architecture, q Question) ([]Ranking, error) {
	problems := q.Problems
	a = arch.Whole(a, problems...)
	d := a.Describe()
	if q.Kernel == "" && len(problems) > 0 && problems[0].Nest != (gemm.Nest{}) {
		q.Kernel = d.NestFamily()
	}
	kernel, err := KernelFamily(d, q.Kernel)
	if err != nil {
		return nil, err
	}
	space, err := q.Space.Of(d, kernel)
	if err != nil {
		return nil, err
	}
	request := selector.Request{Problems: problems, Space: space, Top: q.Top}
	if q.Regret && q.Top > 0 && d.HasSigma(kernel) {
		request.Top = max(q.Top, measure.RegretCandidates)
	}
	results, list, err := selector.RankListed(ctx, a, request)
	if err != nil {
		return nil, err
	}
	if len(results) != len(problems) {
		return nil, &diag.Error{Kind: diag.Plugin, Where: d.ID(),
			What: "the plugin answered another number of problems than it was asked",
			Fix:  "report it to the plugin's author"}
	}
	answers := make([]Ranking, len(problems))
	for i := range results {
		r := &results[i]
		answers[i] = Ranking{
			Arch: d, Kernel: kernel, Problem: problems[i], DRAMPeak: PeakBandwidth(a),
			Feasible: r.Feasible, Rejected: r.Rejected, Err: r.Err,
		}
		if err := answers[i].fill(ctx, a, list, q, r); err != nil {
			answers[i].Err, answers[i].Entries = err, nil
		}
	}
	return answers, nil
}

// fill turns the result of a ranking into entries and adds what q asks for.
func (a *Ranking) fill(ctx context.Context, m arch.Architecture, listed *selector.Lists, q Question,
	r *selector.Result) error {
	// When nothing fits there are still rejected configurations to list.
	nothingFits := r.Err != nil && r.Feasible == 0 && len(r.Rejected) > 0
	if r.Err != nil && (!nothingFits || !q.Rejected) {
		return nil
	}
	a.Err = nil
	for i, e := range r.Entries {
		a.Entries = append(a.Entries, Entry{Rank: i + 1, Position: e.Index, Config: e.Config, Estimate: e.Estimate,
			Mapping: e.Mapping})
	}
	if q.Regret && len(a.Entries) > 0 {
		a.weigh(q.Top)
	}
	if !q.Terms && !q.Rejected {
		return nil
	}
	return a.complete(ctx, m, listed, q)
}

// weigh fills in Regret if the model states its uncertainty, and drops the entries that were not asked for and are not
// worth measuring.
func (a *Ranking) weigh(top int) {
	times := make([]unit.Seconds, len(a.Entries))
	for i := range a.Entries {
		times[i] = a.Arch.Own(a.Seconds(&a.Entries[i]), a.Problem)
	}
	keep := top
	if a.Regret = RegretOf(a.Scope(&a.Entries[0]).Uncertainty, times); a.Regret != nil {
		keep = max(top, a.Regret.WorthMeasuring)
	}
	if top > 0 && keep < len(a.Entries) {
		a.Entries = a.Entries[:keep]
	}
}

// fewEntries is up to how many entries it takes less time to ask a plugin for one candidate each than for all of them.
const fewEntries = 4

// complete adds terms and rejected configurations.
func (a *Ranking) complete(ctx context.Context, m arch.Architecture, listed *selector.Lists, q Question) error {
	var all *arch.Candidates
	var list []gemm.Config
	var err error
	switch {
	case q.Rejected:
		if all, err = listed.Of(ctx, a.Problem); err == nil {
			list = all.Configs
		}
	case len(a.Entries) > fewEntries:
		list, err = listed.Configs(ctx, a.Problem)
	}
	if err != nil {
		return err
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		if list != nil {
			e.Candidate = list[e.Position]
			continue
		}
		if e.Candidate, err = listed.Candidate(ctx, a.Problem, e.Position, e.Config); err != nil {
			return err
		}
	}
	if q.Rejected {
		rejected, err := a.rejections(ctx, m, all)
		if err != nil {
			return err
		}
		a.Entries = append(a.Entries, rejected...)
	}
	if q.Terms && len(a.Entries) > 0 {
		configs := make([]gemm.Config, len(a.Entries))
		for i := range a.Entries {
			configs[i] = a.Entries[i].Candidate
		}
		n := len(a.Arch.Terms)
		rows := make([]float64, len(configs)*n)
		if err := m.Terms(ctx, rows, a.Problem, configs); err != nil {
			return err
		}
		for i := range a.Entries {
			a.Entries[i].Terms = rows[i*n : (i+1)*n : (i+1)*n]
		}
	}
	return nil
}

// rejections returns the configurations that the list rejects, and those that the estimates reject for this problem. It
// turns every Position of a.Entries into the position in the whole enumeration.
func (a *Ranking) rejections(ctx context.Context, m arch.Architecture, list *arch.Candidates) ([]Entry, error) {
	estimates := make([]arch.Estimate, len(list.Configs))
	if err := m.Estimate(ctx, estimates, a.Problem, list.Configs); err != nil {
		return nil, err
	}
	var out []Entry
	// The rejected keep their places and the candidates fill the others in order.
	positions := make([]int, len(list.Configs))
	next, position := 0, 0
	for i := range list.Configs {
		for next < len(list.Rejected) && list.Rejected[next].Position <= position {
			next++
			position++
		}
		positions[i] = position
		position++
	}
	for _, r := range list.Rejected {
		out = append(out, Entry{Position: r.Position, Config: r.Config, Candidate: r.Config,
			Estimate: arch.Estimate{Reject: r.Reason}, Detail: r.Detail})
	}
	for i, e := range estimates {
		if e.Reject != "" {
			out = append(out, Entry{Position: positions[i], Config: list.Configs[i],
				Candidate: list.Configs[i], Estimate: e})
		}
	}
	slices.SortFunc(out, func(x, y Entry) int { return x.Position - y.Position })
	for i := range a.Entries {
		a.Entries[i].Position = positions[a.Entries[i].Position]
	}
	return out, nil
}

// RankAmong returns a model's ranking for a problem, with its pick among a list of configurations as the first entry. A
// problem without a pick has its error in the ranking.
func RankAmong(ctx context.Context, a arch.Architecture, kernel string, p gemm.Problem, list []gemm.Config) (
	*Ranking, error,
) {
	all, err := Rankings(ctx, arch.WithCandidates(a, list), Question{Problems: []gemm.Problem{p}, Kernel: kernel, Top: 1})
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// KernelFamily checks the name of a kernel family against those that a model predicts; empty means the first.
func KernelFamily(d *arch.Description, name string) (string, error) {
	kernel, err := d.Kernel(models.Family(name))
	return kernel, diag.Within("--kernel", err)
}
