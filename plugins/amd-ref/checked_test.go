//go:build !race

package amdref_test

import (
	"cmp"
	"fmt"
	"go/format"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile"
	"github.com/origami-gemm/origami/plugins/amd-ref/tensile/terms"
)

// checkedRow is a recorded time of a size, beside the time of the model's pick.
type checkedRow struct {
	problem   *gemm.Problem
	pick      gemm.Config
	predicted float64
	ratio     float64 // recorded ÷ predicted
}

// checkedDevice is a device whose times are checked, and where they are from.
type checkedDevice struct {
	arch   string
	cus    int
	set    string // of rows to which the model was fitted; empty without them
	device string
	// below are the predicted times, in seconds, that divide those with ranges of their own.
	below []float64
	// published are tables of speeds to which nothing was fitted.
	published [][]cell
	// dataSet names the published tables if nothing else is compared.
	dataSet string
	sources string
}

// rows are the sizes of every source.
func (d checkedDevice) rows(t *testing.T) (sources [][]checkedRow) {
	t.Helper()
	rows := readRecorded(t)
	provider := must.Get(amdref.Provider())(t)
	request := (&recorded{Arch: d.arch, CUs: d.cus}).Request()
	a := must.Get(provider.Open(t.Context(), request))(t)
	s, clock := selector.New(a, arch.Space{}), float64(a.Describe().Clock)
	add := func(list []checkedRow, p *gemm.Problem, seconds float64) []checkedRow {
		var result selector.Result
		must.Do(t, s.Select(t.Context(), *p, &result))
		e := result.Entries[0]
		predicted := float64(e.Estimate.Cycles) / clock
		return append(list, checkedRow{p, e.Config, predicted, seconds / predicted})
	}
	var own []checkedRow
	for i := range rows {
		r := &rows[i]
		fp32 := r.Problem.DType == gemm.FP32 && d.arch != "gfx900" // too few
		if r.Arch != d.arch || r.CUs != d.cus || r.Set != d.set || r.Problem.Batch > 1 || fp32 {
			continue
		}
		own = add(own, &r.Problem, r.Seconds(0))
	}
	if own != nil {
		sources = append(sources, own)
	}
	for _, cells := range d.published {
		var list []checkedRow
		for i := range cells {
			if c := &cells[i]; c.gflops > 0 {
				list = add(list, &c.problem, flops(c.problem)/c.gflops/1e9)
			}
		}
		sources = append(sources, list)
	}
	return sources
}

// ranges hold, for each class of predicted times, the share Level of every source. The predicted time is in their
// middle.
func (d checkedDevice) ranges(sources [][]checkedRow) (list []arch.ErrorRange) {
	for i := range len(d.below) + 1 {
		r := arch.ErrorRange{High: 1}
		if i < len(d.below) {
			r.Below = unit.Seconds(d.below[i])
		}
		for _, rows := range sources {
			var factors []float64
			for _, row := range rows {
				if d.class(row) == i {
					factors = append(factors, max(row.ratio, 1/row.ratio))
				}
			}
			if len(factors) == 0 {
				continue
			}
			slices.Sort(factors)
			r.High = max(r.High, factors[int(tensile.Level*float64(len(factors)-1))])
		}
		r.High = math.Round(1e3*r.High) / 1e3
		r.Low = 1 / r.High
		list = append(list, r)
	}
	return list
}

// class is the index of the range of a predicted time.
func (d checkedDevice) class(row checkedRow) int {
	i := 0
	for i < len(d.below) && row.predicted >= d.below[i] {
		i++
	}
	return i
}

// held is the share of rows in ranges.
func (d checkedDevice) held(rows []checkedRow, ranges []arch.ErrorRange) float64 {
	held := 0
	for _, row := range rows {
		if r := ranges[d.class(row)]; row.ratio >= r.Low && row.ratio <= r.High {
			held++
		}
	}
	return share(held, len(rows))
}

// check sums up the rows of a device. held is the share of recorded ÷ predicted times that the ranges of the other half
// of the sizes hold. Of several sources of times it is that of the worst one, with the ranges of the others.
func (d checkedDevice) check(t *testing.T) (out tensile.Check, held float64) {
	t.Helper()
	var c arch.Checked
	var errors []float64
	sources := d.rows(t)
	for _, rows := range sources {
		for _, r := range rows {
			c.Add(r.problem, r.pick.SplitK)
			errors = append(errors, math.Abs(1/r.ratio-1))
		}
	}
	slices.Sort(errors)
	var rows []score.Row
	for _, r := range slices.Concat(sources...) {
		rows = append(rows, score.Row{Problem: *r.problem, Config: r.pick, Predicted: unit.Seconds(r.predicted),
			Measured: unit.Seconds(r.predicted * r.ratio)})
	}
	c.DataSet, c.Sizes = cmp.Or(d.dataSet, terms.DataSet), len(errors)
	for _, l := range c.Layouts {
		if !slices.Contains(out.Types, l.Types) {
			out.Types = append(out.Types, l.Types)
		}
	}
	ranges := d.ranges(sources)
	held = 1
	if len(sources) == 1 {
		var halves [2][]checkedRow
		for i, r := range sources[0] {
			halves[i%2] = append(halves[i%2], r)
		}
		held = (d.held(halves[0], d.ranges(halves[1:])) + d.held(halves[1], d.ranges(halves[:1]))) / 2
	} else {
		for i, rows := range sources {
			byOthers := d.held(rows, d.ranges(slices.Delete(slices.Clone(sources), i, i+1)))
			t.Logf("%s: source %d: ranges of all hold %.2f, of the others %.2f", d.device, i, d.held(rows, ranges),
				byOthers)
			held = min(held, byOthers)
		}
	}
	out.Device, out.Uncertainty = d.device, arch.Uncertainty{
		MedianError: errors[len(errors)/2], Ranges: ranges, Checked: c,
		Widening: math.Round(1e3*score.CalibrateRows("", "", rows, ranges).Widening) / 1e3,
		Source:   fmt.Sprintf("%s hold %.0f %%", d.sources, 100*held),
	}
	return out, held
}

// What the model says of its errors is what the recorded speeds say. With -update it is written.
func TestChecked(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Code generated by TestChecked of plugins/amd-ref; DO NOT EDIT.\n\npackage tensile\n\nimport (\n" +
		"\"github.com/origami-gemm/origami/core/arch\"\n\"github.com/origami-gemm/origami/core/gemm\"\n)\n\n" +
		"var checks = []Check{\n")
	const tuned = "speeds of the kernels that AMD's tuning chose, to which the model was fitted; "
	const halves = "of the other half of the sizes the ranges"
	for _, d := range []checkedDevice{
		{
			arch: "gfx900", cus: 64, set: "vega", device: "vega10", below: []float64{20e-6, 80e-6, 500e-6},
			published: [][]cell{longSlides(t), deepbench(t)},
			sources: tuned + "AMD's slides of 2017 and DeepBench's sizes, to which it was not; " +
				"of the worst source, when it is left out, the ranges of the other two",
		},
		{
			arch: "gfx900", cus: 64, device: "vega10", below: []float64{20e-6, 80e-6, 500e-6},
			published: [][]cell{rocblas(t, "gfx900@vega10", gemm.FP16)},
			dataSet:   "published times: rocblas",
			sources:   "speeds of rocBLAS's kernels in fp16, to which no number was fitted; " + halves,
		},
		{
			arch: "gfx942", cus: 304, set: "stream-k", device: "mi300x", below: []float64{20e-6},
			sources: tuned + halves,
		},
		{
			arch: "gfx942", cus: 80, set: "stream-k", device: "mi308x", below: []float64{20e-6},
			sources: tuned + halves,
		},
	} {
		u, held := d.check(t)
		t.Logf("%+v", u)
		must.That(t, (len(d.published) != 0 || held >= 0.85) && u.MedianError <= 0.2,
			"%s: ranges hold %.2f of the other half, median error %.2f", d.device, held, u.MedianError)
		c := &u.Checked
		ends := func(r arch.Range) string { return fmt.Sprintf("arch.Range{Low: %g, High: %g}", r.Low, r.High) }
		fmt.Fprintf(&b, "{\nDevice: %q,\nTypes: []gemm.Types{", d.device)
		for _, t := range u.Types {
			fmt.Fprintf(&b, "{In: gemm.%s, Out: gemm.%s}, ", strings.ToUpper(t.In.String()), strings.ToUpper(t.Out.String()))
		}
		fmt.Fprintf(&b, "},\nUncertainty: arch.Uncertainty{\nMedianError: %.3f, Widening: %g,\nSource: %q,\n"+
			"Ranges: []arch.ErrorRange{\n", u.MedianError, u.Widening, u.Source)
		for _, r := range u.Ranges {
			fmt.Fprintf(&b, "{Below: %g, Low: %g, High: %g},\n", float64(r.Below), r.Low, r.High)
		}
		fmt.Fprintf(&b, "},\nChecked: arch.Checked{\nDataSet: %q, Sizes: %d,\nDivisor: %s, Split: %s,\nM: %s,\nN: %s,\n"+
			"K: %s,\nFlops: %s,\n},\n},\n},\n", c.DataSet, c.Sizes, ends(c.Divisor), ends(c.Split), ends(c.M), ends(c.N),
			ends(c.K), ends(c.Flops))
	}
	must.File(t, "tensile/zchecked.go", string(must.Get(format.Source([]byte(b.String()+"}\n")))(t)), *update)
}
