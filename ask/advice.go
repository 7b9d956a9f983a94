package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// Advice is a change that is predicted to save time.
type Advice struct {
	// `strides`: where rows and matrices begin; `pad`: zeros at the ends of rows; `layout`: the contiguous dimension
	// of A and B; `family`, `config`, `rows`: another of these; `fuse`: what is done to C afterwards
	Rule string `json:"rule"`
	// what to do, for people
	Do string `json:"do"`
	// the time of the same work now ÷ after the change. For `rows`, of one row; for `fuse`, with what is done to C
	Gain float64 `json:"gain"`
	// the predicted time of the product after the change
	Seconds float64 `json:"seconds"`
	// the product after the change
	Problem gemm.Record `json:"problem"`
	// the kernel family after the change
	Kernel string `json:"kernel"`
	// its configuration
	Config gemm.Config `json:"config"`
}

// leastGain is the least gain of an advice. Less is within the error of predictions: docs/evaluating.md.
const leastGain = 1.1

// leastOdds is the least probability that a change saves time, where the model does not state it. Wide intervals, as of
// unaligned rows, thus need a large gain.
const leastOdds = 0.5

// Rules that are compared with each other.
const (
	rulePad  = "pad"
	ruleRows = "rows"
)

// longer is how much longer than now more rows may take. Of rows that take longer, more are almost always better.
const longer = 1.1

// change is a product that could be computed instead.
type change struct {
	rule, do string
	problem  gemm.Problem
	// work is the work after the change ÷ the work now. 0 means 1.
	work float64
	// fuses says that the change saves a kernel. Only the least time of a kernel counts: a cache may hold what it moves.
	fuses bool
	// than is an easier change. This one has to gain more.
	than *change

	seconds unit.Seconds
	gain    float64
	pick    *Ranking
}

// made enters the prediction after the change. now is the time before it. least is the time of a kernel that does
// nothing.
func (c *change) made(now unit.Seconds, pick, least *Ranking) {
	if c.fuses && least.Err != nil {
		return
	}
	if c.fuses {
		now += least.Seconds(&least.Entries[0])
	}
	c.pick, c.seconds = pick, pick.Seconds(&pick.Entries[0])
	c.gain = float64(now/c.seconds) * cmp.Or(c.work, 1)
	if c.work > 1 && c.seconds > longer*now {
		c.gain = 0
	}
}

// advise gives the answers of a question their advice.
func (c *Contender) advise(ctx context.Context, answers []Ranking, space models.Space) error {
	for i := range answers {
		if a := &answers[i]; a.Err == nil && len(a.Entries) > 0 {
			if err := c.Advise(ctx, a, &a.Entries[0], space); err != nil {
				return err
			}
		}
	}
	return nil
}

// Advise gives a ranking the advice for one of its entries, the largest gain first. Each predicted time is the answer
// to the changed question. space has the configurations of the question, nil for all.
func (c *Contender) Advise(ctx context.Context, a *Ranking, e *Entry, space models.Space) error {
	p, now := a.Problem, a.Seconds(e)
	if a.Arch.RanksOnly || e.Estimate.Reject != "" || p.Nest != (gemm.Nest{}) {
		return nil
	}
	side := c.For(ctx, &p)
	q := Question{Kernel: a.Kernel, Space: space, Top: 1}
	if e.Rank != 1 || space != nil { // another configuration comes before another product
		var err error
		if a.Advice, err = configs(ctx, side.Model, a, e, q); err != nil || len(a.Advice) > 0 {
			return err
		}
	}
	changes := slices.Concat(rowStarts(p), layouts(p), rows(p), fused(p))
	for _, change := range changes {
		q.Problems = append(q.Problems, change.problem)
	}
	q.Problems = append(q.Problems, least(p))
	picks, err := Rankings(ctx, side.Model, q)
	if err != nil {
		return err
	}
	checked := len(a.Outside(e)) == 0
	for i, change := range changes {
		// No model was checked on epilogues, and the kernel is the same.
		if change.fuses && picks[i].Err == nil || leads(a, e, checked, &picks[i], change.work) {
			change.made(now, &picks[i], &picks[len(changes)])
		}
	}
	a.Advice = append(best(changes), families(a, e, checked)...)
	slices.SortStableFunc(a.Advice, func(x, y Advice) int { return cmp.Compare(y.Gain, x.Gain) })
	return nil
}

// leads reports whether a pick may be advised. It must be likely to save time, and must not lead from problems that a
// model was checked on to others. work is as in change.
func leads(a *Ranking, e *Entry, checked bool, to *Ranking, work float64) bool {
	if to.Err != nil || checked && len(to.Outside(&to.Entries[0])) > 0 {
		return false
	}
	other, ok := to.Distribution(&to.Entries[0])
	now, also := a.Distribution(e)
	if !ok || !also {
		return true
	}
	return score.Odds(other.Over(cmp.Or(work, 1)), now) >= a.Arch.Constant("advice_odds", leastOdds)
}

// best returns the change of each rule that gains most, if it is worth it.
func best(changes []*change) (list []Advice) {
	of, most := map[string]*change{}, 0.0
	for _, c := range changes {
		gain := c.gain
		if c.than != nil && c.than.gain > 0 {
			gain /= c.than.gain
		}
		switch c.rule {
		case rulePad:
			most = max(most, c.gain)
		case ruleRows: // other rows than those that padding would give
			gain /= max(1, most)
		}
		// A change that is hardly better than an earlier one of the rule is not worth more of it.
		if old := of[c.rule]; gain >= leastGain && (old == nil || c.gain > 1.02*old.gain) {
			of[c.rule] = c
		}
	}
	for _, c := range changes {
		if of[c.rule] == c {
			list = append(list, Advice{Rule: c.rule, Do: c.do, Gain: c.gain, Seconds: float64(c.seconds),
				Problem: c.problem.Record(), Kernel: c.pick.Kernel, Config: c.pick.Entries[0].Config})
		}
	}
	return list
}

// up rounds up to a multiple.
func up(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// rowStarts are changes of where rows begin and of how long they are. Triton has its fastest loads only where 16
// divides the sizes and strides, libraries where 16 bytes begin a row, and any kernel wastes what a tile has beyond the
// edge of C.
func rowStarts(p gemm.Problem) (list []*change) {
	const aligned = 16
	strides := &change{rule: "strides", problem: p}
	for o := gemm.A; o <= gemm.C; o++ {
		strides.problem.SetLD(o, up(p.LD(o), aligned))
		_ = strides.problem.SetAlign(o, gemm.MaxVector) // a power of two
	}
	strides.problem = strides.problem.Canonical()
	if texts := begins(p, strides.problem); len(texts) > 0 {
		strides.do = "begin " + strings.Join(texts, ", ")
		list = append(list, strides)
	}
	if p.Groups != (gemm.Groups{}) {
		return list
	}
	for _, multiple := range []int{aligned, 64, 128, 256} {
		pad := &change{rule: rulePad, problem: strides.problem, than: strides}
		var texts []string
		for _, size := range []struct {
			name string
			of   *int
		}{{"M", &pad.problem.M}, {"N", &pad.problem.N}, {"K", &pad.problem.K}} {
			padded := up(*size.of, multiple)
			if padded == *size.of || padded > *size.of+*size.of/8 || size.name == "N" && p.Epilogue.Activation.Gated() {
				continue // half of the columns are gates
			}
			texts = append(texts, fmt.Sprintf("%s from %d to %d", size.name, *size.of, padded))
			*size.of = padded
		}
		for o := gemm.A; o <= gemm.C; o++ { // a longer row may need a longer stride
			_, elements := pad.problem.Rows(o)
			pad.problem.SetLD(o, max(pad.problem.LD(o), elements))
		}
		if pad.problem = pad.problem.Canonical(); len(texts) > 0 {
			pad.do = "pad " + strings.Join(texts, ", ") + " with zeros"
			if texts := begins(p, pad.problem); len(texts) > 0 {
				pad.do += ", and begin " + strings.Join(texts, ", ")
			}
			list = append(list, pad)
		}
	}
	return list
}

// begins says where the rows and matrices of a changed problem begin, where that is not said by their sizes.
func begins(was, is gemm.Problem) (texts []string) {
	var at []string
	for o := gemm.A; o <= gemm.C; o++ {
		_, before := was.Rows(o)
		_, dense := is.Rows(o)
		if is.LD(o) != was.LD(o) && (was.LD(o) != before || is.LD(o) != dense) {
			texts = append(texts, fmt.Sprintf("the rows of %s every %d elements instead of %d", o, is.LD(o), was.LD(o)))
		}
		if was.Align(o) < is.Align(o) {
			at = append(at, o.String())
		}
	}
	if len(at) > 0 {
		texts = append(texts, fmt.Sprintf("%s at multiples of %d bytes", strings.Join(at, ", "), gemm.MaxVector))
	}
	return texts
}

// layouts are the other ways to store A and B, in dense rows.
func layouts(p gemm.Problem) (list []*change) {
	if p.LDA|p.LDB|p.LDC != 0 || p.Groups != (gemm.Groups{}) {
		return nil
	}
	for _, turn := range [][2]bool{{false, true}, {true, false}, {true, true}} {
		other := p
		other.SetTrans(p.TransA() != turn[0], p.TransB() != turn[1])
		var texts []string
		if turn[0] {
			texts = append(texts, fmt.Sprintf("A contiguous along %c", other.AMajor-'a'+'A'))
		}
		if turn[1] {
			texts = append(texts, fmt.Sprintf("B contiguous along %c", other.BMajor-'a'+'A'))
		}
		list = append(list, &change{rule: "layout", do: "store " + strings.Join(texts, " and "), problem: other})
	}
	return list
}

// rows are other numbers of rows of A: more in the same time, or fewer that leave out a wave.
func rows(p gemm.Problem) (list []*change) {
	if p.Groups != (gemm.Groups{}) {
		return nil
	}
	sizes := []int{2 * p.M, 4 * p.M, 8 * p.M, 16 * p.M}
	for _, multiple := range []int{64, 128, 256, 512} {
		down := p.M / multiple * multiple
		if down < p.M && 10*down >= 9*p.M {
			sizes = append(sizes, down)
		}
		if more := up(p.M+1, multiple); more < 2*p.M {
			sizes = append(sizes, more)
		}
	}
	for _, m := range sizes {
		other := p
		if other.M = m; p.TransA() && p.LDA != 0 {
			other.LDA = max(p.LDA, m)
		}
		if other.Validate() != nil {
			continue
		}
		list = append(list, &change{rule: ruleRows, do: fmt.Sprintf("compute %d rows at once instead of %d", m, p.M),
			problem: other, work: float64(m) / float64(p.M)})
	}
	return list
}

// fused is the product with an epilogue, against a kernel of its own for it.
func fused(p gemm.Problem) []*change {
	if p.Epilogue != (gemm.Epilogue{}) || p.Beta != 0 {
		return nil
	}
	p.Epilogue = gemm.Epilogue{Bias: true}
	return []*change{{rule: "fuse", problem: p, fuses: true,
		do: "add a bias or apply an activation in this kernel instead of one of its own"}}
}

// least is a product that takes hardly longer than a kernel that does nothing.
func least(p gemm.Problem) gemm.Problem {
	o := gemm.Problem{M: 16, N: 16, K: 16, Batch: 1, DType: p.DType, Out: p.Out}
	o.SetTrans(p.TransA(), p.TransB())
	return o
}

// families are the other kernel families of the device that are faster.
func families(a *Ranking, e *Entry, checked bool) (list []Advice) {
	now := a.Seconds(e)
	for _, way := range a.Ways {
		pick := &way.Entries[0]
		if t := way.Seconds(pick); float64(now/t) >= leastGain && leads(a, e, checked, way, 1) {
			list = append(list, Advice{Rule: "family", Do: "use the kernel family " + way.Kernel, Gain: float64(now / t),
				Seconds: float64(t), Problem: way.Problem.Record(), Kernel: way.Kernel, Config: pick.Config})
			break // the first is the fastest
		}
	}
	return list
}

// configs are the fastest configuration of the family, if that is another than the entry's, and the fastest one that
// differs from it in one number only.
func configs(ctx context.Context, m arch.Architecture, a *Ranking, e *Entry, q Question) (list []Advice, err error) {
	q.Problems, q.Space, q.Top = []gemm.Problem{a.Problem}, nil, 0
	all, err := Rankings(ctx, m, q)
	if err != nil || all[0].Err != nil {
		return nil, err
	}
	whole, now := &all[0], a.Seconds(e)
	for i := range whole.Entries {
		better := &whole.Entries[i]
		t := whole.Seconds(better)
		if float64(now/t) < leastGain {
			break
		}
		unlike := differences(e.Config, better.Config)
		if i > 0 && len(unlike) != 1 {
			continue
		}
		list = append(list, Advice{Rule: "config", Do: "set " + strings.Join(unlike, ", "), Gain: float64(now / t),
			Seconds: float64(t), Problem: a.Problem.Record(), Kernel: a.Kernel, Config: better.Config})
		if len(unlike) == 1 {
			break
		}
	}
	return list, nil
}

// differences lists what is other in b than in a, as in "block_k = 64".
func differences(a, b gemm.Config) (list []string) {
	was, is := a.Numbers(), b.Numbers()
	for i, field := range gemm.Fields() {
		if is[i] != was[i] && !field.Optional { // the launch order follows from the others
			list = append(list, fmt.Sprintf("%s = %d", field.Name, is[i]))
		}
	}
	for name, value := range b.Axes.All() {
		if old, _ := a.Axes.Get(name); old != value {
			list = append(list, name+" = "+value)
		}
	}
	for name := range a.Axes.All() {
		if _, ok := b.Axes.Get(name); !ok {
			list = append(list, "no "+name)
		}
	}
	return list
}
