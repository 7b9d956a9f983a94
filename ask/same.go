package ask

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Same is what the kernels for all M have in common, and what that costs. Prices are how much slower kernels are than
// the fastest of the family for each M, as a fraction, predicted.
type Same struct {
	// the axes that have one value for all M, and that value, as text
	Values map[string]string `json:"values"`
	// the price of the fastest kernels with these values, weighted as mean_regret
	MeanPrice float64 `json:"mean_price"`
	// where the price is highest
	WorstPrice float64 `json:"worst_price"`
	WorstM     int     `json:"worst_m"`
	// the kernel for all M with the lowest mean price
	One *One `json:"one"`
	// every possible choice of values, cheapest first
	Choices []Choice `json:"choices"`

	axes []string
}

// Text is the values as text, in the order in which the axes were asked for.
func (s *Same) Text() string { return s.TextOf(s.Values) }

// TextOf is the values of a choice as text.
func (s *Same) TextOf(values map[string]string) string {
	parts := make([]string, len(s.axes))
	for i, name := range s.axes {
		parts[i] = name + "=" + values[name]
	}
	return strings.Join(parts, ", ")
}

// One is a single kernel for all M, and its price.
type One struct {
	// with a `group_m` of 0, as each M has its own
	Config gemm.Config `json:"config"`
	// its price, as above
	MeanPrice  float64 `json:"mean_price"`
	WorstPrice float64 `json:"worst_price"`
	WorstM     int     `json:"worst_m"`
}

// Choice is a choice of values and its price.
type Choice struct {
	// the values, as text by axis
	Values map[string]string `json:"values"`
	// its price, as above
	MeanPrice float64 `json:"mean_price"`
}

// BandPrice is what is paid in a band for what the kernels for all M have in common.
type BandPrice struct {
	// the mean price of the same values
	Same float64 `json:"same" unit:"fraction"`
	// the mean price of one kernel, `null` if there is none
	One *float64 `json:"one" unit:"fraction"`
}

// axis reads the value of a configuration on an axis.
type axis struct {
	name  string
	field int
	named *gemm.Axis // nil for a number that every configuration has
}

func (x *axis) number(c *gemm.Config) int {
	if x.named != nil {
		return x.named.Number(c.Axes)
	}
	return c.Numbers()[x.field]
}

// axesOf finds axes by name.
func axesOf(names []string, declared []gemm.Axis) ([]axis, error) {
	axes := make([]axis, len(names))
	for i, name := range names {
		var space arch.Space
		name, err := space.Set(name, nil, declared)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(axes[:i], func(x axis) bool { return x.name == name }) {
			return nil, diag.Inputf("the axis %s is given twice", name).Do("name it once")
		}
		axes[i] = axis{name: name}
		if axes[i].named, err = gemm.FindAxis(declared, name); err != nil {
			axes[i].named = nil
			axes[i].field = slices.IndexFunc(gemm.Fields(), func(f gemm.Field) bool { return f.Name == name })
		}
	}
	return axes, nil
}

// most is the most axes that can have one value: every number of a configuration and every axis of a family.
const most = 24

// values are the numbers of a configuration on axes.
type values [most]int

// searching is a search of the whole space for what kernels of all M can have in common.
type searching struct {
	axes    []axis
	configs []gemm.Config
	// group is the place in groups of each configuration's values. first is a configuration of each group.
	group, first []int
	// loss is the weighted sum over sizes of what the fastest kernel of each group loses against the fastest of all,
	// losses has the same sum for each configuration.
	loss, losses []float64
	// fastest is the fastest configuration of each size and group, -1 without one.
	fastest [][]int
}

func newSearching(list []gemm.Config, axes []axis) *searching {
	s := &searching{axes: axes, configs: list, group: make([]int, len(list)), losses: make([]float64, len(list))}
	places := map[values]int{}
	for i := range list {
		var v values
		for j := range axes {
			v[j] = axes[j].number(&list[i])
		}
		place, ok := places[v]
		if !ok {
			place = len(s.first)
			places[v], s.first = place, append(s.first, i)
		}
		s.group[i] = place
	}
	s.loss = make([]float64, len(s.first))
	return s
}

// add takes the estimates of a size of so much weight. best is the fastest of all kernels there.
func (s *searching) add(estimates []arch.Estimate, best unit.Cycles, weight float64) {
	of := slices.Repeat([]int{-1}, len(s.first))
	for i := range estimates {
		lost := weight * impossible
		if estimates[i].Reject == "" {
			lost = weight * (float64(estimates[i].Cycles/best) - 1)
			if g := s.group[i]; of[g] < 0 || estimates[i].Cycles < estimates[of[g]].Cycles {
				of[g] = i
			}
		}
		s.losses[i] += lost
	}
	for g, i := range of {
		lost := weight * impossible
		if i >= 0 {
			lost = weight * (float64(estimates[i].Cycles/best) - 1)
		}
		s.loss[g] += lost
	}
	s.fastest = append(s.fastest, of)
}

// everywhere returns the place of the lowest loss, -1 if something is impossible at a size.
func (s *searching) everywhere(losses []float64, least float64) int {
	place := -1
	for i, loss := range losses {
		if loss < least*impossible && (place < 0 || loss < losses[place]) {
			place = i
		}
	}
	return place
}

// text is the values of a configuration on the axes.
func (s *searching) text(i int) map[string]string {
	text := map[string]string{}
	for j := range s.axes {
		x := &s.axes[j]
		if c := &s.configs[i]; x.named != nil {
			text[x.name] = x.named.Value(c.Axes)
		} else {
			text[x.name] = strconv.Itoa(c.Numbers()[x.field])
		}
	}
	return text
}

// search estimates the whole space at the searched sizes, and adds to b.configs the fastest of each size, the fastest
// that have the cheapest values on the axes, and the single one that suits all sizes best. If free has a
// model, the fastest of a size come from it.
func (b *banding) search(ctx context.Context, a arch.Architecture, space arch.Space, axes []axis, free Kernels) error {
	picks, err := b.free(ctx, free)
	if err != nil {
		return err
	}
	list, err := a.Candidates(ctx, b.problems[len(b.problems)-1], space)
	if err != nil {
		return err
	}
	// An axis of the family on which all agree says nothing: sums of bf16 are never promoted.
	axes = slices.DeleteFunc(slices.Clone(axes), func(x axis) bool {
		return x.named != nil && len(axes) > 1 && !slices.ContainsFunc(list.Configs, func(c gemm.Config) bool {
			return x.number(&c) != x.number(&list.Configs[0])
		})
	})
	s := newSearching(list.Configs, axes)
	estimates := make([]arch.Estimate, len(list.Configs))
	total := b.weight(0, len(b.sizes))
	least := total
	for i, at := range b.searched {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.Estimate(ctx, estimates, b.problems[at], list.Configs); err != nil {
			return err
		}
		best := fastestOf(estimates)
		if best < 0 {
			return diag.Inputf("no kernel computes %s", b.problems[at]).Do("choose other sizes M")
		}
		cycles := estimates[best].Cycles
		if free.Model == nil {
			picks = append(picks, list.Configs[best])
		} else {
			cycles = min(cycles, b.cycles[i])
		}
		to := len(b.sizes)
		if i+1 < len(b.searched) {
			to = b.searched[i+1]
		}
		weight := b.weight(at, to)
		least = min(least, weight)
		s.add(estimates, cycles, weight)
	}
	chosen := s.everywhere(s.loss, least)
	if chosen < 0 {
		return diag.Inputf("with no value of %s every M has a kernel", s.names()).Do("choose fewer sizes M, or other axes")
	}
	b.same = &Same{axes: make([]string, len(axes)), Values: s.text(s.first[chosen])}
	for i := range axes {
		b.same.axes[i] = axes[i].name
	}
	order := slices.SortedStableFunc(maps.Keys(maps.Collect(slices.All(s.loss))), func(i, j int) int {
		return cmp.Or(cmp.Compare(s.loss[i], s.loss[j]), i-j)
	})
	for _, g := range order {
		if s.loss[g] < least*impossible {
			b.same.Choices = append(b.same.Choices, Choice{Values: s.text(s.first[g]), MeanPrice: s.loss[g] / total})
		}
	}
	for i := range b.searched {
		b.use(list.Configs[s.fastest[i][chosen]], true)
	}
	if b.one = s.everywhere(s.losses, least); b.one >= 0 {
		b.one = b.use(list.Configs[b.one], s.group[b.one] == chosen)
	}
	for _, c := range picks {
		b.use(c, false)
	}
	return nil
}

// use returns the place in b.configs of a configuration. conforms says that bands may have it, if it was not there.
func (b *banding) use(c gemm.Config, conforms bool) int {
	c.GroupM = 0
	at := slices.Index(b.configs, c)
	if at < 0 {
		at = len(b.configs)
		b.configs, b.conforms = append(b.configs, c), append(b.conforms, conforms)
	}
	return at
}

// free returns the picks of the searched sizes among free kernels, and keeps their cycles. It returns none without a
// model.
func (b *banding) free(ctx context.Context, free Kernels) (picks []gemm.Config, err error) {
	if free.Model == nil {
		return nil, nil
	}
	var asked []gemm.Problem
	for _, at := range b.searched {
		asked = append(asked, b.problems[at])
	}
	results, err := selector.Rank(ctx, free.Model, selector.Request{Problems: asked, Space: free.Space, Top: 1})
	if err != nil {
		return nil, err
	}
	for i := range results {
		if results[i].Err != nil {
			return nil, results[i].Err
		}
		picks, b.cycles = append(picks, results[i].Entries[0].Config), append(b.cycles, results[i].Entries[0].Estimate.Cycles)
	}
	return picks, nil
}

// fastestOf returns the place of the fastest, -1 without one.
func fastestOf(estimates []arch.Estimate) int {
	best := -1
	for i := range estimates {
		if estimates[i].Reject == "" && (best < 0 || estimates[i].Cycles < estimates[best].Cycles) {
			best = i
		}
	}
	return best
}

func (s *searching) names() string {
	names := make([]string, len(s.axes))
	for i := range s.axes {
		names[i] = s.axes[i].name
	}
	return strings.Join(names, ", ")
}

// settle prices what all M have in common, and keeps the kernels that have it.
func (b *banding) settle() {
	one := b.one
	b.prices = make([][2]float64, len(b.sizes))
	for i := range b.sizes {
		fastest := never
		for k := range b.configs {
			if b.conforms[k] {
				fastest = min(fastest, b.times[k][i])
			}
		}
		b.prices[i][0] = float64(fastest/b.best[i]) - 1
		if one >= 0 {
			b.prices[i][1] = b.loss(one, i)
		}
	}
	b.same.MeanPrice, b.same.WorstPrice, b.same.WorstM = b.priced(0, 0, len(b.sizes))
	if one >= 0 {
		b.same.One = &One{Config: b.configs[one]}
		b.same.One.MeanPrice, b.same.One.WorstPrice, b.same.One.WorstM = b.priced(1, 0, len(b.sizes))
	}
	kept := 0
	for k := range b.configs {
		if b.conforms[k] {
			b.configs[kept], b.times[kept] = b.configs[k], b.times[k]
			kept++
		}
	}
	b.configs, b.times = b.configs[:kept], b.times[:kept]
}

// priced returns a price over a run of sizes: the mean, and the worst with its M.
func (b *banding) priced(which, from, to int) (mean, worst float64, at int) {
	at = b.sizes[from]
	for i := from; i < to; i++ {
		price := b.prices[i][which]
		mean += price * b.weight(i, i+1)
		if price > worst {
			worst, at = price, b.sizes[i]
		}
	}
	return mean / b.weight(from, to), worst, at
}

// bandPrice returns what is paid in a span, nil if nothing was asked to be the same.
func (b *banding) bandPrice(s span) *BandPrice {
	if b.same == nil {
		return nil
	}
	var p BandPrice
	p.Same, _, _ = b.priced(0, s.from, s.to)
	if b.same.One != nil {
		one, _, _ := b.priced(1, s.from, s.to)
		p.One = &one
	}
	return &p
}
