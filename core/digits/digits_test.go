package digits

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestExactRoundTrips(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e300, 5e-324, math.MaxFloat64,
		arch.RejectedTotal, 1 << 53,
		1<<53 - 1, 344649.8060363763, math.Inf(1), math.NaN()}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		values = append(values, math.Float64frombits(r.Uint64()))
	}
	for _, v := range values {
		back, err := strconv.ParseFloat(Exact(v), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) && !math.IsNaN(v) {
			t.Errorf("%v written as %s read as %v, %v", v, Exact(v), back, err)
		}
	}
	for v, want := range map[float64]string{8448: "8448", 2520000000: "2520000000", 0.5: "0.5",
		1e15 + 1: "1000000000000001"} {
		must.Equal(t, Exact(v), want, v)
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 8448: "8448", 344649.8060363763: "344650", 3318.278481012658: "3318.28", 0.9166666666666666: "0.916667",
		2520000000: "2520000000",
		1e18:       "1e+18", 1e-9: "1e-09", -0.5: "-0.5", 0.00001: "1e-05",
	} {
		must.Equal(t, SixDigits(v), want, v)
	}
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.7598: "76.0 %", 0.0137: "1.37 %", 0.0001: "0.010 %",
		0.0000029: "<0.001 %", 2.5: "250 %",
		0.09996: "10.0 %", 0.99951: "100 %", math.Inf(1): "+Inf",
	} {
		must.Equal(t, Percent(v), want, v)
	}
}

// A range has its unit once, unless the ends differ in it.
func TestSpan(t *testing.T) {
	for _, tc := range []struct {
		low, high unit.Seconds
		want      string
	}{{158e-6, 237e-6, "158-237 µs"}, {0.9e-3, 1.2e-3, "900 µs-1.20 ms"}} {
		must.Equal(t, Span(tc.low, tc.high), tc.want, tc.low, tc.high)
	}
	must.Equal(t, Level(0.9)+", "+Level(0.995), "90 %, 99.5 %")
}
