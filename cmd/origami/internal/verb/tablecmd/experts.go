package tablecmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// experts are the routed experts of a layer, as one GPU computes them with vLLM's or SGLang's fused_moe kernel. Each
// has a gated first product (hidden → 2·inter) and a second one (inter → hidden).
type experts struct {
	count, topK, hidden, inter int
	// dtype is BF16, or FP8 with a scale per tensor. With blocks, 128 elements of a row of A have a scale, and 128×128
	// of B (DeepSeek-V3's).
	dtype  gemm.DType
	blocks bool
}

// scaleBlock is how many elements have a scale in common along K and N, where they have one per block.
const scaleBlock = 128

// scaled is the rows and columns of a weight that have a scale in common, nil for all.
func (e *experts) scaled() []int {
	if !e.blocks {
		return nil
	}
	return []int{scaleBlock, scaleBlock}
}

// products are the two products for the rows that each expert gets.
func (e *experts) products(rows []int) (up, down gemm.Problem, err error) {
	groups, err := gemm.NewGroups(rows...)
	if err != nil {
		return up, down, err
	}
	of := func(n, k int) gemm.Problem {
		p := typedLinear(e.dtype, 1, n, k)
		p.SetGroups(groups)
		return p.Canonical()
	}
	up, down = of(2*e.inter, e.hidden), of(e.hidden, e.inter)
	if err := up.Validate(); err != nil {
		return up, down, err
	}
	return up, down, down.Validate()
}

// routed are the model types for which modelConfig.experts is right (vLLM 0.33.0, vllm/model_executor/models).
var routed = []string{"deepseek_v2", "deepseek_v3", "glm4_moe", "mixtral", "olmoe", "phimoe", "qwen2_moe", "qwen3_moe",
	"qwen3_next"}

// experts returns the experts of a model's layers on one of tp GPUs, which divide each expert among them, and how many
// layers have experts.
func (c *modelConfig) experts(name string, tp int) (*experts, int, error) {
	wrong := func(format string, args ...any) (*experts, int, error) {
		return nil, 0, diag.Inputf(format, args...).At("%s", name).
			Do("give the config.json of a model with experts: %s", strings.Join(routed, ", "))
	}
	if !slices.Contains(routed, c.ModelType) {
		return wrong("the experts of the model_type %q are not known", c.ModelType)
	}
	e := &experts{count: cmp.Or(c.LocalExperts, c.Experts, c.RoutedExperts), topK: c.TopK, hidden: c.Hidden,
		inter: cmp.Or(c.ExpertInner, c.Intermediate), dtype: gemm.BF16}
	switch q := c.Quantization; {
	case q == nil:
	case q.Method == "fp8" && (len(q.Block) == 0 || slices.Equal(q.Block, []int{scaleBlock, scaleBlock})):
		e.dtype, e.blocks = gemm.FP8, len(q.Block) > 0
	default:
		return nil, 0, diag.Inputf("no model predicts experts that are quantized by %s in this way", q.Method).
			At("%s", name).Do("use a model in bf16, or in fp8 with a scale per tensor or per 128x128; vLLM's " +
			"benchmark_moe.py measures the others")
	}
	switch {
	case e.count < 2 || e.count > gemm.MaxGroups:
		return wrong("the number of experts is %d", e.count)
	case e.topK < 1 || e.topK > e.count:
		return wrong("num_experts_per_tok is %d", e.topK)
	case min(e.hidden, e.inter, c.Layers) < 1 || max(e.hidden, e.inter, c.Layers) > mostSize:
		return wrong("a size of the layers is missing")
	case tp < 1:
		return nil, 0, notPositive(tp)
	case e.inter%tp != 0:
		return nil, 0, diag.Inputf("%d GPUs do not divide the %d columns of an expert", tp, e.inter).At("--tp").
			Do("give a number that divides them, as vLLM asks for")
	}
	e.inter /= tp
	if e.blocks && e.inter%scaleBlock != 0 {
		return nil, 0, diag.Inputf("%d columns of an expert on each GPU are not whole blocks of %d", e.inter, scaleBlock).
			At("--tp").Do("give fewer GPUs, as vLLM asks for")
	}
	layers := 0
	for i := range c.Layers {
		if i >= c.DenseFirst && i%max(c.SparseEvery, 1) == 0 && (i+1)%max(c.SparseStep, 1) == 0 &&
			!slices.Contains(c.DenseLayers, i) {
			layers++
		}
	}
	if layers == 0 {
		return wrong("no layer has experts")
	}
	return e, layers, nil
}

// expertLayer is the layer on a device with a model of its kernels.
type expertLayer struct {
	experts
	side  *ask.Contender
	space []gemm.Config // the kernels to choose from
}

// open opens the model of the experts' kernels that the user named.
func (e *experts) open(ctx context.Context, f *session.Factory) (*expertLayer, error) {
	family := expertFamily
	if e.blocks {
		family = blockFamily
	}
	side, err := openSide(ctx, f, family)
	if err != nil {
		return nil, err
	}
	up, _, err := e.products([]int{1, 1})
	if err != nil {
		return nil, err
	}
	space, err := candidates(ctx, side, up)
	return &expertLayer{*e, side, space}, err
}

// The kernel families of experts, and of fp8 with scales per block, for experts and for one matrix. topKAxis has the
// experts of a token, in a first product, whose time then has the layer's other kernels.
const expertFamily, blockFamily, topKAxis = "fused_moe", "block_fp8", "top_k"

// candidates are the kernels to choose from for a problem.
func candidates(ctx context.Context, side *ask.Contender, p gemm.Problem) ([]gemm.Config, error) {
	list, err := side.Model.Candidates(ctx, p, arch.Space{Kernel: side.Kernel})
	if err != nil {
		return nil, err
	}
	return list.Configs, nil
}

// configs are the kernels to choose from for so many tokens, more of them, and vLLM's without a table.
func (l *expertLayer) configs(tokens int, more ...gemm.Config) []gemm.Config {
	without := l.defaultConfig(tokens)
	list := slices.Concat(l.space, more, []gemm.Config{without})
	for i := range list {
		list[i].Kernel = l.side.Kernel
		if i < len(l.space) {
			list[i].GroupM = without.GroupM
		}
	}
	return list
}

// times predicts the times of kernels, in s. One that does not run takes forever.
func times(
	ctx context.Context, side *ask.Contender, p gemm.Problem, configs []gemm.Config,
) ([]float64, []arch.Estimate, error) {
	estimates, seconds := make([]arch.Estimate, len(configs)), make([]float64, len(configs))
	if err := side.Model.Estimate(ctx, estimates, p, configs); err != nil {
		return nil, nil, err
	}
	for i := range estimates {
		seconds[i] = float64(estimates[i].Cycles.At(side.Describe().Clock))
		if estimates[i].Reject != "" {
			seconds[i] = math.Inf(1)
		}
	}
	return seconds, estimates, nil
}

// expertTimes are predicted times of both products in s, by configuration.
type expertTimes struct {
	up, down []float64
	rejects  []string
	problem  gemm.Problem // the first product
	apart    float64      // the least gain that the model tells from none
}

// layer is the time of the layer with one configuration for both products, or with two.
func (t *expertTimes) layer(up, down int) float64 { return t.up[up] + t.down[down] }

// pick is the fastest configuration if it gains enough over the one at the default's place, and otherwise that.
func (t *expertTimes) pick(without int) int {
	best := without
	for i := range t.up {
		if t.layer(i, i) < t.layer(best, best) {
			best = i
		}
	}
	if t.layer(without, without) < t.apart*t.layer(best, best) {
		return without
	}
	return best
}

// estimate predicts the layer for the rows of each expert. The last of the configurations is vLLM's without a table.
func (l *expertLayer) estimate(ctx context.Context, rows []int, configs []gemm.Config) (*expertTimes, error) {
	up, down, err := l.products(rows)
	if err != nil {
		return nil, err
	}
	d, firsts := l.side.Describe(), slices.Clone(configs)
	for i := range firsts {
		if err := firsts[i].SetAxis(d.Axes(l.side.Kernel), topKAxis, strconv.Itoa(l.topK)); err != nil {
			return nil, err
		}
	}
	t := &expertTimes{rejects: make([]string, len(configs)), problem: up, apart: 1}
	var first, second []arch.Estimate
	if t.up, first, err = times(ctx, l.side, up, firsts); err != nil {
		return nil, err
	}
	if t.down, second, err = times(ctx, l.side, down, configs); err != nil {
		return nil, err
	}
	for i := range configs {
		t.rejects[i] = string(cmp.Or(second[i].Reject, first[i].Reject))
	}
	_, e, err := entryOf(ctx, l.side, &up, &configs[len(configs)-1])
	if err != nil {
		return nil, err
	}
	if apart, ok := d.Common(e.Terms, arch.CommonToldApart); ok {
		t.apart = apart
	}
	return t, nil
}

// fastest is the index of the least time among configurations with this BLOCK_SIZE_M, or with any for 0, and −1
// without one.
func fastest(times []float64, configs []gemm.Config, blockM int) int {
	at := -1
	for i := range times {
		if (blockM == 0 || configs[i].BlockM == blockM) && (at < 0 || times[i] < times[at]) {
			at = i
		}
	}
	return at
}

// defaultConfig is vLLM's kernel without a table (fused_moe.get_default_config).
func (e *experts) defaultConfig(tokens int) gemm.Config {
	c := gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 1,
		SplitK: 1}
	if e.blocks {
		c.BlockM, c.BlockK, c.NumWarps, c.GroupM = 16, scaleBlock, 4, 1
		if tokens > 64 {
			c.BlockM = 64
		}
		if tokens > 16 {
			c.GroupM = 32
		}
		return c
	}
	switch {
	case tokens <= 32:
		c.BlockM, c.NumStages = 16, 4
	case tokens <= 96:
		c.BlockM = 32
	case tokens <= 512:
		c.BlockM = 64
	}
	if tokens <= 64 {
		c.BlockN = 64
	}
	if tokens <= 64 || e.dtype == gemm.FP8 {
		c.BlockK = 128
	}
	if tokens <= 128 {
		c.NumWarps = 4
	}
	if tokens/e.count > 128 {
		c.GroupM = 16
	}
	return c
}

// load is how popular the experts are: a weight each.
type load []float64

// parseLoad reads "uniform", "zipf=1.1" (the weight of the r-th expert is r to the power of −1.1), or a weight each.
func parseLoad(text string, count int) (load, error) {
	wrong := func() error {
		return diag.Inputf("--load %s is no load of %d experts", text, count).
			Do("use uniform, zipf=1.1, or %d weights divided by commas", count)
	}
	l := make(load, count)
	kind, exponent, _ := strings.Cut(text, "=")
	switch kind {
	case "uniform":
		exponent = "0"
		fallthrough
	case "zipf":
		v, err := strconv.ParseFloat(exponent, 64)
		if err != nil || v < 0 || v > 10 || text != "uniform" && kind == "uniform" {
			return nil, wrong()
		}
		for i := range l {
			l[i] = math.Pow(float64(i+1), -v)
		}
		return l, nil
	}
	cells := strings.Split(text, ",")
	if len(cells) != count {
		return nil, wrong()
	}
	for i, cell := range cells {
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || !(v > 0 && v < 1e9) {
			return nil, wrong()
		}
		l[i] = v
	}
	return l, nil
}

// rows draws how many rows each expert gets from so many tokens, for an ascending list of tokens. A token chooses topK
// experts at random, each by its weight. The first tokens are the same for all numbers of them, and in all answers.
func (l load) rows(topK int, tokens []int) [][]int {
	r := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // the same draw each time
	sums, list, keys := make([]int, len(l)), make([][]int, 0, len(tokens)), make([]float64, len(l))
	for n := 1; len(list) < len(tokens); n++ {
		for i, weight := range l { // the smallest of exponential variables: a choice without replacement
			keys[i] = r.ExpFloat64() / weight
		}
		last := slices.Sorted(slices.Values(keys))[topK-1]
		for i, key := range keys {
			if key <= last {
				sums[i]++
			}
		}
		if tokens[len(list)] == n {
			list = append(list, slices.Clone(sums))
		}
	}
	return list
}

// intervalOf returns what a model knows of the error of a time: the ends of its interval and what they rest on.
func intervalOf(r *ask.Ranking, e *ask.Entry, seconds float64) (interval *[2]float64, evidence string) {
	scope := r.Scope(e)
	low, high, ok := scope.Interval(e.Estimate.Bound, unit.Seconds(seconds))
	if !ok {
		return nil, "no times were compared"
	}
	what, more, _ := strings.Cut(scope.Uncertainty.Source, "; ")
	return &[2]float64{float64(low), float64(high)}, fmt.Sprintf("%s: 90 %% lie within %s to %s of the predicted ones; %s",
		what, digits.ThreeDigits(float64(low)/seconds), digits.ThreeDigits(float64(high)/seconds), more)
}
