package tablecmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	"github.com/origami-gemm/origami/formats/hf"
)

// The kernel families of experts, and of fp8 with scales per block, for experts and for one matrix. topKAxis has the
// experts of a token, in a first product, whose time then has the layer's other kernels.
const expertFamily, blockFamily, topKAxis = "fused_moe", "block_fp8", "top_k"

// tuner chooses kernels on a device.
type tuner struct {
	*ask.Contender
	space []gemm.Config // the kernels to choose from
	// kept is by how much one of them must be faster than a given kernel, which somebody has measured.
	kept float64
}

// On 150 problems of experts and 54 of one matrix, measured on one H200 (experiments/README.md#vllm-on-h200), tables
// are the fastest if a kernel that the server ships gives way only to one that is predicted to be faster by so much. A
// gain is what is left of the predicted one beyond doubt: on 126 others, none of 30 above 2 % was a loss of 2 %.
const keptExperts, keptMatrix, doubt = 1.05, 1.01, 1.05

// openWeights opens the model that predicts kernels for a type of weights, on the device that the user named.
func openWeights(ctx context.Context, f *session.Factory, weights string) (*ask.Contender, error) {
	if weights == hf.FP8Block {
		return openSide(ctx, f, blockFamily)
	}
	return openSide(ctx, f, expertFamily)
}

// tuner returns the kernels to choose from.
func (e *experts) tuner(ctx context.Context, side *ask.Contender) (*tuner, error) {
	rows, kept := []int{1}, keptMatrix
	if e.count > 0 {
		rows, kept = slices.Repeat(rows, e.count), keptExperts
	}
	products, err := e.products(rows)
	if err != nil {
		return nil, err
	}
	list, err := side.Model.Candidates(ctx, products[0], arch.Space{Kernel: side.Kernel})
	if err != nil {
		return nil, err
	}
	return &tuner{side, list.Configs, kept}, nil
}

// choices are the kernels to choose from for a number of tokens, with predicted times in s. One that does not run takes
// forever.
type choices struct {
	*tuner
	problem gemm.Problem  // the first product
	configs []gemm.Config // the last one is the server's without a table
	times   [][]float64   // of each product
	rejects []string
	best    int // the kernel to choose
}

// choices predicts the times of kernels, of a given one too, for the rows of each expert.
func (t *tuner) choices(
	ctx context.Context, e *experts, tokens int, rows []int, given ...gemm.Config,
) (*choices, error) {
	if e.alone(tokens) {
		rows = append(slices.Repeat([]int{1}, tokens*e.topK), make([]int, e.count-tokens*e.topK)...)
	}
	products, err := e.products(rows)
	if err != nil {
		return nil, err
	}
	c := &choices{tuner: t, problem: products[0], configs: slices.Concat(t.space, given)}
	for i := len(t.space); i < len(c.configs); i++ { // as the kernels run what a table says
		given := &c.configs[i]
		if given.Validate(t.Describe().Axes(t.Kernel)...) != nil { // it is of AMD's
			given.Axes = gemm.Axes{}
		}
		given.BlockM = max(given.BlockM, 16)
		if e.blocks && e.count > 0 {
			given.BlockK = min(given.BlockK, scaleBlock)
		}
	}
	c.configs = append(c.configs, e.defaultConfig(t.Describe(), tokens))
	last := len(c.configs) - 1
	for i := range c.configs {
		c.configs[i].Kernel = t.Kernel
		if i < len(t.space) {
			c.configs[i].GroupM = c.configs[last].GroupM
		}
	}
	c.rejects = make([]string, len(c.configs))
	for i, p := range products {
		topK := 0
		if i == 0 && len(products) > 1 {
			topK = e.topK
		}
		if err := c.predict(ctx, p, topK); err != nil {
			return nil, err
		}
	}
	return c, c.choose(ctx)
}

// predict adds the times of a product by kernels, in the first product of a layer with the experts of a token.
func (c *choices) predict(ctx context.Context, p gemm.Problem, topK int) error {
	configs, estimates := slices.Clone(c.configs), make([]arch.Estimate, len(c.configs))
	for i := range configs {
		if topK == 0 {
			break
		}
		if err := configs[i].SetAxis(c.Describe().Axes(c.Kernel), topKAxis, strconv.Itoa(topK)); err != nil {
			return err
		}
	}
	if err := c.Model.Estimate(ctx, estimates, p, configs); err != nil {
		return err
	}
	seconds := make([]float64, len(configs))
	for i, e := range estimates {
		if seconds[i] = float64(e.Cycles.At(c.Describe().Clock)); e.Reject != "" {
			seconds[i] = math.Inf(1)
		}
		c.rejects[i] = cmp.Or(string(e.Reject), c.rejects[i])
	}
	c.times = append(c.times, seconds)
	return nil
}

// time is the time of all products with one configuration.
func (c *choices) time(at int) (sum float64) {
	for _, seconds := range c.times {
		sum += seconds[at]
	}
	return sum
}

// choose takes the fastest kernel if it gains as much over the last one as the model tells from nothing, and over the
// given ones as it must.
func (c *choices) choose(ctx context.Context) error {
	last := len(c.configs) - 1
	_, e, err := entryOf(ctx, c.Contender, &c.problem, &c.configs[last])
	if err != nil {
		return err
	}
	apart, ok := c.Describe().Common(e.Terms, arch.CommonToldApart)
	if !ok {
		apart = 1
	}
	c.best = last
	least := c.time(last) / apart
	for i := range c.configs[:last] {
		time := c.time(i)
		if i >= len(c.space) {
			time /= c.kept
		}
		if time < least {
			c.best, least = i, time
		}
	}
	return c.runs(c.best)
}

// runs returns an error about a kernel that does not run.
func (c *choices) runs(at int) error {
	if reason := c.rejects[at]; reason != "" {
		return diag.Inputf("the kernel %s does not run (%s)", expertOf(&c.configs[at]), reason).At("%s", c.Describe().ID()).
			Do("choose another device")
	}
	return nil
}

// fastest is the index of the least time of a product among configurations with this BLOCK_SIZE_M, and −1 without one.
func (c *choices) fastest(product, blockM int) int {
	at := -1
	for i, v := range c.times[product] {
		if c.configs[i].BlockM == blockM && (at < 0 || v < c.times[product][at]) {
			at = i
		}
	}
	return at
}

// interval returns the interval of 90 % of a time with the best kernel, and what it rests on.
func (c *choices) interval(r *ask.Ranking, e *ask.Entry, seconds float64) (interval *[2]float64, evidence string) {
	scope := r.Scope(e)
	low, high, ok := scope.Interval(e.Estimate, unit.Seconds(seconds))
	if !ok {
		return nil, "no times were compared"
	}
	what, more, _ := strings.Cut(scope.Uncertainty.Source, "; ")
	return &[2]float64{float64(low), float64(high)}, fmt.Sprintf("%s: 90 %% lie within %s to %s of the predicted ones; %s",
		what, digits.ThreeDigits(float64(low)/seconds), digits.ThreeDigits(float64(high)/seconds), more)
}

// entry is the best kernel, for the first product.
func (c *choices) entry(ctx context.Context) (*ask.Ranking, *ask.Entry, error) {
	return entryOf(ctx, c.Contender, &c.problem, &c.configs[c.best])
}
