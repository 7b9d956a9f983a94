package session

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Answer is what a model says about one problem.
type Answer struct {
	Arch    *arch.Description
	Kernel  string
	Problem gemm.Problem
	// Labels are those of the row of the problems file, see Problems.Labels.
	Labels []string
	// DRAMPeak is the bandwidth of the device's DRAM in bytes per second, 0 if it is unknown.
	DRAMPeak float64
	// Entries are the ranked candidates, best first.
	Entries []Entry
	// Feasible counts the usable candidates, Rejected the others by reason.
	Feasible int
	Rejected []selector.ReasonCount
	// Err says why there is no answer.
	Err error
	// Instead is the kernel family that was asked for and has no kernel for the problem, empty if Kernel is that.
	Instead string
	// Regret is what the model's uncertainty means for the pick. It is nil unless asked for, and nil for a model that
	// states no uncertainty.
	Regret *Regret
	// Measured are the measurements that the first entry was chosen by, nil if there are none.
	Measured *Measured
	// Contraction is what the answer means for the contraction that was asked about, nil if a GEMM was.
	Contraction *Contracted
	// Logic says which part of a library logic chose the first entry, nil if none was asked.
	Logic *LogicPick
}

// LogicPick is what a library logic says about a problem.
type LogicPick struct {
	File  string
	Layer logic.Layer
	// Kernel is the name of the kernel, empty if the logic leaves the answer to the model.
	Kernel string
}

// Measured is what was measured to choose among the leading candidates.
type Measured struct {
	Executor, Device string
	// Auto says that the model's uncertainty decided how many there are. It can decide that none is worth measuring.
	Auto bool
	// Candidates are in predicted order.
	Candidates []Candidate
	// Noise is the larger ÷ the smaller of two measurements of the first candidate − 1, NaN if there are none.
	Noise float64
}

// Candidate is an entry with its measurement.
type Candidate struct {
	Entry       Entry
	Measurement dataset.Measurement
	Chosen      bool
}

// Regret is what the uncertainty of predicted times means for a pick that was not measured.
type Regret struct {
	// Expected is the expected regret: the time of the pick ÷ the time of the fastest candidate − 1, on average.
	Expected float64
	// WorthMeasuring is how many candidates are worth measuring before one takes the fastest of them. It counts the
	// pick.
	WorthMeasuring int
}

// RejectedTotal returns how many candidates were rejected.
func (a *Answer) RejectedTotal() int {
	r := selector.Result{Rejected: a.Rejected}
	return r.RejectedTotal()
}

// Entry is one configuration and what the model predicts for it.
type Entry struct {
	// Rank is 1 for the best, 0 for a configuration that cannot be used.
	Rank int
	// Position is the entry's place in the candidate list; with Question.Rejected in the whole enumeration.
	Position int
	// Config has GroupM from the mapping where phase two has run.
	Config   gemm.Config
	Estimate arch.Estimate
	Mapping  arch.Mapping
	// Detail says in numbers why the configuration was rejected, where the model does.
	Detail string
	// Terms is the row of the model's terms, nil unless asked for. It belongs to Candidate: the configuration as the
	// model ranked it, before phase two chose its launch order.
	Terms     []float64
	Candidate gemm.Config
}

// Seconds returns the predicted time.
func (a *Answer) Seconds(e *Entry) unit.Seconds { return e.Estimate.Cycles.At(a.Arch.Clock) }

// Scope says what the model knows of the error of an entry's predicted time.
func (a *Answer) Scope(e *Entry) arch.Scope {
	return a.Arch.Scope(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Nearest returns the uncertainty that was found on the problems most similar to an entry's, nil if there is none.
func (a *Answer) Nearest(e *Entry) *arch.Uncertainty {
	return a.Arch.Nearest(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Outside lists how an entry lies outside of what the model was checked on. It is empty inside.
func (a *Answer) Outside(e *Entry) []string {
	return a.Arch.Outside(a.Kernel, &a.Problem, e.Config.SplitK)
}

// Interval returns the interval of an entry's predicted time, and false where the model has none.
func (a *Answer) Interval(e *Entry) (low, high unit.Seconds, ok bool) {
	if e.Estimate.Reject != "" {
		return 0, 0, false
	}
	return a.Scope(e).Interval(e.Estimate.Bound, a.Seconds(e))
}

// Widened returns how many times as wide an entry's interval is as inside of what the model was checked on, and false
// if the entry lies inside or has no interval.
func (a *Answer) Widened(e *Entry) (float64, bool) {
	scope := a.Scope(e)
	low, high, ok := a.Interval(e)
	if !ok || !scope.Wide {
		return 0, false
	}
	insideLow, insideHigh, ok := scope.Uncertainty.Interval(e.Estimate.Bound, a.Seconds(e))
	return float64((high - low) / (insideHigh - insideLow)), ok && insideHigh > insideLow
}

// Rate returns the predicted arithmetic rate, 2·m·n·k·batch over the predicted time.
func (a *Answer) Rate(e *Entry) unit.FlopsPerSecond {
	return unit.FlopsPerSecond(a.Problem.Flops() / float64(a.Seconds(e)))
}

// PeakShare returns Rate over the data sheet's peak, and false where no peak is known.
func (a *Answer) PeakShare(e *Entry) (float64, bool) {
	peak := a.Arch.PeakFor(a.Problem.DType)
	if peak <= 0 {
		return 0, false
	}
	return float64(a.Rate(e) / peak), true
}

// Share returns the i-th term as a part of the total, and false for a term that is not a part of it.
func (a *Answer) Share(e *Entry, i int) (float64, bool) {
	if e.Terms == nil || a.Arch.Terms[i].Kind != arch.KindShare {
		return 0, false
	}
	total, ok := a.Total(e)
	return e.Terms[i] / total, ok
}

// Total returns the total that the shares of an entry add up to, and false if it has none.
func (a *Answer) Total(e *Entry) (float64, bool) {
	if e.Estimate.Reject == "" && e.Estimate.Cycles > 0 {
		return float64(e.Estimate.Cycles), true
	}
	for i, t := range a.Arch.Terms {
		if e.Terms != nil && t.Kind == arch.KindTotal && e.Terms[i] > 0 && e.Terms[i] < arch.RejectedTotal {
			return e.Terms[i], true
		}
	}
	return 0, false
}

// Entering reports which terms of an entry enter its total, nil if the model does not say so.
func (a *Answer) Entering(e *Entry) []bool {
	if e.Terms == nil {
		return nil
	}
	return formula.Entering(a.Arch, formula.Values(a.Arch, a.Problem, e.Candidate, e.Terms))
}

// IsRejectedTotal reports whether a term's value stands for "the model rejects this".
func IsRejectedTotal(t arch.Term, v float64) bool {
	return t.Kind == arch.KindTotal && v == arch.RejectedTotal
}

// Question says what to ask a model about each problem.
type Question struct {
	// Kernel is the kernel family, empty for the architecture's first. Others are asked in turn about the problems that it
	// has no kernel for.
	Kernel string
	Others []string
	// Top is how many entries to return, best first; 0 means all.
	Top int
	// Terms asks for the terms of each entry.
	Terms bool
	// Regret asks for Answer.Regret, and for at least as many entries as are worth measuring.
	Regret bool
	// Rejected appends the configurations that cannot be used, by Position, after the ranked ones.
	Rejected bool
}

// Ask ranks the candidates for each problem. What is wrong with one problem is in its Answer; the error is for the
// question as a whole.
func Ask(ctx context.Context, a arch.Architecture, problems []gemm.Problem, q Question) ([]Answer, error) {
	a = arch.Whole(a, problems...)
	d := a.Describe()
	if q.Kernel == "" && len(problems) > 0 && problems[0].Nest != (gemm.Nest{}) {
		q.Kernel = d.NestFamily()
	}
	kernel, err := KernelFamily(d, q.Kernel)
	if err != nil {
		return nil, err
	}
	space := arch.Space{Kernel: kernel}
	request := selector.Request{Problems: problems, Space: space, Top: q.Top}
	if q.Regret && q.Top > 0 && d.HasUncertainty(kernel) {
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
	answers := make([]Answer, len(problems))
	for i := range results {
		r := &results[i]
		answers[i] = Answer{
			Arch: d, Kernel: kernel, Problem: problems[i], DRAMPeak: DRAMPeak(a),
			Feasible: r.Feasible, Rejected: r.Rejected, Err: r.Err,
		}
		if err := answers[i].fill(ctx, a, list, q, r); err != nil {
			answers[i].Err, answers[i].Entries = err, nil
		}
		if answers[i].Err == nil || diag.KindOf(answers[i].Err) != diag.Input || len(q.Others) == 0 {
			continue
		}
		other := q
		other.Kernel, other.Others = q.Others[0], q.Others[1:]
		if a, err := Ask(ctx, a, problems[i:i+1], other); err == nil && a[0].Err == nil {
			answers[i] = a[0]
			answers[i].Instead = kernel
		}
	}
	return answers, nil
}

// fill turns the result of a ranking into entries and adds what q asks for.
func (a *Answer) fill(ctx context.Context, m arch.Architecture, listed selector.List, q Question,
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
func (a *Answer) weigh(top int) {
	u := a.Scope(&a.Entries[0]).Uncertainty
	if u == nil || u.Sigma == 0 {
		if top > 0 && top < len(a.Entries) {
			a.Entries = a.Entries[:top]
		}
		return
	}
	times := make([]unit.Seconds, len(a.Entries))
	for i := range a.Entries {
		times[i] = a.Seconds(&a.Entries[i])
	}
	a.Regret = &Regret{
		Expected:       measure.ExpectedRegret(times, u.Sigma, 1),
		WorthMeasuring: measure.WorthMeasuring(times, u.PlanSigma, measure.AssumedNoise),
	}
	if keep := max(top, a.Regret.WorthMeasuring); top > 0 && keep < len(a.Entries) {
		a.Entries = a.Entries[:keep]
	}
}

// complete adds terms and rejected configurations.
func (a *Answer) complete(ctx context.Context, m arch.Architecture, listed selector.List, q Question) error {
	list, err := listed(ctx, a.Problem)
	if err != nil {
		return err
	}
	for i := range a.Entries {
		a.Entries[i].Candidate = list.Configs[a.Entries[i].Position]
	}
	if q.Rejected {
		rejected, err := a.rejections(ctx, m, list)
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
func (a *Answer) rejections(ctx context.Context, m arch.Architecture, list *arch.Candidates) ([]Entry, error) {
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

// KernelFamily checks the name of a kernel family against those that a model predicts; empty means the first.
func KernelFamily(d *arch.Description, name string) (string, error) {
	kernel, err := d.Kernel(name)
	return kernel, diag.Within("--kernel", err)
}
