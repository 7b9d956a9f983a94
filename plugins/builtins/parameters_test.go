//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package builtins

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library"
)

var rungs = []arch.Rung{arch.RungSpec, arch.RungCalibrated, arch.RungCompiled, arch.RungCharacterized}

// Whatever parameter a user overrides, a prediction changes, or the description says that the model does not use the
// parameter. What it says is not used changes nothing, and a number that states a quantity of a memory level changes
// that. This holds for every model of every device, on every rung. The devices of an architecture differ in numbers
// alone, and so do their rungs: the best rung of one device is tried and every rung of the recorded one, and all with
// ORIGAMI_TEST_ALL=1.
func TestParametersCountOrAreDeclaredUnused(t *testing.T) {
	for _, b := range Plugins {
		p, err := b.Provider()
		must.Do(t, err)
		for _, r := range models(p.Manifest()) {
			o := opened{provider: p, request: r}
			all := o.open(t, nil)
			must.Need(t, all != nil, "%+v does not open", r)
			for _, rung := range rungs {
				if r.Device != recorded && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
					break
				}
				o.request.Rung = rung
				a := o.open(t, nil)
				if a == nil || a.Describe().Rung != rung || same(a.Describe(), all.Describe()) {
					continue // the device lacks the rung, or has no other
				}
				o.run(t, a)
			}
			o.request.Rung = ""
			o.run(t, all)
		}
	}
}

// same reports whether two descriptions of a device and a model are of the same rung, with the same numbers.
func same(d, e *arch.Description) bool { return d.Rung == e.Rung && slices.Equal(d.Params, e.Params) }

// recorded is the device of the shipped records. It has rungs that others lack.
const recorded = "h200"

// models lists every model of the devices that are tried, and that of the vendor's library.
func models(m arch.Manifest) []arch.OpenRequest {
	var list []arch.OpenRequest
	for _, a := range m.Archs {
		for i, d := range a.Devices {
			if i > 0 && d.ID != recorded && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				continue
			}
			for _, model := range a.Models {
				list = append(list, arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model})
			}
			if slices.Contains(a.Kernels, library.Family) {
				list = append(list, arch.OpenRequest{Arch: a.ID, Device: d.ID, Kernel: library.Family})
			}
		}
	}
	return list
}

// opened is a request and what it predicts without overrides, by question.
type opened struct {
	provider    arch.Provider
	request     arch.OpenRequest
	predictions []predictions
}

// open opens the request with overrides. It returns nil if that is refused: a value is out of bounds, or the device
// lacks a number that the rung needs.
func (o *opened) open(t *testing.T, overrides map[string]hw.OverrideValue) arch.Architecture {
	t.Helper()
	r := o.request
	r.Overrides = overrides
	a, err := o.provider.Open(t.Context(), r)
	must.Need(t, diag.KindOf(err) == diag.Input || err == nil, "%v", err)
	if err != nil {
		return nil
	}
	return a
}

func (o *opened) run(t *testing.T, a arch.Architecture) {
	d := a.Describe()
	t.Run(fmt.Sprintf("%s %s %s", d.ID(), d.Model, d.Rung), func(t *testing.T) { o.check(t, a) })
}

func (o *opened) check(t *testing.T, a arch.Architecture) {
	d := a.Describe()
	o.predictions = nil
	for i := range questions {
		o.predictions = append(o.predictions, ask(t.Context(), t, a, i))
	}
	// All unused parameters at once: if nothing changes, none of them changes anything.
	suspicious := false
	for _, change := range changes[len(changes)-2:] {
		overrides := map[string]hw.OverrideValue{}
		for _, name := range d.Unused {
			p, ok := hw.Set(d.Params).Lookup(name)
			must.Need(t, ok, "%s is unused, but no parameter", name)
			if p.Value == 0 && p.Unit == "FLOP/s" {
				continue // the device does not have the type, and any rate that it could have is far off
			}
			overrides[name] = hw.OverrideValue{Value: change(p)}
		}
		with := o.open(t, overrides)
		must.Need(t, with != nil, "%v is refused: choose another change", overrides)
		if _, differs := o.differs(t, with, 0); differs {
			suspicious = true
		}
	}
	for _, p := range d.Params {
		unused := d.Ignores(p.Name)
		switch {
		case unused && suspicious && o.counts(t, p):
			t.Errorf("overriding %s changes predictions, though the description says that it is unused", p.Name)
		case !unused && !o.counts(t, p):
			t.Errorf("overriding %s changes no prediction, and the description does not say that it is unused", p.Name)
		}
	}
	for i, level := range a.Hierarchy().Levels() {
		level.Numbers(func(name string, quantity *float64) {
			half := *quantity / 2
			with := o.open(t, map[string]hw.OverrideValue{name: {Value: half}})
			if _, stated := hw.Set(d.Params).Lookup(name); !stated || half == 0 || with == nil {
				return // the device has no such number, or it cannot be half
			}
			with.Hierarchy().Levels()[i].Numbers(func(other string, got *float64) {
				must.That(t, other != name || *got == half, "half of %s is %v, and in %s it is %v", name, half, level.Name, *got)
			})
		})
	}
}

// changes are tried in turn. Ten percent do for most parameters. The others count in steps, or are one of two limits:
//   - the rate of the tensor cores is the power of two next to peak_fp16 / (num_sms * clock);
//   - register_file and registers_per_thread limit kernels whose needs are far apart;
//   - l2_bytes is compared with working sets, most of which differ by factors of two;
//   - l2_perf_ratio counts where it is less than what the ports of all SMs take;
//   - tdp is many times the power that some devices need.
var changes = []func(hw.Param) float64{by(1.1), by(1 / 1.1), by(1.3), by(1 / 1.3), by(0.03), by(2), by(0.5)}

// by returns a change by a factor: of a whole number to another whole number, of zero to one, of a switch to its other
// value, and of a cache that the device does not have to a large one.
func by(factor float64) func(hw.Param) float64 {
	return func(p hw.Param) float64 {
		switch v, changed := p.Value, p.Value*factor; {
		case p.Name == "dram_ecc":
			return 1 - v // on or off
		case v == 0 && p.Unit == "B":
			return 1 << 28
		case v == 0:
			return 1
		case v != math.Trunc(v):
			return changed
		case factor > 1:
			return math.Ceil(changed)
		default:
			return max(math.Floor(changed), 1)
		}
	}
}

// counted is where a parameter counted last: a change and a question, by position. It counts there on most devices.
var counted = map[string][2]int{}

// counts reports whether a change of the parameter changes a prediction.
func (o *opened) counts(t *testing.T, p hw.Param) bool {
	by := func(change, first int) bool {
		with := o.open(t, map[string]hw.OverrideValue{p.Name: {Value: changes[change](p)}})
		if with == nil {
			return false
		}
		question, differs := o.differs(t, with, first)
		if differs {
			counted[p.Name] = [2]int{change, question}
		}
		return differs
	}
	last := counted[p.Name]
	if by(last[0], last[1]) {
		return true
	}
	for i := range changes {
		if i != last[0] && by(i, last[1]) {
			return true
		}
	}
	return false
}

// differs returns a question whose answer differs, the first from a position on.
func (o *opened) differs(t *testing.T, with arch.Architecture, first int) (question int, differs bool) {
	for i := range questions {
		question = (first + i) % len(questions)
		if !o.predictions[question].equal(ask(t.Context(), t, with, question)) {
			return question, true
		}
	}
	return 0, false
}

// questions are problems, such that each parameter counts for one of them.
var questions = []gemm.Problem{
	gemm.New(512, 768, 1024),
	gemm.New(1024, 1024, 512),     // about as large as a small L2
	gemm.New(16, 4096, 4096),      // decode
	gemm.New(64, 64, 1<<17),       // few tiles, long K
	gemm.New(8192, 8192, 8192),    // many waves, beyond the L2
	gemm.New(16384, 16384, 16384), // power
	gemm.New(40000, 30000, 100),   // a K step of the whole grid is as large as a large L2
	gemm.New(1<<24, 16, 1000),     // and as 1024 times the L2 of a die, with which AMD's model compares it
	experts(gemm.BF16, 16), experts(gemm.BF16, 4096), experts(gemm.FP8, 4096),
	// each type has a peak rate
	typed(gemm.BF16), typed(gemm.TF32), typed(gemm.FP32), typed(gemm.INT8), typed(gemm.FP8),
	typed(gemm.FP4),
}

// experts is a product of 8 experts with so many rows each.
func experts(t gemm.DType, rows int) gemm.Problem {
	p := gemm.New(8*rows, 4096, 4096)
	p.DType, p.Out = t, gemm.BF16
	p.SetTrans(false, true)
	p.Groups, _ = gemm.NewGroups(slices.Repeat([]int{rows}, 8)...)
	return p
}

func typed(t gemm.DType) gemm.Problem {
	p := gemm.New(4096, 4096, 4096)
	p.DType = t
	p.SetTrans(false, true)
	return p
}

// beside are configurations that are no candidates by default, by kernel family. They use parameters of their own: the
// rate of the tensor cores.
var beside = map[string]arch.Space{
	"sgemm": {
		Kernel: "sgemm", BlockM: []int{16}, BlockN: []int{16}, BlockK: []int{16}, NumWarps: []int{1}, NumStages: []int{1},
		Axes: []arch.AxisValues{{Name: "math", Values: []string{"wmma"}}, {Name: "staging", Values: []string{"none"}},
			{Name: "thread_m", Values: []string{"8"}}, {Name: "lanes_m", Values: []string{"4"}},
			{Name: "pad", Values: []string{"0"}}},
	},
}

// predictions are all that a model says of a problem, for each kernel family.
type predictions struct {
	configs   []gemm.Config
	rejected  []arch.Rejection
	estimates []arch.Estimate
	seconds   []unit.Seconds
	mapping   []arch.Mapping
}

func (p predictions) equal(q predictions) bool {
	return slices.Equal(p.configs, q.configs) && slices.Equal(p.rejected, q.rejected) &&
		slices.Equal(p.estimates, q.estimates) && slices.Equal(p.seconds, q.seconds) && slices.Equal(p.mapping, q.mapping)
}

func ask(ctx context.Context, t *testing.T, a arch.Architecture, question int) (all predictions) {
	t.Helper()
	d, p := a.Describe(), questions[question]
	for _, kernel := range d.Kernels {
		if d.SupportsTypes(kernel, &p) != nil {
			continue
		}
		list, err := a.Candidates(ctx, p, arch.Space{Kernel: kernel, SplitK: []int{1}})
		if diag.KindOf(err) == diag.Input && question >= len(questions)-8 {
			continue // the device does not have the type, or the family no groups
		}
		must.Do(t, err)
		if space, ok := beside[kernel]; ok && p.DType == gemm.FP32 {
			more, err := a.Candidates(ctx, p, space)
			must.Do(t, err)
			list.Configs = append(slices.Clone(list.Configs), more.Configs...)
		}
		for _, r := range list.Rejected {
			r.Detail = "" // it shows parameters
			all.rejected = append(all.rejected, r)
		}
		all.configs = append(all.configs, list.Configs...)
		estimates := make([]arch.Estimate, len(list.Configs))
		if err := a.Estimate(ctx, estimates, p, list.Configs); err != nil {
			t.Fatal(err)
		}
		best := -1
		for i, e := range estimates {
			all.seconds = append(all.seconds, e.Cycles.At(d.Clock))
			if e.Reject == "" && (best < 0 || e.Cycles < estimates[best].Cycles) {
				best = i
			}
		}
		all.estimates = append(all.estimates, estimates...)
		if best >= 0 {
			m, err := a.Mapping(ctx, p, list.Configs[best])
			must.Do(t, err)
			all.mapping = append(all.mapping, m)
		}
	}
	return all
}
