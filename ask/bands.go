package ask

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
)

// Bands divides a range of M into bands, with one kernel for each: N and K of a layer are fixed, and M is not.
type Bands struct {
	// as in the answer
	Arch   string    `json:"arch"`
	Device string    `json:"device"`
	Model  string    `json:"model"`
	Kernel string    `json:"kernel"`
	Rung   arch.Rung `json:"rung"`
	Timing string    `json:"timing,omitempty"`
	// the product with the largest M
	Problem gemm.Record `json:"problem"`
	// the number of different kernels, without the library's
	Kernels int `json:"kernels"`
	// the sizes M at which kernels were compared
	Asked int `json:"asked"`
	// time of the band's kernel ÷ time of the pick for that M − 1, with the library's margin; the mean is over log M
	MeanRegret  float64 `json:"mean_regret"`
	WorstRegret float64 `json:"worst_regret"`
	// where the regret is worst
	WorstM int `json:"worst_m"`
	// with `--same` or `--invariant`: what the kernels have in common, and its price
	Same *Same `json:"same,omitempty"`
	// in the order of M, without gaps in a range
	Bands []Band `json:"bands"`
}

// Band is a range of M and the kernel for it.
type Band struct {
	// the first and the last M
	MLow  int `json:"m_low"`
	MHigh int `json:"m_high"`
	// the model's family, or `library`, whose time counts with a margin (the model's constants `bands_…`) and, for an
	// activation, a pass over the result
	Kernel string `json:"kernel"`
	// the configuration, with a `group_m` of 0 for more than one M, as each M has its own
	Config *gemm.Config `json:"config"`
	// the predicted times of the band's kernel at both ends
	SecondsLow  float64 `json:"seconds_low"`
	SecondsHigh float64 `json:"seconds_high"`
	// as above, in this band
	MeanRegret  float64 `json:"mean_regret" unit:"fraction"`
	WorstRegret float64 `json:"worst_regret" unit:"fraction"`
	WorstM      int     `json:"worst_m"`
	// with `same`: what is paid for it in this band
	Price *BandPrice `json:"price,omitempty"`
}

// Range are the sizes M that bands are asked for.
type Range struct {
	// Low is the first M of a range, and the problem's M the last.
	Low int
	// List are single sizes in place of a range. Each has a band, and all count the same.
	List []int
	// Same names axes that have one value for all M. It is chosen for the lowest mean price (see Same).
	Same []string
	// Free are the kernels that regrets and prices are measured against (Contender.Free). Without a model, the bands' own
	// kernels are used.
	Free Kernels
}

// Ordered is the range for kernels that are not all: those whose sums have one order for all M, which depends on axes.
func (r Range) Ordered(free Kernels, order []string) Range {
	r.Free = free
	r.Same = slices.Concat(order, slices.DeleteFunc(slices.Clone(r.Same), func(name string) bool {
		return slices.Contains(order, name)
	}))
	return r
}

// Kernels are the kernels of a model in a space.
type Kernels struct {
	Model arch.Architecture
	Space arch.Space
}

// sizes returns the sizes at which kernels are compared.
func (r *Range) sizes(last int) ([]int, error) {
	if len(r.List) > 0 {
		sizes := slices.Compact(slices.Sorted(slices.Values(r.List)))
		if sizes[0] < 1 || sizes[len(sizes)-1] > MostM || len(sizes) > MostListed {
			return nil, diag.Inputf("a list of %d sizes M from %d to %d", len(sizes), sizes[0], sizes[len(sizes)-1]).
				Do("give at most %d sizes from 1 to %d", MostListed, MostM)
		}
		return sizes, nil
	}
	if r.Low < 1 || last < r.Low || last > MostM {
		return nil, diag.Inputf("M from %d to %d is no range of sizes", r.Low, last).
			Do("give two sizes from 1 to %d, the smaller first", MostM)
	}
	return sizesOf(r.Low, last, comparedPerOctave), nil
}

// MostM is the largest M of a band.
const MostM = 1 << 24

// MostListed is the most sizes of a list.
const MostListed = 4096

const (
	// kernelPrice is what another kernel has to lower the mean regret by. It is assumed: a kernel more takes some hundred
	// milliseconds to compile, once for each device and driver, and 0.1 % of the time of a layer is a second after 20
	// minutes of work. bandPrice is the same for another band of kernels that are there: less is not known of a time.
	kernelPrice, bandPrice = 0.001, 0.0001
	// step is the smallest step of block_m of any family: a kernel has a tile more behind one of its multiples. Up to
	// step·(sizes in an octave), every multiple of step is a size, and the size behind it. Above, each octave has so many.
	step = 8
	// Times are compared at this many sizes in an octave, bands begin at this many, and the whole space is searched for a
	// kernel at this many.
	comparedPerOctave, startsPerOctave, searchedPerOctave = 512, 128, 16
	// impossible is the loss without a kernel.
	impossible = 1e6
)

// margin returns what the library's predicted time is multiplied by before kernels of a model are compared with it, as
// the model states it: below 1 it is a head start of the library. For up to bands_few rows of A that begin with a cache
// line it is another, and for more than bands_many.
func margin(d *arch.Description, p *gemm.Problem) unit.Seconds {
	of := func(name string) float64 { return d.Constant("bands_"+name, 0) }
	rows, bytes, times := float64(p.M), p.K*p.DType.Bits()/8, of("margin")
	switch many := of("many"); {
	case rows <= of("few") && bytes%max(int(of("line")), 1) == 0 && p.AMajor == gemm.MajorK:
		times = of("margin_few")
	case many > 0 && rows > many:
		times = of("margin_many")
	}
	return unit.Seconds(cmp.Or(times, 1))
}

// BandsOf divides sizes M among the kernels of a in space, and the vendor's library where its model is given. A library
// has nothing in common with other kernels: what Range.Same asks for is of a's kernels alone.
func BandsOf(ctx context.Context, a arch.Architecture, space arch.Space, p gemm.Problem, r Range,
	library arch.Architecture) (*Bands, error) {
	sizes, err := r.sizes(p.M)
	if err != nil {
		return nil, err
	}
	if p.Groups != (gemm.Groups{}) || p.Nest != (gemm.Nest{}) {
		return nil, diag.Inputf("bands are of M, and %s has no M of its own", p).Do("leave groups and nests out")
	}
	p.M = sizes[len(sizes)-1]
	a = arch.Whole(a, p)
	axes, err := axesOf(r.Same, a.Describe().Axes(space.Kernel))
	if err != nil {
		return nil, err
	}
	if len(axes) > 0 {
		library = nil
	}
	if library != nil {
		library = arch.Whole(library, p)
	}
	if library != nil && library.Describe().Timing != a.Describe().Timing {
		return nil, diag.Inputf("times of %s are compared with times of %s", a.Describe().Timing,
			library.Describe().Timing).Do("open both models in one timing")
	}
	b := newBanding(p, sizes, len(r.List) > 0)
	for i := range b.problems {
		b.margins = append(b.margins, margin(a.Describe(), &b.problems[i]))
	}
	if r.Free.Model != nil {
		r.Free.Model = arch.Whole(r.Free.Model, p)
	}
	if err := b.price(ctx, a, space, axes, r.Free, library); err != nil {
		return nil, err
	}
	d := a.Describe()
	out := &Bands{Arch: d.Arch, Device: d.Device, Model: d.Model, Kernel: space.Kernel, Rung: d.Rung, Timing: d.Timing,
		Problem: p.Record(), Asked: len(b.sizes), Same: b.same}
	var used []int
	for _, s := range b.spans() {
		one := Band{MLow: b.sizes[s.from], MHigh: b.sizes[s.to-1], Kernel: space.Kernel, Price: b.bandPrice(s)}
		switch {
		case b.listed:
		case s.to < len(b.sizes):
			one.MHigh = b.sizes[s.to] - 1
		default:
			one.MHigh = p.M
		}
		if s.kernel < len(b.configs) {
			c := b.configs[s.kernel]
			if b.listed {
				m, err := a.Mapping(ctx, b.problems[s.from], c)
				if err != nil {
					return nil, err
				}
				c.GroupM = m.GroupM
			}
			one.Config = &c
			if !slices.Contains(used, s.kernel) {
				used = append(used, s.kernel)
			}
		} else {
			one.Kernel = ladder.Library
		}
		one.SecondsLow, one.SecondsHigh = b.seconds(s.kernel, s.from), b.seconds(s.kernel, s.to-1)
		one.MeanRegret, one.WorstRegret, one.WorstM = b.regret(b.times[s.kernel], s.from, s.to)
		out.MeanRegret += one.MeanRegret * b.weight(s.from, s.to) / b.weight(0, len(b.sizes))
		if len(out.Bands) == 0 || one.WorstRegret > out.WorstRegret {
			out.WorstRegret, out.WorstM = one.WorstRegret, one.WorstM
		}
		out.Bands = append(out.Bands, one)
	}
	out.Kernels = len(used)
	return out, nil
}

// Bands divides a range of M for a problem, among the kernels of the family that For returns and the vendor's library.
func (c *Contender) Bands(ctx context.Context, p gemm.Problem, r Range) (*Bands, error) {
	c = c.For(ctx, &p)
	if c.Kernel == ladder.Library {
		return nil, diag.Inputf("the vendor's library chooses a kernel for each M by itself").
			Do("choose another kernel family, or ask about one M")
	}
	if c.Describe().RanksOnly {
		return nil, diag.Inputf("the %s model of %s predicts no times", c.Describe().Model, c.Describe().ID()).
			Do("choose another model, or ask about one M")
	}
	space, err := models.Space(nil).Of(c.Describe(), c.Kernel)
	if err != nil {
		return nil, err
	}
	if c.Free != nil {
		_, order, err := c.Describe().Invariant(space)
		if err != nil {
			return nil, err
		}
		r = r.Ordered(Kernels{c.Free, space}, order)
	}
	var library arch.Architecture
	for _, f := range c.Others {
		if f.Kernel != ladder.Library {
			continue
		}
		if l, err := f.Open(ctx); err == nil && !l.Describe().RanksOnly && l.Describe().Timing == c.Describe().Timing {
			library = l
		}
	}
	return BandsOf(ctx, c.Model, space, p, r, library)
}

// sizesOf returns sizes from low to high, both among them: multiples of a step, and the sizes behind these. From
// perOctave·step on, each octave has perOctave of both.
func sizesOf(low, high, perOctave int) []int {
	sizes := []int{low, high}
	for m := step; m <= high; {
		for _, at := range []int{m, m + 1} {
			if low <= at && at <= high {
				sizes = append(sizes, at)
			}
		}
		m += max(step, 1<<(bits.Len(uint(m))-1)/perOctave)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// banding has what kernels take at each size.
type banding struct {
	// sizes are in order. starts are the indices of those at which a band may begin, searched of those with a pick of
	// the whole space. Each is a part of the one before.
	sizes            []int
	starts, searched []int
	problems         []gemm.Problem
	// margins are the library's error margins, one for each problem.
	margins []unit.Seconds
	// configs are the picks, each once. times are by kernel and size: of configs, then, if there is one, of the library;
	// infinite for a kernel that a size cannot have. best are the shortest.
	configs []gemm.Config
	times   [][]unit.Seconds
	best    []unit.Seconds
	// listed says that each size is a band of its own, and that all weigh the same.
	listed bool
	// With axes that have one value for all sizes: same says which and what it costs, conforms which of configs have it.
	// one is the place in configs of the single kernel for all sizes, or -1. paid are the times, by size, of the fastest
	// kernel with the values, and of that single kernel if there is one.
	same     *Same
	conforms []bool
	one      int
	paid     [][]unit.Seconds
}

func newBanding(p gemm.Problem, sizes []int, listed bool) *banding {
	b := &banding{sizes: sizes, listed: listed, problems: make([]gemm.Problem, len(sizes))}
	for i, m := range sizes {
		b.problems[i] = p
		b.problems[i].M = m
	}
	places := func(perOctave int) (at []int) {
		starts := sizes
		if !listed {
			starts = sizesOf(sizes[0], sizes[len(sizes)-1], perOctave)
		}
		for _, m := range starts {
			i, _ := slices.BinarySearch(sizes, m)
			at = append(at, i)
		}
		return at
	}
	b.starts, b.searched = places(startsPerOctave), places(searchedPerOctave)
	return b
}

// price fills in the times, and keeps the kernels that bands may have.
func (b *banding) price(ctx context.Context, a arch.Architecture, space arch.Space, axes []string, free Kernels,
	library arch.Architecture) error {
	b.best = slices.Repeat([]unit.Seconds{never}, len(b.sizes))
	var theirs []unit.Seconds
	if library != nil {
		picks, err := selector.Rank(ctx, library, selector.Request{Problems: b.problems,
			Space: arch.Space{Kernel: library.Describe().Kernels[0]}, Top: 1})
		if err != nil {
			return err
		}
		for i := range picks {
			theirs = append(theirs, picked(library, &picks[i])*b.margins[i])
			b.best[i] = theirs[i]
		}
	}
	if len(axes) > 0 {
		if err := b.search(ctx, a, space, axes, free); err != nil {
			return err
		}
	} else if err := b.pick(ctx, a, space); err != nil {
		return err
	}
	if err := b.estimate(ctx, a); err != nil {
		return err
	}
	if b.same != nil {
		b.settle()
	}
	if library != nil {
		b.times = append(b.times, theirs)
	}
	return nil
}

// pick adds to b.configs the picks of the searched sizes.
func (b *banding) pick(ctx context.Context, a arch.Architecture, space arch.Space) error {
	picks, err := b.picks(ctx, Kernels{a, space})
	if err != nil {
		return err
	}
	for i, at := range b.searched {
		t := picked(a, &picks[i])
		if b.best[at] = min(b.best[at], t); b.best[at] == never {
			return picks[i].Err
		}
		if t == never {
			continue
		}
		b.use(picks[i].Entries[0].Config, true)
	}
	return nil
}

// picks returns the picks of kernels at the searched sizes.
func (b *banding) picks(ctx context.Context, of Kernels) ([]selector.Result, error) {
	var asked []gemm.Problem
	for _, at := range b.searched {
		asked = append(asked, b.problems[at])
	}
	return selector.Rank(ctx, of.Model, selector.Request{Problems: asked, Space: of.Space, Top: 1})
}

// estimate fills in the times of configs.
func (b *banding) estimate(ctx context.Context, a arch.Architecture) error {
	b.times = make([][]unit.Seconds, len(b.configs))
	estimates := make([]arch.Estimate, len(b.configs))
	for i, p := range b.problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := a.Estimate(ctx, estimates, p, b.configs)
		for k, e := range estimates {
			t := never
			if err == nil && e.Reject == "" {
				t = e.Cycles.At(a.Describe().Clock)
			}
			b.times[k], b.best[i] = append(b.times[k], t), min(b.best[i], t)
		}
		if b.best[i] == never {
			return cmp.Or(err, error(diag.Inputf("no kernel of the bands computes %s", p).Do("choose another range of M")))
		}
	}
	return nil
}

// seconds is the predicted time of a kernel, or of the library.
func (b *banding) seconds(kernel, at int) float64 {
	t := b.times[kernel][at]
	if kernel == len(b.configs) {
		t /= b.margins[at]
	}
	return float64(t)
}

// never is the time of a kernel that a size cannot have.
var never = unit.Seconds(math.Inf(1))

// picked returns the time of a pick.
func picked(a arch.Architecture, r *selector.Result) unit.Seconds {
	if r.Err != nil {
		return never
	}
	return r.Entries[0].Estimate.Cycles.At(a.Describe().Clock)
}

// span is a run of sizes, to exclusive, with one kernel.
type span struct{ from, to, kernel int }

// weight is the width of a range of sizes in octaves. For a list, it is the number of sizes.
func (b *banding) weight(from, to int) float64 {
	if b.listed {
		return float64(to - from)
	}
	end := b.sizes[len(b.sizes)-1] + 1
	if to < len(b.sizes) {
		end = b.sizes[to]
	}
	return math.Log2(float64(end) / float64(b.sizes[from]))
}

// loss is what a kernel loses against the pick for one size.
func (b *banding) loss(kernel, at int) float64 { return float64(b.times[kernel][at]/b.best[at]) - 1 }

// regret returns what times lose against the picks of a run of sizes: the mean and the worst with its M.
func (b *banding) regret(times []unit.Seconds, from, to int) (mean, worst float64, at int) {
	at = b.sizes[from]
	for i := from; i < to; i++ {
		loss := float64(times[i]/b.best[i]) - 1
		mean += loss * b.weight(i, i+1)
		if loss > worst {
			worst, at = loss, b.sizes[i]
		}
	}
	return mean / b.weight(from, to), worst, at
}

// spans returns the bands.
func (b *banding) spans() []span {
	if !b.listed {
		b.choose()
		return b.divide()
	}
	spans := make([]span, len(b.sizes))
	for i := range spans {
		spans[i] = span{i, i + 1, 0}
		for k := range b.times {
			if b.times[k][i] < b.times[spans[i].kernel][i] {
				spans[i].kernel = k
			}
		}
	}
	return spans
}

// choose keeps the kernels that are worth their price, the one that saves most first, and the library.
func (b *banding) choose() {
	least := slices.Repeat([]float64{impossible}, len(b.sizes))
	keep := func(k int) {
		for i := range least {
			least[i] = min(least[i], b.loss(k, i))
		}
	}
	var configs []gemm.Config
	var times [][]unit.Seconds
	library := len(b.times) > len(b.configs)
	if library {
		keep(len(b.configs))
	}
	for {
		best, most := -1, kernelPrice*b.weight(0, len(b.sizes))
		for k := range b.configs {
			gain := 0.0
			for i := range least {
				gain += max(0, least[i]-b.loss(k, i)) * b.weight(i, i+1)
			}
			if gain >= most {
				best, most = k, gain
			}
		}
		if best < 0 {
			break
		}
		keep(best)
		configs, times = append(configs, b.configs[best]), append(times, b.times[best])
	}
	if library {
		times = append(times, b.times[len(b.configs)])
	}
	b.configs, b.times = configs, times
}

// divide returns the spans that have the least mean regret, where each span costs bandPrice.
func (b *banding) divide() []span {
	ends := append(slices.Clone(b.starts[1:]), len(b.sizes))
	n, price := len(ends), bandPrice*b.weight(0, len(b.sizes))
	cost, last := slices.Repeat([]float64{math.Inf(1)}, n+1), make([]span, n+1)
	before := make([]int, n+1)
	cost[0] = 0
	losses := make([][]float64, n) // by run between two starts, and kernel
	for i := range losses {
		losses[i] = make([]float64, len(b.times))
		for k := range b.times {
			mean, _, _ := b.regret(b.times[k], b.starts[i], ends[i])
			losses[i][k] = mean * b.weight(b.starts[i], ends[i])
		}
	}
	for from := range n {
		sums := make([]float64, len(b.times))
		for to := from + 1; to <= n; to++ {
			best := 0
			for k := range sums {
				if sums[k] += losses[to-1][k]; sums[k] < sums[best] {
					best = k
				}
			}
			if total := cost[from] + sums[best] + price; total < cost[to] {
				cost[to], last[to], before[to] = total, span{b.starts[from], ends[to-1], best}, from
			}
		}
	}
	var spans []span
	for at := n; at > 0; at = before[at] {
		spans = append(spans, last[at])
	}
	slices.Reverse(spans)
	return spans
}
