package refined

import (
	"flag"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/gputest"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

var ablation = flag.Bool("ablation", false, "print what the refined model loses without each of its terms")

// fitQuantities are the model's quantities, and what each K step of triton's kernels costs.
type fitQuantities struct {
	quantities
	overhead overhead
}

func shippedFit() fitQuantities {
	o := triton.Family{}.Overhead()
	return fitQuantities{shipped, overhead{o.Slots.Value, o.Latency.Value}}
}

// fitted are the quantities that are fitted on the sweep of triton, with their bounds.
var fitted = []struct {
	name   string
	of     func(*fitQuantities) *float64
	lo, hi float64
	// without takes the term out.
	without float64
	doc     string
}{
	{"launch_seconds", func(q *fitQuantities) *float64 { return &q.launchSeconds }, 2e-6, 6e-6, 0, "launch of the kernel"},
	{"wgmma_cycles", func(q *fitQuantities) *float64 { return &q.wgmmaCycles }, 1, 64, 0, "least time of one wgmma"},
	{"line_rate", func(q *fitQuantities) *float64 { return &q.lineRate }, 0.3, 3, math.Inf(1), "cache lines of the copies"},
	{"l2_port_bandwidth", func(q *fitQuantities) *float64 { return &q.l2PortBandwidth }, 40, 64, math.Inf(1), "L2: the port of an SM"},
	{"l2_coalescing", func(q *fitQuantities) *float64 { return &q.l2Coalescing }, 1, 2, math.Inf(1), "L2: all SMs together"},
	{"dram_efficiency", func(q *fitQuantities) *float64 { return &q.dramEfficiency }, 0.7, 1.1, math.Inf(1), "DRAM bandwidth"},
	{"dram_latency_load", func(q *fitQuantities) *float64 { return &q.dramLatencyLoad }, 1, 3, 0, "latency of loads over the steps they run ahead"},
	{"load_latency", func(q *fitQuantities) *float64 { return &q.loadLatency }, 200, 1000, 0, "operands that are not buffered"},
	{"prologue_cycles", func(q *fitQuantities) *float64 { return &q.prologueCycles }, 100, 3000, 0, "start of a CTA"},
	{"epilogue_cycles", func(q *fitQuantities) *float64 { return &q.epilogueCycles }, 20, 3000, 0, "end of a CTA"},
	{"epilogue_bandwidth", func(q *fitQuantities) *float64 { return &q.epilogueBandwidth }, 10, 128, math.Inf(1), "output"},
	{"step_latency", func(q *fitQuantities) *float64 { return &q.overhead.latency }, 20, 600, 0, "waits and barriers with mma.sync"},
	{"ldmatrix_latency", func(q *fitQuantities) *float64 { return &q.ldmatrixLatency }, 5, 60, 0, "operands of mma.sync from shared memory"},
	{"loop_slots", func(q *fitQuantities) *float64 { return &q.overhead.slots }, 10, 300, 0, "issue slots of the loop"},
	{"spill_bandwidth", func(q *fitQuantities) *float64 { return &q.spillBandwidth }, 5, 128, math.Inf(1), "spills"},
	{"energy_per_flop", func(q *fitQuantities) *float64 { return &q.energyPerFlop }, 0.2e-12, 0.8e-12, 0, "power limit"},
	{"power_window", func(q *fitQuantities) *float64 { return &q.powerWindowSeconds }, 1e-5, 1e-2, 0, "power limit from the first microsecond"},
}

// TestFittedQuantitiesAreWithinBounds holds what is shipped to what is documented.
func TestFittedQuantitiesAreWithinBounds(t *testing.T) {
	all := openWith(t, shippedFit(), nil).constants()
	shipped := shippedFit()
	for _, f := range fitted {
		v := *f.of(&shipped)
		i := slices.IndexFunc(all, func(c arch.Constant) bool { return c.Name == f.name })
		if v < f.lo || v > f.hi || i < 0 || all[i].Value != v {
			t.Errorf("%s is %v, bounds %v to %v, described at %d", f.name, v, f.lo, f.hi, i)
		}
	}
}

// sample is the sweep of triton by size, and how to open the model under other quantities.
type sample struct {
	rec   *score.Subset
	sizes []sizeSample
}

type sizeSample struct {
	problem  gemm.Problem
	configs  []gemm.Config
	measured []float64 // log of cycles
	weight   []float64 // (time ÷ best time)^-½: what is far from the best matters less
}

// softScale is where residuals of log time cease to count by their square.
const softScale = 0.15

func readSample(t testing.TB) *sample {
	t.Helper()
	files, err := fs.Sub(records.FS, "h200-triton")
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Read("h200-triton", files)
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{rec: score.SubsetOf(data)}
	for _, p := range s.rec.Problems {
		one := sizeSample{problem: p}
		best := math.Inf(1)
		for _, m := range data.Sweep(p) {
			if m.Library != "" || m.Config.GroupM != s.rec.Group || !(m.Median > 0) {
				continue
			}
			one.configs = append(one.configs, m.Config)
			one.measured = append(one.measured, float64(m.Median))
			best = min(best, float64(m.Median))
		}
		for i, v := range one.measured {
			one.weight = append(one.weight, math.Sqrt(1/min(v/best, 20)))
			one.measured[i] = math.Log(v)
		}
		s.sizes = append(s.sizes, one)
	}
	return s
}

func openWith(t testing.TB, q fitQuantities, kernels kernel.Table) *Model {
	t.Helper()
	d := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	if kernels == nil {
		var err error
		if kernels, err = kernel.ReadTable(records.TritonH200, d.SM); err != nil {
			t.Fatal(err)
		}
	}
	return newModel(d, q.quantities, []*family{{Family: triton.Family{}, overhead: q.overhead, compiled: kernels}})
}

// residuals returns the weighted errors of log time over some sizes.
func (s *sample) residuals(t testing.TB, q fitQuantities, use func(int) bool) []float64 {
	m := openWith(t, q, nil)
	var out []float64
	var e []arch.Estimate
	for i := range s.sizes {
		if !use(i) {
			continue
		}
		z := &s.sizes[i]
		e = slices.Grow(e[:0], len(z.configs))[:len(z.configs)]
		if err := m.Estimate(t.Context(), e, z.problem, z.configs); err != nil {
			t.Fatal(err)
		}
		for j := range e {
			r := (math.Log(float64(e[j].Cycles)/m.device.clock) - z.measured[j]) * z.weight[j]
			out = append(out, r)
		}
	}
	return out
}

// soft turns residuals into those whose squares add up to the soft L1 loss 2·s²·(√(1 + (r/s)²) − 1).
func soft(r []float64) (loss float64) {
	for i, v := range r {
		x := v / softScale
		r[i] = math.Copysign(softScale*math.Sqrt(2*(math.Sqrt(1+x*x)-1)), v)
		loss += r[i] * r[i]
	}
	return loss
}

// refit fits the quantities to some sizes by Levenberg and Marquardt's method on their logarithms, from the middle of
// their bounds, leaving out those in fixed.
func (s *sample) refit(t testing.TB, fixed map[string]bool, start fitQuantities, use func(int) bool, iterations int) fitQuantities {
	t.Helper()
	q := start
	var free []int
	for i, f := range fitted {
		if !fixed[f.name] {
			free = append(free, i)
			if !fixed["start"] {
				*f.of(&q) = math.Sqrt(f.lo * f.hi)
			}
		}
	}
	n, damping := len(free), 1e-2
	r := s.residuals(t, q, use)
	loss := soft(r)
	for range iterations {
		jacobian := make([][]float64, n)
		for a, i := range free {
			const step = 1e-3
			moved := q
			*fitted[i].of(&moved) *= math.Exp(step)
			jacobian[a] = s.residuals(t, moved, use)
			soft(jacobian[a])
			for j := range jacobian[a] {
				jacobian[a][j] = (jacobian[a][j] - r[j]) / step
			}
		}
		normal, gradient := make([][]float64, n), make([]float64, n)
		for a := range n {
			normal[a] = make([]float64, n)
			for b := range a + 1 {
				for j, v := range jacobian[a] {
					normal[a][b] += v * jacobian[b][j]
				}
			}
			for j, v := range jacobian[a] {
				gradient[a] -= v * r[j]
			}
		}
		improved := false
		for range 6 {
			moved := q
			for a, d := range solve(normal, gradient, damping) {
				f := &fitted[free[a]]
				v := f.of(&moved)
				*v = min(max(*v*math.Exp(min(max(d, -0.5), 0.5)), f.lo), f.hi)
			}
			next := s.residuals(t, moved, use)
			if l := soft(next); l < loss {
				improved = l < loss*(1-1e-5)
				q, r, loss, damping = moved, next, l, damping/5
				break
			}
			damping *= 5
		}
		if !improved {
			break
		}
	}
	return q
}

// solve returns x of (A + damping·diag(A))·x = b for a symmetric A of which the lower half is given, by Cholesky's method.
func solve(lower [][]float64, b []float64, damping float64) []float64 {
	n := len(b)
	l, x := make([][]float64, n), slices.Clone(b)
	for i := range n {
		l[i] = slices.Clone(lower[i])
		l[i][i] += damping*lower[i][i] + 1e-9
		for j := range i + 1 {
			for k := range j {
				l[i][j] -= l[i][k] * l[j][k]
			}
			if i == j {
				l[i][i] = math.Sqrt(max(l[i][i], 1e-12))
			} else {
				l[i][j] /= l[j][j]
			}
		}
	}
	for i := range n {
		for k := range i {
			x[i] -= l[i][k] * x[k]
		}
		x[i] /= l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= l[k][i] * x[k]
		}
		x[i] /= l[i][i]
	}
	return x
}

func (s *sample) rows(t testing.TB, m *Model) []score.Evaluation {
	t.Helper()
	rows, bad, err := score.Evaluate(t.Context(), m, s.rec, s.rec.Problems)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range bad {
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// The score does not come from the sizes that the quantities were fitted on: fitted anew on four fifths of the sizes,
// from the middle of their bounds, they pick as well for the others.
func TestRefinedCrossValidated(t *testing.T) {
	if testing.Short() {
		t.Skip("refits the model five times")
	}
	s := readSample(t)
	folds := score.Folds(s.rec.Problems, 5)
	held := make([]score.Evaluation, len(s.sizes))
	values := make([][]float64, len(fitted))
	for fold := range 5 {
		q := s.refit(t, nil, shippedFit(), func(i int) bool { return folds[i] != fold }, 20)
		for i, f := range fitted {
			values[i] = append(values[i], *f.of(&q))
		}
		rows := s.rows(t, openWith(t, q, nil))
		for i := range rows {
			if folds[i] == fold {
				held[i] = rows[i]
			}
		}
	}
	start := shippedFit()
	for i, f := range fitted {
		t.Logf("%-20s %.4g, over folds %.4g to %.4g", f.name, *f.of(&start), slices.Min(values[i]), slices.Max(values[i]))
	}
	sum := score.SummariseEvaluations(held, nil)
	t.Logf("held out: geomean %.4f, p10 %.4f, worst %.4f, first 8 %.4f, tau %.4f, error %.4f",
		sum.Efficiency.Geomean, sum.Efficiency.P10, sum.Efficiency.Worst, sum.Top[1].Geomean, sum.TauMean, sum.Error)
	if sum.Efficiency.Geomean < 0.96 || sum.Efficiency.Worst < 0.75 || sum.TauMean < 0.88 {
		t.Errorf("on sizes left out the picks reach %.4f, worst %.4f, tau %.4f", sum.Efficiency.Geomean, sum.Efficiency.Worst, sum.TauMean)
	}
}

// What is shipped is what the fit finds on all sizes, from the middle of the bounds: no lower loss is to be had.
func TestRefinedShippedIsTheFit(t *testing.T) {
	if testing.Short() {
		t.Skip("refits the model")
	}
	s := readSample(t)
	all := func(int) bool { return true }
	q := s.refit(t, nil, shippedFit(), all, 20)
	start := shippedFit()
	for _, f := range fitted {
		t.Logf("%-20s shipped %.4g, fitted %.4g", f.name, *f.of(&start), *f.of(&q))
	}
	have, want := soft(s.residuals(t, shippedFit(), all)), soft(s.residuals(t, q, all))
	if !(math.Abs(have-want) <= 1e-4*want) {
		t.Errorf("what is shipped has a loss of %.4f, the fit finds %.4f", have, want)
	}
}

// TestAblation prints the table of docs/model-nvidia-refined.md.
func TestAblation(t *testing.T) {
	if !*ablation {
		t.Skip("run with -ablation")
	}
	s := readSample(t)
	all := func(int) bool { return true }
	print := func(name string, m *Model) {
		sum := score.SummariseEvaluations(s.rows(t, m), nil)
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %.1f %% |\n", name, sum.Efficiency.Geomean, sum.Efficiency.Worst, sum.TauMean, sum.TauWorst, 100*sum.Error)
	}
	fmt.Println("| without | geomean | worst | tau | worst tau | error |\n| --- | --- | --- | --- | --- | --- |")
	print("–", openWith(t, shippedFit(), nil))
	for _, f := range fitted {
		q := shippedFit()
		*f.of(&q) = f.without
		if f.name == "ldmatrix_latency" { // with it, that of the instruction
			*f.of(&q) = -24.1
		}
		name := fmt.Sprintf("%s (`%s`)", f.doc, f.name)
		print(name, openWith(t, q, nil))
		print("… fitted anew", openWith(t, s.refit(t, map[string]bool{f.name: true, "start": true}, q, all, 15), nil))
	}
	q := shippedFit()
	q.sharedBandwidth = math.Inf(1)
	print("shared memory (`shared_bandwidth`)", openWith(t, q, nil))
	print("… fitted anew", openWith(t, s.refit(t, map[string]bool{"start": true}, q, all, 15), nil))
	alone := kernel.Table{}
	for k, r := range openWith(t, shippedFit(), nil).families[0].compiled {
		r.SharedMemory = 227 << 10
		alone[k] = r
	}
	print("more than one CTA per SM (`ctas_per_sm`)", openWith(t, shippedFit(), alone))
}
