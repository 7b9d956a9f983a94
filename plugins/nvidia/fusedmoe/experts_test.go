//go:build !race

package fusedmoe_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/fusedmoe"
)

// experts are the experts of a layer on one GPU: each has a gated first product (hidden → 2·inter) and a second one.
type experts struct {
	count, topK, hidden, inter int
	dtype                      gemm.DType
	blocks                     bool
}

func (e *experts) family() string {
	if e.blocks {
		return fusedmoe.Blocks
	}
	return fusedmoe.Family
}

func linear(t *testing.T, dtype gemm.DType, n, k int, rows ...int) gemm.Problem {
	t.Helper()
	p := gemm.New(1, n, k)
	p.DType, p.Out = dtype, gemm.BF16
	p.SetTrans(false, true)
	groups := must.Get(gemm.NewGroups(rows...))(t)
	p.SetGroups(groups)
	return p.Canonical()
}

// products are the two products of the experts, each of which has so many rows.
func (e *experts) products(t *testing.T, rows []int) [2]gemm.Problem {
	t.Helper()
	return [2]gemm.Problem{linear(t, e.dtype, 2*e.inter, e.hidden, rows...),
		linear(t, e.dtype, e.hidden, e.inter, rows...)}
}

// config is a kernel of a recorded row: block_m, block_n, block_k, group_m, warps and stages.
func config(kernel string, v []int) gemm.Config {
	return gemm.Config{Kernel: kernel, BlockM: v[0], BlockN: v[1], BlockK: v[2], GroupM: v[3], NumWarps: v[4],
		NumStages: v[5], SplitK: 1}
}

// estimate predicts the times of both products in s. The first has the layer's other kernels with it.
func (e *experts) estimate(
	t *testing.T, a arch.Architecture, rows []int, configs []gemm.Config,
) (times [2][]float64) {
	t.Helper()
	configs = slices.Clone(configs)
	for part, p := range e.products(t, rows) {
		for i := range configs {
			configs[i].Kernel, configs[i].Axes = e.family(), gemm.Axes{}
			unexchanged(t, a, &configs[i])
			if part == 0 {
				setTopK(t, a, &configs[i], e.topK)
			}
		}
		times[part] = archtest.Seconds(t, a, p, configs...)
	}
	return times
}

// unexchanged makes a kernel that of servers before they exchanged A and B, whose times and tables are here.
func unexchanged(t *testing.T, a arch.Architecture, c *gemm.Config) {
	t.Helper()
	must.Do(t, c.SetAxis(a.Describe().Axes(c.Kernel), "swap_ab", "off"))
}

func setTopK(t *testing.T, a arch.Architecture, c *gemm.Config, topK int) {
	t.Helper()
	must.Do(t, c.SetAxis(a.Describe().Axes(c.Kernel), "top_k", strconv.Itoa(topK)))
}

// terms returns a term of a product, and others.
func terms(t *testing.T, a arch.Architecture, p gemm.Problem, configs []gemm.Config, names ...string) [][]float64 {
	t.Helper()
	d := a.Describe()
	rows, out := make([]float64, len(d.Terms)*len(configs)), make([][]float64, len(configs))
	must.Do(t, a.Terms(t.Context(), rows, p, configs))
	for i := range configs {
		for _, name := range names {
			at := slices.IndexFunc(d.Terms, func(x arch.Term) bool { return x.Name == name })
			out[i] = append(out[i], rows[i*len(d.Terms)+at])
		}
	}
	return out
}

// constant returns a number of a model.
func constant(t *testing.T, a arch.Architecture, name string) float64 {
	t.Helper()
	list := a.Describe().Constants
	at := slices.IndexFunc(list, func(c arch.Constant) bool { return c.Name == name })
	must.Need(t, at >= 0, "no constant %s", name)
	return list[at].Value
}

// routed draws how many rows each expert gets from so many tokens, which choose topK of them at random: as those of
// measured.csv.gz were drawn.
func routed(count, topK, tokens int) []int {
	r, sums, keys := rand.New(rand.NewPCG(0, 0)), make([]int, count), make([]float64, count)
	for range tokens {
		for i := range keys {
			keys[i] = r.ExpFloat64()
		}
		last := slices.Sorted(slices.Values(keys))[topK-1]
		for i, key := range keys {
			if key <= last {
				sums[i]++
			}
		}
	}
	return sums
}

// standard is vLLM's kernel without a table (fused_moe.get_default_config), for GROUP_SIZE_M of one.
func (e *experts) standard(tokens int) gemm.Config {
	c := gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 1, SplitK: 1}
	if e.blocks {
		c.BlockM, c.BlockK, c.NumWarps = 16, 128, 4
		if tokens > 64 {
			c.BlockM = 64
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
	return c
}

// balanced gives each expert as many rows as the others, or one more.
func balanced(count, rows int) []int {
	list := make([]int, count)
	for i := range list {
		list[i] = rows / count
		if i < rows%count {
			list[i]++
		}
	}
	return list
}

// opened opens the model of devices such as sm90@h100, each once.
func opened(t *testing.T) func(id string) arch.Architecture {
	t.Helper()
	list := map[string]arch.Architecture{}
	return func(id string) arch.Architecture {
		if list[id] == nil {
			part, device, _ := strings.Cut(id, "@")
			list[id] = nvtest.Open(t, arch.OpenRequest{Arch: part, Device: device, Kernel: fusedmoe.Family})
		}
		return list[id]
	}
}

// layerTime is a published time of vLLM's layer, and the parts of the predicted one.
type layerTime struct {
	device             string
	layer              experts
	tokens             int
	config             gemm.Config
	fitted             bool
	products, elements float64 // s
	seconds            float64 // as published
}

func (l *layerTime) ratio(c [3]float64) float64 {
	return (c[0]*l.products + c[1]*l.elements + c[2]) / l.seconds
}

// blackwell says that the device is one whose times nothing was fitted to.
func (l *layerTime) blackwell() bool { return strings.HasPrefix(l.device, "sm10") }

var layerOnce struct {
	once sync.Once
	list []layerTime
}

// layerTimes are all published times, which are predicted once.
func layerTimes(t *testing.T) []layerTime {
	t.Helper()
	layerOnce.once.Do(func() { layerOnce.list = predictLayers(t) })
	return layerOnce.list
}

func predictLayers(t *testing.T) (list []layerTime) {
	t.Helper()
	open := opened(t)
	for _, row := range csvtest.Read(t, "testdata/times.csv.gz")[1:] {
		v := csvtest.Ints(t, row[3:15])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: must.Get(gemm.ParseDType(row[2]))(t)}
		c, a, rows := config(fusedmoe.Family, v[5:]), open(row[0]), balanced(e.count, v[4]*e.topK)
		times := e.estimate(t, a, rows, []gemm.Config{c})
		must.Need(t, !math.IsInf(times[0][0]+times[1][0], 0), "%v, which ran, is refused", row)
		products := e.products(t, rows)
		unexchanged(t, a, &c)
		parts := func(p gemm.Problem) []float64 {
			return terms(t, a, p, []gemm.Config{c}, "product", "slowdown", "elementwise_pass")[0]
		}
		down := parts(products[1])
		setTopK(t, a, &c, e.topK)
		up := parts(products[0])
		clock := float64(a.Describe().Clock)
		list = append(list, layerTime{row[0], e, v[4], c, v[11] == 1,
			(up[0]*up[1] + down[0]*down[1]) / constant(t, a, "product_scale") / clock,
			up[2] / constant(t, a, "elementwise") / clock, micros(t, row[15])})
	}
	return list
}

func micros(t *testing.T, cell string) float64 {
	t.Helper()
	v := must.Get(strconv.ParseFloat(cell, 64))(t)
	return v * 1e-6
}

// fitLayer finds the constants with the least mean |log(predicted ÷ published)|, one after the other in ever smaller
// steps.
func fitLayer(list []layerTime) (c [3]float64) {
	loss := func() float64 {
		sum := 0.0
		for i := range list {
			sum += math.Abs(math.Log(list[i].ratio(c)))
		}
		return sum
	}
	c = [3]float64{1, 1, 1e-5}
	least := loss()
	for step := 1.3; step > 1.001; {
		better := false
		for i := range c {
			for _, factor := range []float64{step, 1 / step} {
				before := c[i]
				c[i] *= factor
				if now := loss(); now < least {
					least, better = now, true
				} else {
					c[i] = before
				}
			}
		}
		if !better {
			step = math.Sqrt(step)
		}
	}
	return c
}

// within is the share of the times that are predicted within 20 %, and the factor within which 90 % are.
func within(list []layerTime, c [3]float64) (share, factor float64) {
	var all []float64
	for i := range list {
		r := list[i].ratio(c)
		if math.Abs(r-1) <= 0.2 {
			share++
		}
		all = append(all, max(r, 1/r))
	}
	slices.Sort(all)
	return share / float64(len(list)), stats.Quantile(all, 0.9)
}

// shippedOf are the constants of a layer's time.
func shippedOf(t *testing.T) (c [3]float64) {
	t.Helper()
	a := opened(t)("sm90@h100")
	for i, name := range []string{"product_scale", "elementwise", "other_kernels_seconds"} {
		c[i] = constant(t, a, name)
	}
	return c
}

// stated is the factor that the model states for a device's layers, on average of the types.
func stated(t *testing.T, a arch.Architecture, kernel string) float64 {
	t.Helper()
	list := a.Describe().Uncertainty
	at := slices.IndexFunc(list, func(u arch.Uncertainty) bool { return u.Kernel == kernel })
	widest := list[at].WidestRange()
	if math.Abs(widest.Low*widest.High-1) > 0.006 {
		t.Errorf("%s: the predicted time is not in the middle of %v", a.Describe().ID(), widest)
	}
	return widest.High
}

// The constants of a layer's time are what fits the published times of half of the shapes. The times of the other half
// are within 20 % for so many as is said here, and also on a device that the fit did not see, and on four of another
// generation.
func TestExpertTimes(t *testing.T) {
	t.Parallel()
	shipped, open := shippedOf(t), opened(t)
	devices, elsewhere := map[string]bool{}, stated(t, open("sm90@h20"), fusedmoe.Family)
	var fitted, kept, others []layerTime
	for _, l := range layerTimes(t) {
		devices[l.device] = true
		switch {
		case l.fitted:
			fitted = append(fitted, l)
		case l.blackwell():
			others = append(others, l)
		default:
			kept = append(kept, l)
		}
	}
	for i, v := range fitLayer(fitted) {
		if math.Abs(v/shipped[i]-1) > 0.01 {
			t.Errorf("the fit has %.5g for %.5g", v, shipped[i])
		}
	}
	of := func(list []layerTime, device string, is bool) []layerTime {
		return slices.DeleteFunc(slices.Clone(list), func(l layerTime) bool { return (l.device == device) != is })
	}
	share, factor := within(kept, shipped)
	must.Hold(t, share >= 0.84, "%d times kept back: %.3f within 20 %%, 90 %% within %.3f", len(kept), share, factor)
	wide := 1.0
	for device := range maps.Keys(devices) {
		stated := stated(t, open(device), fusedmoe.Family)
		share, factor := within(of(slices.Concat(kept, others), device, true), shipped)
		must.Hold(t, math.Abs(factor-stated) <= 0.006, "%s: %.3f within 20 %%, 90 %% within %.3f, and %v is stated", device,
			share, factor, stated)
		least := 0.68
		if len(of(others, device, true)) == 0 {
			least = 0.74
			share, factor = within(of(kept, device, true), fitLayer(of(fitted, device, false)))
		}
		must.Hold(t, share >= least, "%s left out of the fit: %.3f within 20 %%, 90 %% within %.3f", device, share, factor)
		wide = max(wide, factor)
	}
	must.Hold(t, math.Abs(wide-elsewhere) <= 0.006, "left out, 90 %% within %.3f, and %v is stated", wide, elsewhere)
}

// Where vLLM has a table for a B200 and none for another Blackwell, or the other way round, their published times say
// what the table gains over the default, once divided by what the other device takes longer for a kernel that both
// have. The predicted gain of the same kernels is near.
func TestBlackwellGains(t *testing.T) {
	t.Parallel()
	type place struct {
		layer  experts
		tokens int
	}
	shipped := shippedOf(t)
	at := map[string]map[place]layerTime{}
	for _, l := range layerTimes(t) {
		if l.blackwell() {
			if at[l.device] == nil {
				at[l.device] = map[place]layerTime{}
			}
			at[l.device][place{l.layer, l.tokens}] = l
		}
	}
	for _, device := range []string{"sm100@gb200", "sm103@b300", "sm103@gb300"} {
		same, gained := map[gemm.DType][2][]float64{}, map[experts][2][]float64{}
		for p, l := range at["sm100@b200"] {
			other, ok := at[device][p]
			if !ok {
				continue
			}
			measured := other.seconds / l.seconds
			predicted := measured * other.ratio(shipped) / l.ratio(shipped)
			if other.config == l.config {
				same[l.layer.dtype] = appendPair(same[l.layer.dtype], measured, predicted)
			} else {
				gained[l.layer] = appendPair(gained[l.layer], measured, predicted)
			}
		}
		must.That(t, len(gained) >= 4, "%s: %d layers", device, len(gained))
		for layer, list := range gained {
			measured := stats.Geomean(list[0]) / stats.Geomean(same[layer.dtype][0])
			predicted := stats.Geomean(list[1]) / stats.Geomean(same[layer.dtype][1])
			must.Hold(t, max(measured/predicted, predicted/measured) <= 1.1, "%s, %d experts of %d: time with the other kernel "+
				"÷ with a B200's %.3f, predicted %.3f", device, layer.count, layer.inter, measured, predicted)
		}
	}
}

func appendPair(list [2][]float64, a, b float64) [2][]float64 {
	return [2][]float64{append(list[0], a), append(list[1], b)}
}

// gains are published gains of such tables over vLLM's default of their time, from the pull requests that brought them:
// vLLM 40542, 44830 and 39902, 44818 and 35457.
var gains = map[string][2]float64{
	"sm80@a100 bf16": {1, 1.11}, "sm90@h100 bf16": {1.25, 1.46}, "sm90@h200 bf16": {1.02, 1.24},
}

// tuned are the configurations that vLLM's tuner searches, with the group of vLLM's kernel without a table.
func tuned(t *testing.T, a arch.Architecture, e *experts, rows []int, tokens int) []gemm.Config {
	t.Helper()
	list := must.Get(a.Candidates(t.Context(), linear(t, e.dtype, 2*e.inter, e.hidden, rows...),
		arch.Space{Kernel: e.family()}))(t)
	configs := slices.Clone(list.Configs)
	for i := range configs {
		if configs[i].GroupM = 1; tokens/max(1, e.count) > 128 {
			configs[i].GroupM = 16
		}
	}
	return configs
}

// before is vLLM's default of that time (0.14.0, fused_moe.get_default_config). Without warps and stages, Triton takes
// 4 and 3.
func before(tokens, count int) gemm.Config {
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, GroupM: 8, SplitK: 1}
	if tokens <= count {
		c.BlockM, c.BlockN, c.BlockK, c.GroupM = 16, 32, 64, 1
	}
	return c
}

// The winners of vLLM's tables are predicted to lose little against the fastest configuration that its tuner searches,
// and none is refused. With many rows per expert they lose more, so less is worthwhile there. Nothing was fitted on
// them. Their predicted gain is near the published ones.
func TestPublishedExperts(t *testing.T) {
	t.Parallel()
	open := opened(t)
	a100 := open("sm80@a100")
	manyRows, toldOfMany := int(constant(t, a100, "many_rows")), constant(t, a100, "told_of_many")
	losses, gained := map[string][]float64{}, map[string][]float64{}
	few, many := map[string][]float64{}, map[string][]float64{} // rows per expert
	for _, row := range csvtest.Read(t, "testdata/winners.csv.gz")[1:] {
		v := csvtest.Ints(t, row[2:])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: must.Get(gemm.ParseDType(row[1]))(t)}
		a, rows := open(row[0]), balanced(e.count, v[4]*e.topK)
		configs := append(tuned(t, a, &e, rows, v[4]), before(v[4], e.count), config("", v[5:]))
		times := e.estimate(t, a, rows, configs)
		layer := func(at int) float64 { return times[0][at] + times[1][at] }
		at, best := len(configs)-1, math.Inf(1)
		must.That(t, !math.IsInf(layer(at), 0), "%v is refused", row)
		for i := range configs {
			best = min(best, layer(i))
		}
		name, loss := row[0]+" "+row[1], layer(at)/best-1
		losses[name] = append(losses[name], loss)
		kind := row[0][:4] + " " + row[1]
		if v[4]*e.topK/e.count < manyRows {
			few[kind] = append(few[kind], loss)
		} else {
			many[kind] = append(many[kind], loss)
		}
		gained[name] = append(gained[name], layer(at-1)/layer(at))
	}
	most := map[string]float64{"bf16": 0.045, "fp8": 0.1}
	for name, list := range losses {
		median := stats.Median(list)
		_, dtype, _ := strings.Cut(name, " ")
		must.Hold(t, median <= most[dtype], "%s: %d winners lose %.4f at the median", name, len(list), median)
	}
	for kind := range many {
		few, many := stats.Median(few[kind]), stats.Median(many[kind])
		must.Hold(t, few <= 0.09 && many <= toldOfMany-1+0.005,
			"%s: the winners lose %.3f at the median with few rows per expert, %.3f with many", kind, few, many)
	}
	for name, as := range gains {
		gain := stats.Geomean(gained[name])
		must.Hold(t, gain >= as[0]/1.3 && gain <= as[1]*1.3,
			"%s: the winners gain %.3f over the default of their time, published %v", name, gain, as)
	}
}

// measuredExpert is a measured kernel of a layer: for both products, the predicted time of Triton's tutorial kernel,
// the time without fitted ways in s, the logarithm of what a whole one of each way multiplies it by, and the measured
// time.
type measuredExpert struct {
	experts
	tokens                     int
	config                     gemm.Config
	product, without, measured [2]float64
	ways                       [2][5]float64
	spills                     bool
}

// chosenWays are the quantities that are fitted here.
var chosenWays = [5]string{"short_factor", "gather_factor", "two_stages_factor", "eight_warps_factor",
	"four_warps_factor"}

// measuredExperts are the measured kernels by layer and tokens, without those that the family refuses.
func measuredExperts(t *testing.T) (list [][]measuredExpert) {
	t.Helper()
	a := opened(t)("sm90@h100")
	var group []measuredExpert
	flush := func() {
		if len(group) > 0 {
			list, group = append(list, predicted(t, a, group)), nil
		}
	}
	for _, row := range csvtest.Read(t, "testdata/measured.csv.gz")[1:] {
		v := csvtest.Ints(t, row[1:12])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: gemm.BF16}
		if row[0] != "bf16" {
			e.dtype, e.blocks = gemm.FP8, row[0] == "block"
		}
		if len(group) > 0 && (group[0].experts != e || group[0].tokens != v[4]) {
			flush()
		}
		group = append(group, measuredExpert{experts: e, tokens: v[4], config: config(e.family(), v[5:]),
			measured: [2]float64{micros(t, row[12]), micros(t, row[13])}})
	}
	flush()
	return list
}

// predicted predicts the kernels of a layer, with each of the ways at nothing and at e.
func predicted(t *testing.T, a arch.Architecture, group []measuredExpert) (run []measuredExpert) {
	t.Helper()
	e, configs := group[0].experts, make([]gemm.Config, len(group))
	for i := range group {
		configs[i] = group[i].config
		unexchanged(t, a, &configs[i])
	}
	none := map[string]float64{}
	for _, name := range chosenWays {
		none[name] = 1
	}
	values := []map[string]float64{none}
	for _, name := range append(chosenWays[:], "spill_factor") {
		one := maps.Clone(none)
		one[name] = math.E
		values = append(values, one)
	}
	values[len(values)-1]["spill_factor"] = 2 * constant(t, a, "spill_factor")
	rows := routed(e.count, e.topK, group[0].tokens)
	for part, p := range e.products(t, rows) {
		times := must.Get(a.(fit.Tunable).EstimateWith(t.Context(), values, []fit.Kernels{{Problem: p, Configs: configs}}))(t)
		products := terms(t, a, p, configs, "product")
		for i := range group {
			m := &group[i]
			m.without[part] = float64(times[0][i])
			m.product[part] = products[i][0] / float64(a.Describe().Clock)
			for way := range chosenWays {
				m.ways[part][way] = math.Log(float64(times[1+way][i] / times[0][i]))
			}
			m.spills = times[len(times)-1][i] > times[0][i]*1.01
		}
	}
	for i := range group {
		if group[i].without[0] > 0 && group[i].without[1] > 0 { // 0 does not run
			run = append(run, group[i])
		}
	}
	return run
}

func (m *measuredExpert) time() float64 { return m.measured[0] + m.measured[1] }

// fitWays finds the logarithms of the ways with the least squares of log(measured ÷ predicted) beside its mean in a
// layer, for kernels that are predicted within 30 % of the fastest or measured within 20 %.
func fitWays(list [][]measuredExpert) []float64 {
	n := len(chosenWays)
	lower, right := stats.Lower(n), make([]float64, n)
	for _, group := range list {
		for p := range 2 {
			predicted, measured := math.Inf(1), math.Inf(1)
			for i := range group {
				predicted, measured = min(predicted, group[i].product[p]), min(measured, group[i].measured[p])
			}
			var rows [][]float64
			var logs []float64
			for i := range group {
				m := &group[i]
				if m.config.GroupM == swept(&m.experts) && !m.spills &&
					(m.product[p] < 1.3*predicted || m.measured[p] < 1.2*measured) {
					rows, logs = append(rows, slices.Clone(m.ways[p][:])), append(logs, math.Log(m.measured[p]/m.without[p]))
				}
			}
			centre(rows, logs)
			for i, row := range rows {
				for j := range n {
					right[j] += row[j] * logs[i]
					for k := range j + 1 {
						lower[j][k] += row[j] * row[k]
					}
				}
			}
		}
	}
	stats.Cholesky(lower, 1e-9)
	stats.Forward(lower, right)
	stats.Backward(lower, right)
	return right
}

// swept is the GROUP_SIZE_M with which all tiles were measured. The fastest were measured with others too.
func swept(e *experts) int {
	if e.blocks {
		return 32
	}
	return 1
}

// centre takes its mean from each column.
func centre(rows [][]float64, logs []float64) {
	mean := make([]float64, len(rows[0])+1)
	for i, row := range rows {
		for j, v := range append(slices.Clone(row), logs[i]) {
			mean[j] += v / float64(len(rows))
		}
	}
	for i, row := range rows {
		for j := range row {
			row[j] -= mean[j]
		}
		logs[i] -= mean[len(row)]
	}
}

// predict is the time of both products with logarithms of the ways.
func (m *measuredExpert) predict(logs []float64) (sum float64) {
	for p, time := range m.without {
		log := 0.0
		for way, much := range m.ways[p] {
			log += much * logs[way]
		}
		sum += time * math.Exp(log)
	}
	return sum
}

// chosenExpert is the kernel that is predicted to be the fastest, or vLLM's without a table, if the gain is too small.
func chosenExpert(group []measuredExpert, logs []float64, gain float64) *measuredExpert {
	var best, without *measuredExpert
	least, standard := math.Inf(1), math.Inf(1)
	for i := range group {
		m := &group[i]
		if m.config.GroupM != swept(&m.experts) {
			continue
		}
		time := m.predict(logs)
		if time < least {
			best, least = m, time
		}
		if m.isDefault() {
			without, standard = m, time
		}
	}
	if without != nil && standard < gain*least {
		return without
	}
	return best
}

// isDefault says that a kernel is vLLM's without a table, but for GROUP_SIZE_M.
func (m *measuredExpert) isDefault() bool {
	c := m.standard(m.tokens)
	c.GroupM, c.Kernel = m.config.GroupM, m.config.Kernel
	return c == m.config
}

// The kernels that the model chooses without having seen a layer are nearly as fast as the fastest of all tiles, and
// faster than vLLM's without a table.
func TestMeasuredExperts(t *testing.T) {
	t.Parallel()
	a := opened(t)("sm90@h100")
	list, gate, shipped := measuredExperts(t), constant(t, a, "told_of_few"), []float64{}
	fitted := fitWays(list)
	for way, name := range chosenWays {
		log := math.Log(constant(t, a, name))
		if shipped = append(shipped, log); math.Abs(fitted[way]-log) > 0.02 {
			t.Errorf("%s: the fit has %.3f for %.3f", name, math.Exp(fitted[way]), math.Exp(log))
		}
	}
	type result struct{ chosen, without, level []float64 }
	results := map[string]*result{}
	for _, group := range list {
		first := &group[0]
		kind := first.dtype.String()
		if first.blocks {
			kind = "block"
		}
		if results[kind] == nil {
			results[kind] = &result{}
		}
		r := results[kind]
		others := slices.DeleteFunc(slices.Clone(list), func(g []measuredExpert) bool {
			return g[0].experts == first.experts
		})
		best, without := math.Inf(1), math.Inf(1)
		for j := range group {
			m := &group[j]
			best = min(best, m.time())
			if m.isDefault() {
				without = min(without, m.time())
			}
		}
		chosen := chosenExpert(group, fitWays(others), gate)
		r.chosen, r.without = append(r.chosen, best/chosen.time()), append(r.without, best/without)
		now := chosenExpert(group, shipped, gate)
		r.level = append(r.level, now.time()/now.predict(shipped))
	}
	for kind, r := range results {
		chosen, without := stats.Geomean(r.chosen), stats.Geomean(r.without)
		must.Hold(t, chosen >= 0.96 && slices.Min(r.chosen) >= 0.9 && chosen >= without+0.015,
			"%s: %d, chosen %.3f of the fastest, worst %.3f; without a table %.3f, worst %.3f", kind, len(r.chosen), chosen,
			slices.Min(r.chosen), without, slices.Min(r.without))
		blocked := stated(t, a, fusedmoe.Blocks)
		must.Hold(t, kind != "block" || slices.Min(r.level) >= 1/blocked && slices.Max(r.level) <= blocked,
			"%s: measured ÷ predicted %.3f, from %.3f to %.3f; of blocks %v is stated", kind, stats.Median(r.level),
			slices.Min(r.level), slices.Max(r.level), blocked)
	}
}

// The kernels chosen for one matrix with scales per block are nearly as fast as the fastest of all tiles, and far ahead
// of the kernel without a table. The stated interval is that of layers left out of the fit (testdata/README.md).
func TestMeasuredBlocks(t *testing.T) {
	t.Parallel()
	a := opened(t)("sm90@h100")
	withoutTable := config(fusedmoe.Blocks, []int{64, 128, 128, 32, 4, 2}) // fp8_utils.w8a8_triton_block_scaled_mm
	type problem struct{ n, k, m int }
	configs, times := map[problem][]gemm.Config{}, map[problem][]float64{}
	for _, row := range csvtest.Read(t, "testdata/dense.csv.gz")[1:] {
		v := csvtest.Ints(t, row[:9])
		p := problem{v[0], v[1], v[2]}
		configs[p] = append(configs[p], config(fusedmoe.Blocks, v[3:]))
		times[p] = append(times[p], micros(t, row[9]))
	}
	var chosen, without, levels []float64
	for p, list := range configs {
		predicted := archtest.Seconds(t, a, linear(t, gemm.FP8, p.n, p.k, p.m), list...)
		best := 0
		for i := range list {
			if list[i].GroupM == withoutTable.GroupM && predicted[i] < predicted[best] {
				best = i
			}
			if list[i] == withoutTable {
				without = append(without, slices.Min(times[p])/times[p][i])
			}
		}
		chosen = append(chosen, slices.Min(times[p])/times[p][best])
		level := times[p][best] / predicted[best]
		levels = append(levels, max(level, 1/level))
	}
	slices.Sort(levels)
	factor := stats.Quantile(levels, 0.9)
	must.Hold(t, stats.Geomean(chosen) >= 0.98 && slices.Min(chosen) >= 0.86 && stats.Geomean(without) <= 0.6,
		"%d: chosen %.3f of the fastest, worst %.3f; without a table %.3f, worst %.3f", len(chosen), stats.Geomean(chosen),
		slices.Min(chosen), stats.Geomean(without), slices.Min(without))
	list := a.Describe().Uncertainty
	u := list[slices.IndexFunc(list, func(u arch.Uncertainty) bool { return u.Checked.Batch.High == 1 })]
	stated := u.WidestRange().High
	must.Hold(t, factor <= stated, "90 %% are within %.3f of the predicted times, and %v is stated", factor, stated)
}

// The winners of vLLM's and SGLang's tables with scales per block are predicted to lose little, and none is refused.
// Of Hopper's for one matrix, only those are here to which nothing was fitted; nothing was fitted to other devices.
func TestPublishedBlocks(t *testing.T) {
	t.Parallel()
	open, losses := opened(t), map[string][]float64{}
	for i, row := range csvtest.Read(t, "testdata/blocks.csv.gz")[1:] {
		v := csvtest.Ints(t, row[1:])
		if i%3 > 0 { // a part has the same figures
			continue
		}
		e := experts{count: v[0], topK: v[1], inter: v[2], hidden: v[3], dtype: gemm.FP8, blocks: true}
		a, part := open(row[0]), row[0][:4]
		rows, name := balanced(max(1, e.count), v[4]*max(1, e.topK)), part+" experts"
		own := config(fusedmoe.Blocks, v[5:11])
		configs := append(tuned(t, a, &e, rows, v[4]), own)
		last := &configs[len(configs)-1]
		times, at := []float64(nil), len(configs)-1
		if e.count > 0 {
			// Triton fills up rows, and the kernel's steps are no longer than a scale's.
			last.BlockM, last.BlockK = max(16, own.BlockM), min(own.BlockK, fusedmoe.ScaleBlock)
			both := e.estimate(t, a, rows, configs)
			for i := range both[0] {
				times = append(times, both[0][i]+both[1][i])
			}
		} else {
			name = part + " matrix"
			if v[11] == 1 {
				continue
			}
			times = archtest.Seconds(t, a, linear(t, gemm.FP8, e.inter, e.hidden, v[4]), configs...)
		}
		must.That(t, !math.IsInf(times[at], 0), "%v is refused", row)
		losses[name] = append(losses[name], times[at]/slices.Min(times)-1)
	}
	for name, most := range map[string][2]float64{"sm90 matrix": {0.015, 0.19}, "sm10 matrix": {0.025, 0.17},
		"sm89 matrix": {0.01, 0.09}, "sm90 experts": {0.03, 0.22}, "sm10 experts": {0.045, 0.22},
		"sm12 experts": {0.03, 0.01}, "sm89 experts": {0.01, 0.01}} {
		list := losses[name]
		above := slices.DeleteFunc(slices.Clone(list), func(x float64) bool { return x <= 0.1 })
		share := float64(len(above)) / float64(len(list))
		must.Hold(t, stats.Median(list) <= most[0] && share <= most[1],
			"%s: %d winners lose %.4f at the median, %.3f of them more than 10 %%", name, len(list), stats.Median(list),
			share)
	}
}

// A product without groups has no kernel of this family, and one with groups that follows it has: what was listed for
// the first is not the list of the second.
func TestAfterAProductWithoutGroups(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Kernel: fusedmoe.Family})
	plain := gemm.New(64, 4096, 2048)
	plain.DType, plain.Out = gemm.BF16, gemm.BF16
	plain.SetTrans(false, true)
	groups := must.Get(gemm.NewGroups(120, 33, 0, 512))(t)
	grouped := plain
	grouped.SetGroups(groups)
	s, result := selector.New(a, arch.Space{Kernel: fusedmoe.Family}), selector.Result{}
	must.That(t, s.Select(t.Context(), plain, &result) != nil, "a product without groups has a kernel")
	err := s.Select(t.Context(), grouped, &result)
	must.That(t, err == nil, "%v", err)
}
