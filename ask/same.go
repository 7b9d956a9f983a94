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
)

// Same is what the kernels for all M have in common, and what that costs. Prices are how much slower kernels are than
// the fastest of the family for each M, as a fraction, predicted.
type Same struct {
	// the axes that have one value for all M, and that value, as text
	Values map[string]string `json:"values"`
	// the price of the values: of the fastest kernels that have them. The mean is weighted as mean_regret
	MeanPrice float64 `json:"mean_price"`
	// where the price is highest
	WorstPrice float64 `json:"worst_price"`
	WorstM     int     `json:"worst_m"`
	// one kernel for all M: the one with the lowest mean price. `null` if no kernel computes every M
	One *One `json:"one"`
	// every choice of values with which each M has a kernel, cheapest first. The prices are of the sizes at which the whole
	// space was searched
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
	// the configuration, with a `group_m` of 0, as each M has its own
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
	Same float64 `json:"same"`
	// the mean price of one kernel, `null` if there is none
	One *float64 `json:"one"`
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
	// losses that of each configuration.
	loss, losses []float64
	// fastest is the fastest configuration of each size, -1 without one, fastestOf that of each size and group.
	fastest   []int
	fastestOf [][]int
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

// add takes the estimates of a size of so much weight.
func (s *searching) add(estimates []arch.Estimate, weight float64) {
	all, of := -1, slices.Repeat([]int{-1}, len(s.first))
	for i := range estimates {
		if estimates[i].Reject != "" {
			continue
		}
		if all < 0 || estimates[i].Cycles < estimates[all].Cycles {
			all = i
		}
		if best := &of[s.group[i]]; *best < 0 || estimates[i].Cycles < estimates[*best].Cycles {
			*best = i
		}
	}
	s.fastest, s.fastestOf = append(s.fastest, all), append(s.fastestOf, of)
	lost := func(i int) float64 {
		if i < 0 || estimates[i].Reject != "" {
			return weight * impossible
		}
		return weight * (float64(estimates[i].Cycles/estimates[all].Cycles) - 1)
	}
	if all < 0 {
		return
	}
	for i := range estimates {
		s.losses[i] += lost(i)
	}
	for g, i := range of {
		s.loss[g] += lost(i)
	}
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
// that have the cheapest values on the axes, and the single one that suits all sizes best.
func (b *banding) search(ctx context.Context, a arch.Architecture, space arch.Space, axes []axis) error {
	last := b.problems[len(b.problems)-1]
	list, err := a.Candidates(ctx, last, space)
	if err != nil {
		return err
	}
	s := newSearching(list.Configs, axes)
	estimates := make([]arch.Estimate, len(list.Configs))
	least, total := b.weight(0, len(b.sizes)), b.weight(0, len(b.sizes))
	for i, at := range b.searched {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.Estimate(ctx, estimates, b.problems[at], list.Configs); err != nil {
			return err
		}
		to := len(b.sizes)
		if i+1 < len(b.searched) {
			to = b.searched[i+1]
		}
		weight := b.weight(at, to)
		least = min(least, weight)
		if s.add(estimates, weight); s.fastest[i] < 0 {
			return diag.Inputf("no kernel computes %s", b.problems[at]).Do("choose another range of M")
		}
	}
	chosen := s.everywhere(s.loss, least)
	if chosen < 0 {
		return diag.Inputf("with no value of %s every M has a kernel", s.names()).Do("choose a smaller range of M, or other axes")
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
	use := func(i int) int {
		c := list.Configs[i]
		c.GroupM = 0
		at := slices.Index(b.configs, c)
		if at < 0 {
			at = len(b.configs)
			b.configs, b.conforms = append(b.configs, c), append(b.conforms, s.group[i] == chosen)
		}
		return at
	}
	for i := range b.searched {
		use(s.fastest[i])
		use(s.fastestOf[i][chosen])
	}
	if b.one = s.everywhere(s.losses, least); b.one >= 0 {
		b.one = use(b.one)
	}
	return nil
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
