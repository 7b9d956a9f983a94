package tablecmd

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/formats/hf"
	"github.com/origami-gemm/origami/plugins/serving"
)

// experts are the routed experts of a layer, as one GPU computes them with vLLM's or SGLang's fused_moe kernel. Each
// has a gated first product (hidden → 2·inter) and a second one (inter → hidden). A count of 0 is one matrix instead
// (hidden → inter), in the kernel of fp8 with scales per block.
type experts struct {
	server                     string // serving.VLLM, also if it is empty, or serving.SGLang
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

// products are the two products for the rows that each expert gets, or the product of a matrix.
func (e *experts) products(rows []int) ([]gemm.Problem, error) {
	list := []gemm.Problem{typedLinear(e.dtype, rows[0], e.inter, e.hidden)}
	if e.count > 0 {
		groups, err := gemm.NewGroups(rows...)
		if err != nil {
			return nil, err
		}
		list = []gemm.Problem{typedLinear(e.dtype, 1, 2*e.inter, e.hidden), typedLinear(e.dtype, 1, e.hidden, e.inter)}
		for i := range list {
			list[i].SetGroups(groups)
			list[i] = list[i].Canonical()
		}
	}
	for i := range list {
		if err := list[i].Validate(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// routed are the model types for which expertsOf is right (vLLM 0.33.0, vllm/model_executor/models).
var routed = []string{"deepseek_v2", "deepseek_v3", "glm4_moe", "mixtral", "olmoe", "phimoe", "qwen2_moe", "qwen3_moe",
	"qwen3_next"}

// expertsOf returns the experts of a model's layers on one of tp GPUs, which divide each expert among them, and how
// many layers have experts.
func expertsOf(c *hf.Config, name string, tp int) (*experts, int, error) {
	wrong := func(format string, args ...any) (*experts, int, error) {
		return nil, 0, diag.Inputf(format, args...).At("%s", name).
			Do("give the config.json of a model with experts: %s", strings.Join(routed, ", "))
	}
	if !slices.Contains(routed, c.ModelType) {
		return wrong("the experts of the model_type %q are not known", c.ModelType)
	}
	e := &experts{count: c.Routed(), topK: c.TopK, hidden: c.Hidden,
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
	case min(e.hidden, e.inter, c.Layers) < 1 || max(e.hidden, e.inter, c.Layers) > hf.MostSize:
		return wrong("a size of the layers is missing")
	case tp < 1:
		return nil, 0, hf.NotPositive(tp)
	case e.inter%tp != 0:
		return nil, 0, diag.Inputf("%d GPUs do not divide the %d columns of an expert", tp, e.inter).At("--tp").
			Do("give a number that divides them, as vLLM asks for")
	}
	e.inter /= tp
	if e.blocks && e.inter%scaleBlock != 0 {
		return nil, 0, diag.Inputf("%d columns of an expert on each GPU are not whole blocks of %d", e.inter, scaleBlock).
			At("--tp").Do("give fewer GPUs, as vLLM asks for")
	}
	layers := c.ExpertLayers()
	if layers == 0 {
		return wrong("no layer has experts")
	}
	return e, layers, nil
}

// defaultConfig is the server's kernel without a table on a device.
func (e *experts) defaultConfig(d *arch.Description, tokens int) gemm.Config {
	kernel := serving.Kernel{Server: e.server, Experts: e.count, DType: e.dtype, Blocks: e.blocks}
	return kernel.Default(d, tokens)
}

// alone says that vLLM computes each of a few tokens in tiles of its own, without sorting them by expert
// (_prepare_expert_assignment of vLLM 0.33.0).
func (e *experts) alone(tokens int) bool {
	return e.server != serving.SGLang && e.count > 0 && tokens*e.topK*4 <= e.count
}

// load is how popular the experts are: a weight each.
type load []float64

// parseLoad reads "uniform", "zipf=1.1" (the weight of the r-th expert is r to the power of −1.1), or a weight each.
func parseLoad(text string, count int) (load, error) {
	l, cells := make(load, count), strings.Split(text, ",")
	power, isZipf := strings.CutPrefix(text, "zipf=")
	zipf, err := strconv.ParseFloat(power, 64)
	isZipf = isZipf && err == nil && zipf >= 0 && zipf <= 10
	for i := range l {
		switch {
		case text == uniform:
			l[i] = 1
		case isZipf:
			l[i] = math.Pow(float64(i+1), -zipf)
		case len(cells) == count:
			l[i], _ = strconv.ParseFloat(cells[i], 64) // 0 is refused
		}
		if !(l[i] > 0 && l[i] < 1e9) {
			return nil, diag.Inputf("--load %s is no load of %d experts", text, count).
				Do("use uniform, zipf=1.1, or %d weights divided by commas", count)
		}
	}
	return l, nil
}

// rows draws how many rows each expert gets from so many tokens, for an ascending list of tokens. A token chooses topK
// experts at random, each by its weight. The first tokens are the same for all numbers of them, and in all answers.
// Without experts, all rows are of one matrix.
func (l load) rows(topK int, tokens []int) [][]int {
	if len(l) == 0 {
		return slices.Collect(slices.Chunk(tokens, 1))
	}
	r := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // the same draw each time
	sums, list := make([]int, len(l)), make([][]int, 0, len(tokens))
	keys, least := make([]float64, len(l)), make([]float64, 0, topK+1)
	for n := 1; len(list) < len(tokens); n++ {
		least = least[:0]
		for i, weight := range l { // the smallest of exponential variables: a choice without replacement
			keys[i] = r.ExpFloat64() / weight
			if len(least) < topK || keys[i] < least[topK-1] {
				at, _ := slices.BinarySearch(least, keys[i])
				least = slices.Insert(least[:min(len(least), topK-1)], at, keys[i])
			}
		}
		for i, key := range keys {
			if key <= least[topK-1] {
				sums[i]++
			}
		}
		if tokens[len(list)] == n {
			list = append(list, slices.Clone(sums))
		}
	}
	return list
}
