package tablecmd

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/serving"
)

// experts are the routed experts of a layer, as one GPU computes them with vLLM's or SGLang's fused_moe kernel. Each
// has a gated first product (hidden → 2·inter) and a second one (inter → hidden). A count of 0 is one matrix instead
// (hidden → inter), in the kernel of fp8 with scales per block.
type experts struct {
	server                     string // serving.VLLM, also if it is empty, or serving.SGLang
	count, topK, hidden, inter int
	// all counts the routed experts of all GPUs, and ep the GPUs that divide them. fused counts those experts, of count,
	// that each token goes to.
	all, ep, fused int
	gateless       bool   // the first product has no second half
	weights        string // as in hf.Config.Weights
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
		up := 2 * e.inter
		if e.gateless {
			up = e.inter
		}
		list = []gemm.Problem{typedLinear(e.dtype, 1, up, e.hidden), typedLinear(e.dtype, 1, e.hidden, e.inter)}
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

// defaultConfig is the server's kernel without a table on a device.
func (e *experts) defaultConfig(d *arch.Description, tokens int) gemm.Config {
	kernel := serving.Kernel{Server: e.server, Experts: e.count, DType: e.dtype, Blocks: e.blocks}
	return kernel.Default(d, tokens)
}

// alone says that vLLM computes each of a few tokens in tiles of its own, without sorting them by expert
// (_prepare_expert_assignment of vLLM 0.33.0).
func (e *experts) alone(tokens int) bool {
	return e.server != serving.SGLang && e.count > 0 && e.ep <= 1 && tokens*e.topK*4 <= e.count
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

// rows draws how many rows each expert of one GPU gets from so many tokens, for an ascending list of tokens. A token
// chooses experts at random, each by its weight. The first tokens are the same for all numbers of them, and in all
// answers. A GPU without a row computes one. Without experts, all rows are of one matrix.
func (l load) rows(e *experts, tokens []int) [][]int {
	if len(l) == 0 {
		return slices.Collect(slices.Chunk(tokens, 1))
	}
	topK, own := e.topK-e.fused, e.count-e.fused
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
			rows := append(slices.Clone(sums[:own]), slices.Repeat([]int{n}, e.fused)...)
			if slices.Max(rows) == 0 {
				rows[0] = 1
			}
			list = append(list, rows)
		}
	}
	return list
}
