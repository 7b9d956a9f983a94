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
	case e.count < 1 || e.count > gemm.MaxGroups:
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

// A layer of experts takes
//
//	productScale · (first product + second product) + elementwise · bytes ÷ DRAM's bandwidth + otherKernels
//
// with the times of the products as the family triton predicts them, times what the kernel's own ways change of that
// (factor), and the bytes that the activation and the sum over a token's experts move once (elementwise counts that
// they reach only a part of the data sheet's bandwidth). The other kernels sort the rows by expert. All three were
// fitted on published times of vLLM's layer on four GPUs: testdata/fused-moe/README.md, TestExpertTimes.
const (
	productScale = 0.832
	elementwise  = 1.8
	otherKernels = 13.68e-6 // s
)

// Ways in which the kernel differs from that of the family triton. A product has a share of each (experts.ways), and
// wayLogs is what a whole one adds to the logarithm of its time.
const (
	// Computing takes longer than the family's time, beside the time of reading.
	busyWay = iota
	// Short rows of B in a tile are read more slowly: by 64 B ÷ the row's length, squared.
	shortWay
	// So are wide tiles, of which fewer run at a time: for each doubling of BLOCK_SIZE_N.
	wideWay
	// Gathered rows of A cost more than rows of B. A tile of 128×256 gathers the fewest for its work.
	fewestWay
	// With scales per block, a step's sum waits for its product before it is added to another accumulator. So everything
	// takes longer, two stages hide less, and eight warps wait for each other. Of more than 64 elements per thread, two
	// accumulators spill.
	blocksWay
	twoStagesWay
	eightWarpsWay
	spillWay
	countWays
)

// wayLogs were fitted to all tiles of vLLM's tuner for 54 layers and numbers of tokens, measured on one H100, where a
// tile is near the fastest (testdata/fused-moe/README.md, TestMeasuredExperts); busyWay and blocksWay, which choose
// nothing, and spillWay to the medians of all. For wideWay the fit has 0.04, and vLLM's own tables speak for less.
// They hold for wayArch alone: on others, those tables contradict them.
var wayLogs = [countWays]float64{busyWay: 0.31, shortWay: 0.2, wideWay: 0.03, fewestWay: -0.3, blocksWay: 0.1,
	twoStagesWay: 0.12, eightWarpsWay: 0.41, spillWay: 0.8}

const wayArch = "sm90"

// halfBusy is how many rows of an expert keep the tensor cores busy for half of the time: B's tiles are read once for
// all of them.
const halfBusy = 100

// ways are how much of each way a product has, with so many rows per expert.
func (e *experts) ways(rows float64, c *gemm.Config) (w [countWays]float64) {
	busy := rows * rows / (rows*rows + halfBusy*halfBusy)
	w[busyWay] = busy
	short := 64 / float64(e.dtype.Size(c.BlockK))
	w[shortWay] = (1 - busy) * short * short
	if !e.blocks {
		w[wideWay] = (1 - busy) * math.Log2(float64(c.BlockN)/64)
		if c.BlockM == 128 && c.BlockN == 256 {
			w[fewestWay] = busy
		}
		return w
	}
	w[blocksWay] = 1
	if c.NumStages == 2 {
		w[twoStagesWay] = 1
	}
	if c.NumWarps == 8 {
		w[eightWarpsWay] = busy
	}
	if c.BlockM*c.BlockN > 64*32*c.NumWarps {
		w[spillWay] = 1
	}
	return w
}

// factor is the kernel's time ÷ the family triton's, for so many rows per expert.
func (e *experts) factor(rows float64, c *gemm.Config) float64 {
	log := 0.0
	for i, much := range e.ways(rows, c) {
		log += much * wayLogs[i]
	}
	return math.Exp(log)
}

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
	rows      int     // per expert
	active    int     // experts that get a token
	perExpert float64 // rows of one of those
	hopper    bool    // wayLogs hold
}

// layer is the time of the layer with one configuration for both products, or with two.
func (t *expertTimes) layer(up, down int) float64 {
	return productScale*(t.up[up]+t.down[down]) + t.rest
}

// worthwhile is the least gain for which a table replaces vLLM's default kernel, for so many rows per expert. The model
// does not tell less apart: it predicts that the winners of vLLM's tables lose 2 % at the median below manyRows, and up
// to 12 % from there (TestPublishedExperts). On wayArch, where it was fitted to measured kernels, any gain is worth it:
// more than 1 % would have lost speed there (TestMeasuredExperts).
func (t *expertTimes) worthwhile() float64 {
	switch {
	case t.hopper:
		return 1.01
	case t.rows >= manyRows:
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
	if t.layer(without, without) < t.worthwhile()*t.layer(best, best) {
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
	d := a.Describe()
	if e.blocks && d.Arch != wayArch {
		return nil, diag.Inputf("no model predicts experts with scales per block on %s", d.ID()).
			Do("choose a Hopper GPU, or a model in bf16 or in fp8 with a scale per tensor; vLLM's benchmark_moe.py measures it")
	}
	t := &expertTimes{rejects: make([]string, len(configs)), rows: tokens * e.topK / e.count,
		hopper: d.Arch == wayArch,
		rest:   elementwise*e.activationBytes(tokens)/ask.PeakBandwidth(a) + otherKernels}
	for _, n := range rows {
		t.active += min(n, 1)
	}
	t.perExpert = float64(tokens*e.topK) / float64(t.active)
	if t.up, t.estimates, err = e.times(ctx, a, up, t.perExpert, configs); err != nil {
		return nil, err
	}
	second := []arch.Estimate(nil)
	if t.down, second, err = e.times(ctx, a, down, t.perExpert, configs); err != nil {
		return nil, err
	}
	for i := range configs {
		t.rejects[i] = string(cmp.Or(second[i].Reject, t.estimates[i].Reject))
	}
	return t, nil
}

// times predicts a product's times in s, for so many rows per expert. A configuration that does not run takes forever.
func (e *experts) times(
	ctx context.Context, a arch.Architecture, p gemm.Problem, rows float64, configs []gemm.Config,
) ([]float64, []arch.Estimate, error) {
	d, estimates, times := a.Describe(), make([]arch.Estimate, len(configs)), make([]float64, len(configs))
	if err := a.Estimate(ctx, estimates, p, configs); err != nil {
		return nil, nil, err
	}
	for i := range estimates {
		switch times[i] = float64(estimates[i].Cycles.At(d.Clock)); {
		case estimates[i].Reject != "":
			times[i] = math.Inf(1)
		case d.Arch == wayArch:
			times[i] *= e.factor(rows, &configs[i])
		}
	}
	return times, estimates, nil
}

// space are the configurations among which vLLM's tuner searches on NVIDIA (benchmarks/kernels/benchmark_moe.py), but
// for the group, which is the default's. With scales per block, a step along K has one of them, and narrow tiles are
// there too, which that tuner leaves out and the kernel takes.
func (e *experts) space(tokens int) (list []gemm.Config) {
	group := e.defaultConfig(tokens).GroupM
	for _, m := range []int{16, 32, 64, 128, 256} {
		for _, n := range []int{32, 64, 128, 256} {
			for _, k := range []int{64, 128, 256} {
				for _, warps := range []int{4, 8} {
					if e.blocks && k > scaleBlock {
						continue
					}
					for stages := 2; stages <= 5; stages++ {
						list = append(list, gemm.Config{Kernel: expertFamily, BlockM: m, BlockN: n, BlockK: k, NumWarps: warps,
							NumStages: stages, GroupM: group, SplitK: 1})
					}
				}
			}
		}
	}
	return list
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

// expertFamily is the kernel family whose loop fused_moe has.
const expertFamily = "triton"

// defaultConfig is vLLM's kernel without a table (fused_moe.get_default_config).
func (e *experts) defaultConfig(tokens int) gemm.Config {
	c := gemm.Config{Kernel: expertFamily, BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 1,
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
// device, for shapes that were kept back from the fit of the constants above (TestExpertTimes). Nothing was fitted on
// the last four.
var published = map[string][2]float64{
	"sm90@h200": {0.92, 1.38}, "sm90@h100": {0.88, 1.24}, "sm89@l40s": {0.44, 1.27}, "sm120@rtxpro6000": {0.69, 1.11},
	"sm100@b200": {0.95, 1.52}, "sm100@gb200": {0.95, 1.51}, "sm103@b300": {0.94, 1.48}, "sm103@gb300": {0.94, 1.49},
}

// elsewhere are the same on a device that was left out of the fit, the widest of all.
var elsewhere = [2]float64{0.43, 1.52}

// blocked is how far the measured times of chosen kernels with scales per block were from the predicted ones on the
// H100 of TestMeasuredExperts. No such layer's times were published.
var blocked = [2]float64{0.88, 1.23}

// interval is between which factors the time of a layer on a device is expected, with 90 %.
func (e *experts) interval(device string) (low, high float64) {
	f, ok := published[device]
	if !ok {
		f = elsewhere
	}
	if e.blocks {
		f[0], f[1] = min(f[0], blocked[0]), max(f[1], blocked[1])
	}
	return f[0], f[1]
}

// evidence says what the interval and the choice rest on.
func (e *experts) evidence(d *arch.Description) string {
	low, high := e.interval(d.ID())
	what := "published times of vLLM's layer on other devices"
	if _, ok := published[d.ID()]; ok {
		what = "published times of vLLM's layer on this device"
	}
	if e.blocks {
		what += ", without scales per block, and ours with them on an H100"
	}
	tiles := "no tiles were timed by us on such a device"
	if d.Arch == wayArch {
		tiles = "on an H100, tiles chosen for layers left out of the fit reach 0.90 to 1 of the fastest tile's speed"
	}
	return fmt.Sprintf("%s: 90 %% lie within %s to %s of the predicted ones; %s", what, digits.ThreeDigits(low),
		digits.ThreeDigits(high), tiles)
}
