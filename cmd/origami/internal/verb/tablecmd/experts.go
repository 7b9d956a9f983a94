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
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// experts are the routed experts of a layer, as one GPU computes them with vLLM's or SGLang's fused_moe kernel. Each
// has a gated first product (hidden → 2·inter) and a second one (inter → hidden).
type experts struct {
	count, topK, hidden, inter int
	// dtype is BF16, or FP8 with a scale per tensor.
	dtype gemm.DType
}

// products are the two products for the rows that each expert gets.
func (e *experts) products(rows []int) (up, down gemm.Problem, err error) {
	groups, err := gemm.NewGroups(rows...)
	if err != nil {
		return up, down, err
	}
	of := func(n, k int) gemm.Problem {
		p := gemm.New(1, n, k)
		p.SetGroups(groups)
		p.DType, p.Out = e.dtype, gemm.BF16
		p.SetTrans(false, true)
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
	case q.Method == "fp8" && len(q.Block) == 0:
		e.dtype = gemm.FP8
	default:
		return nil, 0, diag.Inputf("no model predicts experts that are quantized by %s in this way", q.Method).
			At("%s", name).Do("use a model in bf16, or in fp8 with a scale per tensor; vLLM's benchmark_moe.py measures " +
			"the others")
	}
	switch {
	case e.count < 1 || e.count > gemm.MaxGroups:
		return wrong("the number of experts is %d", e.count)
	case e.topK < 1 || e.topK > e.count:
		return wrong("num_experts_per_tok is %d", e.topK)
	case min(e.hidden, e.inter, c.Layers) < 1 || max(e.hidden, e.inter, c.Layers) > mostSize:
		return wrong("a size of the layers is missing")
	case tp < 1:
		return nil, 0, diag.Inputf("--tp %d is not positive", tp).Do("give a whole number of at least 1")
	case e.inter%tp != 0:
		return nil, 0, diag.Inputf("%d GPUs do not divide the %d columns of an expert", tp, e.inter).At("--tp").
			Do("give a number that divides them, as vLLM asks for")
	}
	e.inter /= tp
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

// A layer of experts takes
//
//	productScale · (first product + second product) + elementwise · bytes ÷ DRAM's bandwidth + otherKernels
//
// with the times of the products as the family triton predicts them, and the bytes that the activation and the sum over
// a token's experts move once (elementwise counts that they reach only a part of the data sheet's bandwidth). The other
// kernels sort the rows by expert. All three were fitted on published times of vLLM's layer on four GPUs:
// testdata/fused-moe/README.md, TestExpertTimes.
const (
	productScale = 0.881
	elementwise  = 1.967
	otherKernels = 13.53e-6 // s
)

// activationBytes is what the kernels between and behind the products read and write, in B.
func (e *experts) activationBytes(tokens int) float64 {
	rows := float64(tokens * e.topK)
	return bf16Bytes * (rows*float64(3*e.inter) + rows*float64(e.hidden) + float64(tokens*e.hidden))
}

// expertTimes are predicted times in s, by configuration. A configuration that does not run takes forever.
type expertTimes struct {
	up, down  []float64
	estimates []arch.Estimate // of the first product
	rejects   []string
	rest      float64
	rows      int // per expert
}

// layer is the time of the layer with one configuration for both products, or with two.
func (t *expertTimes) layer(up, down int) float64 {
	return productScale*(t.up[up]+t.down[down]) + t.rest
}

// worthwhile is the least gain for which a table replaces vLLM's default kernel, for so many rows per expert. The model
// does not tell less apart: it predicts that the winners of vLLM's tables lose up to 6 % at the median below manyRows,
// mostly 3, and up to 12 % from there (TestPublishedExperts).
func worthwhile(rows int) float64 {
	if rows >= manyRows {
		return 1.12
	}
	return 1.03
}

const manyRows = 256

// pick is the fastest configuration if it gains enough over the one at the default's place, and otherwise that.
func (t *expertTimes) pick(without int) int {
	best := without
	for i := range t.up {
		if t.layer(i, i) < t.layer(best, best) {
			best = i
		}
	}
	if t.layer(without, without) < worthwhile(t.rows)*t.layer(best, best) {
		return without
	}
	return best
}

// estimate predicts the layer for so many tokens.
func (e *experts) estimate(
	ctx context.Context, a arch.Architecture, tokens int, rows []int, configs []gemm.Config,
) (*expertTimes, error) {
	up, down, err := e.products(rows)
	if err != nil {
		return nil, err
	}
	clock := a.Describe().Clock
	t := &expertTimes{rejects: make([]string, len(configs)), rows: tokens * e.topK / e.count,
		rest: elementwise*e.activationBytes(tokens)/ask.PeakBandwidth(a) + otherKernels}
	seconds := func(p gemm.Problem) ([]float64, []arch.Estimate, error) {
		estimates := make([]arch.Estimate, len(configs))
		if err := a.Estimate(ctx, estimates, p, configs); err != nil {
			return nil, nil, err
		}
		times := make([]float64, len(configs))
		for i := range estimates {
			times[i] = float64(estimates[i].Cycles.At(clock))
			if reason := string(estimates[i].Reject); reason != "" {
				times[i], t.rejects[i] = math.Inf(1), reason
			}
		}
		return times, estimates, nil
	}
	if t.up, t.estimates, err = seconds(up); err != nil {
		return nil, err
	}
	t.down, _, err = seconds(down)
	return t, err
}

// tuned are the configurations among which vLLM's tuner searches on NVIDIA (benchmarks/kernels/benchmark_moe.py), but
// for the group, which defaultGroup has.
func tuned(tokens, count int) (list []gemm.Config) {
	for _, m := range []int{16, 32, 64, 128, 256} {
		for _, n := range []int{32, 64, 128, 256} {
			for _, k := range []int{64, 128, 256} {
				for _, warps := range []int{4, 8} {
					for stages := 2; stages <= 5; stages++ {
						list = append(list, gemm.Config{Kernel: expertFamily, BlockM: m, BlockN: n, BlockK: k, NumWarps: warps,
							NumStages: stages, GroupM: defaultGroup(tokens, count), SplitK: 1})
					}
				}
			}
		}
	}
	return list
}

// expertFamily is the kernel family whose loop fused_moe has.
const expertFamily = "triton"

// defaultGroup is vLLM's GROUP_SIZE_M without a table (fused_moe.get_default_config).
func defaultGroup(tokens, count int) int {
	if tokens/count > 128 {
		return 16
	}
	return 1
}

// defaultConfig is vLLM's kernel without a table (fused_moe.get_default_config).
func (e *experts) defaultConfig(tokens int) gemm.Config {
	c := gemm.Config{Kernel: expertFamily, BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3,
		GroupM: defaultGroup(tokens, e.count), SplitK: 1}
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
	type chosen struct {
		expert int
		key    float64
	}
	sums, list := make([]int, len(l)), make([][]int, 0, len(tokens))
	best := make([]chosen, 0, topK+1)
	for n := 1; len(list) < len(tokens); n++ {
		best = best[:0]
		for i, weight := range l { // the smallest of exponential variables: a choice without replacement
			key := r.ExpFloat64() / weight
			if len(best) == topK && key >= best[topK-1].key {
				continue
			}
			at, _ := slices.BinarySearchFunc(best, key, func(c chosen, key float64) int {
				if c.key < key {
					return -1
				}
				return 1
			})
			best = slices.Insert(best, at, chosen{expert: i, key: key})
			best = best[:min(len(best), topK)]
		}
		for _, c := range best {
			sums[c.expert]++
		}
		if tokens[len(list)] == n {
			list = append(list, slices.Clone(sums))
		}
	}
	return list
}

// published are the factors between which 90 % of the published times of a layer lie from the predicted ones, by
// device, for shapes that were kept back from the fit of the constants above (TestExpertTimes).
var published = map[string][2]float64{
	"sm90@h200": {0.9, 1.47}, "sm90@h100": {0.9, 1.27}, "sm89@l40s": {0.42, 1.2}, "sm120@rtxpro6000": {0.66, 1.05},
}

// elsewhere are the same on a device that was left out of the fit, the widest of the four.
var elsewhere = [2]float64{0.41, 1.59}

func expertInterval(device string) (low, high float64) {
	if f, ok := published[device]; ok {
		return f[0], f[1]
	}
	return elsewhere[0], elsewhere[1]
}

// expertEvidence says what the interval rests on.
func expertEvidence(device string) string {
	low, high := expertInterval(device)
	what := "published times of vLLM's layer on other devices"
	if _, ok := published[device]; ok {
		what = "published times of vLLM's layer on this device"
	}
	return fmt.Sprintf("%s: 90 %% lie within %s to %s of the predicted ones; no table of these was timed by us", what,
		digits.ThreeDigits(low), digits.ThreeDigits(high))
}
