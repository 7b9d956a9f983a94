package fit_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

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
			if err := s.Add(gemm.New(64*(1+i), 64, k), configs, seconds); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// The constants of another device are found, and kept where no time depends on them.
func TestAdopt(t *testing.T) {
	base := line{launch: 1000, step: 10}
	stages, last := 0, fit.Stage{}
	a, err := fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, func(s fit.Stage) { stages, last = stages+1, s })
	if err != nil {
		t.Fatal(err)
	}
	values := adopted(a)
	if a.Refused != "" || len(values) != 2 || math.Abs(values["launch"]/3000-1) > 0.03 ||
		math.Abs(values["step"]/25-1) > 0.03 {
		t.Errorf("%q, %v", a.Refused, values)
	}
	if !(a.After.Loss < a.Before.Loss) || a.After.Error > 0.03 || a.Before.Error < 0.3 ||
		a.After.Efficiency < a.Before.Efficiency || a.Problems != 20 || a.Times != 200 {
		t.Errorf("%+v", a)
	}
	for _, q := range a.Quantities[:2] {
		if !(q.FoldLow <= q.New && q.New <= q.FoldHigh*1.01) || q.Error > 0.5 {
			t.Errorf("%+v", q)
		}
	}
	if spare := a.Quantities[2]; spare.New != spare.Value || spare.Kept != "no time depends on it" {
		t.Errorf("%+v", spare)
	}
	if stages == 0 || last.Done != last.Total {
		t.Errorf("%d stages, the last %+v", stages, last)
	}
}

// Times of the device that the model is of change nothing, whatever their scatter.
func TestAdoptNothing(t *testing.T) {
	base := line{launch: 3000, step: 25}
	a, err := fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Refused == "" || len(adopted(a)) != 0 {
		t.Errorf("%+v", a)
	}
	for _, q := range a.Quantities {
		if q.New != q.Value || q.Kept == "" {
			t.Errorf("%+v", q)
		}
	}
}

// A quantity that hardly any time depends on is not determined.
func TestAdoptUndetermined(t *testing.T) {
	base := line{launch: 100, step: 10}
	a, err := fit.Adopt(t.Context(), device(t, 101, 1000, 20), base, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, moved := adopted(a)["launch"]; moved {
		t.Errorf("%+v", a.Quantities[0])
	}
}

func TestAdoptRefuses(t *testing.T) {
	base := line{launch: 1000, step: 10}
	_, err := fit.Adopt(t.Context(), device(t, 3000, 25, 9), base, base, nil)
	if err == nil || !strings.Contains(err.Error(), "90 usable times, of 9 different problems") {
		t.Error(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := fit.Adopt(stopped, device(t, 3000, 25, 20), base, base, nil); err == nil {
		t.Error("a stopped fit")
	}
}

// Times of a problem from two sweeps are one observation, in one fold.
func TestAddAgain(t *testing.T) {
	base := line{launch: 1000, step: 10}
	want, err := fit.Adopt(t.Context(), device(t, 3000, 25, 20), base, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fit.Adopt(t.Context(), sweeps(t, 3000, 25, 20, 2), base, base, nil)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
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
