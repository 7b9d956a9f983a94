package wire

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func TestExecutorDescriptionsSurvive(t *testing.T) {
	x := must.Get(fake.ExecutorProvider{}.Open(t.Context()))(t)
	d, _ := x.Devices(t.Context())
	survives(t, d, nil)
	e, _ := x.Environment(t.Context(), 1)
	survives(t, e, nil)
	survives(t, exec.Environment{}, nil)
	for _, v := range []any{exec.MeasureOptions{}, exec.Sample{}} {
		if want, got := fieldsKnown[reflect.TypeOf(v).String()], reflect.TypeOf(v).NumField(); got != want {
			t.Errorf("%T has %d fields, and the conversions were written for %d: carry the new ones, then adapt the number", v,
				got, want)
		}
	}
}

func TestRandomMeasurementsSurvive(t *testing.T) {
	positive := rapid.Float64Range(leastNumber, mostNumber)
	amount := rapid.OneOf(rapid.Just(0.0), positive)
	count := rapid.IntRange(0, math.MaxInt)
	rapid.Check(t, func(t *rapid.T) {
		n := exec.Numerics{
			MaxError: rapid.OneOf(amount, rapid.Just(math.Inf(1))).Draw(t, "error"), Tolerance: amount.Draw(t, "tolerance"),
			Checked: rapid.Int64Min(0).Draw(t, "checked"), OutOfBounds: rapid.Int64Min(0).Draw(t, "out"),
			Reference: rapid.String().Draw(t, "reference"),
		}
		n.Wrong = rapid.Int64Range(0, n.Checked).Draw(t, "wrong")
		numerics, err := fromNumerics(sent(t, toNumerics(n)))
		same(t, n, numerics, err)

		o := exec.MeasureOptions{WarmL2: rapid.Bool().Draw(t, "warm"), Input: rapid.String().Draw(t, "input"),
			Warmup: count.Draw(t, "warmup")}
		runs := rapid.IntRange(1, maxRuns).Draw(t, "runs")
		options, back, err := fromMeasureRequest(sent(t, toMeasureRequest(1, o, runs)))
		same(t, o, options, err)
		same(t, runs, back, nil)

		s := make([]exec.Sample, rapid.IntRange(1, 20).Draw(t, "samples"))
		for i := range s {
			s[i] = exec.Sample{Time: unit.Seconds(positive.Draw(t, "time")), Clock: unit.Hertz(amount.Draw(t, "clock"))}
		}
		samples, err := fromSamples(sent(t, toSamples(s)), len(s))
		same(t, s, samples, err)
	})
}

// Of several faults, the same one is told each time.
func TestFirstFaultOfNumerics(t *testing.T) {
	for range 50 {
		_, err := fromNumerics(&pb.CheckResponse{Checked: -1, Wrong: -2, OutOfBounds: -3})
		if err == nil || err.Error() != "-2 of -1 elements are wrong, and -3 bytes out of bounds" {
			t.Fatal(err)
		}
	}
}
