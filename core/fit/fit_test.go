package fit_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// line is a model with two quantities: a launch takes so many cycles, and each K step so many.
type line struct {
	arch.Architecture
	launch, step float64
}

// Describe has the two, and a constant that no time depends on.
func (l line) Describe() *arch.Description {
	return &arch.Description{Clock: 1e9, Constants: []arch.Constant{
		{Name: "fixed", Value: 3, Unit: "1"},
		{Name: "launch", Value: l.launch, Unit: "cycles", Low: quantities[0].Low, High: quantities[0].High},
		{Name: "step", Value: l.step, Unit: "cycles", Low: quantities[1].Low, High: quantities[1].High},
		{Name: "spare", Value: 1.5, Unit: "1", Low: 1, High: 2},
	}}
}

func (l line) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(l.launch + l.step*float64(p.K/c.BlockK))}
		if c.BlockK > 512 {
			dst[i] = arch.Estimate{Reject: arch.ReasonSharedMemory}
		}
	}
	return nil
}

func model(values map[string]float64) (arch.Architecture, error) {
	l := line{launch: 1000, step: 10}
	if v, ok := values["launch"]; ok {
		l.launch = v
	}
	if v, ok := values["step"]; ok {
		l.step = v
	}
	return l, nil
}

var quantities = []fit.Quantity{
	{Name: "launch", Low: 100, High: 10000},
	{Name: "step", Low: 1, High: 1000},
}

// times is a sample of a device on which a launch takes 3000 cycles and a K step 25, with one wild time.
func times(t *testing.T) *fit.Sample {
	t.Helper()
	s := &fit.Sample{}
	for _, k := range []int{512, 4096, 32768} {
		var configs []gemm.Config
		var seconds []float64
		for _, block := range []int{16, 32, 64, 128, 256} {
			configs = append(configs, gemm.Config{BlockM: 64, BlockN: 64, BlockK: block})
			seconds = append(seconds, (3000+25*float64(k/block))*1e-9)
		}
		if k == 4096 {
			seconds[2] *= 1.05
		}
		must.Do(t, s.Add(gemm.New(64, 64, k), configs, seconds))
	}
	return s
}

// The fit finds the numbers that the times were made with, from the middle of the bounds, and says how it went.
func TestRun(t *testing.T) {
	got := must.Get(fit.Run(t.Context(), times(t), model, quantities, fit.Options{}))(t)
	first := must.Get(fit.Run(t.Context(), times(t), model, quantities, fit.Options{Steps: 1}))(t)
	if math.Abs(got.Values["launch"]/3000-1) > 0.02 || math.Abs(got.Values["step"]/25-1) > 0.02 || !got.Converged {
		t.Errorf("found %+v", got)
	}
	must.That(t, first.Steps == 1 && !first.Converged && got.Steps >= 2 && first.Loss > got.Loss,
		"a loss of %v after a step, and of %v after %d", first.Loss, got.Loss, got.Steps)
}

// Bounds hold, a quantity that is not fitted stays where it is, and problems that do not count change nothing.
func TestOptions(t *testing.T) {
	narrow := []fit.Quantity{{Name: "step", Low: 1, High: 20}}
	start := map[string]float64{"launch": 3000, "step": 2}
	got, err := fit.Run(t.Context(), times(t), model, narrow, fit.Options{Start: start})
	must.That(t, err == nil && got.Values["step"] == 20 && got.Values["launch"] == 3000, "found %+v, %v", got, err)
	tame := func(i int) bool { return i != 1 }
	exact, err := fit.Run(t.Context(), times(t), model, quantities, fit.Options{Use: tame})
	must.That(t, err == nil && math.Abs(exact.Values["step"]/25-1) <= 1e-3 && exact.Loss <= 1e-6,
		"without the wild time found %+v, %v", exact, err)
}

func TestMistakes(t *testing.T) {
	s, o := times(t), fit.Options{}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := fit.Run(stopped, s, model, quantities, o); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped fit: %v", err)
	}
	broken := func(map[string]float64) (arch.Architecture, error) { return nil, errors.New("no device") }
	large := &fit.Sample{}
	must.Do(t, large.Add(gemm.New(1, 1, 1024), []gemm.Config{{BlockK: 1024}}, []float64{1}))
	run := func(s *fit.Sample, m fit.Model, q []fit.Quantity, o fit.Options) error {
		_, err := fit.Run(t.Context(), s, m, q, o)
		return err
	}
	for want, err := range map[string]error{
		"no device":         run(s, broken, quantities, o),
		"nothing to fit":    run(s, model, nil, o),
		"no time for":       run(large, model, quantities, o),
		"no positive range": run(s, model, []fit.Quantity{{Name: "step", Low: 0, High: 1}}, o),
		"no logarithm":      run(s, model, quantities, fit.Options{Start: map[string]float64{"step": 0}}),
		"1 kernels with 0":  s.Add(gemm.New(1, 1, 1), make([]gemm.Config, 1), nil),
		"is NaN":            s.Add(gemm.New(1, 1, 1), make([]gemm.Config, 1), []float64{math.NaN()}),
	} {
		must.Fail(t, err, want)
	}
}

// EstimateWith implements fit.Tunable.
func (l line) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	return fit.EstimateEach(ctx, func(v map[string]float64) (arch.Architecture, error) {
		moved := l
		if launch, ok := v["launch"]; ok {
			moved.launch = launch
		}
		if step, ok := v["step"]; ok {
			moved.step = step
		}
		return moved, nil
	}, values, sample)
}

// device is a sample of a device with other numbers than the model's, and times that scatter.
func device(t *testing.T, launch, step float64, problems int) *fit.Sample {
	t.Helper()
	return sweeps(t, launch, step, problems, 1)
}

// sweeps is device with the kernels of each problem in so many sweeps.
func sweeps(t *testing.T, launch, step float64, problems, sweeps int) *fit.Sample {
	t.Helper()
	s := &fit.Sample{}
	blocks := []int{16, 32, 64, 128, 256, 512, 16, 32, 64, 128}
	for sweep := range sweeps {
		for i := range problems {
			k := 512 << (i % 7)
			var configs []gemm.Config
			var seconds []float64
			for j := sweep * len(blocks) / sweeps; j < (sweep+1)*len(blocks)/sweeps; j++ {
				scatter := 1 + 0.02*math.Sin(float64(37*i+11*j))
				configs = append(configs, gemm.Config{BlockM: 64, BlockN: 64 + 64*(j/6), BlockK: blocks[j]})
				seconds = append(seconds, (launch+step*float64(k/blocks[j]))*1e-9*scatter)
			}
			must.Do(t, s.Add(gemm.New(64*(1+i), 64, k), configs, seconds))
		}
	}
	return s
}

// The constants of another device are found, and kept where no time depends on them.
func TestAdopt(t *testing.T) {
	base := line{launch: 1000, step: 10}
	stages, last := 0, fit.Stage{}
	a, err := fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, func(s fit.Stage) { stages, last = stages+1, s })
	must.Do(t, err)
	values := adopted(a)
	must.That(t, a.Refused == "" && len(values) == 2 && math.Abs(values["launch"]/3000-1) <= 0.03 &&
		math.Abs(values["step"]/25-1) <= 0.03, "%q, %v", a.Refused, values)
	must.That(t, a.After.Loss < a.Before.Loss && a.After.Error <= 0.03 && a.Before.Error >= 0.3 &&
		a.After.Efficiency >= a.Before.Efficiency && a.Problems == 20 && a.Times == 200, "%+v", a)
	for _, q := range a.Quantities[:2] {
		must.That(t, q.FoldLow <= q.New && q.New <= q.FoldHigh*1.01 && q.Error <= 0.5, "%+v", q)
	}
	spare := a.Quantities[2]
	must.That(t, spare.New == spare.Value && spare.Kept == "no time depends on it", "%+v", spare)
	must.That(t, stages != 0 && last.Done == last.Total, "%d stages, the last %+v", stages, last)
}

// Times of the device that the model is of change nothing, whatever their scatter.
func TestAdoptNothing(t *testing.T) {
	base := line{launch: 3000, step: 25}
	a := must.Get(fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, nil))(t)
	must.That(t, a.Refused != "" && len(adopted(a)) == 0, "%+v", a)
	for _, q := range a.Quantities {
		must.That(t, q.New == q.Value && q.Kept != "", "%+v", q)
	}
}

// A quantity that hardly any time depends on is not determined.
func TestAdoptUndetermined(t *testing.T) {
	base := line{launch: 100, step: 10}
	a := must.Get(fit.Adopt(t.Context(), device(t, 101, 1000, 20), base, base, nil))(t)
	if _, moved := adopted(a)["launch"]; moved {
		t.Errorf("%+v", a.Quantities[0])
	}
}

func TestAdoptRefuses(t *testing.T) {
	base := line{launch: 1000, step: 10}
	_, err := fit.Adopt(t.Context(), device(t, 3000, 25, 9), base, base, nil)
	must.Fail(t, err, "90 usable times, of 9 different problems")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	must.Fail(t, must.Err(fit.Adopt(stopped, device(t, 3000, 25, 20), base, base, nil)), "canceled")
}

// Times of a problem from two sweeps are one observation, in one fold.
func TestAddAgain(t *testing.T) {
	base := line{launch: 1000, step: 10}
	want := must.Get(fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, nil))(t)
	got, err := fit.Adopt(t.Context(), sweeps(t, 3000, 25, 20, 2), base, base, nil)
	must.That(t, err == nil && reflect.DeepEqual(got, want), "%+v, %v, want %+v", got, err, want)
}

// adopted are the new values of the quantities that are adopted.
func adopted(a *fit.Adoption) map[string]float64 {
	values := map[string]float64{}
	for _, q := range a.Quantities {
		if q.Kept == "" {
			values[q.Name] = q.New
		}
	}
	return values
}
