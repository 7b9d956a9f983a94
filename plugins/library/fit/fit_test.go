package fit_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/published"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

var (
	update = flag.Bool("update", false, "fit anew, and write plugins/library/terms/zfitted.go")
	only   = flag.String("only", "", "of these generations alone")
	fresh  = flag.Bool("fresh", false, "from the chosen values, not from those that are shipped")
	steps  = flag.Int("steps", 25, "of each fit, at most")
	most   = flag.Int("most", 500, "times of a series, about")
)

// open returns a function that opens the model through the plugins, and one that says of what generation a device is.
func open(t *testing.T) (opener, func(device string) terms.Generation) {
	t.Helper()
	generations := map[string]terms.Generation{}
	providers := map[string]arch.Provider{}
	for _, b := range builtins.Plugins {
		p, err := b.Provider()
		if err != nil {
			t.Fatal(err)
		}
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
}

func typed(suffixes ...string) func(string) bool {
	return func(q string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(q, s) })
	}
}

func common(q string) bool {
	return !typed("_4", "_8", "_16", "_32", "_tf32", "_int8")(q) && !quantise(q) && q != far
}

const far = "far_share"

func quantise(q string) bool { return strings.HasPrefix(q, "quantise") || q == "wide_share" }

func or(all ...func(string) bool) func(string) bool {
	return func(q string) bool {
		return slices.ContainsFunc(all, func(f func(string) bool) bool { return f(q) })
	}
}

// doubtful times are not fitted: those that the tables mark, and those of the T4's int8, which a host timed with an old
// library.
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
	machine := common
	if strings.HasPrefix(key, "cdna") && g != terms.CDNA2 {
		machine = func(q string) bool { return common(q) || q == far }
	}
	split := func(q string) bool { return q == "split_seconds" || q == "store_rate" }
	launch := func(q string) bool { return q == "launch_seconds" }
	blocks := split
	switch g {
	case terms.CDNA3: // of which most times are
		blocks = machine
	case terms.CDNA4: // no quantising in the times, so that the launch can be told apart
		blocks = or(split, launch)
	default:
	}
	first := []stage{
		{key, is("none", now, "fp16", "bf16"), or(typed("_16"), machine), 50},
		{key, is("none", now, "tf32"), typed("_tf32"), 50},
		{key, is("none", now, "fp32"), typed("_32"), 50},
		{key, is(perTensor, now, "fp8"), or(typed("_8"), quantise), 50},
	}
	switch g { // where the times of 16-bit types are few, or have no small sizes
	case terms.CDNA3, terms.CDNA4:
		first = []stage{
			{key, is(perTensor, now, "fp8"), or(typed("_8"), machine), 50},
			{key, is("none", now, "fp16", "bf16"), typed("_16"), 50},
		}
	case terms.GCN5:
		first = []stage{
			{key, is("none", now, "fp32"), or(typed("_32"), machine), 50},
			{key, is("none", now, "fp16"), typed("_16"), 50},
		}
	default:
	}
	list := append(first, []stage{
		{key, is("none row", now, "int8"), typed("_int8"), 50},
		{key + " block128", is("block128 block128+quant", now, "fp8"), or(typed("_8"), quantise, blocks), 50},
		{key + " block128+preshuffle", is("block128+preshuffle", now, "fp8"), or(typed("_8"), blocks), 50},
		{key + " block16", is("block16+quant", now, "fp4"), or(typed("_4"), quantise, split), 50},
		{key + " block32", is("block32", now, "fp4"), or(typed("_4"), blocks), 50},
	}...)
	if g == terms.Hopper { // of which there are times without the quantising
		list = append(list, stage{
			key + " tensor+quant", is("tensor+quant", now, "fp8"), or(typed("_8"), quantise, split), 50,
		})
	}
	if now == "current" {
		list = append(list, stage{key + " early", is("none", "early", "fp16", "bf16"), or(typed("_16"), machine), 50})
	}
	return list
}

// start returns where a stage starts: at the given values, otherwise at those that are chosen.
func start(s stage, given map[string]float64) (values map[string]float64, quantities []fit.Quantity) {
	values = map[string]float64{}
	for _, q := range terms.Quantities {
		key, _, _ := strings.Cut(s.key, " ")
		values[q.Name], _ = q.On(terms.Variant{Generation: terms.Generation(key)})
		if s.fitted(q.Name) {
			quantities = append(quantities, fit.Quantity{Name: q.Name, Low: q.Low, High: q.High})
		}
	}
	if strings.HasPrefix(s.key, string(terms.Blackwell)) {
		values["energy_16"] = 0.66e-12 // from a higher one, the fit ends where it is worse
	}
	maps.Copy(values, given)
	for i := range quantities {
		if !strings.Contains(s.key, "128") { // such scales may cost more than they save
			lawful(&quantities[i], given)
		}
	}
	for _, q := range quantities { // the bounds may have changed
		values[q.Name] = min(max(values[q.Name], q.Low), q.High)
	}
	return values, quantities
}

// lawful narrows the bounds of a quantity of a narrow type by that of the wide type, so that half the bytes are never
// slower on any resource: they cross the port of the L2 at half of its rate or more, and take no longer per K step.
func lawful(q *fit.Quantity, given map[string]float64) {
	for _, pair := range [][2]string{{"_8", "_16"}, {"_4", "_8"}, {"_4", "_16"}, {"_int8", "_16"}, {"_tf32", "_32"}} {
		name, narrow := strings.CutSuffix(q.Name, pair[0])
		wide, known := given[name+pair[1]]
		if !narrow || !known {
			continue
		}
		switch name {
		case "step_seconds", "energy":
			q.High = max(q.Low, min(q.High, wide))
		case "throttle_seconds":
			q.Low = min(q.High, max(q.Low, wide))
		default: // rates
			q.Low = min(q.High, max(q.Low, wide/2))
		}
	}
}

// run fits the stages of a generation.
func run(t *testing.T, g terms.Generation, fitted map[string]map[string]float64) {
	t.Helper()
	for _, s := range stages(g) {
		sample := read(t, g, s.times, *most)
		if sample.Len() < s.least {
			continue
		}
		values, quantities := start(s, fitted[string(g)])
		if !*fresh {
			maps.Copy(values, fitted[s.key])
		}
		r, err := fit.Minimise(t.Context(), sample.Residuals, quantities, fit.Options{Start: values, Steps: *steps})
		if err != nil {
			t.Fatal(err)
		}
		if fitted[s.key] == nil {
			fitted[s.key] = map[string]float64{}
		}
		for _, q := range quantities {
			fitted[s.key][q.Name] = r.Values[q.Name]
		}
		fmt.Printf("== %s: %d steps, loss %.3f, %d times\n", s.key, r.Steps, r.Loss, sample.Len())
		report(t, sample, r.Values)
	}
}

func TestFit(t *testing.T) {
	if !*update {
		t.Skip("run with -update")
	}
	fitted := terms.Fitted()
	for _, g := range terms.Generations() {
		if *only == "" || slices.Contains(strings.Split(*only, ","), string(g)) {
			run(t, g, fitted)
			write(t, fitted)
		}
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
	src, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../terms/zfitted.go", src, 0o644); err != nil {
		t.Fatal(err)
	}
}

func report(t *testing.T, s *sampled, values map[string]float64) {
	by := map[string][]float64{}
	err := s.Errors(t.Context(), values, func(x *published.Time, e float64) {
		m := "m>1024"
		for _, b := range []int{1024, 256, 64, 16} {
			if x.M <= b {
				m = fmt.Sprintf("m<=%4d", b)
			}
		}
		for _, k := range []string{x.Device + " " + x.DType + " " + x.Scheme + " " + string(x.Timing), m} {
			by[k] = append(by[k], e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
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
		fmt.Printf("%-45s n %5d p10 %.2f median %.2f p90 %.2f within 20 %%: %.1f\n", k, len(v), q(.1), q(.5), q(.9),
			100*float64(in)/float64(len(v)))
	}
}
