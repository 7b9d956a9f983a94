package tune

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// Prior is what is known before any measurement. A predicted time is wrong by a factor, whose logarithm is the residual
// log(measured ÷ predicted). Residuals are a Gaussian process over sizes s and configurations c, with the covariance
//
//	k((s,c),(s',c')) = nearSizes · S + oneSize · [s=s'] + pair · [s=s', c=c'] +
//	                   C · (allSizes + nearBoth · S + oneSizeLike · [s=s'])
//
// S = exp(−d²/2) falls with the distance d of two sizes, C with the distance of two configurations. So a measurement
// says something of the same size, of similar configurations at all sizes, and most of similar configurations at nearby
// sizes.
//
// Its fields are the variances, and the distances, in powers of two, at which S and C have fallen to exp(−½).
type Prior struct {
	// Errors that all configurations share at nearby sizes and at one size, which do not change the choice; errors of a
	// configuration at all sizes; errors shared by similar configurations at nearby sizes and at one size; errors of one
	// configuration at one size, and of measurements.
	nearSizes, oneSize, allSizes, nearBoth, oneSizeLike, pair, noise float64
	// Distances of m, n and k, block_m and block_n, block_k, num_warps, num_stages (in stages) and split_k.
	size, tile, deep, warps, stages, split float64
	// axis is the C of two configurations that differ in one named axis, kind the S of two problem types.
	axis, kind float64
	// scale multiplies the variances of the candidates that are measured.
	scale float64
}

// PriorOf returns what a model states. Where it states nothing, each cause of errors counts the same, with errors of 4
// % by each that go together within powers of two: that is assumed.
func PriorOf(d *arch.Description) Prior {
	of := func(name string, otherwise float64) float64 { return cmp.Or(d.Constant("tune_"+name, 0), otherwise) }
	const variance = 0.04 * 0.04
	return Prior{
		nearSizes: of("near_sizes", variance), oneSize: of("one_size", variance), allSizes: of("all_sizes", variance),
		nearBoth: of("near_both", variance), oneSizeLike: of("one_size_like", variance), pair: of("pair", variance),
		noise: of("noise", 0.01*0.01),
		size:  of("size", 1), tile: of("tile", 1), deep: of("deep", 1), warps: of("warps", 1), stages: of("stages", 1),
		split: of("split", 1), axis: of("axis", 0.5), kind: of("kind", 0.5), scale: of("scale", 1),
	}
}

// The candidates that are measured are fewer than those the variances were fitted to, and better predicted. So all
// variances except the noise are multiplied by a scale, the mean square of standardised errors of the predictions
// that were made before each measurement. It begins as the scale of the prior, which counts as much as startCount
// measurements.
const (
	startCount = 40
	// leastScale is the least. The candidates that were measured were expected to be good, and so they surprise less than
	// those that are left.
	leastScale = 0.4
	// uncheckedScale is the first scale for a model that states no error.
	uncheckedScale = 16
	// most of a single square counts, so that no outlier decides.
	mostSquare = 25
)

// point is a size as the process sees it.
type point struct {
	kind int // number of the problem type
	log  [4]float64
}

// features is a configuration as the process sees it.
type features struct {
	log  [6]float64
	axes string
}

func featuresOf(c *gemm.Config) features {
	return features{[6]float64{log2(c.BlockM), log2(c.BlockN), log2(c.BlockK), log2(c.NumWarps), float64(c.NumStages),
		log2(c.SplitK)}, c.Axes.String()}
}

func log2(v int) float64 { return math.Log2(float64(v)) }

// observed is a measured residual. The configuration is its number.
type observed struct {
	size, config int
	residual     float64
}

// process is what measurements say of the errors of predicted times.
type process struct {
	Prior
	// points are the sizes, seen the observations of each.
	points []point
	seen   [][]observed
	// configs has the configurations by number, numbers the numbers. alike has likeConfigs of an observed configuration
	// and all others, nil for one that was not observed: it is asked for again and again.
	configs []features
	numbers map[features]int
	alike   [][]float64
	// surprise is the sum of squares of standardised errors, count their number.
	surprise, count float64
}

// newProcess returns what is known before any measurement.
func newProcess(sizes []Size, prior Prior, unchecked bool) *process {
	b := &process{Prior: prior, seen: make([][]observed, len(sizes)),
		numbers: map[features]int{}, surprise: prior.scale * startCount, count: startCount}
	if unchecked {
		b.surprise = uncheckedScale * startCount
	}
	for i := range sizes {
		p := &sizes[i].Problem
		b.points = append(b.points, point{sizes[i].Type, [4]float64{log2(p.M), log2(p.N), log2(p.K), log2(p.Batch)}})
		for j := range sizes[i].Candidates {
			b.number(&sizes[i].Candidates[j].Config)
		}
	}
	b.alike = make([][]float64, len(b.configs))
	return b
}

// number returns the number of a configuration, which does not depend on its launch order. All that are asked for are
// candidates of the sizes, in some launch order.
func (b *process) number(c *gemm.Config) int {
	f := featuresOf(c)
	n, there := b.numbers[f]
	if !there {
		n = len(b.configs)
		b.numbers[f] = n
		b.configs = append(b.configs, f)
	}
	return n
}

// apart is the square of the distance of two sizes.
func (b *process) apart(s, t int) (d float64) {
	x, y := &b.points[s], &b.points[t]
	for i := range x.log {
		d += (x.log[i] - y.log[i]) * (x.log[i] - y.log[i])
	}
	return d
}

func (b *process) likeAt(s, t int, apart float64) float64 {
	like := math.Exp(-apart / (2 * b.size * b.size))
	if b.points[s].kind != b.points[t].kind {
		like *= b.kind
	}
	return like
}

func (b *process) likeConfigs(x, y int) float64 {
	if row := b.alike[x]; row != nil {
		return row[y]
	}
	if row := b.alike[y]; row != nil {
		return row[x]
	}
	return b.compare(&b.configs[x], &b.configs[y])
}

func (b *process) compare(x, y *features) float64 {
	l := &b.Prior
	scale := [6]float64{l.tile, l.tile, l.deep, l.warps, l.stages, l.split}
	d := 0.0
	for i := range x.log {
		z := (x.log[i] - y.log[i]) / scale[i]
		d += z * z
	}
	like := math.Exp(-d / 2)
	if x.axes != y.axes {
		like *= l.axis
	}
	return like
}

// covariance returns the covariance of two residuals, without the noise of measuring. like is likeAt of their sizes.
func (b *process) covariance(s, c, t, d int, like float64) float64 {
	v := &b.Prior
	k := float64(v.nearSizes * like)
	shared := v.allSizes + float64(v.nearBoth*like)
	if s == t {
		k += v.oneSize
		shared += v.oneSizeLike
		if c == d {
			k += v.pair
		}
	}
	return k + float64(shared*b.likeConfigs(c, d))
}

// observe adds a measurement.
func (b *process) observe(s int, c *Candidate, t unit.Seconds) {
	o := observed{s, b.number(&c.Config), math.Log(float64(t / c.Predicted))}
	if b.alike[o.config] == nil {
		row := make([]float64, len(b.configs))
		for i := range row {
			row[i] = b.compare(&b.configs[o.config], &b.configs[i])
		}
		b.alike[o.config] = row
	}
	if len(b.seen[s]) > 0 { // errors that the whole size shares do not matter
		at := b.at(s)
		row := make([]float64, len(at.list))
		at.crossed(o.config, row)
		z := o.residual
		for i, w := range at.weights {
			z -= float64(w * row[i])
		}
		stats.Forward(at.root, row)
		variance := b.covariance(s, o.config, s, o.config, 1) + b.noise
		for _, v := range row {
			variance -= float64(v * v)
		}
		b.surprise += min(z*z/max(variance, b.noise), mostSquare)
		b.count++
	}
	b.seen[s] = append(b.seen[s], o)
}

// mostObserved bounds the observations that a prediction takes into account: first the size's own, then the nearest
// sizes'.
const mostObserved = 128

// near lists the observations that a prediction at a size takes into account, with the likeness of their sizes.
func (b *process) near(s int) (list []observed, like []float64) {
	type distant struct {
		size        int
		apart, like float64
	}
	// The nearest are kept while all are looked at: with thousands of sizes, sorting all takes longer than the rest.
	var sizes []distant
	for t := range b.seen {
		if t == s || len(b.seen[t]) == 0 {
			continue
		}
		apart := b.apart(s, t)
		if n := len(sizes); n == mostObserved {
			if far := &sizes[n-1]; apart >= far.apart && b.points[s].kind == b.points[far.size].kind {
				continue // the usual case, and quicker than a likeness
			}
		}
		like := b.likeAt(s, t, apart)
		at := sort.Search(len(sizes), func(i int) bool { return sizes[i].like < like })
		if at == mostObserved {
			continue
		}
		sizes = slices.Insert(sizes[:min(len(sizes), mostObserved-1)], min(at, mostObserved-1), distant{t, apart, like})
	}
	add := func(t int, l float64) {
		for _, o := range b.seen[t] {
			list, like = append(list, o), append(like, l)
		}
	}
	add(s, 1)
	for _, t := range sizes {
		if len(list)+len(b.seen[t.size]) > mostObserved {
			break
		}
		add(t.size, t.like)
	}
	return list, like
}

// posterior is the process at one size, given what was observed near it.
type posterior struct {
	b       *process
	size    int
	list    []observed
	like    []float64
	root    [][]float64 // of the covariance of the observations
	weights []float64
	row     []float64
}

func (b *process) at(s int) *posterior {
	c := &posterior{b: b, size: s}
	c.list, c.like = b.near(s)
	n := len(c.list)
	k := stats.Lower(n)
	for i := range c.list {
		x := &c.list[i]
		like := 0.0
		for j := range i + 1 {
			y := &c.list[j]
			if j == 0 || y.size != c.list[j-1].size {
				like = b.likeAt(x.size, y.size, b.apart(x.size, y.size))
			}
			k[i][j] = b.covariance(x.size, x.config, y.size, y.config, like)
		}
		k[i][i] += b.noise
	}
	stats.Cholesky(k, leastPivot)
	c.root = k
	c.weights = make([]float64, n)
	for i := range c.list {
		c.weights[i] = c.list[i].residual
	}
	stats.Forward(k, c.weights)
	stats.Backward(k, c.weights)
	c.row = make([]float64, n)
	return c
}

// crossed fills row with the covariances of a configuration with the observations.
func (c *posterior) crossed(config int, row []float64) {
	for i := range c.list {
		o := &c.list[i]
		row[i] = c.b.covariance(c.size, config, o.size, o.config, c.like[i])
	}
}

// mean returns the expected residual of a configuration.
func (c *posterior) mean(config *gemm.Config) float64 {
	c.crossed(c.b.number(config), c.row)
	sum := 0.0
	for i, w := range c.weights {
		sum += float64(w * c.row[i])
	}
	return sum
}

// joint returns the lower triangular root of the covariance of some configurations, by rows.
func (c *posterior) joint(configs []*gemm.Config) [][]float64 {
	n := len(configs)
	rows, all := make([][]float64, n), make([]int, n)
	for i := range configs {
		all[i] = c.b.number(configs[i])
		rows[i] = make([]float64, len(c.list))
		c.crossed(all[i], rows[i])
	}
	stats.Forward(c.root, rows...)
	scale := max(leastScale, c.b.surprise/c.b.count)
	k := stats.Lower(n)
	for i := range n {
		for j := range i + 1 {
			sum := c.b.covariance(c.size, all[i], c.size, all[j], 1)
			for l, v := range rows[i] {
				sum -= float64(v * rows[j][l])
			}
			k[i][j] = sum * scale
		}
	}
	stats.Cholesky(k, leastPivot)
	return k
}

// leastPivot is what rounding may leave of the variance of a configuration that others determine.
const leastPivot = 1e-10
