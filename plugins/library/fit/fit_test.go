package fit_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/published"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

var (
	update = flag.Bool("update", false, "fit anew, and write plugins/library/terms/zfitted.go")
	only   = flag.String("only", "", "of these generations alone")
	out    = flag.String("out", "../terms/zfitted.go", "the file that -update writes")
	steps  = flag.Int("steps", 60, "of each fit, at most")
	sample = flag.Int("most", 500, "times of a series, about; thrice as many of one alone")
)

// open returns a function that opens the model through the plugins, and one that says of what generation a device is.
func open(t *testing.T) (opener, func(device string) terms.Generation) {
	t.Helper()
	generations := map[string]terms.Generation{}
	providers := map[string]arch.Provider{}
	all := must.Get(builtins.Providers())(t)
	for _, p := range all {
		for _, a := range p.Manifest().Archs {
			providers[a.ID] = p
		}
	}
	opened := func(device string, options map[string]string) (*library.Model, error) {
		archID, id, _ := strings.Cut(device, "@")
		p, ok := providers[archID]
		if !ok {
			return nil, fmt.Errorf("no plugin has %s", device)
		}
		a, err := p.Open(t.Context(), arch.OpenRequest{Arch: archID, Device: id, Kernel: library.Family, Options: options})
		if err != nil {
			return nil, err
		}
		return a.(*library.Model), nil
	}
	return opened, func(device string) terms.Generation {
		if _, known := generations[device]; !known {
			generations[device] = ""
			if m, err := opened(device, nil); err == nil {
				generations[device] = m.Generation()
			}
		}
		return generations[device]
	}
}

// stage is one fit: of some quantities to some times.
type stage struct {
	key    string
	times  func(*published.Time) bool
	fitted func(quantity string) bool
	least  int // times
	// below are keys whose kernels are never faster on any resource, since they do more. On Hopper they were measured
	// to be, but take no less power.
	below []string
}

// held are quantities of a key that its own times do not tell, with the key whose value they have.
var held = map[string]map[string]string{
	"cdna3": {
		"launch_seconds": "cdna3 block128", "cold_seconds": "cdna3 block128", "write_share": "cdna3 early",
	},
	"cdna3 block128+preshuffle": {
		"launch_seconds": "cdna3 block128", "cold_seconds": "cdna3 block128", "write_share": "cdna3 early",
		"energy_8": "cdna3",
	},
	"blackwell block16":          unquantised("blackwell block16+quant"),
	"blackwell-consumer block16": unquantised("blackwell-consumer block16+quant"),
}

// unquantised are what times of fp4 without the quantising do not tell: few of them are of large products.
func unquantised(from string) map[string]string {
	return map[string]string{"rate_share_4": from, "l2_port_4": from, "l2_share_4": from, "feed_4": from,
		"energy_4": from, "throttle_seconds_4": from, "store_rate": from}
}

func typed(suffixes ...string) func(string) bool {
	return func(q string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(q, s) })
	}
}

func common(q string) bool {
	return !typed("_4", "_8", "_16", "_32", "_tf32", "_int8")(q) && !quantise(q) && !gemv(q) && q != far && q != ecc
}

const (
	far = "far_share" // of devices with several dies and a cache behind them
	ecc = "ecc_share" // of generations with devices with it and without
)

// gemv are those of kernels for one row of A. On other generations such rows take as long as two.
func gemv(q string) bool { return strings.HasPrefix(q, "gemv") }

// power are those of the power that a board may take.
func power(q string) bool { return strings.HasPrefix(q, "energy") || strings.HasPrefix(q, "throttle") }

func quantise(q string) bool { return strings.HasPrefix(q, "quantise") || q == "wide_share" }

func or(all ...func(string) bool) func(string) bool {
	return func(q string) bool {
		return slices.ContainsFunc(all, func(f func(string) bool) bool { return f(q) })
	}
}

// doubtful times are not fitted: those that the tables mark, and those of the T4's int8, which a host timed with
// an old library.
func doubtful(t *published.Time) bool {
	return t.Doubt != "" || t.Device == "sm75@t4" && t.DType == "int8"
}

// stages of a generation, in turn.
func stages(g terms.Generation) []stage {
	is := func(schemes, release string, types ...string) func(*published.Time) bool {
		return func(t *published.Time) bool {
			return !doubtful(t) && !blind(t) && slices.Contains(strings.Fields(schemes), t.Scheme) &&
				slices.Contains(strings.Fields(release), t.Release) && slices.Contains(types, t.DType)
		}
	}
	key, now := string(g), "current"
	perTensor := "tensor tensor+quant"
	switch g {
	case terms.AmpereConsumer:
		now = "current early" // there are hardly any others
	case terms.Hopper:
		perTensor = "tensor"
	case terms.CDNA3, terms.CDNA4:
		perTensor = "row" // and one scale per matrix is a case of it
	default:
	}
	also := func(q string) bool { return false }
	switch g {
	case terms.CDNA1, terms.CDNA3, terms.CDNA4:
		also = func(q string) bool { return q == far }
	case terms.Ampere, terms.BlackwellConsumer:
		also = gemv
	case terms.Ada:
		also = func(q string) bool { return gemv(q) || q == ecc }
	case terms.AmpereConsumer:
		also = func(q string) bool { return q == ecc }
	default:
	}
	machine := or(common, also)
	if g == terms.CDNA3 {
		return cdna3(is, machine)
	}
	split := func(q string) bool { return q == "split_seconds" || q == "store_rate" }
	launch := func(q string) bool { return q == "launch_seconds" }
	blocks := split
	if g == terms.CDNA4 { // no quantising in the times, so that the launch can be told apart
		blocks = or(split, launch)
	}
	blocked := key + " block128"
	first := []stage{
		{key, is("none", now, "fp16", "bf16"), or(typed("_16"), machine), 50, nil},
		{key, is("none", now, "tf32"), typed("_tf32"), 50, nil},
		{key, is("none", now, "fp32"), typed("_32"), 50, nil},
	}
	tensor := stage{key, is(perTensor, now, "fp8"), or(typed("_8"), quantise), 50, nil}
	switch g { // where the times of 16-bit types are few, or have no small sizes
	case terms.CDNA4:
		both := is("row none", now, "fp8", "fp16", "bf16")
		first = []stage{{key, both, or(typed("_8", "_16"), machine), 50, nil}}
	case terms.GCN5:
		first = []stage{
			{key, is("none", now, "fp32"), or(typed("_32"), machine), 50, nil},
			{key, is("none", now, "fp16"), typed("_16"), 50, nil},
		}
	case terms.Vega20:
		first = []stage{
			{key, is("none", now, "fp16"), or(typed("_16"), machine), 50, nil},
			{key, is("none", now, "fp32"), typed("_32"), 50, nil},
		}
	case terms.Ada, terms.Blackwell: // after the kernels for blocks
		tensor.below = []string{blocked}
	case terms.Hopper:
		tensor.below = []string{blocked}
		wide := is("none", now, "tf32", "fp32")
		row := func(t *published.Time) bool { return wide(t) && t.M == 1 }
		first = append(first, stage{key, row, gemv, 50, nil})
	default:
		first = append(first, tensor)
	}
	list := append(first, []stage{
		{key, is("none row", now, "int8"), typed("_int8"), 50, nil},
		{blocked, is("block128 block128+quant", now, "fp8"), or(typed("_8"), quantise, blocks), 50, nil},
		{key + " block128+preshuffle", is("block128+preshuffle", now, "fp8"), or(typed("_8"), blocks), 50, nil},
		{key + " block16+quant", is("block16+quant", now, "fp4"), or(typed("_4"), quantise, split), 50, nil},
		{key + " block16", is("block16", now, "fp4"), or(typed("_4"), split), 20, nil},
		{key + " block32", is("block32", now, "fp4"), or(typed("_4"), blocks), 50, nil},
	}...)
	if g == terms.Hopper { // of which there are times without the quantising
		list = append(list, stage{
			key + " tensor+quant", is("tensor+quant", now, "fp8"), or(typed("_8"), quantise, split), 50, nil,
		})
	}
	switch g {
	case terms.Ada, terms.Blackwell, terms.Hopper:
		list = append(list, tensor)
	default:
	}
	if now == "current" {
		list = append(list, stage{key + " early", is("none", "early", "fp16", "bf16"), or(typed("_16"), machine), 50, nil})
	}
	return list
}

// cdna3 are the stages of CDNA 3. Of the current release, the times but those with scales per block are of the MI308X,
// whose 80 CUs write more slowly than the DRAM takes it. So what DRAM takes of writes is that of the early release on
// the MI300X. A launch is that of scales per block, of which the MI300X has most times.
func cdna3(is func(schemes, release string, types ...string) func(*published.Time) bool,
	machine func(string) bool) []stage {
	// No library is known to be faster at small sizes than the early one on the MI300X.
	now, early := is("none row tensor", "current", "fp8", "fp16", "bf16"), is("none", "early", "fp16", "bf16")
	small := func(t *published.Time) bool { return early(t) && t.TransB && !t.TransA && t.Median < 8e-6 }
	weights := is("tensor", "early", "fp8") // and activations along K: hipBLASLt is slower with the others
	fp32 := func(q string) bool { return typed("_32")(q) && q != "throttle_seconds_32" }
	return []stage{
		{"cdna3 early", early, or(typed("_16"), machine), 50, nil},
		{"cdna3 early", func(t *published.Time) bool { return weights(t) && t.TransB && !t.TransA }, typed("_8"), 30, nil},
		{"cdna3 block128", is("block128", "current", "fp8"), or(typed("_8"), machine), 50, nil},
		{"cdna3", func(t *published.Time) bool { return now(t) || small(t) }, or(typed("_8", "_16"), machine), 50, nil},
		{"cdna3", is("row tensor", "current", "fp8"), typed("_8"), 50, nil}, // lawful beside those of 16 bits
		{"cdna3", is("none", "current early", "fp32"), fp32, 10, nil},
		{"cdna3", is("row", "current", "int8"), typed("_int8"), 50, nil},
		{"cdna3 block128+preshuffle", is("block128+preshuffle", "current", "fp8"), or(typed("_8"), machine), 50, nil},
	}
}

// start returns where a stage starts, given what was fitted before: at that, otherwise at the chosen values.
// testdata/starts.csv says where fits start that end at worse values from these, and what single times say of bounds,
// which hundreds of others would outweigh.
func start(
	t *testing.T, s stage, given map[string]map[string]float64,
) (values map[string]float64, quantities []fit.Quantity) {
	t.Helper()
	own := map[string]map[string]string{}
	for _, row := range csvtest.Named(t, "testdata/starts.csv") {
		if row["stage"] == s.key {
			own[row["quantity"]] = row
		}
	}
	generation, scheme, _ := strings.Cut(s.key, " ")
	v := terms.Variant{Generation: terms.Generation(generation), Scheme: scheme, Release: scheme}
	values = map[string]float64{}
	for _, q := range terms.Quantities {
		values[q.Name], _ = q.In(given, v)
		if _, is := held[s.key][q.Name]; s.fitted(q.Name) && !is {
			low, high := q.Low, q.High
			if row := own[q.Name]; row["low"] != "" {
				low, high = csvtest.Float(t, row, "low"), csvtest.Float(t, row, "high")
			}
			quantities = append(quantities, fit.Quantity{Name: q.Name, Low: low, High: high})
		}
	}
	for _, q := range quantities {
		_, before := given[s.key][q.Name]
		if row := own[q.Name]; row["begin"] != "" && (!before || s.below != nil) { // or completed before it is fitted
			values[q.Name] = csvtest.Float(t, row, "begin")
		}
	}
	if strings.HasPrefix(s.key, string(terms.CDNA3)) {
		values["energy_8"] = 5.9e-13 // 750 W at the 1,273 TFLOP/s of an MI300X; below it, no time waits for power
	}
	for i := range quantities {
		q := &quantities[i]
		// On Vega 10, kernels for fp16 take longer per K step than those for fp32.
		if !strings.Contains(s.key, "128") && s.key != string(terms.GCN5) { // such scales may cost more than they save
			lawful(q, given[generation])
		}
		for _, key := range s.below {
			slow, known := given[key][q.Name]
			if known && !quantise(q.Name) && (generation != string(terms.Hopper) || power(q.Name)) {
				notBelow(q, q.Name, slow, 1)
			}
		}
		if generation == string(terms.AmpereConsumer) && q.Name == "energy_16" {
			q.Low, q.High = limited, limited
		}
		values[q.Name] = min(max(values[q.Name], q.Low), q.High)
	}
	return values, quantities
}

// limited is the energy of a FLOP in 16 bits where no published time reaches the power limit of a board: the 70 W of a
// T4 and the 150 W of an A10 are 2.8 pJ at the 25 and 54 TFLOP/s at which sweeps of chsasank/device-benchmarks end,
// and an RTX A6000 of 300 W reaches 123 TFLOP/s (its device file), 2.4 pJ.
const limited = 2.5e-12

// pairs are two types of which the first has fewer bytes, or takes fewer instructions, and the ratio of their
// bytes. Not those of int8 and fp4: on Hopper cuBLAS's kernels for int8, and on Blackwell those for fp4, were
// measured to be slower.
var pairs = []struct {
	narrow, wide string
	bytes        float64
}{
	{"_8", "_16", 2}, {"_16", "_tf32", 2}, {"_16", "_32", 2}, {"_tf32", "_32", 1},
}

// lawful narrows the bounds of a quantity by that of another type, so that fewer bytes are never slower on any
// resource: half of them cross the port of the L2 at half of its rate or more, and take no longer per K step.
func lawful(q *fit.Quantity, given map[string]float64) {
	for _, p := range pairs {
		if name, is := strings.CutSuffix(q.Name, p.narrow); is {
			if wide, known := given[name+p.wide]; known {
				notBelow(q, name, wide, p.bytes)
			}
		}
		if name, is := strings.CutSuffix(q.Name, p.wide); is {
			if narrow, known := given[name+p.narrow]; known {
				if better(name) == lower || name == "throttle_seconds" {
					notAbove(q, narrow)
				} else {
					notAbove(q, narrow*p.bytes)
				}
			}
		}
	}
}

// direction is which value of a quantity makes a kernel faster.
type direction int

const (
	higher direction = iota
	lower
)

func better(name string) direction {
	if strings.HasPrefix(name, "step_seconds") || strings.HasPrefix(name, "energy") ||
		strings.HasPrefix(name, "quantise_seconds") || strings.HasPrefix(name, "split_seconds") {
		return lower
	}
	return higher
}

// notBelow keeps a quantity from being slower than that of a type with more bytes.
func notBelow(q *fit.Quantity, name string, wide, bytes float64) {
	switch {
	case better(name) == lower:
		q.High = max(q.Low, min(q.High, wide))
	case strings.HasPrefix(name, "throttle_seconds"):
		q.Low = min(q.High, max(q.Low, wide))
	default: // rates
		q.Low = min(q.High, max(q.Low, wide/bytes))
	}
}

// notAbove keeps a quantity from being faster than that of kernels that do less.
func notAbove(q *fit.Quantity, fast float64) {
	if better(q.Name) == lower {
		q.Low = min(q.High, max(q.Low, fast))
	} else {
		q.High = max(q.Low, min(q.High, fast))
	}
}

// completed gives the kernels for fp8 with one scale the values of those with blocks where no times of the former are
// known, resource by resource those or the ones for 16 bits, whichever are faster: a library is free to take either.
func completed(g terms.Generation, fitted map[string]map[string]float64) {
	base, blocks := fitted[string(g)], fitted[string(g)+" block128"]
	if _, known := base["rate_share_8"]; known || base == nil || blocks == nil {
		return
	}
	for name, v := range blocks {
		if of, is := strings.CutSuffix(name, "_8"); is {
			wide := base[of+"_16"]
			if better(of) == higher && of != "throttle_seconds" {
				wide /= 2
			}
			base[name] = faster(of, v, wide)
		}
	}
}

// faster is the value of a quantity with which a kernel is faster.
func faster(name string, a, b float64) float64 {
	if better(name) == lower {
		return min(a, b)
	}
	return max(a, b)
}

// shared gives a generation what only another has times of: Blackwell the kernels of Hopper for one row, and consumer
// Blackwell those of Ada for fp8 with one scale, where they are faster.
func shared(all map[string]map[string]float64) {
	for name, v := range all[string(terms.Hopper)] {
		if gemv(name) {
			all[string(terms.Blackwell)][name] = v
		}
	}
	base := all[string(terms.BlackwellConsumer)]
	maps.DeleteFunc(base, func(name string, _ float64) bool { return strings.HasSuffix(name, "_8") })
	completed(terms.BlackwellConsumer, all)
	for name, v := range all[string(terms.Ada)] {
		if of, is := strings.CutSuffix(name, "_8"); is {
			base[name] = faster(of, base[name], v)
		}
	}
}

// lanes are the generations whose SM has 128 lanes for FMA instructions in fp32. Those but Ada have few times in fp32,
// and take its values. Nearly all of Ada's are of an L4, whose 72 W explain them as well as slow kernels would: the
// others tell which. All of theirs count as much as the L4's.
var lanes = []terms.Generation{terms.Ada, terms.AmpereConsumer, terms.BlackwellConsumer}

// run fits the stages of a generation. Each starts at what those before it found.
func run(t *testing.T, g terms.Generation) (fitted map[string]map[string]float64, log string) {
	t.Helper()
	fitted = map[string]map[string]float64{}
	var b strings.Builder
	for _, s := range stages(g) {
		times := read(t, g, s.times, *sample)
		if times.Len() < s.least {
			continue
		}
		switch {
		case g == terms.Ada && s.fitted("rate_share_32"):
			times = readOf(t, lanes, s.times, *sample).Even(g, s.fitted)
		case g == terms.AmpereConsumer: // the A40 has most times, and its units twice the rate of a GeForce card's
			times = times.Even(g, nil)
		}
		if fitted[s.key] == nil {
			fitted[s.key] = map[string]float64{}
		}
		for name, from := range held[s.key] {
			fitted[s.key][name] = fitted[from][name]
		}
		values, quantities := start(t, s, fitted)
		r := minimise(t, times, quantities, values)
		for _, q := range quantities {
			fitted[s.key][q.Name] = r.Values[q.Name]
		}
		fmt.Fprintf(&b, "== %s: %d steps, loss %.3f, %d times\n", s.key, r.Steps, r.Loss, times.Len())
		report(t, &b, times, r.Values)
		completed(g, fitted)
	}
	return fitted, b.String()
}

// starts are factors of quantities where a fit starts besides. A limit that no time reaches at the start has no
// derivative: the power of a board, the latency of K steps, the L2, what the caches hold.
var starts = []map[string]float64{
	{}, {"energy": 3}, {"energy": 0.5}, {"step_seconds": 8}, {"step_seconds": 0.1}, {"resident_tiles": 2.5},
	{"l2_share": 0.3}, {"step_seconds": 4, "l2_share": 0.3}, {"weights_share": 2}, {"weights_share": 2, "step_seconds": 8},
}

// minimise takes a few steps from each start, on a part of the times, and the rest from the best of them.
func minimise(t *testing.T, times *sampled, quantities []fit.Quantity, values map[string]float64) fit.Result {
	t.Helper()
	run := func(times *sampled, at map[string]float64, steps int) fit.Result {
		return must.Get(fit.Minimise(t.Context(), times.Residuals, quantities, fit.Options{Start: at, Steps: steps}))(t)
	}
	part := times
	if times.Len() > partOf*least {
		part = times.Without(func(x *published.Time) bool { return (x.M+x.N/8+x.K/8)%partOf > 0 })
	}
	var best fit.Result
	for i, factors := range starts {
		at := maps.Clone(values)
		for _, q := range quantities {
			for name, factor := range factors {
				if strings.HasPrefix(q.Name, name) {
					at[q.Name] = min(max(at[q.Name]*factor, q.Low), q.High)
				}
			}
		}
		if r := run(part, at, *steps/4); i == 0 || r.Loss < best.Loss {
			best = r
		}
	}
	return run(times, best.Values, *steps)
}

const (
	partOf = 3   // of the times, where a fit starts
	least  = 300 // times of the part
)

// The fit starts at the chosen values, or at those of starts.csv, and not at those that are shipped, so that it gives
// the same file again. A generation that -only does not name keeps its values: docs/decisions/models.md says which have
// older ones.
func TestFit(t *testing.T) {
	if !*update {
		t.Skip("run with -update")
	}
	var mu sync.Mutex
	all := terms.Fitted()
	t.Run("generations", func(t *testing.T) {
		for _, g := range terms.Generations() {
			if *only != "" && !slices.Contains(strings.Split(*only, ","), string(g)) {
				continue
			}
			t.Run(string(g), func(t *testing.T) {
				t.Parallel()
				fitted, log := run(t, g)
				mu.Lock()
				defer mu.Unlock()
				fmt.Print(log)
				maps.DeleteFunc(all, func(key string, _ map[string]float64) bool {
					of, _, _ := strings.Cut(key, " ")
					return of == string(g)
				})
				maps.Copy(all, fitted)
			})
		}
	})
	if !t.Failed() {
		shared(all)
		write(t, all)
	}
}

// write writes the file of the values.
func write(t *testing.T, fitted map[string]map[string]float64) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("// Code generated by go test ./plugins/library/fit -update; DO NOT EDIT.\n\npackage terms\n\n" +
		"// fitted are the values that were found, by generation, and by the scheme or release behind it.\n" +
		"var fitted = map[string]map[string]float64{\n")
	for _, key := range slices.Sorted(maps.Keys(fitted)) {
		fmt.Fprintf(&b, "%q: {\n", key)
		for _, q := range terms.Quantities {
			if v, ok := fitted[key][q.Name]; ok {
				fmt.Fprintf(&b, "%q: %.4g,\n", q.Name, v)
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	src := must.Get(format.Source(b.Bytes()))(t)
	must.Do(t, os.WriteFile(*out, src, 0o644))
}

func report(t *testing.T, w io.Writer, s *sampled, values map[string]float64) {
	by := map[string][]float64{}
	must.Do(t, s.Errors(t.Context(), values, func(x *published.Time, e float64) {
		m := "m>1024"
		for _, b := range []int{1024, 256, 64, 16} {
			if x.M <= b {
				m = fmt.Sprintf("m<=%4d", b)
			}
		}
		for _, k := range []string{x.Device + " " + x.DType + " " + x.Scheme + " " + string(x.Timing), m} {
			by[k] = append(by[k], e)
		}
	}))
	for _, k := range slices.Sorted(maps.Keys(by)) {
		v := by[k]
		slices.Sort(v)
		in := 0
		for _, e := range v {
			if math.Abs(e) < math.Log(1.2) {
				in++
			}
		}
		q := func(f float64) float64 { return math.Exp(v[int(f*float64(len(v)-1))]) }
		fmt.Fprintf(w, "%-45s n %5d p10 %.2f median %.2f p90 %.2f within 20 %%: %.1f\n", k, len(v), q(.1), q(.5), q(.9),
			100*float64(in)/float64(len(v)))
	}
}
