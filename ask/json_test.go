package ask

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A number that JSON cannot hold is an error in one line, wherever it is.
func TestEncodeRefusesNumbers(t *testing.T) {
	type predicted struct {
		TFLOPS float64 `json:"tflops"`
	}
	for _, v := range []any{predicted{math.Inf(1)}, map[string]any{"summary": Fields{{"worst", math.NaN()}}}} {
		line, err := Encode(v)
		must.That(t, diag.KindOf(err) == diag.Plugin && line == nil, "%s", line)
		must.Fail(t, err, "which is no result; see whether an override is out of range")
	}
}
