package question

import (
	"context"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Asked is what select, rank and explain have in common: a product or a contraction, and the configurations to
// consider.
type Asked struct {
	Product
	Contraction
	Search
}

// One returns the problem of one launch.
func (q *Asked) One(fallback string) (gemm.Problem, error) {
	if q.Contract != "" {
		return q.Contraction.One(&q.Product, fallback)
	}
	return q.Product.One(fallback)
}

// ranking answers for the problem of a question.
func (q *Asked) ranking(ctx context.Context, side *ask.Contender, fallback string, of ask.Question) (
	*ask.Ranking, error,
) {
	p, err := q.One(fallback)
	if err != nil {
		return nil, err
	}
	of.Problems, of.Kernel = []gemm.Problem{p}, q.Kernel
	all, err := side.Rankings(ctx, of)
	if err != nil {
		return nil, err
	}
	return &all[0], all[0].Err
}

// Select asks for the configuration to run.
type Select struct {
	Asked
	Orders
	Pick
}

// Pick says what an answer of select has.
type Pick struct {
	Top    int      `json:"top" arg:"N" default:"1" help:"list the best N configurations"`
	Regret bool     `json:"regret" help:"add the expected regret of the pick, and how many candidates are worth measuring"`
	Advice bool     `json:"advice" help:"add what would be at least 1.1 times as fast: other strides, sizes, layouts, families, rows"`
	Brief  bool     `json:"brief" help:"the pick alone, without the reasons and the times of the other kernel families" rare:"yes"`
	Own    bool     `json:"own" help:"leave the vendor's library out of the bands of several M" rare:"yes"`
	Same   []string `json:"same" arg:"AXIS" help:"give the kernels for all M of a range or a list one value of each axis, as in block_k,num_stages"`
}

// Answer answers. It is an ask.Answer, a list of them with Top, or the ask.Bands of several M.
func (q *Select) Answer(ctx context.Context, side *ask.Contender, fallback string) (any, error) {
	if err := CheckTop(q.Top); err != nil {
		return nil, err
	}
	if m, several := q.M.Several(); several {
		p, err := q.Problem(fallback)
		if err != nil {
			return nil, err
		}
		return q.Bands(ctx, side, p, m)
	}
	if err := q.CheckOne(); err != nil {
		return nil, err
	}
	of := ask.Question{Kernel: q.Kernel, Top: max(2, q.Top), Terms: !q.Brief, Regret: q.Regret}
	if q.Contract != "" {
		plans, err := q.Plans(&q.Product, fallback)
		if err != nil {
			return nil, err
		}
		best, err := ask.RankPlans(ctx, side.Model, plans, of)
		if err != nil {
			return nil, err
		}
		return best.Answer(&best.Entries[0]), nil
	}
	of.Ways, of.Advice = !q.Brief, q.Advice
	one, err := q.ranking(ctx, side, fallback, of)
	if err != nil {
		return nil, err
	}
	if q.Top == 1 {
		return one.Answer(&one.Entries[0]), nil
	}
	var all []ask.Answer
	for i := range one.Entries[:min(q.Top, len(one.Entries))] {
		a := one.Answer(&one.Entries[i])
		a.Rank = i + 1
		all = append(all, a)
	}
	return all, nil
}

// Bands divides several M of a problem.
func (q *Pick) Bands(ctx context.Context, side *ask.Contender, p gemm.Problem, m ask.Range) (*ask.Bands, error) {
	m.Same = Axes(q.Same)
	if q.Own {
		own := *side
		own.Others = nil
		side = &own
	}
	return side.Bands(ctx, p, m)
}

// CheckOne refuses what has no meaning for one M.
func (q *Pick) CheckOne() error {
	if len(q.Same) > 0 {
		return diag.Inputf("--same is about the kernels for several M").
			Do("give a range or a list of M, as in -m 1:8192 or -m 1,16,64")
	}
	return nil
}

// CheckTop refuses a number of configurations that says nothing.
func CheckTop(top int) error {
	if top < 1 {
		return diag.Inputf("--top %d is not positive", top).Do("give a whole number of at least 1")
	}
	return nil
}

// Rank asks for the candidates in order.
type Rank struct {
	Asked
	Orders
	Ranking
	// Brief asks for a list of ask.Brief. It is a key of the C library alone: the server's schema has ask.Ranked.
	Brief bool
}

// Ranking says what an answer of rank has.
type Ranking struct {
	Top      int  `json:"top" arg:"N" default:"10" help:"how many configurations to list"`
	All      bool `json:"all" help:"list every candidate"`
	Rejected bool `json:"include_rejected" help:"list those that cannot be used too, with the reason; implies --all"`
}

// Question returns what to ask a model about a kernel family.
func (q *Ranking) Question(kernel string) (ask.Question, error) {
	if q.All && q.Top != 10 {
		return ask.Question{}, diag.Inputf("--all and --top contradict each other").Do("leave one of them out")
	}
	of := ask.Question{Kernel: kernel, Top: q.Top, Terms: true, Rejected: q.Rejected}
	if q.All || q.Rejected {
		of.Top = 0
	}
	return of, CheckTop(q.Top)
}

// mostListed is how many configurations one answer lists with their terms, which take kilobytes each.
const mostListed = 1 << 14

// CheckLength refuses an answer that lists more, before it is made.
func (q *Rank) CheckLength(ctx context.Context, side *ask.Contender, fallback string, of ask.Question) error {
	if !of.Terms || of.Top > 0 && of.Top <= mostListed {
		return nil
	}
	listed := 0
	of.Top, of.Terms, of.Rejected = 1, false, false
	if all, err := q.ranking(ctx, side, fallback, of); err == nil {
		listed = all.Feasible
		if q.Rejected {
			listed += all.RejectedTotal()
		}
	}
	if listed > mostListed {
		return diag.Inputf("the answer has %d configurations, and one answer lists up to %d", listed, mostListed).
			Do("ask for fewer with top, or restrict the space")
	}
	return nil // whatever is wrong is found again
}

// Answer answers with a list of ask.Ranked, or of ask.Brief.
func (q *Rank) Answer(ctx context.Context, side *ask.Contender, fallback string) (any, error) {
	of, err := q.Question(q.Kernel)
	if err != nil {
		return nil, err
	}
	of.Terms = !q.Brief
	if err := q.CheckLength(ctx, side, fallback, of); err != nil {
		return nil, err
	}
	all, err := q.ranking(ctx, side, fallback, of)
	if err != nil {
		return nil, err
	}
	if q.Brief && !q.Rejected {
		entries := make([]ask.Brief, len(all.Entries))
		for i := range entries {
			entries[i] = all.Brief(&all.Entries[i])
		}
		return entries, nil
	}
	entries := make([]ask.Later, len(all.Entries))
	for i := range entries {
		entries[i] = func() any { return all.Ranked(&all.Entries[i], q.Rejected) }
	}
	return entries, nil
}

// Explain asks for every number behind a prediction.
type Explain struct {
	Asked
	Explained
}

// Explained says what is explained, and what an answer of explain has.
type Explained struct {
	Config string `json:"config" arg:"CONFIG" help:"explain this configuration, as it is printed (128x256x64 w8 s3 g8 k1) or with commas; what is left out is the first candidate's of that tile"`
	Advice bool   `json:"advice" help:"add what would be at least 1.1 times as fast: other strides, sizes, layouts, families, rows"`
}

// Of returns the explanation of a configuration for a problem, or of the pick without one.
func (q *Explained) Of(ctx context.Context, side *ask.Contender, p gemm.Problem, kernel, config string) (
	*ask.Explained, error,
) {
	e, err := side.Explain(ctx, p, kernel, config)
	if err == nil && q.Advice {
		err = side.Advise(ctx, e.Ranking, &e.Entry, nil)
	}
	return e, err
}

// Answer answers with an ask.Explanation.
func (q *Explain) Answer(ctx context.Context, side *ask.Contender, fallback string) (any, error) {
	p, err := q.One(fallback)
	if err != nil {
		return nil, err
	}
	e, err := q.Of(ctx, side, p, q.Kernel, q.Config)
	if err != nil {
		return nil, err
	}
	return e.Explanation(), nil
}

// Compare asks several architectures for the same product.
type Compare struct {
	Product
	Search
}
