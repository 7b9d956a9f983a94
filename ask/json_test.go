package ask

import (
	"errors"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A number that JSON cannot hold is an error that names it.
func TestEncodeNamesNumbers(t *testing.T) {
	type predicted struct {
		TFLOPS   float64     `json:"tflops"`
		Interval *[2]float64 `json:"interval_seconds"`
	}
	type Object struct {
		Predicted *predicted `json:"predicted"`
	}
	inf := math.Inf(1)
	for want, v := range map[string]any{
		"predicted.tflops": Object{Predicted: &predicted{TFLOPS: inf}},
		"predicted.interval_seconds[1]": struct {
			Object
			Rank int `json:"rank"`
		}{Object: Object{Predicted: &predicted{Interval: &[2]float64{0, math.NaN()}}}},
		"summary.worst": map[string]any{"summary": Fields{{"best", 1.0}, {"none", Number(inf)}, {"worst", -inf}}},
		"rows[2].x": struct {
			Rows []map[string]float64 `json:"rows"`
		}{[]map[string]float64{{"x": 1}, nil, {"x": inf}}},
	} {
		line, err := Encode(v)
		var d *diag.Error
		must.That(t, errors.As(err, &d) && d.Where == want && d.Kind == diag.Plugin && line == nil,
			"%v, %s, want %s", err, line, want)
	}
}
