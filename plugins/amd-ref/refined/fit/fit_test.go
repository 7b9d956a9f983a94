package fit_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/internal/tuned"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined/terms"
)

var show = flag.Bool("show", false, "print what the fit finds, and errors by kind of size")

// leastSeconds leaves out the shortest times of rows in per cent: their harness adds microseconds of its own.
const leastSeconds = 20e-6

// fleet is the devices of an architecture as one model: the kernel family of a configuration names the device and the
// clock of its row.
type fleet struct {
	arch.Architecture
	*experiment
	models map[string]*refined.Model
	values map[string]float64
}

// leastClock bounds the clocks that were not recorded. Where both units exist, they agree at 1.35 to 1.55 GHz (gfx90a)
// and 1.03 to 1.3 GHz (gfx942).
var leastClock = map[string]float64{"gfx90a": 1.2e9, "gfx942": 1e9}

// choice marks a configuration that stands for the choice of its row: its time is that of the kernel ÷ the best of the
// library's kernels, which should be 1.
const choice = "choice "

func (f fleet) Describe() *arch.Description { return &arch.Description{Clock: 1e9} }

func (f fleet) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		key, chosen := strings.CutPrefix(c.Kernel, choice)
		m := f.models[key]
		c.Kernel = ""
		if chosen {
			ratio, err := f.behind(ctx, m, p, c, f.kernels[key])
			if err != nil {
				return err
			}
			dst[i] = arch.Estimate{Cycles: unit.Cycles(1e9 * ratio)}
			continue
		}
		if err := m.Estimate(ctx, dst[i:i+1], p, []gemm.Config{c}); err != nil {
			return err
		}
		scale := 1.0
		if clock, ok := f.values["clock "+key]; ok {
			scale = clock / float64(m.Describe().Clock)
		}
		seconds := float64(dst[i].Cycles)/float64(m.Describe().Clock) + f.values["overhead "+key]
		dst[i].Cycles = unit.Cycles(seconds * 1e9 * scale)
	}
	return nil
}

// behind returns the model's time of a kernel ÷ that of the fastest of a list, at least 1.
func (e *experiment) behind(ctx context.Context, m *refined.Model, p gemm.Problem, c gemm.Config, list []gemm.Config) (float64, error) {
	e.estimates = slices.Grow(e.estimates[:0], len(list)+1)[:len(list)+1]
	if err := m.Estimate(ctx, e.estimates[:1], p, []gemm.Config{c}); err != nil {
		return 0, err
	}
	if err := m.Estimate(ctx, e.estimates[1:], p, list); err != nil {
		return 0, err
	}
	best := e.estimates[0].Cycles
	for _, other := range e.estimates[1:] {
		if other.Reject == "" {
			best = min(best, other.Cycles)
		}
	}
	ratio := float64(e.estimates[0].Cycles / best)
	return ratio * ratio, nil
}

// experiment is the rows of a generation that count in its fit.
type experiment struct {
	rows       []tuned.Row
	models     map[string]*refined.Model
	sample     fit.Sample
	quantities []fit.Quantity
	kernels    map[string][]gemm.Config // that were chosen for some row, by key
	estimates  []arch.Estimate
}

func newExperiment(t *testing.T, generation string, sets ...string) *experiment {
	t.Helper()
	all, err := tuned.Read("../../data")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := amdref.Provider()
	if err != nil {
		t.Fatal(err)
	}
	e := &experiment{models: map[string]*refined.Model{}, kernels: map[string][]gemm.Config{}}
	for _, r := range all {
		if r.Arch != generation || !slices.Contains(sets, r.Set) || r.Problem.Batch > 1 {
			continue
		}
		key := r.Key()
		if e.models[key] == nil {
			opened, err := provider.Open(t.Context(), r.Request())
			if err != nil {
				t.Fatal(err)
			}
			e.models[key] = opened.(*refined.Model)
			clock := float64(e.models[key].Describe().Clock)
			if !r.Known {
				e.quantities = append(e.quantities, fit.Quantity{Name: "clock " + key, Low: leastClock[generation], High: clock})
			}
			if !r.Known || r.CUs == 104 {
				e.quantities = append(e.quantities, fit.Quantity{Name: "overhead " + key, Low: 1e-7, High: 5e-5})
			}
		}
		var estimate [1]arch.Estimate
		if err := e.models[key].Estimate(t.Context(), estimate[:], r.Problem, []gemm.Config{r.Config}); err != nil {
			t.Fatal(err)
		}
		clock := float64(e.models[key].Describe().Clock)
		if estimate[0].Reject != "" || !r.Known && r.Seconds(clock) < leastSeconds {
			continue
		}
		e.rows = append(e.rows, r)
		c := r.Config
		c.Kernel = key
		// The time at the full clock; the fleet scales it.
		if err := e.sample.Add(r.Problem, []gemm.Config{c}, []float64{r.Seconds(clock)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		r := &all[i]
		c := r.Config
		c.Kernel, c.GroupM = "", 8
		if r.Arch == generation && !slices.Contains(e.kernels[r.Key()], c) && len(e.kernels[r.Key()]) < 120 {
			e.kernels[r.Key()] = append(e.kernels[r.Key()], c)
		}
	}
	for i, r := range e.rows {
		if i%3 > 0 || len(e.kernels[r.Key()]) < 20 {
			continue
		}
		c := r.Config
		c.Kernel = choice + r.Key()
		if err := e.sample.Add(r.Problem, []gemm.Config{c}, []float64{1}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func (e *experiment) with(values map[string]float64) (arch.Architecture, error) {
	f := fleet{experiment: e, models: map[string]*refined.Model{}, values: values}
	for key, m := range e.models {
		f.models[key] = m.With(values)
	}
	return f, nil
}

// errors are log(predicted ÷ recorded) of the rows.
func (e *experiment) errors(t *testing.T, values map[string]float64) []float64 {
	t.Helper()
	m, err := e.with(values)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(e.rows))
	for i, r := range e.rows {
		c := r.Config
		c.Kernel = r.Key()
		var estimate [1]arch.Estimate
		if err := m.Estimate(t.Context(), estimate[:], r.Problem, []gemm.Config{c}); err != nil {
			t.Fatal(err)
		}
		out[i] = math.Log(float64(estimate[0].Cycles) / 1e9 / r.Seconds(float64(e.models[r.Key()].Describe().Clock)))
	}
	return out
}

var generations = []struct {
	name  string
	sets  []string
	fixed []string
}{
	{"gfx900", []string{"vega"}, []string{"mall_share", "fixup_cycles", "energy_per_flop", "energy_per_byte"}},
	{"gfx90a", []string{"rocblas", "hipblaslt"}, []string{"mall_share", "fixup_cycles", "fma_latency"}},
	{"gfx942", []string{"stream-k", "rocblas", "hipblaslt"}, []string{"fma_latency"}},
}

var only = flag.String("only", "", "")

func TestFit(t *testing.T) {
	for _, g := range generations {
		if *only != "" && *only != g.name {
			continue
		}
		e := newExperiment(t, g.name, g.sets...)
		start := map[string]float64{}
		clocks := e.quantities
		for _, q := range clocks {
			start[q.Name] = math.Sqrt(q.Low * q.High)
		}
		for _, q := range terms.Quantities {
			start[q.Name] = min(max(q.Of(terms.Generations[g.name]), q.Low*1.01), q.High*0.99)
			if !slices.Contains(g.fixed, q.Name) {
				e.quantities = append(e.quantities, fit.Quantity{Name: q.Name, Low: q.Low, High: q.High})
			}
		}
		found, err := fit.Run(t.Context(), &e.sample, e.with, e.quantities, fit.Options{Start: start, Steps: 25})
		if err != nil {
			t.Fatal(err)
		}
		if *show {
			fmt.Println("==", g.name, len(e.rows), "rows, loss", found.Loss, found.Converged)
			for _, q := range e.quantities {
				fmt.Printf("%-40s %.4g\n", q.Name, found.Values[q.Name])
			}
			e.print(t, found.Values)
		}
	}
}

func (e *experiment) print(t *testing.T, values map[string]float64) {
	byKey := map[string][]float64{}
	shown := 0
	errors := e.errors(t, values)
	fl, _ := e.with(values)
	for i, r := range e.rows {
		if i%4 != 1 {
			continue
		}
		c := r.Config
		c.Kernel, c.GroupM = "", 8
		ratio, err := e.behind(t.Context(), fl.(fleet).models[r.Key()], r.Problem, c, e.kernels[r.Key()])
		if err != nil {
			t.Fatal(err)
		}
		if shown++; shown%6 == 0 {
			m := fl.(fleet).models[r.Key()]
			list := e.kernels[r.Key()]
			est := make([]arch.Estimate, len(list))
			_ = m.Estimate(t.Context(), est, r.Problem, list)
			best := 0
			for j := range est {
				if est[j].Reject == "" && (est[best].Reject != "" || est[j].Cycles < est[best].Cycles) {
					best = j
				}
			}
			fmt.Println("EX", r.Key(), r.Layout, r.Problem.M, r.Problem.N, r.Problem.K, r.Problem.Batch, r.Config, "|", list[best], fmt.Sprintf("ratio %.2f err %.2f", ratio, errors[i]))
		}
		byKey["CHOICE "+r.Key()] = append(byKey["CHOICE "+r.Key()], math.Log(ratio))
	}
	for i, r := range e.rows {
		us := math.Log10(r.Seconds(1.5e9) * 1e6)
		tile := fmt.Sprintf("%3d", r.Config.BlockM*r.Config.BlockN/1024)
		for _, key := range []string{
			r.Key(), fmt.Sprintf("10^%.0f us", math.Floor(us*2)/2*10), "Kelem " + tile,
			fmt.Sprint("split ", min(r.Config.SplitK, 4)), "depth " + fmt.Sprint(r.Config.BlockK), "layout " + r.Layout, fmt.Sprint("batch ", r.Problem.Batch > 1),
			fmt.Sprint("waves ", r.Config.NumWarps), "axes " + r.Config.Axes.String(),
			fmt.Sprint("minmn ", math.Floor(math.Log2(float64(min(r.Problem.M, r.Problem.N))))),
		} {
			byKey[key] = append(byKey[key], errors[i])
		}
	}
	keys := make([]string, 0)
	for k := range byKey {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		v := slices.Sorted(slices.Values(byKey[k]))
		a := make([]float64, len(v))
		for i := range v {
			a[i] = math.Abs(v[i])
		}
		slices.Sort(a)
		fmt.Printf("%-30s n %5d median %+.3f  |.| %.3f p90 %.3f\n", k+strings.Repeat(" ", 0), len(v), v[len(v)/2], a[len(a)/2], a[len(a)*9/10])
	}
}
