package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// axesOf checks the names of axes.
func axesOf(names []string, declared []gemm.Axis) (axes []string, err error) {
	for _, name := range names {
		var space arch.Space
		name, err := space.Set(name, nil, declared)
		if err != nil {
			return nil, err
		}
		if slices.Contains(axes, name) {
			return nil, diag.Inputf("the axis %s is given twice", name).Do("name it once")
		}
		axes = append(axes, name)
	}
	return axes, nil
}

// search is a search of the whole space for what kernels of all M can have in common: one group of configurations for
// each choice of values on the axes.
type search struct {
	// group is the group of each configuration. first is a configuration of each group.
	group, first []int
	// losses is the weighted sum over sizes of what each configuration loses against the fastest of all, groupLosses the
	// same of the fastest of each group.
	losses, groupLosses []float64
	// fastest is the fastest configuration of each size and group, -1 without one.
	fastest [][]int
}

// add takes the estimates of a size of so much weight. best is the fastest of all kernels there.
func (s *search) add(estimates []arch.Estimate, best unit.Cycles, weight float64) {
	of, lost := slices.Repeat([]int{-1}, len(s.first)), slices.Repeat([]float64{weight * impossible}, len(estimates))
	for i := range estimates {
		if estimates[i].Reject == "" {
			lost[i] = weight * (float64(estimates[i].Cycles/best) - 1)
			if g := s.group[i]; of[g] < 0 || estimates[i].Cycles < estimates[of[g]].Cycles {
				of[g] = i
			}
		}
		s.losses[i] += lost[i]
	}
	for g, i := range of {
		if i >= 0 {
			s.groupLosses[g] += lost[i]
		} else {
			s.groupLosses[g] += weight * impossible
		}
	}
	s.fastest = append(s.fastest, of)
}

// everywhere returns the place of the lowest loss, -1 if something is impossible at a size.
func everywhere(losses []float64, least float64) int {
	place := -1
	for i, loss := range losses {
		if loss < least*impossible && (place < 0 || loss < losses[place]) {
			place = i
		}
	}
	return place
}

// search estimates the whole space at the searched sizes, and adds to b.configs the fastest of each size, the fastest
// that have the cheapest values on the axes, and the single one that suits all sizes best. If free has a
// model, the fastest of a size come from it.
func (b *banding) search(
	ctx context.Context, a arch.Architecture, space arch.Space, axes []string, free Kernels,
) error {
	var picks []selector.Result
	var err error
	var fastest []gemm.Config
	if free.Model != nil {
		if picks, err = b.picks(ctx, free); err != nil {
			return err
		}
	}
	list, err := a.Candidates(ctx, b.problems[len(b.problems)-1], space)
	if err != nil {
		return err
	}
	declared := a.Describe().Axes(space.Kernel)
	// An axis of the family on which all agree says nothing: sums of bf16 are never promoted.
	axes = slices.DeleteFunc(slices.Clone(axes), func(x string) bool {
		_, err := gemm.FindAxis(declared, x)
		return err == nil && len(axes) > 1 && !slices.ContainsFunc(list.Configs, func(c gemm.Config) bool {
			return c.On(x, declared) != list.Configs[0].On(x, declared)
		})
	})
	values := func(i int) map[string]string {
		v := map[string]string{}
		for _, x := range axes {
			v[x] = list.Configs[i].On(x, declared)
		}
		return v
	}
	s := &search{group: make([]int, len(list.Configs)), losses: make([]float64, len(list.Configs))}
	groups := map[string]int{}
	for i := range list.Configs {
		key := fmt.Sprint(values(i))
		if _, there := groups[key]; !there {
			groups[key], s.first = len(s.first), append(s.first, i)
		}
		s.group[i] = groups[key]
	}
	s.groupLosses = make([]float64, len(s.first))
	estimates := make([]arch.Estimate, len(list.Configs))
	total := b.weight(0, len(b.sizes))
	least := total
	for i, at := range b.searched {
		if err := ctx.Err(); err != nil {
			return err
		}
		if free.Model != nil && picks[i].Err != nil {
			return picks[i].Err
		}
		if err := a.Estimate(ctx, estimates, b.problems[at], list.Configs); err != nil {
			return err
		}
		best := fastestOf(estimates)
		if best < 0 {
			return diag.Inputf("no kernel computes %s", b.problems[at]).Do("choose other sizes M")
		}
		cycles, pick := estimates[best].Cycles, list.Configs[best]
		if free.Model != nil {
			cycles, pick = min(cycles, picks[i].Entries[0].Estimate.Cycles), picks[i].Entries[0].Config
		}
		fastest = append(fastest, pick)
		to := len(b.sizes)
		if i+1 < len(b.searched) {
			to = b.searched[i+1]
		}
		weight := b.weight(at, to)
		least = min(least, weight)
		s.add(estimates, cycles, weight)
	}
	chosen := everywhere(s.groupLosses, least)
	if chosen < 0 {
		return diag.Inputf("with no value of %s every M has a kernel", strings.Join(axes, ", ")).
			Do("choose fewer sizes M, or other axes")
	}
	b.same = &Same{axes: axes, Values: values(s.first[chosen])}
	for g, loss := range s.groupLosses {
		if loss < least*impossible {
			b.same.Choices = append(b.same.Choices, Choice{Values: values(s.first[g]), MeanPrice: loss / total})
		}
	}
	slices.SortStableFunc(b.same.Choices, func(x, y Choice) int { return cmp.Compare(x.MeanPrice, y.MeanPrice) })
	for i := range b.searched {
		b.use(list.Configs[s.fastest[i][chosen]], true)
	}
	if b.one = everywhere(s.losses, least); b.one >= 0 {
		b.one = b.use(list.Configs[b.one], s.group[b.one] == chosen)
	}
	for _, c := range fastest {
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

// settle prices what all M have in common, and keeps the kernels that have it.
func (b *banding) settle() {
	fastest := slices.Repeat([]unit.Seconds{never}, len(b.sizes))
	var configs []gemm.Config
	var times [][]unit.Seconds
	for k := range b.configs {
		if !b.conforms[k] {
			continue
		}
		configs, times = append(configs, b.configs[k]), append(times, b.times[k])
		for i, t := range b.times[k] {
			fastest[i] = min(fastest[i], t)
		}
	}
	b.paid = [][]unit.Seconds{fastest}
	b.same.MeanPrice, b.same.WorstPrice, b.same.WorstM = b.regret(fastest, 0, len(b.sizes))
	if b.one >= 0 {
		one := &One{Config: b.configs[b.one]}
		b.paid, b.same.One = append(b.paid, b.times[b.one]), one
		one.MeanPrice, one.WorstPrice, one.WorstM = b.regret(b.paid[1], 0, len(b.sizes))
	}
	b.configs, b.times = configs, times
}

// bandPrice returns what is paid in a span, nil if nothing was asked to be the same.
func (b *banding) bandPrice(s span) *BandPrice {
	if b.same == nil {
		return nil
	}
	var p BandPrice
	p.Same, _, _ = b.regret(b.paid[0], s.from, s.to)
	if b.same.One != nil {
		one, _, _ := b.regret(b.paid[1], s.from, s.to)
		p.One = &one
	}
	return &p
}
