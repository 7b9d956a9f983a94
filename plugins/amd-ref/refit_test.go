//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold. These tests fit the
// quantities of the refined model to the recorded choices and speeds of AMD's libraries.

package amdref_test

import (
	"context"
	"flag"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
)

var (
	refit    = flag.Bool("refit", false, "fit every generation anew and print the quantities")
	ablation = flag.Bool("ablation", false, "print what the model loses without each of its quantities")
)

// generation is what the quantities of one line of CUs are fitted to.
type generation struct {
	name string
	sets []string
	// fixed are quantities that its rows do not tell.
	fixed []string
	// leastClock bounds the clocks that were not recorded. Where both units exist, they agree at 1.35 to 1.55 GHz (gfx90a)
	// and at 1.03 to 1.3 GHz (gfx942).
	leastClock float64
	// choices is of how many rows one counts with its choice.
	choices int
}

var generations = []generation{
	{"gfx900", []string{"vega"}, strings.Fields("mall_share fixup_cycles energy_per_flop energy_per_byte"), 0, 1},
	{"gfx90a", []string{"rocblas", "hipblaslt"}, strings.Fields("mall_share fixup_cycles fma_latency"), 1.2e9, 3},
	{"gfx942", []string{"stream-k", "rocblas", "hipblaslt"}, []string{"fma_latency"}, 1e9, 3},
}

const (
	// leastSeconds leaves out the shortest times of rows in per cent: their harness adds microseconds of its own.
	leastSeconds = 20e-6
	// choice marks a configuration that stands for the choice of its row: its time is that of the kernel ÷ the best of the
	// library's kernels, squared, which should be 1.
	choice = "choice "
	// maxKernels bounds the kernels of a library that a choice is compared with.
	maxKernels = 120
)

// experiment is the rows of a generation that count in its fit. As a model, it is all devices of them at once: the
// kernel family of a configuration names the device, and the clock and the overhead of its rows.
type experiment struct {
	arch.Architecture
	rows       []recorded
	models     map[string]*tensile.Model
	kernels    map[string][]gemm.Config // that were chosen for some row
	values     map[string]float64
	sample     *fit.Sample
	quantities []fit.Quantity
	estimates  []arch.Estimate
}

func (e *experiment) Describe() *arch.Description { return &arch.Description{Clock: 1e9} }

func (e *experiment) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		key, chosen := strings.CutPrefix(c.Kernel, choice)
		m := e.models[key]
		c.Kernel = ""
		if chosen {
			ratio, err := e.behind(ctx, m, p, c, e.kernels[key])
			if err != nil {
				return err
			}
			dst[i] = arch.Estimate{Cycles: unit.Cycles(1e9 * ratio * ratio)}
			continue
		}
		if err := m.Estimate(ctx, dst[i:i+1], p, []gemm.Config{c}); err != nil {
			return err
		}
		clock := float64(m.Describe().Clock)
		seconds := float64(dst[i].Cycles)/clock + e.values["overhead "+key]
		if recorded, unknown := e.values["clock "+key]; unknown {
			seconds *= recorded / clock
		}
		dst[i].Cycles = unit.Cycles(seconds * 1e9)
	}
	return nil
}

// behind returns the model's time of a kernel ÷ that of the fastest of a list, at least 1.
func (e *experiment) behind(
	ctx context.Context, m *tensile.Model, p gemm.Problem, c gemm.Config, list []gemm.Config,
) (float64, error) {
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
	return float64(e.estimates[0].Cycles / best), nil
}

// with is the experiment with other values of quantities.
func (e *experiment) with(values map[string]float64) (arch.Architecture, error) {
	other := *e
	other.models, other.values = map[string]*tensile.Model{}, values
	for key, m := range e.models {
		other.models[key] = m.With(values)
	}
	return &other, nil
}

// newExperiment takes one in so many of the rows.
func newExperiment(t *testing.T, g *generation, every int) *experiment {
	t.Helper()
	all := readRecorded(t)
	e := &experiment{models: map[string]*tensile.Model{}, kernels: map[string][]gemm.Config{}, sample: &fit.Sample{}}
	for i := range all {
		r := &all[i]
		if r.Arch != g.name || !slices.Contains(g.sets, r.Set) || r.Problem.Batch > 1 {
			continue
		}
		m := e.open(t, g, r)
		c := r.Config
		c.GroupM = terms.DefaultGroup
		if list := e.kernels[r.Key()]; len(list) < maxKernels && !slices.Contains(list, c) {
			e.kernels[r.Key()] = append(list, c)
		}
		estimate := archtest.Estimates(t, m, r.Problem, r.Config)
		short := !r.Known && r.Seconds(float64(m.Describe().Clock)) < leastSeconds
		if estimate[0].Reject == "" && !short && i%every == 0 {
			e.rows = append(e.rows, *r)
		}
	}
	for i := range e.rows {
		r := &e.rows[i]
		seconds := r.Seconds(float64(e.models[r.Key()].Describe().Clock))
		e.add(t, r, r.Key(), seconds)
		if i%g.choices == 0 && len(e.kernels[r.Key()]) >= 20 {
			e.add(t, r, choice+r.Key(), 1)
		}
	}
	return e
}

func (e *experiment) add(t *testing.T, r *recorded, kernel string, seconds float64) {
	t.Helper()
	c := r.Config
	c.Kernel = kernel
	must.Do(t, e.sample.Add(r.Problem, []gemm.Config{c}, []float64{seconds}))
}

// open opens the model of a row. What its file does not say is a quantity of the fit: the clock of speeds in per cent,
// and what the harness adds to each time. That of the MI210 took tens of microseconds in all its files.
func (e *experiment) open(t *testing.T, g *generation, r *recorded) *tensile.Model {
	t.Helper()
	key := r.Key()
	if m := e.models[key]; m != nil {
		return m
	}
	provider := must.Get(amdref.Provider())(t)
	opened := must.Get(provider.Open(t.Context(), r.Request()))(t)
	m := opened.(*tensile.Model)
	e.models[key] = m
	if !r.Known {
		clock := fit.Quantity{Name: "clock " + key, Low: g.leastClock, High: float64(m.Describe().Clock)}
		e.quantities = append(e.quantities, clock)
	}
	if !r.Known || r.CUs == 104 {
		e.quantities = append(e.quantities, fit.Quantity{Name: "overhead " + key, Low: 1e-7, High: 5e-5})
	}
	return m
}

// fit fits the quantities of a generation, from what is shipped.
func (e *experiment) fit(t *testing.T, g *generation, o fit.Options, without string) fit.Result {
	t.Helper()
	quantities := slices.Clone(e.quantities)
	start := map[string]float64{}
	for _, q := range quantities {
		start[q.Name] = math.Sqrt(q.Low * q.High)
	}
	for name, v := range o.Start {
		start[name] = v
	}
	for i := range terms.Quantities {
		q := &terms.Quantities[i]
		if _, given := o.Start[q.Name]; !given {
			start[q.Name] = q.On(arch.RungSpec, terms.Generations[g.name].Name).Value
		}
		if !slices.Contains(g.fixed, q.Name) && q.Name != without {
			quantities = append(quantities, fit.Quantity{Name: q.Name, Low: q.Low, High: q.High})
		}
	}
	o.Start = start
	return must.Get(fit.Run(t.Context(), e.sample, e.with, quantities, o))(t)
}

// median returns the median of |log(predicted ÷ recorded)| of the rows that count.
func (e *experiment) median(t *testing.T, values map[string]float64, counts func(*recorded) bool) float64 {
	t.Helper()
	m := must.Get(e.with(values))(t)
	var errors []float64
	for i := range e.rows {
		r := &e.rows[i]
		if !counts(r) {
			continue
		}
		c := r.Config
		c.Kernel = r.Key()
		recorded := r.Seconds(float64(e.models[r.Key()].Describe().Clock))
		errors = append(errors, math.Abs(math.Log(archtest.Seconds(t, m, r.Problem, c)[0]/recorded)))
	}
	return stats.Median(errors)
}
