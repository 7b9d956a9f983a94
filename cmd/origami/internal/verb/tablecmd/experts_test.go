//go:build !race

package tablecmd

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/linalg"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/timing"
)

// zipped reads a table of testdata/fused-moe, without its header.
func zipped(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open("testdata/fused-moe/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
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

func typed(t *testing.T, text string) gemm.DType {
	t.Helper()
	d, err := gemm.ParseDType(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// opened opens the family triton of devices such as sm90@h100, each once.
func opened(t *testing.T) func(id string) arch.Architecture {
	t.Helper()
	list := map[string]arch.Architecture{}
	return func(id string) arch.Architecture {
		if list[id] == nil {
			part, device, _ := strings.Cut(id, "@")
			list[id] = openFamily(t, expertFamily, part, device, timing.Model)
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
	for _, row := range zipped(t, "times.csv.gz") {
		v := numbers(t, row[3:15])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: typed(t, row[2])}
		c := gemm.Config{Kernel: expertFamily, BlockM: v[5], BlockN: v[6], BlockK: v[7], GroupM: v[8], NumWarps: v[9],
			NumStages: v[10], SplitK: 1}
		a := open(row[0])
		times, err := e.estimate(t.Context(), a, v[4], balanced(e.count, v[4]*e.topK), []gemm.Config{c})
		if err != nil {
			t.Fatal(err)
		}
		if times.rejects[0] != "" {
			t.Fatalf("%v, which ran, is refused: %s", row, times.rejects[0])
		}
		list = append(list, layerTime{row[0], e, v[4], c, v[11] == 1, times.up[0] + times.down[0],
			e.activationBytes(v[4]) / ask.PeakBandwidth(a), micros(t, row[15])})
	}
	return list
}

func micros(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		t.Fatal(err)
	}
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

// within is the share of the times that are predicted within 20 %, and 90 % of published ÷ predicted.
func within(list []layerTime, c [3]float64) (share float64, factors [2]float64) {
	var all []float64
	for i := range list {
		r := list[i].ratio(c)
		if math.Abs(r-1) <= 0.2 {
			share++
		}
		all = append(all, 1/r)
	}
	slices.Sort(all)
	return share / float64(len(list)), [2]float64{stats.Quantile(all, 0.05), stats.Quantile(all, 0.95)}
}

// shipped are the constants of a layer's time.
var shipped = [3]float64{productScale, elementwise, otherKernels}

// The constants of a layer's time are what fits the published times of half of the shapes. The times of the other half
// are within 20 % for so many as is said here, and also on a device that the fit did not see, and on four of another
// generation.
func TestExpertTimes(t *testing.T) {
	t.Parallel()
	var fitted, kept, others []layerTime
	for _, l := range layerTimes(t) {
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
	share, factors := within(kept, shipped)
	t.Logf("%d times kept back: %.3f within 20 %%, 90 %% within %.3f", len(kept), share, factors)
	if share < 0.84 {
		t.Errorf("%.3f of the times that were kept back are within 20 %%", share)
	}
	wide := [2]float64{1, 1}
	for device, stated := range published {
		share, factors := within(of(slices.Concat(kept, others), device, true), shipped)
		t.Logf("%s: %.3f within 20 %%, 90 %% within %.3f", device, share, factors)
		if math.Abs(factors[0]-stated[0]) > 0.006 || math.Abs(factors[1]-stated[1]) > 0.006 {
			t.Errorf("%s: 90 %% are within %.3f, and %v is stated", device, factors, stated)
		}
		if len(of(others, device, true)) > 0 {
			if share < 0.68 {
				t.Errorf("%s: %.3f are within 20 %%", device, share)
			}
			wide[0], wide[1] = min(wide[0], factors[0]), max(wide[1], factors[1])
			continue
		}
		share, factors = within(of(kept, device, true), fitLayer(of(fitted, device, false)))
		t.Logf("%s left out: %.3f within 20 %%, 90 %% within %.3f", device, share, factors)
		if share < 0.74 {
			t.Errorf("%s left out of the fit: %.3f are within 20 %%", device, share)
		}
		wide[0], wide[1] = min(wide[0], factors[0]), max(wide[1], factors[1])
	}
	if math.Abs(wide[0]-elsewhere[0]) > 0.006 || math.Abs(wide[1]-elsewhere[1]) > 0.006 {
		t.Errorf("left out, 90 %% are within %.3f, and %v is stated", wide, elsewhere)
	}
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
		if len(gained) < 4 {
			t.Errorf("%s: %d layers", device, len(gained))
		}
		for layer, list := range gained {
			measured := stats.Geomean(list[0]) / stats.Geomean(same[layer.dtype][0])
			predicted := stats.Geomean(list[1]) / stats.Geomean(same[layer.dtype][1])
			t.Logf("%s, %d experts of %d: time with the other kernel ÷ with a B200's %.3f, predicted %.3f", device, layer.count,
				layer.inter, measured, predicted)
			if max(measured/predicted, predicted/measured) > 1.1 {
				t.Errorf("%s, %d experts of %d: gain %.3f, predicted %.3f", device, layer.count, layer.inter, measured, predicted)
			}
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

// before is vLLM's default of that time (0.14.0, fused_moe.get_default_config). Without warps and stages, Triton takes
// 4 and 3.
func before(tokens, count int) gemm.Config {
	c := gemm.Config{Kernel: expertFamily, BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, GroupM: 8,
		SplitK: 1}
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
	losses, gained := map[string][]float64{}, map[string][]float64{}
	few, many := map[string][]float64{}, map[string][]float64{} // rows per expert
	for _, row := range zipped(t, "winners.csv.gz") {
		v := numbers(t, row[2:])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: typed(t, row[1])}
		own := gemm.Config{Kernel: expertFamily, BlockM: v[5], BlockN: v[6], BlockK: v[7], GroupM: v[8], NumWarps: v[9],
			NumStages: v[10], SplitK: 1}
		configs := append(e.space(v[4]), before(v[4], e.count), own)
		times, err := e.estimate(t.Context(), open(row[0]), v[4], balanced(e.count, v[4]*e.topK), configs)
		if err != nil {
			t.Fatal(err)
		}
		at, best := len(configs)-1, math.Inf(1)
		if times.rejects[at] != "" {
			t.Errorf("%v is refused: %s", row, times.rejects[at])
		}
		for i := range configs {
			best = min(best, times.layer(i, i))
		}
		name, loss := row[0]+" "+row[1], times.layer(at, at)/best-1
		losses[name] = append(losses[name], loss)
		kind := row[0][:4] + " " + row[1]
		if times.rows < manyRows {
			few[kind] = append(few[kind], loss)
		} else {
			many[kind] = append(many[kind], loss)
		}
		gained[name] = append(gained[name], times.layer(at-1, at-1)/times.layer(at, at))
	}
	most := map[string]float64{"bf16": 0.045, "fp8": 0.1}
	for name, list := range losses {
		median := stats.Median(list)
		t.Logf("%s: %d winners lose %.4f at the median", name, len(list), median)
		if _, dtype, _ := strings.Cut(name, " "); median > most[dtype] {
			t.Errorf("%s: the winners lose %.4f at the median", name, median)
		}
	}
	for kind := range many {
		t.Logf("%s: median loss %.3f with few rows per expert, %.3f with many", kind, stats.Median(few[kind]),
			stats.Median(many[kind]))
		if stats.Median(few[kind]) > 0.09 || stats.Median(many[kind]) > (&expertTimes{rows: manyRows}).worthwhile()-1+0.005 {
			t.Errorf("%s: the winners lose %.3f with few rows per expert, %.3f with many", kind, stats.Median(few[kind]),
				stats.Median(many[kind]))
		}
	}
	for name, as := range gains {
		gain := stats.Geomean(gained[name])
		t.Logf("%s: the winners gain %.3f over the default of their time, published %v", name, gain, as)
		if gain < as[0]/1.3 || gain > as[1]*1.3 {
			t.Errorf("%s: the winners gain %.3f, and %v was published", name, gain, as)
		}
	}
}

// measuredExpert is a measured kernel of a layer: rows per expert, and the times in s of the two products as the family
// triton predicts them and as measured.
type measuredExpert struct {
	experts
	tokens              int
	rows                float64
	config              gemm.Config
	predicted, measured [2]float64
}

// measuredExperts are the measured kernels by layer and tokens, without those that the family refuses.
func measuredExperts(t *testing.T) (list [][]measuredExpert) {
	t.Helper()
	a := opened(t)("sm90@h100")
	var group []measuredExpert
	var configs []gemm.Config
	flush := func() {
		if len(group) == 0 {
			return
		}
		e, tokens, one := group[0].experts, group[0].tokens, make(load, group[0].count)
		for i := range one {
			one[i] = 1
		}
		times, err := e.estimate(t.Context(), a, tokens, one.rows(e.topK, []int{tokens})[0], configs)
		if err != nil {
			t.Fatal(err)
		}
		var run []measuredExpert
		for i := range group {
			if times.rejects[i] == "" {
				factor := e.factor(times.perExpert, &configs[i])
				group[i].predicted = [2]float64{times.up[i] / factor, times.down[i] / factor}
				group[i].rows = times.perExpert
				run = append(run, group[i])
			}
		}
		list, group, configs = append(list, run), nil, nil
	}
	for _, row := range zipped(t, "measured.csv.gz") {
		v := numbers(t, row[1:12])
		e := experts{count: v[0], topK: v[1], hidden: v[2], inter: v[3], dtype: gemm.BF16}
		if row[0] != "bf16" {
			e.dtype, e.blocks = gemm.FP8, row[0] == "block"
		}
		if len(group) > 0 && (group[0].experts != e || group[0].tokens != v[4]) {
			flush()
		}
		c := gemm.Config{Kernel: expertFamily, BlockM: v[5], BlockN: v[6], BlockK: v[7], GroupM: v[8], NumWarps: v[9],
			NumStages: v[10], SplitK: 1}
		group = append(group, measuredExpert{experts: e, tokens: v[4], config: c,
			measured: [2]float64{micros(t, row[12]), micros(t, row[13])}})
		configs = append(configs, c)
	}
	flush()
	return list
}

func (m *measuredExpert) time() float64 { return m.measured[0] + m.measured[1] }

// fitWays finds the logarithms of four ways with the least squares of log(measured ÷ predicted) beside its mean in a
// layer, for kernels that are predicted within 30 % of the fastest or measured within 20 %.
func fitWays(list [][]measuredExpert) (logs [countWays]float64) {
	chosen := []int{shortWay, fewestWay, twoStagesWay, eightWarpsWay}
	n := len(chosen)
	lower, right := linalg.Lower(n), make([]float64, n)
	for _, group := range list {
		for p := range 2 {
			predicted, measured := math.Inf(1), math.Inf(1)
			for i := range group {
				predicted, measured = min(predicted, group[i].predicted[p]), min(measured, group[i].measured[p])
			}
			var rows [][]float64
			var logs []float64
			for i := range group {
				m := &group[i]
				ways := m.ways(m.rows, &m.config)
				if m.config.GroupM == swept(&m.experts) && ways[spillWay] == 0 &&
					(m.predicted[p] < 1.3*predicted || m.measured[p] < 1.2*measured) {
					row := make([]float64, n)
					for j, way := range chosen {
						row[j] = ways[way]
					}
					rows, logs = append(rows, row), append(logs, math.Log(m.measured[p]/m.predicted[p])-ways[wideWay]*wayLogs[wideWay])
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
	linalg.Cholesky(lower, 1e-9)
	linalg.Forward(lower, right)
	linalg.Backward(lower, right)
	logs = wayLogs
	for j, way := range chosen {
		logs[way] = right[j]
	}
	return logs
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
	for j := range rows[0] {
		sum := 0.0
		for _, row := range rows {
			sum += row[j]
		}
		for _, row := range rows {
			row[j] -= sum / float64(len(rows))
		}
	}
	sum := 0.0
	for _, log := range logs {
		sum += log
	}
	for i := range logs {
		logs[i] -= sum / float64(len(logs))
	}
}

// chosenExpert is the kernel that is predicted to be the fastest, or vLLM's without a table, if the gain is too small.
func chosenExpert(group []measuredExpert, logs [countWays]float64, gain float64) *measuredExpert {
	var best, without *measuredExpert
	least, standard := math.Inf(1), math.Inf(1)
	for i := range group {
		m := &group[i]
		if m.config.GroupM != swept(&m.experts) {
			continue
		}
		log := 0.0
		for way, much := range m.ways(m.rows, &m.config) {
			log += much * logs[way]
		}
		time := (m.predicted[0] + m.predicted[1]) * math.Exp(log)
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
	c := m.defaultConfig(m.tokens)
	c.GroupM = m.config.GroupM
	return c == m.config
}

// The kernels that the model chooses without having seen a layer are nearly as fast as the fastest of all tiles, and
// faster than vLLM's without a table.
func TestMeasuredExperts(t *testing.T) {
	t.Parallel()
	list, gate := measuredExperts(t), (&expertTimes{hopper: true}).worthwhile()
	fitted := fitWays(list)
	for way, log := range wayLogs {
		if math.Abs(fitted[way]-log) > 0.02 {
			t.Errorf("way %d: the fit has %.3f for %.3f", way, fitted[way], log)
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
		now := chosenExpert(group, wayLogs, gate)
		r.level = append(r.level, now.time()/(productScale*now.factor(now.rows, &now.config)*
			(now.predicted[0]+now.predicted[1])))
	}
	for kind, r := range results {
		chosen, without := stats.Geomean(r.chosen), stats.Geomean(r.without)
		t.Logf("%s: %d, chosen %.3f, worst %.3f; without a table %.3f, worst %.3f", kind, len(r.chosen), chosen,
			slices.Min(r.chosen), without, slices.Min(r.without))
		t.Logf("measured ÷ predicted %.3f, from %.3f to %.3f", stats.Median(r.level), slices.Min(r.level),
			slices.Max(r.level))
		if chosen < 0.96 || slices.Min(r.chosen) < 0.9 || chosen < without+0.015 {
			t.Errorf("%s: %.3f, worst %.3f, of the fastest; without a table %.3f", kind, chosen, slices.Min(r.chosen), without)
		}
		if kind == "block" && (slices.Min(r.level) < blocked[0] || slices.Max(r.level) > blocked[1]) {
			t.Errorf("%.3f to %.3f, and %v is stated", slices.Min(r.level), slices.Max(r.level), blocked)
		}
	}
}

// The kernels chosen for one matrix with scales per block, to which no number was fitted, are nearly as fast as the
// fastest of all tiles, and far ahead of the kernel without a table.
func TestMeasuredBlocks(t *testing.T) {
	t.Parallel()
	a := opened(t)("sm90@h100")
	type problem struct{ n, k, m int }
	configs, times := map[problem][]gemm.Config{}, map[problem][]float64{}
	for _, row := range zipped(t, "dense.csv.gz") {
		v := numbers(t, row[:9])
		p := problem{v[0], v[1], v[2]}
		configs[p] = append(configs[p], gemm.Config{Kernel: expertFamily, BlockM: v[3], BlockN: v[4], BlockK: v[5],
			GroupM: v[6], NumWarps: v[7], NumStages: v[8], SplitK: 1})
		times[p] = append(times[p], micros(t, row[9]))
	}
	var chosen, without, levels []float64
	for p, list := range configs {
		predicted, _, err := blockTimes(t.Context(), a, p.m, p.n, p.k, list)
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for i := range list {
			if list[i].GroupM == withoutBlockTable.GroupM && predicted[i] < predicted[best] {
				best = i
			}
			if list[i] == withoutBlockTable {
				without = append(without, slices.Min(times[p])/times[p][i])
			}
		}
		chosen = append(chosen, slices.Min(times[p])/times[p][best])
		levels = append(levels, times[p][best]/predicted[best])
	}
	slices.Sort(levels)
	low, high := stats.Quantile(levels, 0.05), stats.Quantile(levels, 0.95)
	t.Logf("%d: chosen %.3f, worst %.3f; without a table %.3f, worst %.3f; 90 %% of measured ÷ predicted %.3f to %.3f",
		len(chosen), stats.Geomean(chosen), slices.Min(chosen), stats.Geomean(without), slices.Min(without), low, high)
	if stats.Geomean(chosen) < 0.945 || slices.Min(chosen) < 0.7 || stats.Geomean(without) > 0.6 {
		t.Errorf("%.3f, worst %.3f, of the fastest; without a table %.3f", stats.Geomean(chosen), slices.Min(chosen),
			stats.Geomean(without))
	}
	if math.Abs(low-blockInterval[0]) > 0.006 || math.Abs(high-blockInterval[1]) > 0.006 {
		t.Errorf("90 %% are %.3f to %.3f of the predicted times, and %v is stated", low, high, blockInterval)
	}
}
