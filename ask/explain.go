package ask

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/formula"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/timing"
)

// Explanation is one configuration with every number behind its prediction.
type Explanation struct {
	Answer
	// as in `rank`
	Rank *int `json:"rank"`
	// as in `rank`
	Status string      `json:"status"`
	Reason arch.Reason `json:"reason,omitempty"`
	Detail string      `json:"detail,omitempty"`
	// hardware numbers
	Parameters []Parameter `json:"parameters"`
	// empirical numbers of the model
	Constants []Parameter `json:"constants"`
	// the options of the plugin, by key
	Options map[string]string `json:"options"`
	// the measured times near the problem that correct the prediction
	Near *Near `json:"near,omitempty"`
	// by name, in the order in which the model computes them
	Terms Fields `json:"terms" of:"ExplainedTerm"`
	// cycles that a problem besides A·B adds to the total, by name
	Besides Fields `json:"besides,omitempty"`
}

// Near is what measured times near a problem say of its prediction.
type Near struct {
	// the set of the nearest: source, device, how many times, types and layout
	Source string `json:"source"`
	// how many count
	Times int `json:"times"`
	// of the nearest: the root of the sum of the squares of what log M, log N and log K differ by
	Distance Number `json:"distance"`
	// by which they multiply the time, unless it is at the peaks of the data sheet
	Factor Number `json:"factor"`
}

// Near returns what times near the problem say, nil without any.
func (e *Explained) Near() *Near {
	times, _ := e.common(&e.Entry, arch.CommonNearTimes)
	set, _ := e.common(&e.Entry, arch.CommonNearSet)
	distance, _ := e.common(&e.Entry, arch.CommonNearDistance)
	off, _ := e.common(&e.Entry, arch.CommonNearResidual)
	if times < 1 {
		return nil
	}
	n := &Near{Times: int(times), Distance: Number(distance), Factor: Number(math.Exp(off))}
	for _, t := range e.Arch.Terms {
		for source := range strings.SplitSeq(t.Source, "; ") {
			if name, is := strings.CutPrefix(source, strconv.Itoa(int(set))+": "); is && t.Common == arch.CommonNearSet {
				n.Source = name
			}
		}
	}
	return n
}

// ExplainedTerm is a term with its formula.
type ExplainedTerm struct {
	Term
	// `intermediate`, `step`, `share` or `total`
	Kind string `json:"kind"`
	// how it is computed; `rule:` begins prose
	Formula string `json:"formula,omitempty"`
	// the formula with its values
	Substituted string `json:"substituted,omitempty"`
	// what it means
	Doc string `json:"doc,omitempty"`
	// where it comes from
	Source string `json:"source,omitempty"`

	// Name, Of and Text are the term's name, kind and value as text.
	Name string        `json:"-"`
	Of   arch.TermKind `json:"-"`
	Text string        `json:"-"`
}

// Parameter is one number that terms are computed from.
type Parameter struct {
	// the parameter's name
	Name string `json:"name"`
	// the value in its unit
	Value Number `json:"value"`
	// the unit
	Unit string `json:"unit"`
	// of a hardware number: `derived`, `calibrated` or `override`
	Tier string `json:"tier,omitempty"`
	// of a constant: what it means
	Doc string `json:"doc,omitempty"`
	// of a hardware number: how it was found
	Method string `json:"method,omitempty"`
	// where it comes from: `driver of this machine`, `scaled from ARCH@DEVICE: …`, or a document
	Source string `json:"source"`
	// of a hardware number: when it was found
	Date string `json:"date,omitempty"`
	// `false` if no prediction depends on it
	Used *bool `json:"used,omitempty"`
}

// Explained is one configuration of a ranking.
type Explained struct {
	*Ranking
	Entry
	// Besides is what the total has besides the model's terms, nil for A·B of matrices.
	Besides []arch.BesidesPart
}

// Explain explains as the function Explain does, by the family that For returns and with the other ways.
func (c *Contender) Explain(ctx context.Context, p gemm.Problem, kernel, config string) (*Explained, error) {
	if one := c.For(ctx, &p); one != c {
		c, kernel = one, one.Kernel
	}
	join := c.askWays(ctx, []gemm.Problem{p})
	e, err := Explain(ctx, c.Model, p, kernel, config)
	ways := join()
	if err != nil {
		return nil, err
	}
	e.setWays(ways, 0)
	return e, nil
}

// Explain asks about one configuration: the pick if config is empty.
func Explain(ctx context.Context, a arch.Architecture, p gemm.Problem, kernel, config string) (*Explained, error) {
	a = arch.Whole(a, p)
	// The whole ranking is needed for the rank of the configuration. Terms of all of it take hundreds of megabytes.
	answers, err := Rankings(ctx, a, Question{Problems: []gemm.Problem{p}, Kernel: kernel, Rejected: true})
	if err != nil {
		return nil, err
	}
	all := &answers[0]
	if all.Err != nil {
		return nil, all.Err
	}
	e := &Explained{Ranking: all}
	if config != "" {
		err = e.find(ctx, a, config)
	} else if all.Feasible == 0 {
		err = diag.Inputf("no configuration of %s fits %s", all.Arch.ID(), p).
			Do("name one with --config to see why it does not")
	} else {
		e.Entry = all.Entries[0]
	}
	if err != nil {
		return nil, err
	}
	if e.Terms == nil {
		e.Terms = make([]float64, len(e.Arch.Terms))
		if err := a.Terms(ctx, e.Terms, p, []gemm.Config{e.Candidate}); err != nil {
			return nil, err
		}
	}
	if p.BeyondProduct() {
		e.Besides = arch.BesidesOf(a, &p, &e.Config).Parts()
	}
	return e, nil
}

// find fills in the entry of a configuration.
func (e *Explained) find(ctx context.Context, a arch.Architecture, config string) error {
	c, err := configOf(e.Ranking, config)
	if err != nil {
		return err
	}
	for i := range e.Entries {
		if candidate := &e.Entries[i]; same(candidate.Config, c) {
			e.Entry = *candidate // knows its rank, and why it was rejected
			break
		}
	}
	if e.Rank > 0 && (c.GroupM == 0 || c.GroupM == e.Config.GroupM) {
		return nil
	}
	// Not ranked, or with another launch order than the ranked one: ask the model.
	one, err := EntryOf(ctx, a, e.Problem, c)
	if err != nil {
		return err
	}
	if rejected := e.Estimate.Reject; rejected != "" && one.Estimate.Reject != rejected {
		one.Estimate = e.Estimate // the candidate list has the last word on what can be used
	}
	one.Rank, one.Position, one.Detail = e.Rank, e.Position, e.Detail
	if one.Detail == "" && one.Estimate.Reject != "" {
		one.Detail = WhyRejected(ctx, a, e.Problem, c)
	}
	e.Entry = one
	return nil
}

// EntryOf asks a model about one configuration. It has no rank.
func EntryOf(ctx context.Context, a arch.Architecture, p gemm.Problem, c gemm.Config) (Entry, error) {
	e := Entry{Config: c, Candidate: c, Terms: make([]float64, len(a.Describe().Terms))}
	estimates, configs := make([]arch.Estimate, 1), []gemm.Config{c}
	if err := a.Estimate(ctx, estimates, p, configs); err != nil {
		return e, err
	}
	e.Estimate = estimates[0]
	if err := a.Terms(ctx, e.Terms, p, configs); err != nil {
		return e, err
	}
	var err error
	if e.Mapping, err = a.Mapping(ctx, p, c); err != nil {
		return e, err
	}
	if c.GroupM == 0 {
		e.Config.GroupM = e.Mapping.GroupM
	}
	return e, nil
}

// Explanation returns what is explained as a plain value.
func (e *Explained) Explanation() Explanation {
	o := Explanation{
		Answer: e.Answer(&e.Entry), Rank: place(e.Rank), Status: e.Status(), Reason: e.Estimate.Reject,
		Detail: e.Detail, Parameters: Parameters(e.Arch), Constants: e.Constants(), Options: map[string]string{},
		Near: e.Near(),
	}
	for _, option := range e.Arch.Options {
		o.Options[option.Key] = option.Value
	}
	for _, t := range e.ExplainTerms(digits.Exact) {
		o.Terms = append(o.Terms, Field{Name: t.Name, Value: t})
	}
	for _, b := range e.Besides {
		o.Besides = append(o.Besides, Field{Name: b.Name, Value: Number(b.Cycles)})
	}
	return o
}

// ExplainTerms explains every term, in the order in which the model computes them. number writes the values.
func (e *Explained) ExplainTerms(number func(float64) string) []ExplainedTerm {
	values := formula.Values(e.Arch, e.Problem, e.Candidate, e.Terms)
	out := make([]ExplainedTerm, len(e.Arch.Terms))
	entering := e.Entering(&e.Entry)
	for i, t := range e.Arch.Terms {
		explained := ExplainedTerm{
			Term: e.Term(&e.Entry, i), Kind: t.Kind.String(), Formula: t.Formula, Doc: t.Doc, Source: t.Source,
			Name: t.Name, Of: t.Kind, Text: number(e.Terms[i]),
		}
		if IsRejectedTotal(t, e.Terms[i]) {
			explained.Text = StatusRejected
		}
		if entering != nil && !entering[i] {
			explained.Used = new(bool)
		}
		if t.Formula != "" && !formula.IsRule(t.Formula) {
			explained.Substituted = formula.Substitute(t.Formula, values, number)
		}
		out[i] = explained
	}
	return out
}

// InUse is false for a parameter that the model does not use, and nil for any other.
func InUse(d *arch.Description, param string) *bool {
	if !d.Ignores(param) {
		return nil
	}
	return new(bool)
}

// Parameters are the hardware numbers of a description.
func Parameters(d *arch.Description) []Parameter {
	out := make([]Parameter, len(d.Params))
	for i, p := range d.Params {
		out[i] = Parameter{Name: p.Name, Value: Number(p.Value), Unit: p.Unit, Tier: p.Tier.String(),
			Method: string(p.Method), Source: p.Source, Date: p.Date, Used: InUse(d, p.Name)}
	}
	return out
}

// Constants are the empirical numbers of the model that the prediction may depend on.
func (e *Explained) Constants() []Parameter {
	out := make([]Parameter, 0, len(e.Arch.Constants))
	of := timing.Timing(e.Arch.Timing)
	converted := e.Arch.Conversion != nil || of.Base() != of
	for _, c := range e.Arch.Constants {
		if r := c.Reader(); r == "" || r == "timing" && converted || r == "besides" && e.Besides != nil {
			out = append(out, Parameter{Name: c.Name, Value: Number(c.Value), Unit: c.Unit, Doc: c.Doc, Source: c.Source})
		}
	}
	return out
}

// WhyRejected returns why a configuration is not a candidate, in numbers: an estimate has the reason alone. It is empty
// if the configuration is rejected for this problem only.
func WhyRejected(ctx context.Context, a arch.Architecture, p gemm.Problem, c gemm.Config) string {
	c.GroupM = 0
	space, numbers := arch.Space{Kernel: c.Kernel}, c.Numbers()
	for i, values := range space.Numbers() {
		if values != nil {
			*values = []int{numbers[i]}
		}
	}
	for _, axis := range a.Describe().Axes(c.Kernel) { // the values of candidates may lack the default
		value, ok := c.Axes.Get(axis.Name)
		if !ok {
			value = axis.Default
		}
		space.Axes = append(space.Axes, arch.AxisValues{Name: axis.Name, Values: []string{value}})
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

// configOf reads a configuration. An axis that the text leaves out has its default, as in every configuration that is
// shown. Warps, stages and the order come from the first candidate with that tile and these axes, or else with that
// tile, or else from the first candidate. Of a tile alone, so do the axes.
func configOf(all *Ranking, text string) (gemm.Config, error) {
	if len(all.Entries) == 0 {
		return gemm.Config{}, diag.Inputf("the model has no candidates for %s", all.Problem).
			Do("use another kernel family")
	}
	first := func(matches func(Entry) bool) (base gemm.Config, ok bool) {
		position := 0
		for _, e := range all.Entries {
			if matches(e) && (!ok || e.Position < position) {
				base, position, ok = e.Config, e.Position, true
			}
		}
		base.GroupM, base.SplitK = 0, 1
		if strings.ContainsAny(strings.TrimSpace(text), " ,") {
			base.Axes = gemm.Axes{}
		}
		return base, ok
	}
	axes := all.Arch.Axes(all.Kernel)
	base, _ := first(func(Entry) bool { return true })
	c, err := gemm.ParseConfig(text, base, axes...)
	if err != nil {
		return c, diag.Within("--config", err)
	}
	ofTile := func(e Entry) bool {
		return e.Rank > 0 && e.Config.BlockM == c.BlockM && e.Config.BlockN == c.BlockN && e.Config.BlockK == c.BlockK
	}
	near, ok := first(func(e Entry) bool { return ofTile(e) && e.Config.Axes == c.Axes })
	if !ok {
		near, ok = first(ofTile)
	}
	if ok {
		c, err = gemm.ParseConfig(text, near, axes...)
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
